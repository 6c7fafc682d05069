//! Affinity masks that are set are in force, and others are refused with what would be right.
#![cfg(test)]
#![cfg(target_os = "linux")]

use regatta_linux::affinity::{AffinityError, gettid, mask, mask_of, set_mask, set_mask_of};
use regatta_linux::cgroup::CpuSet;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use std::sync::mpsc;

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse(list.as_bytes()).unwrap()
}

/// The set of one CPU out of this one.
fn first_of(set: &CpuSet) -> CpuSet {
    cpus(&set.iter().next().unwrap().to_string())
}

/// On a thread of its own, whose mask is nobody else's.
fn on_a_thread(run: impl FnOnce() + Send + 'static) {
    let thread = Census::new().spawn(ThreadSpec::one("test", "bound"), run);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_mask_that_is_set_is_read_back_and_can_be_restored() {
    on_a_thread(|| {
        let before = mask().unwrap();
        let one = first_of(&before);
        set_mask(&one).unwrap();
        assert_eq!(mask().unwrap(), one);
        set_mask(&before).unwrap();
        assert_eq!(mask().unwrap(), before);
    });
}

#[test]
fn the_mask_of_another_thread_is_set_and_only_that() {
    let here = mask().unwrap();
    let one = first_of(&here);
    let (tid, told) = mpsc::channel();
    let (done, is_done) = mpsc::channel::<()>();
    let waits = move || {
        tid.send(gettid()).unwrap();
        is_done.recv().unwrap();
        mask().unwrap()
    };
    let thread = Census::new()
        .spawn(ThreadSpec::one("test", "bound"), waits)
        .unwrap();
    let tid = told.recv().unwrap();
    assert_ne!(tid, gettid());
    set_mask_of(tid, &one).unwrap();
    assert_eq!(mask_of(tid).unwrap(), one);
    done.send(()).unwrap();
    assert_eq!(thread.join().unwrap(), one);
    assert_eq!(mask().unwrap(), here);
}

#[test]
fn an_empty_set_is_refused() {
    let before = mask().unwrap();
    let error = set_mask(&CpuSet::default()).unwrap_err();
    assert!(matches!(error, AffinityError::Empty { .. }), "{error}");
    assert_eq!(error.errno(), Some(libc::EINVAL));
    assert_eq!(mask().unwrap(), before);
}

/// No machine has the CPU of the highest number that a set can have.
#[test]
fn a_cpu_that_is_not_there_is_refused_with_those_that_are() {
    on_a_thread(|| {
        let before = mask().unwrap();
        let error = set_mask(&cpus("1048575")).unwrap_err();
        assert!(matches!(error, AffinityError::Refused { .. }), "{error}");
        assert_eq!(error.errno(), Some(libc::EINVAL));
        let text = error.to_string();
        assert!(
            text.contains("1048575") && text.contains(&before.to_string()),
            "{text}"
        );
        assert_eq!(mask().unwrap(), before);
    });
}

/// The kernel takes what it can of such a set and says nothing.
#[test]
fn a_set_that_is_there_in_part_changes_nothing() {
    on_a_thread(|| {
        let before = mask().unwrap();
        let one = first_of(&before);
        let error = set_mask(&cpus(&format!("{one},1048575"))).unwrap_err();
        let AffinityError::InPart { taken, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(*taken, one);
        assert_eq!(mask().unwrap(), before);
    });
}

#[test]
fn a_thread_that_is_not_there_is_refused() {
    // Above what the kernel gives to threads.
    let error = set_mask_of(i32::MAX, &cpus("0")).unwrap_err();
    assert_eq!(error.errno(), Some(libc::ESRCH), "{error}");
    assert!(error.to_string().contains("a thread that lives"), "{error}");
}
