//! From a process's group up to the root of a mount that shows it.

use std::borrow::Cow;

/// The levels of a hierarchy that a mount shows: the process's own group first, the mount's root last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    /// Where the hierarchy is mounted, without a slash at the end.
    point: Vec<u8>,
    /// The process's group, without a slash at the end.
    own: Vec<u8>,
    /// How much of `own` the mount's root stands for.
    root: usize,
    /// Where in `own` each level ends.
    ends: Vec<usize>,
    /// Whether the process's own group is outside what the mount shows.
    outside: bool,
}

impl View {
    /// How a mount at `point` whose root is `root` shows the group `own`; `None` if it does not.
    ///
    /// A mount's root and a group's path are both relative to the namespace's root and climb out of it
    /// by `..`. A root that is at or above the group shows it. From a group that is outside the root,
    /// and from a root that is above the namespace's by names that nobody tells, the mount's root is
    /// all that can be seen.
    #[must_use]
    pub fn new(point: &[u8], root: &[u8], own: &[u8]) -> Option<Self> {
        let (root_parts, own_parts) = (parts(root), parts(own));
        let climbs = |parts: &[&[u8]]| parts.contains(&b"..".as_slice());
        let inside = own_parts
            .strip_prefix(root_parts.as_slice())
            .map(|rest| !climbs(rest));
        let only_climbs = !root_parts.is_empty() && root_parts.iter().all(|part| *part == b"..");
        let outside = match inside {
            Some(inside) => !inside,
            None if only_climbs => true,
            None => return None,
        };
        let mut joined = Vec::with_capacity(own.len());
        let mut ends = vec![0];
        for part in if outside { &root_parts } else { &own_parts } {
            joined.push(b'/');
            joined.extend_from_slice(part);
            ends.push(joined.len());
        }
        let mut levels = ends.split_off(root_parts.len().min(ends.len() - 1));
        let root = levels.first().copied().unwrap_or(0);
        levels.reverse();
        Some(Self {
            point: point.strip_suffix(b"/").unwrap_or(point).to_vec(),
            own: joined,
            root,
            ends: levels,
            outside,
        })
    }

    /// How many levels there are; at least one.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.ends.len()
    }

    /// Whether the process's own group is outside what is shown, so that every level is a guess.
    #[must_use]
    pub const fn is_outside(&self) -> bool {
        self.outside
    }

    /// How many levels stand above the mount's root without being shown.
    #[must_use]
    pub fn hidden_above(&self) -> usize {
        parts(self.own.get(..self.root).unwrap_or_default()).len()
    }

    /// The path of a level in the hierarchy; level 0 is the process's own group.
    #[must_use]
    pub fn path(&self, level: usize) -> &[u8] {
        let end = self.ends.get(level).copied().unwrap_or(self.root);
        match self.own.get(..end) {
            None | Some([]) => b"/",
            Some(path) => path,
        }
    }

    /// The path of a file of a level in the file system.
    #[must_use]
    pub fn file(&self, level: usize, name: &str) -> Vec<u8> {
        let end = self.ends.get(level).copied().unwrap_or(self.root);
        let below = self.own.get(self.root..end).unwrap_or_default();
        [&self.point, below, b"/", name.as_bytes()].concat()
    }
}

/// The names on a path.
fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|part| !part.is_empty())
        .collect()
}

/// Undoes the kernel's octal escapes: `\040` for a space. A backslash that begins none stands.
pub(super) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let escape = match rest {
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                tail @ ..,
            ] => Some(((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), tail)),
            _ => None,
        };
        let (byte, after) = escape.unwrap_or((byte, after));
        plain.push(byte);
        rest = after;
    }
    Cow::Owned(plain)
}
