//! The totals of a run.

use crate::dispatch::VerifierStatus;
use crate::pipeline::BlockResult;
use crate::publish::micros;
use crate::report::{
    BinTiming, LaneRecord, PercentileRecord, SettlingRecord, SummaryRecord, SummaryTiming,
    VerifierRecord,
};
use crate::settle::Intake;
use hdrhistogram::Histogram;
use regatta_core::role::{FLEET_ROLES, WorkerRole};
use regatta_portable::{CloseReport, FleetStatus};
use std::time::Duration;

/// A histogram of microseconds that takes anything up to an hour, to three digits.
struct Micros(Option<Histogram<u64>>);

impl Micros {
    fn new() -> Self {
        Self(Histogram::new_with_bounds(1, 3_600_000_000, 3).ok())
    }

    fn record(&mut self, duration: Duration) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(micros(duration).max(1));
        }
    }

    fn percentiles(&self) -> PercentileRecord {
        self.0
            .as_ref()
            .filter(|h| !h.is_empty())
            .map_or_else(PercentileRecord::default, |h| PercentileRecord {
                count: h.len(),
                p50: h.value_at_quantile(0.5),
                p90: h.value_at_quantile(0.9),
                p99: h.value_at_quantile(0.99),
                max: h.max(),
            })
    }
}

/// What adds up over blocks.
pub(crate) struct Totals {
    blocks: u64,
    missed: u64,
    touched: u64,
    solved: u64,
    suppressed: u64,
    failed: u64,
    published: u64,
    retracted: u64,
    unproved: u64,
    best: Option<(u128, u64)>,
    cycles: Micros,
    bins: Vec<Micros>,
    /// Receipts that were given up on purpose.
    given_up: u64,
    settlement: Option<Box<SettlingRecord>>,
    pub(crate) elapsed: Duration,
}

impl Totals {
    /// So many receipts were given up on purpose: nobody will collect what they come to.
    pub(crate) const fn give_up(&mut self, receipts: u64) {
        self.given_up += receipts;
    }

    /// Takes what settling came to.
    pub(crate) fn settled(&mut self, intake: &Intake) {
        let status = intake.status();
        let skipped = status.skipped;
        self.settlement = status
            .totals
            .clone()
            .map(|totals| Box::new(SettlingRecord { totals, skipped }));
    }

    pub(crate) fn new(bins: u8) -> Self {
        Self {
            given_up: 0,
            settlement: None,
            blocks: 0,
            missed: 0,
            touched: 0,
            solved: 0,
            suppressed: 0,
            failed: 0,
            published: 0,
            retracted: 0,
            unproved: 0,
            best: None,
            cycles: Micros::new(),
            bins: (0..bins).map(|_| Micros::new()).collect(),
            elapsed: Duration::ZERO,
        }
    }

    pub(crate) const fn miss(&mut self) {
        self.missed += 1;
    }

    pub(crate) const fn retract(&mut self) {
        self.retracted += 1;
    }

    pub(crate) fn add(&mut self, number: u64, result: &BlockResult) {
        self.blocks += 1;
        self.touched += result.tally.expected;
        self.solved += result.tally.solved;
        self.suppressed += result.tally.suppressed;
        self.failed += result.tally.failed;
        self.published += result.winners.len() as u64;
        self.unproved += result.unproved as u64;
        self.cycles.record(result.cycle);
        for (bin, walk) in self.bins.iter_mut().zip(&result.walks) {
            if !walk.is_zero() {
                bin.record(*walk);
            }
        }
        if let Some(winner) = result.winners.first() {
            let profit = winner.trade.optimum.profit;
            if self.best.is_none_or(|(best, _)| profit > best) {
                self.best = Some((profit, number));
            }
        }
    }

    /// The summary. `show` renders a profit in the base token.
    pub(crate) fn summary(
        &self,
        status: &FleetStatus,
        closed: CloseReport,
        verifier: Option<VerifierStatus>,
        show: impl Fn(u128) -> String,
    ) -> SummaryRecord {
        let ledger: Vec<LaneRecord> = status
            .lanes
            .iter()
            .filter(|lane| lane.ledger.submitted > 0)
            .map(|lane| LaneRecord {
                role: lane.role,
                submitted: lane.ledger.submitted,
                in_flight: lane.ledger.in_flight,
                waiting: lane.ledger.waiting(),
                resolved: lane.ledger.resolved,
                uncollected: lane.ledger.uncollected,
            })
            .collect();
        let settled = ledger
            .iter()
            .all(|lane| lane.in_flight + lane.waiting + lane.uncollected == 0);
        // The verifier takes the newest block when it comes to it, and the settler what the node lets it.
        let timed = [WorkerRole::Verifier, WorkerRole::Submitter].map(name_of);
        let (on_time, ledger) = ledger
            .into_iter()
            .partition(|lane| timed.contains(&lane.role));
        SummaryRecord {
            blocks: self.blocks,
            touched: self.touched,
            solved: self.solved,
            suppressed: self.suppressed,
            failed: self.failed,
            published: self.published,
            retracted: self.retracted,
            unproved: self.unproved,
            best_profit: self.best.map(|(profit, _)| profit.to_string()),
            best_block: self.best.map(|(_, block)| block),
            best_shown: self.best.map(|(profit, _)| show(profit)),
            abandoned: status.abandoned,
            balanced: status.balanced()
                && settled
                && status.abandoned == self.given_up
                && closed.is_clean(),
            ledger,
            timing: SummaryTiming {
                elapsed_ms: self.elapsed.as_secs_f64() * 1e3,
                missed: self.missed,
                cycle_us: self.cycles.percentiles(),
                bins: self
                    .bins
                    .iter()
                    .enumerate()
                    .map(|(bin, walks)| BinTiming {
                        bin,
                        walk_us: walks.percentiles(),
                    })
                    .collect(),
                suppressed_intake: status.lanes.iter().map(|l| l.counters.suppressed).sum(),
                handed_back: status.lanes.iter().map(|l| l.counters.handed_back).sum(),
                ticks: status.host.ticks,
                ledger: on_time,
                verifier: verifier.map(verifier_record),
                settlement: self.settlement.clone(),
            },
        }
    }
}

fn name_of(role: WorkerRole) -> &'static str {
    FLEET_ROLES.get(role.id()).map_or("", |spec| spec.name)
}

const fn verifier_record(status: VerifierStatus) -> VerifierRecord {
    VerifierRecord {
        published: status.published,
        skipped: status.skipped,
        verified: status.verified,
        reverted: status.reverted,
        read_failed: status.read_failed,
        read_timed_out: status.read_timed_out,
        not_run: status.not_run,
        compared: status.compared,
        unread: status.unread,
        left_out: status.left_out,
        quarantined: status.found_out,
    }
}
