//! The audit of threads: whatever went around the census is found. One test, in a process of its own.
#![cfg(all(test, target_os = "linux"))]
#![expect(
    clippy::disallowed_methods,
    reason = "one of its threads is a stranger"
)]

use regatta_linux::Audit;
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use std::sync::mpsc::channel;

#[test]
fn a_thread_that_went_around_the_census_is_a_stranger() {
    // The thread of this test is the harness's, and no census knows it.
    let census = Census::new();
    let here = std::thread::current().name().unwrap().to_owned();
    let kernel = |name: &str| name.chars().take(15).collect::<String>();
    let found = Audit::of(&census).unwrap();
    assert_eq!(found.strangers, [kernel(&here)]);
    assert!(!found.is_reconciled() && found.to_string().contains(&kernel(&here)));

    let (leave, stays) = channel::<()>();
    let owned = census.spawn(ThreadSpec::one("test", "owned"), move || stays.recv());
    let owned = owned.unwrap();
    let (go, waits) = channel::<()>();
    let stranger = std::thread::Builder::new()
        .name("a-stranger".to_owned())
        .spawn(move || waits.recv())
        .unwrap();
    // A thread names itself once it runs.
    loop {
        let mut found = Audit::of(&census).unwrap();
        found.strangers.sort();
        if found.strangers.contains(&"a-stranger".to_owned()) {
            assert_eq!(found.strangers.len(), 2, "{found}");
            assert!(found.missing.is_empty(), "{found}");
            break;
        }
        std::thread::yield_now();
    }
    drop((leave, go));
    owned.join().unwrap().unwrap_err();
    stranger.join().unwrap().unwrap_err();
    let found = Audit::of(&census).unwrap();
    assert_eq!(found.strangers, [kernel(&here)]);
}
