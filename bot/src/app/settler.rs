//! Settlement as a component: the settler's thread. It is optional: without it the bot goes on publishing.

use super::stage::Stage;
use crate::settle::{Intake, Left, Settler, Surroundings};
use regatta_core::component::{DrainCounts, Probe, Remaining};
use regatta_core::plan::LaneBinding;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{Came, Component, Context, Failed, Vitals};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Until when what is out is followed: for a part of what is left, since the fleet and with it the summary come after.
fn patience(until: Instant) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / 4
}

pub(super) fn component(stage: &Arc<Stage>, intake: &Intake) -> Box<dyn Component> {
    Box::new(SettlerComponent {
        shared: Arc::new(Shared {
            stage: Arc::clone(stage),
            intake: intake.clone(),
            life: Mutex::new(Life::NotStarted),
            changed: Condvar::new(),
        }),
        thread: None,
        open: 0,
    })
}

/// Where the thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    NotStarted,
    Running,
    Ended,
    Panicked,
}

struct Shared {
    stage: Arc<Stage>,
    intake: Intake,
    life: Mutex<Life>,
    /// The thread ended.
    changed: Condvar,
}

impl Shared {
    fn life(&self) -> MutexGuard<'_, Life> {
        // Each change is one assignment.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the thread to end; whether it has.
    fn ended(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let running = |life: &mut Life| *life == Life::Running;
        let waited = self.changed.wait_timeout_while(self.life(), left, running);
        *waited.unwrap_or_else(PoisonError::into_inner).0 != Life::Running
    }
}

impl Vitals for Shared {
    fn probe(&self) -> Probe {
        match *self.life() {
            Life::Running => {}
            Life::NotStarted => return Probe::NotReady("not_started"),
            Life::Ended | Life::Panicked => return Probe::NotReady("ended"),
        }
        match self.intake.status().not_ready {
            Some(reason) => Probe::NotReady(reason),
            None => Probe::Ready,
        }
    }

    fn fence(&self) {
        self.intake.stop();
    }

    fn remaining(&self) -> Remaining {
        // What is out is in the ledger: it is nobody's to wait for.
        Remaining {
            threads: u32::from(*self.life() == Life::Running),
            ..Remaining::NONE
        }
    }
}

struct SettlerComponent {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Settlements that were open when it was to quiesce.
    open: u64,
}

impl Component for SettlerComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn start(&mut self, _: Context) -> Result<Came, Failed> {
        let stage = &self.shared.stage;
        let settler = stage
            .take_settler()
            .ok_or_else(|| Failed::new("started_twice", "a settler starts once"))?;
        let (Some(asker), Some(fleet)) = (stage.asker(), stage.fleet()) else {
            return Err(Failed::new("no_node", "there is no node to settle on"));
        };
        let surroundings = Surroundings {
            asker: asker.clone(),
            fleet: Arc::clone(fleet),
            chain: stage.origin().chain.clone(),
        };
        let spec = ThreadSpec {
            kernel_name: "rg-settler".to_owned(),
            name: "regatta/bot/settler".to_owned(),
            owner: "settler".to_owned(),
            role: "settler".to_owned(),
            sizing: "one".to_owned(),
            binding: LaneBinding::Pinned,
        };
        *self.shared.life() = Life::Running;
        let thread = stage.census().spawn(spec, {
            let shared = Arc::clone(&self.shared);
            move || live(&shared, settler, &surroundings)
        });
        match thread {
            Ok(thread) => {
                self.thread = Some(thread);
                let intake = self.shared.intake.clone();
                let clock = stage.dispatch().clock();
                clock.call("settler", move |tick| intake.head(tick.head));
                Ok(Came::Up)
            }
            Err(error) => {
                *self.shared.life() = Life::NotStarted;
                Err(Failed::new("no_thread", error))
            }
        }
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        self.open = self.shared.intake.status().open;
        self.shared.intake.drain();
        Ok(())
    }

    /// What was sent is followed for a while; what is open then is in the ledger, for the next start.
    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        self.shared.intake.drain();
        if !self.shared.ended(patience(until)) {
            self.shared.intake.stop();
            self.shared.ended(patience(until));
        }
        let open = self.shared.intake.status().open;
        if open > 0 {
            tracing::warn!(
                "{open} settlements are open: the next start on the ledger follows them"
            );
        }
        self.shared.stage.totals().settled(&self.shared.intake);
        Ok(DrainCounts {
            accepted_before_quiesce: self.open,
            completed_during_drain: self.open.saturating_sub(open),
            handed_off: open.min(self.open),
            ..DrainCounts::default()
        })
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.shared.intake.stop();
        if !self.shared.ended(until) {
            return Err(Failed::new("thread_left", "the settler does not end"));
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Err(Failed::new("panicked", "the settler's thread unwound"));
        }
        if *self.shared.life() == Life::Panicked {
            return Err(Failed::new("panicked", "the settler's thread unwound"));
        }
        Ok(())
    }
}

/// The life of the thread.
fn live(shared: &Shared, settler: Settler, surroundings: &Surroundings) {
    let ended = catch_unwind(AssertUnwindSafe(|| match shared.stage.drain() {
        Some(drain) => settler.live(surroundings, drain),
        None => Left::default(),
    }));
    let life = if let Ok(left) = ended {
        shared.stage.totals().give_up(left.given_up);
        Life::Ended
    } else {
        tracing::error!("the settler's thread panicked: nothing is settled any more");
        Life::Panicked
    };
    *shared.life() = life;
    shared.changed.notify_all();
}
