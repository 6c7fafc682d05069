//! The dispatch seam: the ordered drain with its stall watch, and the verifier's cell.

use crate::coverage::Event;
use crate::rule::{Rule, Step, Violation, ensure};
use crate::world::World;
use regatta_core::dispatch::{LatestWins, Offered, PipeProgress, StallRule, StallWatch, Stalled};
use regatta_core::time::{Duration, Instant};
use std::collections::VecDeque;

/// The rule: as shipped, on a shorter scale.
pub(crate) const STALL: StallRule = StallRule {
    floor: 2,
    window: Duration::from_secs(3),
    interval: Duration::from_millis(200),
};

/// Since when the drainer owes enough and has completed nothing.
#[derive(Clone, Copy, Debug)]
struct Silence {
    awake: Duration,
    stops: u64,
    /// What looks that came too late could not credit.
    lost: Duration,
}

/// The pipes.
#[derive(Debug)]
pub(crate) struct Seam {
    watch: StallWatch,
    progress: PipeProgress,
    queue: VecDeque<u64>,
    hand: Option<(u64, Instant)>,
    pub(crate) takes: Duration,
    pub(crate) frozen: bool,
    /// The item completed last.
    last: u64,
    next: u64,
    silence: Option<Silence>,
    looked: Duration,
    newest: LatestWins<u64>,
    offered: u64,
    taken: u64,
}

impl Default for Seam {
    fn default() -> Self {
        Self {
            watch: StallWatch::new(STALL),
            progress: PipeProgress::default(),
            queue: VecDeque::new(),
            hand: None,
            takes: Duration::from_millis(1),
            frozen: false,
            last: 0,
            next: 0,
            silence: None,
            looked: Duration::ZERO,
            newest: LatestWins::new(),
            offered: 0,
            taken: 0,
        }
    }
}

impl Seam {
    /// When the drainer is done with what it has in hand.
    pub(crate) fn drain_ends(&self) -> Option<Instant> {
        self.hand.filter(|_| !self.frozen).map(|(_, ends)| ends)
    }

    pub(crate) fn watch_due(&self, late: Duration) -> Option<Instant> {
        self.watch.next_deadline().map(|due| due + late)
    }

    /// The drainer takes the next item, if it has none in hand.
    fn take(&mut self, now: Instant) {
        if self.hand.is_none() {
            let next = self.queue.pop_front();
            self.hand = next.map(|item| (item, now + self.takes));
        }
    }
}

impl World<'_> {
    /// Items go into the drain.
    pub(crate) fn publish(&mut self, items: u8) -> Step {
        for _ in 0..items {
            let seam = &mut self.seam;
            seam.next += 1;
            seam.queue.push_back(seam.next);
            seam.progress.accepted += 1;
            seam.take(self.time.now);
            self.owe();
            self.watch()?;
        }
        Ok(())
    }

    /// An epoch's results leave, and the verifier may look at it.
    pub(crate) fn publish_epoch(&mut self, seq: u64) -> Step {
        match self.seam.newest.offer(seq, seq) {
            Offered::Held => {}
            Offered::Replaced(_) => self.cover.event(Event::Replaced),
            Offered::Stale(old) => {
                ensure(seq <= self.seam.offered, Rule::Ordered, || {
                    format!(
                        "epoch {old} is stale and {} was the newest",
                        self.seam.offered
                    )
                })?;
            }
        }
        self.seam.offered = self.seam.offered.max(seq);
        self.publish(1)
    }

    /// The verifier takes the newest epoch.
    pub(crate) fn verify(&mut self) -> Step {
        let seam = &mut self.seam;
        let due = (seam.offered > seam.taken).then_some((seam.offered, seam.offered));
        let got = seam.newest.take();
        ensure(got == due, Rule::Ordered, || {
            format!("the verifier got {got:?} and should have got {due:?}")
        })?;
        seam.taken = seam.taken.max(seam.offered);
        Ok(())
    }

    /// The drainer completes an item.
    pub(crate) fn drained(&mut self) -> Step {
        let seam = &mut self.seam;
        if let Some((item, _)) = seam.hand.take() {
            ensure(item == seam.last + 1, Rule::Ordered, || {
                format!("item {item} left after {}", seam.last)
            })?;
            seam.last = item;
            seam.progress.completed += 1;
            seam.silence = None;
        }
        seam.take(self.time.now);
        self.owe();
        Ok(())
    }

    /// Notes since when enough is owed.
    fn owe(&mut self) {
        if self.seam.progress.backlog() < STALL.floor {
            self.seam.silence = None;
        } else {
            self.seam.silence.get_or_insert(Silence {
                awake: self.time.awake,
                stops: self.time.stops,
                lost: Duration::ZERO,
            });
        }
    }

    /// The stall watch looks.
    pub(crate) fn watch(&mut self) -> Step {
        let gap = self.time.awake.saturating_sub(self.seam.looked);
        self.seam.looked = self.time.awake;
        if let Some(silence) = &mut self.seam.silence {
            silence.lost = silence.lost + gap.saturating_sub(STALL.interval.times(2));
        }
        let silent = |silence: Silence| self.time.awake.saturating_sub(silence.awake);
        let looked = self.seam.watch.look(self.time.now, self.seam.progress);
        let silence = self.seam.silence;
        match looked {
            Ok(()) => {
                // A look sees a completion up to an interval late, and counts from there.
                let slack = STALL.interval.times(4);
                let missed = silence.filter(|s| silent(*s) > STALL.window + slack + s.lost);
                ensure(missed.is_none(), Rule::Stalls, || {
                    format!("nothing was completed since {missed:?}, and nobody says so")
                })
            }
            Err(Stalled::Frozen { .. }) => {
                let credit = |s: Silence| {
                    // A stop of the process may count for two intervals, and no more.
                    silent(s) + STALL.interval.times(2 * (self.time.stops - s.stops))
                };
                let right = silence.is_some_and(|s| credit(s) >= STALL.window);
                ensure(right, Rule::Stalls, || {
                    format!("{looked:?}, and it has been so since {silence:?}")
                })?;
                self.cover.event(Event::Frozen);
                self.replace_drain();
                Ok(())
            }
            Err(closed) => Err(Violation::new(Rule::Stalls, closed.to_string())),
        }
    }

    /// The process ended itself; in the next one the drain is empty.
    fn replace_drain(&mut self) {
        let seam = &mut self.seam;
        seam.queue.clear();
        seam.hand = None;
        seam.frozen = false;
        seam.last = seam.next;
        seam.progress.completed = seam.progress.accepted;
        seam.silence = None;
        seam.watch = StallWatch::new(STALL);
    }

    /// Whether everything has left.
    pub(crate) fn check_drained(&self) -> Step {
        let owed = self.seam.progress.backlog();
        ensure(owed == 0, Rule::Ends, || format!("{owed} items never left"))
    }
}
