//! Which way of waking a process gets: what is asked for, what the kernel offers, and why it came out so.
//!
//! # Invariants
//! - A choice always ends with a kind, and what was asked for and is not to be had is told in one warning.
//! - Only what could be picked is asked of the kernel.

use super::{WakeError, WakeKind, WakeNameError, eventfd, uring};
use std::fmt;
use std::str::FromStr;

/// What a configuration asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum WakeChoice {
    /// The cheapest that does what is needed.
    #[default]
    Auto,
    /// This one, if it is to be had.
    Kind(WakeKind),
}

impl fmt::Display for WakeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Kind(kind) => kind.name(),
        })
    }
}

impl FromStr for WakeChoice {
    type Err = WakeNameError;

    fn from_str(text: &str) -> Result<Self, WakeNameError> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse().map(Self::Kind).map_err(|error| WakeNameError {
            takes: "auto, futex, eventfd or io_uring",
            ..error
        })
    }
}

/// Why a kind of wake is not to be had here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The kernel's error number, if it refused.
    pub errno: Option<i32>,
    /// What it comes from, as far as the error number tells.
    pub reason: String,
}

impl Refusal {
    fn of(error: &WakeError) -> Self {
        let errno = match error {
            WakeError::Refused { source, .. } => source.raw_os_error(),
            WakeError::TooOld { .. } | WakeError::NoDescriptors { .. } => None,
        };
        let reason = match errno {
            Some(libc::EPERM | libc::EACCES) => {
                "forbidden, by a seccomp filter or by the sysctl kernel.io_uring_disabled"
                    .to_owned()
            }
            Some(libc::ENOSYS) => "not in this kernel".to_owned(),
            Some(libc::ENOMEM) => "no memory for it, or a limit on locked memory".to_owned(),
            Some(libc::EMFILE | libc::ENFILE) => "too many files are open".to_owned(),
            _ => error.to_string(),
        };
        Self { errno, reason }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.errno {
            Some(errno) => write!(f, " (errno {errno})"),
            None => Ok(()),
        }
    }
}

/// Whether the kernel offers a kind of wake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The kind.
    pub kind: WakeKind,
    /// Why not, if not.
    pub refusal: Option<Refusal>,
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.refusal {
            None => write!(f, "{}: offered", self.kind),
            Some(refusal) => write!(f, "{}: {refusal}", self.kind),
        }
    }
}

/// What the kernel offers now, by trying.
#[must_use]
pub fn offered() -> [Offer; 3] {
    WakeKind::ALL.map(|kind| Offer {
        kind,
        refusal: refusal(kind),
    })
}

/// Why the kernel does not offer `kind`, by trying; `None` if it does.
fn refusal(kind: WakeKind) -> Option<Refusal> {
    let tried = match kind {
        // std itself parks its threads on one.
        WakeKind::Futex => Ok(()),
        WakeKind::Eventfd => eventfd::probe(),
        // The ring waits for an eventfd.
        WakeKind::IoUring => eventfd::probe().and_then(|()| uring::probe()),
    };
    tried.err().as_ref().map(Refusal::of)
}

/// A kind of wake, and why it is this one. It shows as one sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picked {
    /// The kind.
    pub kind: WakeKind,
    /// Why.
    pub reason: String,
    /// What was asked for in vain.
    pub instead_of: Option<WakeKind>,
}

impl fmt::Display for Picked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workers are woken by {}", self.kind)?;
        if let Some(asked) = self.instead_of {
            write!(f, " instead of {asked}")?;
        }
        write!(f, ": {}.", self.reason)
    }
}

/// Picks a kind of wake. `needs_descriptors` says that the thread which waits has descriptors to wait for
/// too. What was asked for and is not to be had is told in one warning.
#[must_use]
pub fn choose(choice: WakeChoice, needs_descriptors: bool) -> Picked {
    let picked = pick(choice, needs_descriptors, refusal);
    if let Some(asked) = picked.instead_of {
        let (kind, reason) = (picked.kind, &picked.reason);
        tracing::warn!(%asked, %kind, %reason, "the wake that was asked for is not to be had");
    }
    picked
}

fn pick(
    choice: WakeChoice,
    needs_descriptors: bool,
    refusal: impl Fn(WakeKind) -> Option<Refusal>,
) -> Picked {
    let picked = |kind, reason: String| Picked {
        kind,
        reason,
        instead_of: None,
    };
    let asked = match choice {
        WakeChoice::Auto => {
            let (kind, reason) = cheapest(needs_descriptors, refusal);
            return picked(kind, reason);
        }
        WakeChoice::Kind(asked) => asked,
    };
    let why_not = if needs_descriptors && !asked.takes_descriptors() {
        "it cannot wait for descriptors".to_owned()
    } else if let Some(refusal) = refusal(asked) {
        refusal.to_string()
    } else {
        return picked(asked, "it was asked for".to_owned());
    };
    // Whoever asked for a ring gets what the ring waits for, if that is to be had.
    let kind = match asked {
        WakeKind::IoUring if refusal(WakeKind::Eventfd).is_none() => WakeKind::Eventfd,
        _ => cheapest(needs_descriptors, refusal).0,
    };
    if kind == asked {
        // Setting it up will be refused in the same way, as an error.
        return picked(
            kind,
            format!("nothing takes its place, though it is refused: {why_not}"),
        );
    }
    Picked {
        instead_of: Some(asked),
        ..picked(kind, why_not)
    }
}

/// The cheapest kind that does what is needed, and why: by the figures of the decision record on wakes.
fn cheapest(
    needs_descriptors: bool,
    refusal: impl Fn(WakeKind) -> Option<Refusal>,
) -> (WakeKind, String) {
    if !needs_descriptors {
        let reason = "the cheapest where no descriptors are waited for";
        return (WakeKind::Futex, reason.to_owned());
    }
    match refusal(WakeKind::IoUring) {
        None => {
            let reason = "the cheapest that waits for descriptors too";
            (WakeKind::IoUring, reason.to_owned())
        }
        Some(refusal) => {
            let reason = format!("it waits for descriptors too, and io_uring is {refusal}");
            (WakeKind::Eventfd, reason)
        }
    }
}

#[cfg(test)]
mod tests;
