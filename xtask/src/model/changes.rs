//! The planted changes: each takes one rule out of the core, or bends it.

use crate::planted::{Change, change};

const CLOSE: &str = "core/src/host/close.rs";
const COMPLETE: &str = "core/src/host/complete.rs";
const DEATH: &str = "core/src/host/death.rs";
const EPOCH: &str = "core/src/host/epoch.rs";
const GRANT: &str = "core/src/host/grant.rs";
const PROGRESS: &str = "core/src/host/progress.rs";
const LANE: &str = "core/src/lane.rs";
const SEAT: &str = "core/src/seat.rs";
const UNIT: &str = "core/src/unit.rs";

/// Every planted change.
pub(crate) static CHANGES: &[Change] = &[
    change(
        "hand-back-dropped",
        "a unit that is handed back returns to no queue",
        GRANT,
        "self.return_to_queue(role, unit, seat);",
        "",
    ),
    change(
        "edge-not-settled",
        "a posture edge is counted and not looked into",
        PROGRESS,
        "self.counters.0.edges += 1;\n        self.settle(now, guard);",
        "self.counters.0.edges += 1;\n        let _ = (now, guard);",
    ),
    change(
        "lane-not-armed",
        "the arming rule forgets the first lane that waits",
        PROGRESS,
        "for role in self.waiting.iter() {",
        "for role in self.waiting.iter().skip(1) {",
    ),
    change(
        "backlog-arms",
        "the backstop is armed iff a backlog is not empty: queued units are forgotten",
        PROGRESS,
        "armed |= hold != Some(HoldReason::Slots);",
        "armed |= !self.lanes[role.index()].backlog.is_empty();",
    ),
    change(
        "tick-not-rearmed",
        "a tick leaves the deadline that has passed",
        PROGRESS,
        "            self.last_tick = now;\n            self.backstop_at = Some(now + self.backstop);\n        }\n        self.settle",
        "            self.last_tick = now;\n        }\n        self.settle",
    ),
    change(
        "strike-not-excused",
        "ticks in which the guard held a lane count against it",
        PROGRESS,
        "            if hold.is_some() {\n                self.excuse(role);\n            }",
        "",
    ),
    change(
        "resolved-twice",
        "a unit that ends with its seat ends twice",
        COMPLETE,
        "self.end(role, unit.index, outcome);\n        true",
        "self.end(role, unit.index, outcome);\n        self.end(role, unit.index, outcome);\n        true",
    ),
    change(
        "generation-kept",
        "a freed row keeps its generation, so old ids are valid again",
        UNIT,
        "generation: row.generation.wrapping_add(1),",
        "generation: row.generation,",
    ),
    change(
        "released-unread",
        "a row is given back before its outcome was read",
        COMPLETE,
        ".find(unit, |place| place == Place::Collected)?",
        ".find(unit, |place| place != Place::Free)?",
    ),
    change(
        "permit-leaked",
        "a unit that ended keeps its permit",
        COMPLETE,
        "self.in_use -= 1;",
        "",
    ),
    change(
        "cordon-not-held",
        "a cordoned lane goes on leasing",
        LANE,
        "        if guard.posture.cordoned {\n            return Err(HoldReason::Cordoned);\n        }\n",
        "",
    ),
    change(
        "floor-not-held",
        "a cordon does not slow the floored lane",
        LANE,
        "            && guard.posture.cordoned\n            && load.running",
        "            && !guard.posture.cordoned\n            && load.running",
    ),
    change(
        "permits-exceeded",
        "one unit more than there are permits may start",
        LANE,
        "load.in_use >= guard.permits.total",
        "load.in_use > guard.permits.total",
    ),
    change(
        "pin-not-released",
        "a key moves away and its seat stays pinned",
        EPOCH,
        "if parting.phase() == SlotPhase::Pinned {",
        "if false {",
    ),
    change(
        "keys-not-requeued",
        "a key moves and the units that wait for it stay",
        EPOCH,
        "            self.requeue_keys(role);",
        "            let _ = Self::requeue_keys;",
    ),
    change(
        "dead-seat-idle",
        "a seat that died idle still counts as idle",
        DEATH,
        "        self.note_phase(seat);\n        self.loaded &= !seat.bit();",
        "        self.loaded &= !seat.bit();",
    ),
    change(
        "latch-not-faulting",
        "a lane that the death's cordon holds for ever keeps its units",
        DEATH,
        "if lane.owns_receipts && lane.cordon == CordonClass::Deferrable {",
        "if false && lane.cordon == CordonClass::Deferrable {",
    ),
    change(
        "any-report-counts",
        "a seat's report ends whatever it holds",
        SEAT,
        "        self.check_unit(event, unit)?;\n        Ok(self.step(event)?)",
        "        let _ = unit;\n        Ok(self.step(event)?)",
    ),
    change(
        "backlog-kept",
        "quiescing leaves what the guard holds",
        CLOSE,
        "self.end_backlog(role, Outcome::NotRun);",
        "",
    ),
    change(
        "lease-kept",
        "a fence leaves a lease that nobody will ever report",
        CLOSE,
        "self.take_lease_back(seat, unit);",
        "let _ = Self::take_lease_back;",
    ),
    change(
        "hand-back-last",
        "a unit that is handed back waits behind those that came later",
        GRANT,
        "self.units.push_front(list, unit.index, Place::Queue);",
        "self.units.push_back(list, unit.index, Place::Queue);",
    ),
];
