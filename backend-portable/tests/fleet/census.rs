//! The census: names, and rows that tell the truth.

use crate::common::{FAR, Jobs, config, spawn};
use regatta_portable::Census;
use regatta_portable::census::{CensusError, KERNEL_NAME, ThreadSpec};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;

#[test]
fn a_name_that_the_kernel_would_cut_is_refused() {
    let census = Census::new();
    for name in [
        "",
        "sixteen-letters-",
        "a blank",
        "tab\t",
        "nul\0",
        "umläut",
    ] {
        match census.spawn(ThreadSpec::one("test", name), || ()) {
            Err(CensusError::Name { name: refused }) => assert_eq!(refused, name),
            other => panic!("{name:?}: {other:?}"),
        }
    }
    assert!(census.rows().is_empty());
    spawn(&census, "fifteen-letters", || ()).join().unwrap();
}

#[test]
fn a_living_name_is_taken_and_a_dead_one_is_free() {
    let census = Census::new();
    let (open, opened) = channel::<()>();
    let first = spawn(&census, "name", move || opened.recv());
    let taken = census
        .spawn(ThreadSpec::one("test", "name"), || ())
        .unwrap_err();
    assert_eq!(
        taken.to_string(),
        "thread name \"name\" belongs to a living thread of \"test\""
    );
    open.send(()).unwrap();
    first.join().unwrap().unwrap();
    spawn(&census, "name", || ()).join().unwrap();
    let running: Vec<_> = census.rows().iter().map(|row| row.running).collect();
    assert_eq!(running, [false, false]);
}

#[test]
fn a_row_runs_until_its_thread_has_returned_or_unwound() {
    let census = Census::new();
    let (open, opened) = channel::<()>();
    let returns = spawn(&census, "returns", move || opened.recv());
    let (tell, told) = channel::<()>();
    let unwinds = spawn(&census, "unwinds", move || {
        told.recv().unwrap();
        panic!("a thread of a test");
    });
    let running = || -> Vec<bool> { census.rows().iter().map(|row| row.running).collect() };
    assert_eq!(running(), [true, true]);
    tell.send(()).unwrap();
    assert!(unwinds.join().is_err());
    assert_eq!(running(), [true, false]);
    open.send(()).unwrap();
    returns.join().unwrap().unwrap();
    assert_eq!(running(), [false, false]);
}

#[test]
fn the_threads_of_two_fleets_can_be_told_apart() {
    let census = Census::new();
    let fleets: Vec<_> = (0..3)
        .map(|n| {
            let config = config(1).name(&format!("a fleet with a long name, number {n}"));
            crate::binding::boot(Jobs::<u64>::new(), config, &census).unwrap()
        })
        .collect();
    let rows = census.rows();
    let kernel: BTreeSet<_> = rows.iter().map(|row| &row.spec.kernel_name).collect();
    let full: BTreeSet<_> = rows.iter().map(|row| &row.spec.name).collect();
    let owners: BTreeSet<_> = rows.iter().map(|row| &row.spec.owner).collect();
    let seats: usize = fleets.iter().map(|fleet| fleet.plan().seats.len()).sum();
    assert_eq!((kernel.len(), full.len(), owners.len()), (seats, seats, 3));
    assert!(kernel.iter().all(|name| name.len() <= KERNEL_NAME));
    for fleet in fleets {
        assert!(fleet.close(FAR).is_clean());
    }
    assert!(census.rows().iter().all(|row| !row.running));
    // What has ended leaves its name.
    drop(crate::binding::boot(Jobs::<u64>::new(), config(1), &census).unwrap());
    let again = census.rows();
    assert!(kernel.contains(&again[seats].spec.kernel_name));
}
