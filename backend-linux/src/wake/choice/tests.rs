//! What is picked for everything that can be asked for, on every kernel.

use super::*;

fn forbidden() -> Refusal {
    Refusal {
        errno: Some(libc::EPERM),
        reason: "forbidden".to_owned(),
    }
}

/// A kernel that refuses these kinds.
fn without(refused: &[WakeKind]) -> impl Fn(WakeKind) -> Option<Refusal> {
    move |kind| refused.contains(&kind).then(forbidden)
}

#[test]
fn names_are_read_back_and_others_refused() {
    let mut choices = vec![WakeChoice::Auto];
    choices.extend(WakeKind::ALL.map(WakeChoice::Kind));
    for choice in choices {
        assert_eq!(choice.to_string().parse(), Ok(choice));
    }
    for wrong in ["", "Auto", "io-uring", "uring", "park"] {
        let error = wrong.parse::<WakeChoice>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("wake {wrong:?} is none: it takes auto, futex, eventfd or io_uring")
        );
        assert!(wrong.parse::<WakeKind>().is_err());
    }
    // A kind has to be one.
    assert!("auto".parse::<WakeKind>().is_err());
}

#[test]
fn what_was_asked_for_is_picked_where_it_is_to_be_had() {
    for kind in WakeKind::ALL {
        let picked = pick(WakeChoice::Kind(kind), false, without(&[]));
        assert_eq!((picked.kind, picked.instead_of), (kind, None));
    }
}

#[test]
fn what_needs_descriptors_gets_a_kind_that_takes_them() {
    let mut choices = vec![WakeChoice::Auto];
    choices.extend(WakeKind::ALL.map(WakeChoice::Kind));
    for refused in [&[][..], &[WakeKind::IoUring]] {
        for choice in &choices {
            let picked = pick(*choice, true, without(refused));
            assert!(picked.kind.takes_descriptors(), "{choice}: {picked}");
            assert!(!refused.contains(&picked.kind), "{choice}: {picked}");
        }
    }
    let picked = pick(WakeChoice::Kind(WakeKind::Futex), true, without(&[]));
    assert_eq!(picked.instead_of, Some(WakeKind::Futex));
}

#[test]
fn auto_asks_for_nothing_in_vain() {
    let picked = pick(WakeChoice::Auto, false, |kind| {
        panic!("{kind} was asked for")
    });
    assert_eq!(picked.kind, WakeKind::Futex);
    let picked = pick(WakeChoice::Auto, true, without(&[WakeKind::IoUring]));
    assert_eq!(
        (picked.kind, picked.instead_of),
        (WakeKind::Eventfd, None),
        "{picked}"
    );
}

#[test]
fn what_is_refused_is_replaced_and_says_why() {
    let asked = WakeChoice::Kind(WakeKind::IoUring);
    let picked = pick(asked, false, without(&[WakeKind::IoUring]));
    assert_eq!(
        picked.to_string(),
        "Workers are woken by eventfd instead of io_uring: forbidden (errno 1)."
    );
    let both = [WakeKind::Eventfd, WakeKind::IoUring];
    for kind in both {
        let picked = pick(WakeChoice::Kind(kind), false, without(&both));
        assert_eq!(
            (picked.kind, picked.instead_of),
            (WakeKind::Futex, Some(kind))
        );
    }
    // With descriptors there is nothing left, and the set-up will say so.
    let picked = pick(WakeChoice::Kind(WakeKind::Eventfd), true, without(&both));
    assert_eq!((picked.kind, picked.instead_of), (WakeKind::Eventfd, None));
    assert!(picked.reason.contains("errno 1"), "{picked}");
}

#[test]
fn a_refusal_tells_what_the_error_number_comes_from() {
    for (errno, says) in [
        (libc::EPERM, "forbidden"),
        (libc::ENOSYS, "not in this kernel"),
        (libc::ENOMEM, "memory"),
        (libc::EMFILE, "files"),
        (libc::EIO, "Input/output error"),
    ] {
        let source = std::io::Error::from_raw_os_error(errno);
        let refusal = Refusal::of(&WakeError::refused(WakeKind::IoUring, "a ring", source));
        assert_eq!(refusal.errno, Some(errno));
        assert!(refusal.reason.contains(says), "{refusal}");
    }
    let too_old = WakeError::TooOld {
        kind: WakeKind::IoUring,
        feature: "multishot polls",
        since: "5.13",
    };
    let refusal = Refusal::of(&too_old);
    assert_eq!(refusal.errno, None);
    assert!(refusal.reason.contains("Linux 5.13"), "{refusal}");
}
