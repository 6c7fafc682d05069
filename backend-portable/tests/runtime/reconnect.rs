//! Reconnecting to a peer that refuses, drops, stalls, answers too late, or flaps.

use crate::parts::{Do, Drain, Gate, HOUR, Journal, Part, Program, budgets, eventually};
use crate::peer::{Act, Client, Link, Peer, Shared};
use regatta_core::component::{
    Backoff, BackoffPolicy, ComponentSpec, Limit, Outcome, Plane, Remaining, StopReason,
};
use regatta_core::time::{Duration as Span, Instant as At};
use regatta_portable::Census;
use regatta_portable::runtime::{Attempt, Connect, Failed, Registered, Runtime};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Attempts that come soon, and of which each has all the time it wants.
const SOON: BackoffPolicy = BackoffPolicy {
    initial: Span::from_millis(4),
    factor: 2,
    cap: Span::from_millis(30),
    jitter_percent: 50,
    limit: Limit::Attempts(1000),
    attempt: HOUR,
    stable: HOUR,
};

/// A program of one client, and of a part beside it that has nothing to do with it.
struct Connected {
    program: Program,
    shared: Arc<Shared>,
    policy: BackoffPolicy,
}

impl Connected {
    fn new(peer: &Peer, policy: BackoffPolicy) -> Self {
        Self::with(peer, policy, true, |client, _| client)
    }

    /// With a client of which `change` makes something else, told whether an attempt heeds its time.
    fn with(
        peer: &Peer,
        policy: BackoffPolicy,
        heeds_time: bool,
        change: impl FnOnce(Client, &mut ComponentSpec<'_>) -> Client,
    ) -> Self {
        let census = Census::new();
        let mut spec = ComponentSpec {
            name: "client",
            depends: &[],
            required: true,
            plane: Plane::Data,
            reconnects: true,
            policy: Some(policy),
        };
        let client = change(Client::new(peer.address, &census, heeds_time), &mut spec);
        let shared = Arc::clone(&client.shared);
        let beside = Part::new("beside", &[], &Journal::default());
        let registered = vec![
            Registered {
                spec,
                component: Box::new(client),
            },
            Registered {
                spec: beside.spec(&[]),
                component: Box::new(beside),
            },
        ];
        let audit = Box::new(|_: &Census| true);
        let config = budgets(HOUR, HOUR);
        let runtime = Runtime::new(registered, &[], config, &census, audit).unwrap();
        Self {
            program: Program::of(runtime, census).up(),
            shared,
            policy,
        }
    }

    #[track_caller]
    fn until(&self, what: &str, holds: impl Fn(&Link) -> bool) {
        self.shared.link.until(what, holds);
    }

    fn is_ready(&self) -> bool {
        self.program.handle.readiness().is_ready()
    }

    /// What readiness says of the client, in one line.
    fn says(&self) -> String {
        let readiness = self.program.handle.readiness();
        let unready = readiness.missing.iter().chain(&readiness.degraded);
        unready.map(ToString::to_string).collect()
    }

    /// Stops, and checks what is true of every way to reconnect.
    fn end(self) -> Arc<Shared> {
        self.program.handle.stop(StopReason::Requested);
        let (report, left) = self.program.end();
        assert_eq!(report.outcome(), Outcome::Clean, "{report:?}");
        assert_eq!(left, [""; 0], "no attempt and no reader is left");
        for component in &report.components {
            assert_eq!(component.remaining, Some(Remaining::NONE));
        }
        let policy = self.policy;
        self.shared.link.change(|link| {
            // Those that were begun while another one did not end may have come here in another order.
            link.tried.sort_by_key(|tried| tried.generation);
            backed_off(link, policy);
            let mut of_attempts = link.tried.iter().map(|tried| tried.generation);
            let in_order = |generation: &u64| of_attempts.any(|one| one == *generation);
            let each_once = link.installed.iter().all(in_order);
            assert!(each_once, "each by one attempt: {:?}", link.installed);
        });
        self.shared
    }
}

/// Whether each attempt came as long after what made it necessary as the policy says, with the chance that
/// the seed gives.
#[track_caller]
fn backed_off(link: &Link, policy: BackoffPolicy) {
    // The first component of a program whose seed is one.
    let mut backoff = Backoff::new(policy, 1);
    let mut losses = link.lost.iter();
    let mut before = None;
    for tried in &link.tried {
        let since = match before {
            // One whose time is over has failed, whatever it does then.
            Some((until, Some((failed, _)), false)) => Ord::min(failed, until),
            Some((until, None, false)) => until,
            Some((.., true)) | None => {
                // No connection here is ever as old as an hour, and every one is as old as a nanosecond.
                if policy.stable < HOUR {
                    backoff.reset();
                }
                *losses.next().unwrap()
            }
        };
        let delay = Duration::from(backoff.next_delay(At::ORIGIN).unwrap());
        let came = tried.began - since;
        assert!(came >= delay, "{came:?} after the loss, and not {delay:?}");
        let installed = link.installed.contains(&tried.generation);
        before = Some((tried.until, tried.failed, installed));
    }
}

#[test]
fn a_peer_that_refuses_is_asked_again_and_found_when_it_is_back() {
    let peer = Peer::closed();
    let client = Connected::new(&peer, SOON);
    client.until("five attempts", |link| link.tried.len() >= 5);
    assert!(!client.is_ready());
    let says = client.says();
    let expected = ["client: degraded", "client: reconnecting"];
    assert!(expected.contains(&&*says), "{says}");
    peer.listen(vec![Act::Serve]);
    eventually("it is ready", || client.is_ready());
    client.until("an installed connection", |link| link.installed.len() == 1);
    let shared = client.end();
    shared.link.look(|link| {
        let (last, others) = link.tried.split_last().unwrap();
        assert_eq!(link.installed, [last.generation]);
        let refused = |code: Option<(_, _)>| code.is_some_and(|(_, code)| code == "no_hello");
        assert!(others.iter().all(|tried| refused(tried.failed)));
    });
    assert_eq!(peer.seen.look(Vec::len), 1);
}

#[test]
fn a_peer_that_drops_at_once_is_given_up_after_as_many_attempts_as_allowed() {
    let peer = Peer::open((0..9).map(|_| Act::Drop).collect());
    let limit = Limit::Attempts(4);
    let client = Connected::new(&peer, BackoffPolicy { limit, ..SOON });
    eventually("it gives up", || client.says() == "client: failed");
    assert!(!client.is_ready(), "it is required");
    let shared = client.end();
    shared.link.look(|link| {
        assert_eq!(link.tried.len(), 4);
        assert_eq!(link.installed, [0; 0]);
    });
    assert_eq!(peer.seen.look(Vec::len), 4);
}

#[test]
fn a_peer_that_stalls_is_left_when_the_attempt_is_over_and_an_optional_one_is_not_waited_for() {
    let peer = Peer::open((0..3).map(|_| Act::Stall).collect());
    let policy = BackoffPolicy {
        limit: Limit::Attempts(3),
        attempt: Span::from_millis(100),
        ..SOON
    };
    let client = Connected::with(&peer, policy, true, |client, spec| {
        spec.required = false;
        client
    });
    assert!(client.is_ready());
    eventually("it gives up", || client.says() == "client: failed");
    assert!(client.is_ready(), "without it");
    peer.until("every connection is closed", |seen| {
        seen.len() == 3 && seen.iter().all(|one| one.closed)
    });
    client.end().link.look(|link| {
        assert_eq!(link.tried.len(), 3);
        assert_eq!(link.installed, [0; 0]);
    });
}

#[test]
fn a_stop_ends_an_attempt_that_a_peer_stalls() {
    let peer = Peer::open(vec![Act::Stall]);
    let client = Connected::new(&peer, SOON);
    client.until("it says hello", |link| !link.trying.is_empty());
    // The attempt has an hour, and so has the stop.
    let shared = client.end();
    peer.until("it is closed", |seen| seen.iter().any(|one| one.closed));
    shared.link.look(|link| {
        assert_eq!(link.tried.len(), 1);
        assert_eq!(link.installed, [0; 0]);
    });
}

#[test]
fn an_answer_to_an_attempt_whose_time_is_over_is_closed() {
    let gate = Gate::default();
    let peer = Peer::open(vec![Act::Late(gate.clone()), Act::Serve]);
    let policy = BackoffPolicy {
        attempt: Span::from_millis(100),
        ..SOON
    };
    // The first attempt waits on though its time is over; the second is answered.
    let client = Connected::with(&peer, policy, false, |client, _| client);
    client.until("the second is installed", |link| link.installed.len() == 1);
    gate.open();
    peer.until("the first is closed", |seen| seen[0].closed);
    peer.until("it was answered", |seen| seen[0].answered);
    client.until("the first has failed", |link| {
        link.tried[0].failed.is_some()
    });
    assert!(client.is_ready(), "what is there stays");
    client.end().link.look(|link| {
        assert_eq!(link.tried.len(), 2);
        assert_eq!(link.tried[0].failed.unwrap().1, "too_late");
        assert_eq!(link.installed, [link.tried[1].generation]);
    });
}

#[test]
fn an_answer_that_comes_when_the_stop_has_begun_is_closed() {
    let gate = Gate::default();
    let peer = Peer::open(vec![Act::Late(gate.clone())]);
    let client = Connected::with(&peer, SOON, true, |mut client, _| {
        let link = client.shared.link.clone();
        client.drains = Box::new(move || {
            gate.open();
            link.until("the attempt fails", |link| link.tried[0].failed.is_some());
        });
        client
    });
    client.until("it says hello", |link| !link.trying.is_empty());
    let shared = client.end();
    peer.until("it is closed", |seen| seen[0].answered && seen[0].closed);
    shared.link.look(|link| {
        assert_eq!(link.tried[0].failed.unwrap().1, "too_late");
        assert_eq!(link.installed, [0; 0]);
    });
}

#[test]
fn an_answer_that_races_the_stop_is_installed_or_closed_and_leaves_nothing() {
    for _ in 0..30 {
        let gate = Gate::default();
        let peer = Peer::open(vec![Act::Late(gate.clone())]);
        let client = Connected::new(&peer, SOON);
        client.until("it says hello", |link| !link.trying.is_empty());
        gate.open();
        let shared = client.end();
        peer.until("it is closed", |seen| seen.iter().any(|one| one.closed));
        shared.link.look(|link| {
            let failed = link.tried[0].failed.is_some();
            assert_eq!(link.installed.len(), usize::from(!failed));
        });
    }
}

#[test]
fn a_peer_that_flaps_is_not_asked_without_end() {
    let peer = Peer::open((0..9).map(|_| Act::Flap).collect());
    let limit = Limit::Attempts(5);
    let client = Connected::new(&peer, BackoffPolicy { limit, ..SOON });
    eventually("it gives up", || client.says() == "client: failed");
    // Though every attempt was answered, and its answer installed.
    client.end().link.look(|link| {
        assert_eq!((link.tried.len(), link.installed.len()), (5, 5));
        // The first one is that it came up without its peer.
        assert_eq!(link.lost.len(), 6);
    });
}

#[test]
fn only_a_stable_connection_begins_a_new_series_of_attempts() {
    let peer = Peer::open((0..8).map(|_| Act::Flap).collect());
    let policy = BackoffPolicy {
        limit: Limit::Attempts(2),
        stable: Span::from_nanos(1),
        ..SOON
    };
    let client = Connected::new(&peer, policy);
    eventually("it gives up", || client.says() == "client: failed");
    client.end().link.look(|link| {
        assert_eq!(link.installed.len(), 8, "more than a series allows");
        // And then a series of its own, that nobody answered.
        assert_eq!(link.tried.len(), 10);
    });
}

/// Attempts that a closure makes.
struct By<F>(F);

impl<F: Fn(&Attempt<'_>) -> Result<(), Failed> + Send + Sync> Connect for By<F> {
    fn attempt(&self, attempt: &Attempt<'_>) -> Result<(), Failed> {
        (self.0)(attempt)
    }
}

#[test]
fn an_attempt_that_panics_or_installs_nothing_has_failed() {
    let tried = Arc::new(AtomicU32::new(0));
    let counts = Arc::clone(&tried);
    let by = By(move |attempt: &Attempt<'_>| {
        match counts.fetch_add(1, Ordering::Relaxed) {
            0 => panic!("before it installs"),
            1 => return Ok(()),
            2 => attempt.install(|| panic!("while it installs")),
            _ => attempt.install(|| {}),
        }
        .map_err(|error| Failed::new("too_late", error))
    });
    let part = Part::new("client", &[], &Journal::default()).reconnects(SOON, by);
    let program = Program::new(vec![part], budgets(HOUR, HOUR)).up();
    eventually("it is ready", || program.handle.readiness().is_ready());
    assert_eq!(tried.load(Ordering::Relaxed), 4);
    program.handle.stop(StopReason::Requested);
    assert_eq!(program.end().0.outcome(), Outcome::Clean);
}

#[test]
fn a_stop_waits_for_attempts_so_that_none_is_left_running() {
    let (journal, gate) = (Journal::default(), Gate::default());
    let (begun, held, opens) = (Gate::default(), gate.clone(), gate.clone());
    let begins = begun.clone();
    let by = By(move |attempt: &Attempt<'_>| {
        begins.open();
        held.pass();
        let installed = attempt.install(|| panic!("after the stop began"));
        installed.map_err(|error| Failed::new("too_late", error))
    });
    let part = Part::new("client", &[], &journal)
        .reconnects(SOON, by)
        .on(Drain, Do::run(move || opens.open()));
    let program = Program::new(vec![part], budgets(HOUR, HOUR)).up();
    begun.pass();
    program.handle.stop(StopReason::Requested);
    let (report, left) = program.end();
    assert_eq!(report.outcome(), Outcome::Clean, "{report:?}");
    assert_eq!(left, [""; 0]);
}
