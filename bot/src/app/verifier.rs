//! The Verifier as a component: a thread that reads what the source says of the newest published block.

use super::quarantine;
use super::stage::Stage;
use crate::cli::{FaultKind, Hook};
use crate::dispatch::VerifierPipe;
use crate::market::Address;
use crate::run::RunError;
use crate::source::BlockHash;
use crate::verify::{ReadError, ReserveReader, verify};
use regatta_core::component::{ComponentId, DrainCounts, Probe, Remaining};
use regatta_core::plan::LaneBinding;
use regatta_portable::census::ThreadSpec;
use regatta_portable::runtime::{Came, Component, Context, Failed, Handle, Vitals};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long one block may take until the process says that it is not ready: nothing is verified meanwhile.
const OVERDUE: Duration = Duration::from_mins(1);

/// Until when the thread is waited for: for a part of what is left, since who needs what the verifier has (the fleet,
/// and with it the summary) is to have the rest if its reader hangs.
fn patience(until: Instant) -> Instant {
    let now = Instant::now();
    now + until.saturating_duration_since(now) / 4
}

/// The verifier of the blocks that go through `pipe`.
pub(super) fn component(stage: &Arc<Stage>, pipe: &Arc<VerifierPipe>) -> Box<dyn Component> {
    Box::new(VerifierComponent {
        shared: Arc::new(Shared {
            stage: Arc::clone(stage),
            pipe: Arc::clone(pipe),
            running: Mutex::new(false),
            changed: Condvar::new(),
        }),
        owed: 0,
        thread: None,
    })
}

struct Shared {
    stage: Arc<Stage>,
    pipe: Arc<VerifierPipe>,
    running: Mutex<bool>,
    /// The thread ended.
    changed: Condvar,
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, bool> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the thread to end; whether it has.
    fn ended(&self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let running = self.running();
        let waited = self
            .changed
            .wait_timeout_while(running, left, |running| *running);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Blocks that the thread owes.
    fn owed(&self) -> u64 {
        if *self.running() {
            self.pipe.pending()
        } else {
            0
        }
    }
}

impl Vitals for Shared {
    fn probe(&self) -> Probe {
        if self.pipe.status().found_out > 0 {
            Probe::NotReady("pools_quarantined")
        } else if !*self.running() {
            Probe::NotReady("ended")
        } else if self.pipe.busy_for().is_some_and(|busy| busy > OVERDUE) {
            Probe::NotReady("verification_overdue")
        } else {
            Probe::Ready
        }
    }

    fn fence(&self) {
        self.pipe.fence();
    }

    fn remaining(&self) -> Remaining {
        Remaining {
            receipts: self.owed(),
            threads: u32::from(*self.running()),
            handles: 0,
        }
    }
}

struct VerifierComponent {
    shared: Arc<Shared>,
    /// Blocks that were owed when it was to quiesce.
    owed: u64,
    thread: Option<JoinHandle<()>>,
}

impl Component for VerifierComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let stage = &self.shared.stage;
        let reader = stage
            .take_reader()
            .ok_or_else(|| Failed::new("no_reader", "the source cannot be asked for reserves"))?;
        let reader = with_faults(stage, reader);
        let spec = ThreadSpec {
            kernel_name: "rg-verifier".to_owned(),
            name: "regatta/bot/verifier".to_owned(),
            owner: "verifier".to_owned(),
            role: "verifier".to_owned(),
            sizing: "one".to_owned(),
            binding: LaneBinding::Pinned,
        };
        *self.shared.running() = true;
        let (runtime, id) = (context.runtime, context.id);
        let thread = stage.census().spawn(spec, {
            let shared = Arc::clone(&self.shared);
            move || live(&shared, &*reader, &runtime, id)
        });
        match thread {
            Ok(thread) => {
                self.thread = Some(thread);
                Ok(Came::Up)
            }
            Err(error) => {
                *self.shared.running() = false;
                Err(Failed::new("no_thread", error))
            }
        }
    }

    fn quiesce(&mut self, _: Instant) -> Result<(), Failed> {
        self.owed = self.shared.owed();
        self.shared.pipe.close();
        Ok(())
    }

    /// What was published last is verified still.
    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        self.shared.pipe.close();
        let left = if self.shared.ended(patience(until)) {
            0
        } else {
            // What its reader says from here on has no effect.
            self.shared.pipe.fence();
            if self.shared.pipe.is_comparing() {
                // It gives its unit up at once, and that has to be known when units are counted.
                self.shared.ended(until);
            }
            self.shared.owed().min(self.owed)
        };
        let stage = &self.shared.stage;
        let given_up = self.shared.pipe.status().given_up;
        stage.totals().give_up(given_up);
        // The pump has ended and takes no more findings.
        if let Err(error) = quarantine::say_rest(stage, &self.shared.pipe, until) {
            stage.fail(error);
        }
        Ok(DrainCounts {
            accepted_before_quiesce: self.owed,
            completed_during_drain: self.owed - left,
            remaining_at_deadline: left,
            ..DrainCounts::default()
        })
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.shared.pipe.fence();
        if !self.shared.ended(patience(until)) {
            let left = "the verifier does not end: its reader hangs";
            return Err(Failed::new("thread_left", left));
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            return Err(Failed::new("panicked", "the verifier's thread unwound"));
        }
        Ok(())
    }
}

/// The life of the thread.
fn live(shared: &Shared, reader: &dyn ReserveReader, runtime: &Handle, id: ComponentId) {
    if let Some(fleet) = shared.stage.fleet() {
        let work = || verify(fleet, &shared.pipe, reader);
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            let component = "verifier";
            shared.stage.fail(RunError::ComponentFailed { component });
            runtime.failed(id);
        }
    }
    *shared.running() = false;
    shared.changed.notify_all();
}

/// `reader` with the faults that are meant for it.
fn with_faults(stage: &Stage, reader: Box<dyn ReserveReader>) -> Box<dyn ReserveReader> {
    let mut faults = stage.args().inject.iter();
    let fault = faults.find(|fault| fault.component == "verifier" && fault.hook == Hook::Run);
    match fault {
        None => reader,
        Some(fault) => {
            tracing::warn!("a fault is injected: {fault}");
            let kind = fault.kind;
            Box::new(Faulty {
                reader,
                kind,
                victim: OnceLock::new(),
            })
        }
    }
}

/// A reader with an injected fault.
struct Faulty {
    reader: Box<dyn ReserveReader>,
    kind: FaultKind,
    /// Whom it lies about: the first pool that it was asked for.
    victim: OnceLock<Address>,
}

impl ReserveReader for Faulty {
    #[expect(clippy::panic, reason = "a reader that panics is one of the faults")]
    fn reserves_at(
        &self,
        block: BlockHash,
        pools: &[Address],
    ) -> Result<Vec<Option<(u128, u128)>>, ReadError> {
        let mut read = self.reader.reserves_at(block, pools)?;
        match self.kind {
            FaultKind::Hang => {
                tracing::warn!("an injected fault begins: the verifier's reader hangs");
                // Nobody sends, and the sender is kept.
                let (_kept, never) = channel::<()>();
                let _ = never.recv();
            }
            FaultKind::Slow => {
                let (_kept, never) = channel::<()>();
                let _ = never.recv_timeout(super::fault::SLOW);
            }
            FaultKind::Fail => {
                return Err(ReadError::Failed("a fault that was injected".into()));
            }
            FaultKind::Panic => panic!("a fault that was injected"),
            FaultKind::Lie => {
                for (pool, read) in pools.iter().zip(&mut read) {
                    if self.victim.get_or_init(|| *pool) == pool
                        && let Some((reserve0, _)) = read
                    {
                        *reserve0 += 1;
                    }
                }
            }
        }
        Ok(read)
    }
}
