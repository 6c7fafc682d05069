//! The control plane's answers as components: the HTTP endpoint of the probes, and the service manager.
//!
//! Both go on from first to last: they answer, and keep the watchdog quiet, while everything else stops.

use super::stage::Stage;
use crate::dispatch::{Clock, Tick};
use crate::health::{Answer, HeadSeen, Health, Notifier, Reason, Server};
use crate::node::Asker;
use regatta_core::component::{Probe, Remaining, RuntimeState, Unready};
use regatta_core::plan::LaneBinding;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{Came, Component, Context, Failed, Handle, Vitals};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What the probes are answered from.
struct Answers {
    runtime: Handle,
    head: LastHead,
    /// The node, where one is followed.
    node: Option<Asker>,
}

/// The newest header, as the clock tells it.
#[derive(Clone, Default)]
struct LastHead(Arc<Mutex<Option<Tick>>>);

impl LastHead {
    fn of(clock: &Clock) -> Self {
        let last = Self::default();
        let told = last.clone();
        clock.call("health", move |tick| *told.lock() = Some(*tick));
        last
    }

    /// Held for a copy, so the source's thread may wait for it.
    fn lock(&self) -> MutexGuard<'_, Option<Tick>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> Option<HeadSeen> {
        let tick = (*self.lock())?;
        Some(HeadSeen {
            number: tick.head.number,
            age_ms: u64::try_from(tick.at.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }
}

fn reason(unready: &Unready) -> Reason {
    let text = unready.to_string();
    let says = text
        .split_once(": ")
        .map_or(text.as_str(), |(_, says)| says);
    Reason::new(unready.component, says)
}

impl Health for Answers {
    fn liveness(&self) -> Answer {
        let state = self.runtime.state().name();
        // A drainer that has stalled ends the process by itself.
        let liveness = self.runtime.liveness(false);
        if liveness.is_alive() {
            Answer::yes(state)
        } else {
            Answer::no(state, vec![Reason::new("runtime", liveness.to_string())])
        }
    }

    fn readiness(&self) -> Answer {
        let readiness = self.runtime.readiness();
        let state = readiness.runtime.name();
        let mut reasons: Vec<Reason> = Vec::new();
        if readiness.runtime != RuntimeState::Running {
            reasons.push(Reason::new("runtime", state));
        }
        if !readiness.reconciled {
            reasons.push(Reason::new("threads", "not_reconciled"));
        }
        reasons.extend(readiness.missing.iter().map(reason));
        let node = self.node.as_ref().map(Asker::status);
        if let Some(why) = node.and_then(|status| status.not_ready.filter(|_| !status.ended)) {
            // The same in words, with the block that it is about.
            reasons.push(Reason::new("node", why.to_string()));
        }
        let answer = if readiness.is_ready() {
            Answer::yes(state)
        } else {
            Answer::no(state, reasons)
        };
        Answer {
            head: self.head.seen(),
            ..answer
        }
    }
}

/// The HTTP endpoint at `addr`.
pub(super) fn server(stage: &Arc<Stage>, addr: SocketAddr) -> Box<dyn Component> {
    Box::new(ServerComponent {
        stage: Arc::clone(stage),
        addr,
        server: None,
    })
}

struct ServerComponent {
    stage: Arc<Stage>,
    addr: SocketAddr,
    server: Option<Server>,
}

/// The vitals of a component whose threads the census knows.
struct ByThreads(Arc<Stage>, &'static str);

impl Vitals for ByThreads {
    fn probe(&self) -> Probe {
        if self.0.threads_of(self.1) > 0 {
            Probe::Ready
        } else {
            Probe::NotReady("thread_ended")
        }
    }

    fn fence(&self) {}

    fn remaining(&self) -> Remaining {
        Remaining {
            threads: self.0.threads_of(self.1),
            ..Remaining::NONE
        }
    }
}

impl Component for ServerComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::new(ByThreads(Arc::clone(&self.stage), "health"))
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let answers = Arc::new(Answers {
            runtime: context.runtime,
            head: LastHead::of(self.stage.dispatch().clock()),
            node: self.stage.asker().cloned(),
        });
        let server = Server::start(self.addr, answers, self.stage.census())
            .map_err(|error| Failed::new("no_endpoint", error))?;
        tracing::warn!("probes are answered at http://{}", server.addr());
        self.server = Some(server);
        Ok(Came::Up)
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        let ended = self.server.as_mut().is_none_or(|server| server.stop(until));
        if ended {
            Ok(())
        } else {
            Err(Failed::new("thread_left", "the endpoint does not end"))
        }
    }
}

/// Tells the service manager how far the runtime is.
pub(super) fn tell(notifier: &Notifier, budget: Duration, state: RuntimeState) {
    match state {
        RuntimeState::Running => {
            notifier.ready("running");
        }
        RuntimeState::Stopping => {
            notifier.stopping("stopping", budget);
        }
        RuntimeState::Idle | RuntimeState::Starting | RuntimeState::Stopped => {}
    }
}

/// Keeps the service manager's watchdog quiet for as long as the process is alive.
pub(super) fn watchdog(stage: &Arc<Stage>, notifier: &Arc<Notifier>) -> Box<dyn Component> {
    Box::new(WatchdogComponent {
        stage: Arc::clone(stage),
        notifier: Arc::clone(notifier),
        running: Arc::default(),
    })
}

/// The thread, and what ends it.
type Running = Mutex<Option<(Sender<()>, JoinHandle<()>)>>;

struct WatchdogComponent {
    stage: Arc<Stage>,
    notifier: Arc<Notifier>,
    running: Arc<Running>,
}

impl Component for WatchdogComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::new(ByThreads(Arc::clone(&self.stage), "watchdog"))
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        // Arming sends a keep-alive first: the manager's clock runs already.
        let Some(interval) = self.notifier.arm() else {
            return Err(Failed::new(
                "no_watchdog",
                "the service manager asks for none",
            ));
        };
        let answers = Answers {
            runtime: context.runtime,
            // The service manager is told no details.
            head: LastHead::default(),
            node: None,
        };
        let (stop, stopped) = channel();
        let spec = ThreadSpec {
            kernel_name: "rg-watchdog".to_owned(),
            name: "regatta/bot/watchdog".to_owned(),
            owner: "watchdog".to_owned(),
            role: "watchdog".to_owned(),
            sizing: "one".to_owned(),
            binding: LaneBinding::Pinned,
        };
        let notifier = Arc::clone(&self.notifier);
        let thread = self
            .stage
            .census()
            .spawn(spec, move || {
                keep_alive(&answers, &notifier, interval, &stopped);
            })
            .map_err(|error| Failed::new("no_thread", error))?;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running = Some((stop, thread));
        Ok(Came::Up)
    }

    fn stop(&mut self, _: Instant) -> Result<(), Failed> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stop, thread)) = running.take() {
            drop(stop);
            // It does nothing but wait for the end of the sender, and asks a few locks.
            if thread.join().is_err() {
                return Err(Failed::new("panicked", "the watchdog's thread unwound"));
            }
        }
        Ok(())
    }
}

fn keep_alive(answers: &Answers, notifier: &Notifier, interval: Duration, stopped: &Receiver<()>) {
    while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
        let alive = answers.liveness();
        if alive.ok {
            notifier.keep_alive();
        } else {
            tracing::error!("the watchdog is not kept quiet: {alive:?}");
        }
    }
}
