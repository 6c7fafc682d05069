//! Where `io_uring` is forbidden for real, by a filter as containers have it, another wake takes its place.
#![cfg(test)]
#![cfg(target_os = "linux")]

use regatta_linux::wake::{
    Sleeper, WakeChoice, WakeError, WakeKind, choose, offered, sleeper, watch_sleeper,
};
use regatta_portable::Census;
use regatta_portable::census::ThreadSpec;
use regatta_portable::clock::MonotonicClock;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// From here on every `io_uring_setup` of the calling thread, and of threads that it spawns, fails with
/// `errno`. The rest of the process is untouched.
#[expect(
    unsafe_code,
    reason = "neither std nor a dependency installs system call filters"
)]
fn forbid(errno: i32) {
    let statement = |code: u32, k: u32| libc::sock_filter {
        code: u16::try_from(code).unwrap(),
        jt: 0,
        jf: 0,
        k,
    };
    let number = std::mem::offset_of!(libc::seccomp_data, nr);
    let mut filter = [
        statement(
            libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
            u32::try_from(number).unwrap(),
        ),
        libc::sock_filter {
            jf: 1,
            ..statement(
                libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                u32::try_from(libc::SYS_io_uring_setup).unwrap(),
            )
        },
        statement(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | u32::try_from(errno).unwrap(),
        ),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).unwrap(),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and its statements outlive the calls, and the kernel only reads them.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(
            libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program
            ),
            0
        );
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs something, and gives what it logged, line by line.
fn logged<T>(run: impl FnOnce() -> T) -> (T, Vec<String>) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let outcome = tracing::subscriber::with_default(subscriber, run);
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    (outcome, text.lines().map(str::to_owned).collect())
}

/// On a thread on which rings are forbidden with this error.
fn where_forbidden(errno: i32, run: impl FnOnce() + Send + 'static) {
    let forbidden = move || {
        forbid(errno);
        run();
    };
    let spec = ThreadSpec::one("test", "forbidden");
    Census::new()
        .spawn(spec, forbidden)
        .unwrap()
        .join()
        .unwrap();
}

fn wakes(kind: WakeKind) {
    let Sleeper { waker, parker } = sleeper(kind, MonotonicClock::new()).unwrap();
    let park = parker().unwrap();
    let other = Census::new()
        .spawn(ThreadSpec::one("test", "waker"), move || waker.wake())
        .unwrap();
    park.park(None);
    other.join().unwrap();
}

#[test]
fn a_forbidden_ring_is_replaced_with_one_warning_and_wakes_work() {
    for (errno, why) in [
        (libc::EPERM, "forbidden"),
        (libc::ENOSYS, "not in this kernel"),
    ] {
        where_forbidden(errno, move || {
            let asked = WakeChoice::Kind(WakeKind::IoUring);
            for needs_descriptors in [false, true] {
                let (picked, lines) = logged(|| choose(asked, needs_descriptors));
                assert_eq!(picked.kind, WakeKind::Eventfd);
                assert_eq!(picked.instead_of, Some(WakeKind::IoUring));
                let [line] = lines.as_slice() else {
                    panic!("{lines:?}");
                };
                for word in [
                    "WARN",
                    "io_uring",
                    "eventfd",
                    why,
                    &format!("errno {errno}"),
                ] {
                    assert!(line.contains(word), "{line:?} lacks {word:?}");
                }
                wakes(picked.kind);
            }
        });
    }
}

#[test]
fn nobody_asked_for_the_ring_and_nobody_is_warned() {
    where_forbidden(libc::EPERM, || {
        for (needs_descriptors, kind) in [(false, WakeKind::Futex), (true, WakeKind::Eventfd)] {
            let (picked, lines) = logged(|| choose(WakeChoice::Auto, needs_descriptors));
            assert_eq!((picked.kind, picked.instead_of), (kind, None));
            assert_eq!(lines, Vec::<String>::new());
            wakes(kind);
        }
    });
}

#[test]
fn what_is_offered_tells_the_refusal_and_its_number() {
    where_forbidden(libc::EPERM, || {
        let offers = offered();
        let refused: Vec<_> = offers.iter().filter(|o| o.refusal.is_some()).collect();
        let [offer] = refused.as_slice() else {
            panic!("{offers:?}");
        };
        assert_eq!(offer.kind, WakeKind::IoUring);
        assert_eq!(offer.refusal.as_ref().unwrap().errno, Some(libc::EPERM));
        assert!(offer.to_string().contains("seccomp"), "{offer}");
    });
}

/// The ring is made by the thread that waits, so that is where it is refused, with a typed error.
#[test]
fn a_ring_that_is_forbidden_to_the_waiting_thread_is_an_error_there() {
    where_forbidden(libc::EPERM, || {
        let clock = MonotonicClock::new();
        let refused = |error: WakeError| match error {
            WakeError::Refused { kind, source, .. } => (kind, source.raw_os_error()),
            other => panic!("{other}"),
        };
        let expected = (WakeKind::IoUring, Some(libc::EPERM));
        let plain = (sleeper(WakeKind::IoUring, clock).unwrap().parker)();
        assert_eq!(plain.err().map(refused), Some(expected));
        let watching = (watch_sleeper(WakeKind::IoUring, clock).unwrap().parker)();
        assert_eq!(watching.err().map(refused), Some(expected));
    });
}
