//! Faults to inject into components, for trying out how a run stops.
//!
//! A fault is put around a component, which itself knows nothing of it: a hook that hangs, is slow, fails or
//! panics. What is injected is said in the log, so that nobody takes it for the real thing.

use crate::cli::{FaultArg, FaultKind, Hook};
use regatta_core::component::DrainCounts;
use regatta_portable::runtime::{Came, Component, Connect, Context, Failed, Vitals};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long a slow hook takes longer.
pub(super) const SLOW: Duration = Duration::from_millis(300);

/// `component`, with the faults that are meant for it.
pub(super) fn around(
    name: &'static str,
    component: Box<dyn Component>,
    faults: &[FaultArg],
) -> Box<dyn Component> {
    let faults: Vec<FaultArg> = faults
        .iter()
        .filter(|fault| fault.component == name)
        .cloned()
        .collect();
    if faults.is_empty() {
        return component;
    }
    for fault in &faults {
        tracing::warn!("a fault is injected: {fault}");
    }
    Box::new(Faulty { component, faults })
}

struct Faulty {
    component: Box<dyn Component>,
    faults: Vec<FaultArg>,
}

impl Faulty {
    /// Does what is injected into a hook.
    #[expect(clippy::panic, reason = "a hook that panics is one of the faults")]
    fn suffer(&self, hook: Hook) -> Result<(), Failed> {
        for fault in self.faults.iter().filter(|fault| fault.hook == hook) {
            tracing::warn!("an injected fault begins: {fault}");
            match fault.kind {
                FaultKind::Hang => {
                    // Nobody sends, and the sender is kept.
                    let (_kept, never) = channel::<()>();
                    let _ = never.recv();
                }
                FaultKind::Slow => {
                    let (_kept, never) = channel::<()>();
                    let _ = never.recv_timeout(SLOW);
                }
                FaultKind::Fail => {
                    return Err(Failed::new("injected", "a fault that was injected"));
                }
                FaultKind::Panic => panic!("a fault that was injected"),
                // No hook answers anything.
                FaultKind::Lie => {}
            }
        }
        Ok(())
    }
}

impl Component for Faulty {
    fn vitals(&self) -> Arc<dyn Vitals> {
        self.component.vitals()
    }

    fn connect(&self) -> Option<Arc<dyn Connect>> {
        self.component.connect()
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        self.suffer(Hook::Start)?;
        self.component.start(context)
    }

    fn quiesce(&mut self, until: Instant) -> Result<(), Failed> {
        self.suffer(Hook::Quiesce)?;
        self.component.quiesce(until)
    }

    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        self.suffer(Hook::Drain)?;
        self.component.drain(until)
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        self.suffer(Hook::Stop)?;
        self.component.stop(until)
    }
}
