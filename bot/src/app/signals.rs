//! Signals as a component: a thread that waits for them.
//!
//! The first of SIGTERM and SIGINT begins the stop, also while components start; another one ends the drain
//! and leaves the safe minimum. Handlers are installed by [`Signals::install`], before anything else is
//! done, so that what comes early is not lost.

use regatta_core::component::{Probe, Remaining};
use regatta_core::plan::LaneBinding;
use regatta_portable::Census;
use regatta_portable::census::{CensusError, ThreadSpec};
use regatta_portable::runtime::{Came, Component, Context, Failed, Handle, Vitals};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Handle as Closer;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The signals of the process.
#[derive(Debug)]
pub struct Signals(signal_hook::iterator::Signals);

impl Signals {
    /// Catches SIGTERM, SIGINT and SIGHUP from here on.
    pub fn install() -> io::Result<Self> {
        signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP]).map(Self)
    }

    /// Whether a stop was asked for since the last time. For before there is a component that hears of it.
    pub(crate) fn asked(&mut self) -> bool {
        self.0.pending().any(|signal| signal != SIGHUP)
    }
}

/// What SIGHUP does.
pub(super) type Reload = Arc<dyn Fn() + Send + Sync>;

pub(super) fn component(census: &Census, signals: Signals, reload: Reload) -> Box<dyn Component> {
    Box::new(SignalsComponent {
        census: census.clone(),
        reload,
        vitals: Arc::new(SignalsVitals {
            closer: signals.0.handle(),
            thread: AtomicBool::new(false),
        }),
        signals: Some(signals),
        thread: None,
    })
}

struct SignalsComponent {
    census: Census,
    reload: Reload,
    vitals: Arc<SignalsVitals>,
    signals: Option<Signals>,
    thread: Option<JoinHandle<()>>,
}

struct SignalsVitals {
    closer: Closer,
    thread: AtomicBool,
}

impl Vitals for SignalsVitals {
    fn probe(&self) -> Probe {
        if self.thread.load(Ordering::Acquire) {
            Probe::Ready
        } else {
            Probe::NotReady("thread_ended")
        }
    }

    fn fence(&self) {
        self.closer.close();
    }

    fn remaining(&self) -> Remaining {
        Remaining {
            threads: u32::from(self.thread.load(Ordering::Acquire)),
            ..Remaining::NONE
        }
    }
}

impl Component for SignalsComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::<SignalsVitals>::clone(&self.vitals)
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let signals = self
            .signals
            .take()
            .ok_or_else(|| Failed::new("started_twice", "signals are caught once"))?;
        let (vitals, reload) = (Arc::clone(&self.vitals), Arc::clone(&self.reload));
        vitals.thread.store(true, Ordering::Release);
        let spawned = self.census.spawn(spec(), move || {
            listen(signals, &context.runtime, &*reload);
            vitals.thread.store(false, Ordering::Release);
        });
        match spawned {
            Ok(thread) => {
                self.thread = Some(thread);
                Ok(Came::Up)
            }
            Err(error) => {
                self.vitals.thread.store(false, Ordering::Release);
                Err(Failed::new("no_thread", error))
            }
        }
    }

    fn stop(&mut self, _: Instant) -> Result<(), Failed> {
        self.vitals.closer.close();
        // The thread does nothing but wait for signals, and has been woken from that.
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(Failed::new("panicked", "the thread of the signals unwound")),
        }
    }
}

/// A stop that is asked for, where there are no components.
pub(crate) struct Asked {
    closer: Option<Closer>,
    stops: Receiver<&'static str>,
    /// Kept, so that waiting for nobody takes its time.
    _kept: Sender<&'static str>,
    thread: Option<JoinHandle<()>>,
}

impl Asked {
    /// Listens to the signals, if there are any, on a thread of the census.
    pub(crate) fn listen(signals: Option<Signals>, census: &Census) -> Result<Self, CensusError> {
        let (kept, stops) = channel();
        let closer = signals.as_ref().map(|signals| signals.0.handle());
        let thread = match signals {
            None => None,
            Some(mut signals) => {
                let ask = kept.clone();
                Some(census.spawn(spec(), move || {
                    for signal in &mut signals.0 {
                        if signal == SIGHUP {
                            nothing_to_read();
                        } else if ask.send(name(signal)).is_err() {
                            return;
                        }
                    }
                })?)
            }
        };
        Ok(Self {
            closer,
            stops,
            _kept: kept,
            thread,
        })
    }

    /// Waits so long for a stop to be asked for; the signal that did.
    pub(crate) fn within(&self, time: Duration) -> Option<&'static str> {
        self.stops.recv_timeout(time).ok()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(closer) = &self.closer {
            closer.close();
        }
        // It does nothing but wait for signals, and has been woken from that.
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::error!("the thread of the signals unwound");
        }
    }
}

/// What SIGHUP does where there is no configuration.
pub(super) fn nothing_to_read() {
    tracing::warn!("SIGHUP: there is nothing to read again");
}

fn spec() -> ThreadSpec {
    ThreadSpec {
        kernel_name: "rg-signals".to_owned(),
        name: "regatta/bot/signals".to_owned(),
        owner: "signals".to_owned(),
        role: "signals".to_owned(),
        sizing: "one".to_owned(),
        binding: LaneBinding::Pinned,
    }
}

const fn name(signal: i32) -> &'static str {
    if signal == SIGINT {
        "SIGINT"
    } else {
        "SIGTERM"
    }
}

fn listen(mut signals: Signals, runtime: &Handle, reload: &dyn Fn()) {
    for signal in &mut signals.0 {
        if signal == SIGHUP {
            reload();
            continue;
        }
        let name = name(signal);
        if runtime.signal(u8::try_from(signal).unwrap_or(0)) {
            tracing::warn!("{name} again: the drain ends, what is left has the safe minimum");
        } else {
            tracing::warn!("{name}: stopping");
        }
    }
}
