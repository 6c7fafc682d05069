//! Prints how long each kind of wake takes on this machine, as ratios to the futex.
//!
//! `cargo run --release -p regatta-linux --example wake_latency [REPETITIONS] [ROUNDS]`
//!
//! The kinds take turns, so that a machine that is loud for a while is loud for all of them. Every figure
//! is the median over the repetitions, with the smallest and the largest beside it.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use regatta_core::port::{Clock, Park, Wake};
    use regatta_core::time::Instant;
    use regatta_core::wake::WakeWord;
    use regatta_linux::wake::{
        Measured, Placement, Sleeper, WakeError, WakeKind, measure_pair, offered, sleeper,
        watch_sleeper,
    };
    use regatta_portable::Census;
    use regatta_portable::clock::MonotonicClock;
    use std::hint::black_box;
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::{Arc, OnceLock};
    use std::thread::Thread;

    type Make = fn(MonotonicClock) -> Result<Sleeper, WakeError>;

    /// What is compared. The first is what the ratios are to.
    const CONTENDERS: [(&str, Make); 6] = [
        ("futex", |clock| sleeper(WakeKind::Futex, clock)),
        ("eventfd", |clock| sleeper(WakeKind::Eventfd, clock)),
        ("io_uring", |clock| sleeper(WakeKind::IoUring, clock)),
        ("std park", std_park),
        ("eventfd +8", |clock| watching(WakeKind::Eventfd, clock)),
        ("io_uring +8", |clock| watching(WakeKind::IoUring, clock)),
    ];

    /// How many descriptors are watched beside, in the contenders that say so.
    const WATCHED: usize = 8;

    /// Those descriptors. They stay silent, and open: a hang-up would end every block.
    static SILENT: OnceLock<Vec<(UnixStream, UnixStream)>> = OnceLock::new();

    fn watching(kind: WakeKind, clock: MonotonicClock) -> Result<Sleeper, WakeError> {
        let Sleeper { waker, parker } = watch_sleeper(kind, clock)?;
        let parker = Box::new(move || {
            let mut park = parker()?;
            let refused = |source| WakeError::Refused {
                kind,
                step: "a descriptor to watch",
                source,
            };
            for (token, (near, _)) in (0..).zip(SILENT.get().into_iter().flatten()) {
                let near = near.try_clone().map_err(refused)?;
                let watched = park.watch(near.into(), token);
                watched.map_err(|error| refused(std::io::Error::other(error)))?;
            }
            let park: Box<dyn Park> = park;
            Ok(park)
        });
        Ok(Sleeper { waker, parker })
    }

    /// The standard library's own, to compare with.
    struct StdPark {
        sleeper: Arc<OnceLock<Thread>>,
        clock: MonotonicClock,
    }

    struct StdWake(Arc<OnceLock<Thread>>);

    impl Park for StdPark {
        fn park(&self, deadline: Option<Instant>) {
            self.sleeper.get_or_init(std::thread::current);
            match deadline {
                None => std::thread::park(),
                Some(at) => std::thread::park_timeout(at.since(self.clock.now()).into()),
            }
        }
    }

    impl Wake for StdWake {
        fn wake(&self) {
            // Before the thread is known it has not blocked.
            if let Some(sleeper) = self.0.get() {
                sleeper.unpark();
            }
        }
    }

    #[expect(
        clippy::unnecessary_wraps,
        reason = "the contenders are of one type, and others can fail"
    )]
    fn std_park(clock: MonotonicClock) -> Result<Sleeper, WakeError> {
        let sleeper = Arc::new(OnceLock::new());
        let waker = Arc::new(StdWake(Arc::clone(&sleeper)));
        let parker = Box::new(move || {
            sleeper.get_or_init(std::thread::current);
            let park: Box<dyn Park> = Box::new(StdPark { sleeper, clock });
            Ok(park)
        });
        Ok(Sleeper { waker, parker })
    }

    /// Smallest, median and largest of what the repetitions gave.
    fn spread(mut of: Vec<f64>) -> [f64; 3] {
        of.sort_by(f64::total_cmp);
        [of[0], of[of.len() / 2], of[of.len() - 1]]
    }

    pub(super) fn main() -> Result<(), Box<dyn std::error::Error>> {
        let mut arguments = std::env::args().skip(1);
        let mut number = |default: u32| arguments.next().map_or(Ok(default), |n| n.parse());
        let (repetitions, rounds) = (number(15)?.max(1), number(5_000)?.max(1));
        let pairs: Result<Vec<_>, _> = (0..WATCHED).map(|_| UnixStream::pair()).collect();
        let pairs = pairs?;
        SILENT.get_or_init(|| pairs);
        let mut out = std::io::stdout().lock();
        for offer in offered() {
            writeln!(out, "{offer}")?;
        }
        let census = Census::new();
        for placement in [Placement::SameCpu, Placement::AcrossCpus] {
            let mut measured: [Vec<Measured>; CONTENDERS.len()] = Default::default();
            for _ in 0..repetitions {
                for (of_one, (_, make)) in measured.iter_mut().zip(CONTENDERS) {
                    of_one.push(measure_pair(&make, rounds, placement, &census)?);
                }
            }
            writeln!(
                out,
                "\nround trip, {placement}: {repetitions} x {rounds} rounds; us, [smallest..largest]"
            )?;
            table(&mut out, &measured)?;
        }
        writeln!(
            out,
            "\nwake that nobody waits for: {repetitions} x {rounds} wakes; ns"
        )?;
        unheard(&mut out, repetitions, rounds)
    }

    #[expect(clippy::cast_precision_loss, reason = "nanoseconds to be read")]
    fn table(
        out: &mut dyn Write,
        measured: &[Vec<Measured>; CONTENDERS.len()],
    ) -> std::io::Result<()> {
        let us = |ns: u64| ns as f64 / 1e3;
        for ((name, _), of_one) in CONTENDERS.iter().zip(measured) {
            let [low, median, high] = spread(of_one.iter().map(|m| us(m.median)).collect());
            let [_, p99, p99_high] = spread(of_one.iter().map(|m| us(m.p99)).collect());
            // Each repetition against the futex of the same repetition.
            let pairs = of_one.iter().zip(&measured[0]);
            let ratios = pairs.map(|(one, futex)| one.median as f64 / futex.median as f64);
            let [ratio_low, ratio, ratio_high] = spread(ratios.collect());
            writeln!(
                out,
                "{name:<11} median {median:6.2} [{low:.2}..{high:.2}]  p99 {p99:6.2} [..{p99_high:.2}]  x {ratio:.2} [{ratio_low:.2}..{ratio_high:.2}]"
            )?;
        }
        Ok(())
    }

    fn unheard(
        out: &mut dyn Write,
        repetitions: u32,
        rounds: u32,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let clock = MonotonicClock::new();
        let mut times: [Vec<f64>; CONTENDERS.len() + 1] = Default::default();
        let mut sleepers = Vec::new();
        for (_, make) in CONTENDERS {
            let Sleeper { waker, parker } = make(clock)?;
            // Entered, so that there is a thread to wake; it is this one, and it is awake.
            sleepers.push((waker, parker()?));
        }
        let word = WakeWord::new();
        for _ in 0..repetitions {
            for ((waker, park), times) in sleepers.iter().zip(&mut times) {
                times.push(each(clock, rounds, || waker.wake()));
                // The token is not to be left to the next repetition.
                park.park(Some(clock.now()));
            }
            let (waker, _) = &sleepers[0];
            times[CONTENDERS.len()].push(each(clock, rounds, || {
                black_box(word.notify(&**waker));
            }));
        }
        let names = CONTENDERS.iter().map(|(name, _)| *name);
        for (name, times) in names.chain(["wake word, waiter awake"]).zip(times) {
            let [low, median, high] = spread(times);
            writeln!(out, "{name:<24} {median:7.1} [{low:.1}..{high:.1}]")?;
        }
        Ok(())
    }

    /// Nanoseconds that one call takes.
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds to be read")]
    fn each(clock: MonotonicClock, calls: u32, mut call: impl FnMut()) -> f64 {
        let begun = clock.now();
        for _ in 0..calls {
            call();
        }
        clock.now().since(begun).as_nanos() as f64 / f64::from(calls)
    }
}
