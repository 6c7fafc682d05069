//! What the runs have come by, so that what they never met can be named.

use regatta_core::lane::{HoldReason, Progress};
use regatta_core::role::SeatKind;
use regatta_core::seat::{SlotEvent, SlotPhase};
use std::fmt;

/// A list of names, and which of them were met.
#[derive(Clone, Debug)]
pub struct Seen {
    list: &'static str,
    names: &'static [&'static str],
    met: u64,
}

impl Seen {
    const fn new(list: &'static str, names: &'static [&'static str]) -> Self {
        Self {
            list,
            names,
            met: 0,
        }
    }

    /// Notes the name at `index`.
    pub(crate) const fn note(&mut self, index: usize) {
        self.met |= 1 << index;
    }

    /// The names that were not met.
    pub fn missed(&self) -> impl Iterator<Item = &'static str> + '_ {
        let names = self.names.iter().enumerate();
        names
            .filter(|(index, _)| self.met & 1 << index == 0)
            .map(|(_, name)| *name)
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = self.met.count_ones();
        write!(f, "{:<18} {met:>2} of {:>2}", self.list, self.names.len())?;
        for (n, name) in self.missed().enumerate() {
            write!(f, "{} {name}", if n == 0 { "; missed:" } else { "," })?;
        }
        Ok(())
    }
}

/// The host's inputs and what is said to them, in the order of [`Coverage::inputs`].
#[derive(Clone, Copy)]
pub(crate) enum Met {
    Queued,
    Held,
    Dead,
    Full,
    Closed,
    Faulted,
    Finished,
    Late,
    NotTaken,
    Tick,
    Edge,
    Epoch,
    Died,
    Resize,
    Quiesce,
    Fence,
    Begun,
    HandedBack,
    NoLease,
    Stale,
    NotOver,
}

/// What a fleet's surroundings did, in the order of [`Coverage::events`].
#[derive(Clone, Copy)]
pub(crate) enum Event {
    ByEvents,
    ByDuty,
    ByDeath,
    ExitClean,
    ExitUnmeasured,
    Retuned,
    KeeperTook,
    KeeperHandedOver,
    KeeperDied,
    Unprompted,
    HungReported,
    RowReused,
    Missed,
    Frozen,
    Replaced,
    Stranded,
    BelowFloor,
    Refill,
    Rehomed,
}

/// What runs have come by.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// Inputs of the host and its answers.
    pub inputs: Seen,
    /// Transitions of seats.
    pub slots: Seen,
    /// States of lanes.
    pub states: Seen,
    /// Transitions of lanes.
    pub progress: Seen,
    /// Why units were held.
    pub holds: Seen,
    /// How units ended.
    pub outcomes: Seen,
    /// What happened around.
    pub events: Seen,
    /// Steps that were taken.
    pub steps: u64,
    /// Units that were accepted.
    pub units: u64,
    /// Virtual time, in milliseconds.
    pub millis: u64,
    /// That in which the process was not stopped.
    pub awake: u64,
}

const INPUTS: &[&str] = &[
    "Enqueue: queued",
    "Enqueue: held",
    "Enqueue: dead",
    "Enqueue: full",
    "Enqueue: closed",
    "Enqueue: faulted",
    "SeatDone: finished",
    "SeatDone: late",
    "SeatDone: refused",
    "BackstopTick",
    "PostureEdge",
    "EpochBoundary",
    "SeatDied",
    "Resize",
    "Close: quiesce",
    "Close: fence",
    "start: begun",
    "start: handed back",
    "start: lease gone",
    "release: stale",
    "EpochBoundary: not over",
];

const SLOTS: &[&str] = &[
    "T1",
    "T2",
    "T3",
    "T4",
    "T5",
    "T6",
    "T7",
    "T8",
    "T9",
    "T10",
    "T11 Idle",
    "T11 Leased",
    "T11 Running",
    "T11 Pinned",
    "T11 Draining",
    "T11 Retired",
    "T12 Idle",
    "T12 Pinned",
];

const STATES: &[&str] = &["Idle", "Backed", "Faulted", "Closed"];

const PROGRESS: &[&str] = &[
    "hold",
    "clear",
    "fault Idle",
    "fault Backed",
    "fault Closed",
    "close Idle",
    "close Backed",
];

const HOLDS: &[&str] = &[
    "cordoned",
    "sim_floor",
    "below_floor",
    "ledger",
    "permits",
    "keyed_permits",
    "slots",
    "queue_full",
    "behind",
    "no_seat",
];

const OUTCOMES: &[&str] = &["Done", "Panicked", "LaneDeath", "Closed", "NotRun"];

const EVENTS: &[&str] = &[
    "cordon by events",
    "cordon by duty",
    "cordon by a dead lane",
    "clean exit",
    "unmeasured exit",
    "policy changed",
    "timekeeper took over",
    "timekeeper handed over",
    "timekeeper died",
    "wake without a reason",
    "report of a seat taken for dead",
    "row used again",
    "block missed",
    "drainer found frozen",
    "newest epoch replaced",
    "pipe stranded",
    "quota below the floor",
    "ledger with a refill time",
    "key moved",
];

impl Default for Coverage {
    fn default() -> Self {
        Self {
            inputs: Seen::new("inputs", INPUTS),
            slots: Seen::new("slot transitions", SLOTS),
            states: Seen::new("progress states", STATES),
            progress: Seen::new("progress steps", PROGRESS),
            holds: Seen::new("hold reasons", HOLDS),
            outcomes: Seen::new("terminal kinds", OUTCOMES),
            events: Seen::new("surroundings", EVENTS),
            steps: 0,
            units: 0,
            millis: 0,
            awake: 0,
        }
    }
}

impl Coverage {
    /// Every list.
    #[must_use]
    pub fn lists(&self) -> [&Seen; 7] {
        [
            &self.inputs,
            &self.slots,
            &self.states,
            &self.progress,
            &self.holds,
            &self.outcomes,
            &self.events,
        ]
    }

    pub(crate) const fn met(&mut self, what: Met) {
        self.inputs.note(what as usize);
    }

    pub(crate) const fn event(&mut self, what: Event) {
        self.events.note(what as usize);
    }

    pub(crate) fn hold(&mut self, reason: HoldReason) {
        let mut all = HoldReason::ALL.iter();
        if let Some(index) = all.position(|known| *known == reason) {
            self.holds.note(index);
        }
    }

    /// Notes how a seat went from one phase to another in one call: by one transition, or by two that
    /// pass through a third phase.
    pub(crate) fn slot(&mut self, kind: SeatKind, from: SlotPhase, to: SlotPhase) -> bool {
        let row = |from: SlotPhase, to: SlotPhase| {
            let mut rows = SlotPhase::TRANSITIONS.iter();
            rows.position(|t| (t.from, t.to) == (from, to) && is_for(t.event, kind))
        };
        if let Some(row) = row(from, to) {
            self.slots.note(row);
            return true;
        }
        let mut between = SlotPhase::ALL.iter();
        let path = between.find_map(|mid| row(from, *mid).zip(row(*mid, to)));
        if let Some((first, second)) = path {
            self.slots.note(first);
            self.slots.note(second);
        }
        path.is_some()
    }

    pub(crate) fn lane(&mut self, from: Progress, to: Progress) -> bool {
        let row = |from: Progress, to: Progress| {
            let mut rows = Progress::TRANSITIONS.iter();
            rows.position(|t| (t.from, t.to) == (from, to))
        };
        self.states.note(to as usize);
        let path = row(from, to).map(|row| (row, row)).or_else(|| {
            let mut between = Progress::ALL.iter();
            between.find_map(|mid| row(from, *mid).zip(row(*mid, to)))
        });
        if let Some((first, second)) = path {
            self.progress.note(first);
            self.progress.note(second);
        }
        path.is_some()
    }
}

/// Whether an event is one of seats of this kind.
const fn is_for(event: SlotEvent, kind: SeatKind) -> bool {
    match event {
        SlotEvent::PinKey => matches!(kind, SeatKind::KeyedPin),
        SlotEvent::PinFixed => matches!(kind, SeatKind::FixedPin),
        SlotEvent::Finish | SlotEvent::Shed | SlotEvent::Drained => {
            matches!(kind, SeatKind::Pooled)
        }
        SlotEvent::Resume | SlotEvent::Release => !matches!(kind, SeatKind::Pooled),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_as_long_as_those_of_the_core() {
        let coverage = Coverage::default();
        for (list, len) in [
            (&coverage.slots, SlotPhase::TRANSITIONS.len()),
            (&coverage.states, Progress::ALL.len()),
            (&coverage.progress, Progress::TRANSITIONS.len()),
            (&coverage.holds, HoldReason::ALL.len()),
            (&coverage.inputs, Met::NotOver as usize + 1),
            (&coverage.events, Event::Rehomed as usize + 1),
        ] {
            assert_eq!(list.names.len(), len, "{list}");
        }
        for (name, reason) in coverage.holds.names.iter().zip(HoldReason::ALL) {
            assert_eq!(*name, reason.label());
        }
        for (name, t) in coverage.slots.names.iter().zip(SlotPhase::TRANSITIONS) {
            assert!(name.split(' ').next() == Some(t.name), "{name}: {t:?}");
        }
    }

    #[test]
    fn what_is_missed_is_named() {
        let mut coverage = Coverage::default();
        assert_eq!(coverage.outcomes.missed().count(), 5);
        coverage.outcomes.note(0);
        let text = coverage.outcomes.to_string();
        assert!(
            text.contains("1 of  5; missed: Panicked, LaneDeath"),
            "{text}"
        );
    }
}
