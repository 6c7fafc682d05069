//! Records for people.

use super::chain::RegisteredRecord;
use super::record::{
    BlockRecord, CrawlRecord, PercentileRecord, PlanRecord, Record, ScenarioRecord, SeatsRecord,
    SummaryRecord,
};
use crate::settle::SettlementRecord;
use std::io::{self, Write};

pub(super) fn write(out: &mut impl Write, record: &Record) -> io::Result<()> {
    match record {
        Record::Plan(plan) => write_plan(out, plan),
        Record::Crawl(crawl) => write_crawl(out, crawl),
        Record::Block(block) => write_block(out, block),
        Record::Missed(missed) => {
            write!(out, "block {:>6}  missed", missed.number)?;
            if missed.orphaned {
                write!(out, ", reverted before it ran")?;
            }
            match missed.covered_by {
                Some(block) => writeln!(out, ", covered by {block}"),
                None => writeln!(out, ", covered by no block"),
            }
        }
        Record::Quarantine(pool) => {
            let (expected, read) = (pool.expected, pool.read);
            writeln!(
                out,
                "pool   {} quarantined: at block {} reserves {} and {} here, {} and {} at the source",
                pool.pool,
                pool.number,
                expected.reserve0,
                expected.reserve1,
                read.reserve0,
                read.reserve1
            )
        }
        Record::Distrust(distrust) => writeln!(
            out,
            "block {:>6}  {}: {}",
            distrust.number, distrust.reason, distrust.shown
        ),
        Record::Registered(registered) => write_registered(out, registered),
        Record::Retract(retract) => writeln!(
            out,
            "block {:>6}  {} was reverted: retracted {} {}",
            retract.number, retract.hash, retract.kind, retract.path
        ),
        Record::Settlement(settled) => write_settlement(out, settled),
        Record::Scenario(scenario) => write_scenario(out, scenario),
        Record::Summary(summary) => write_summary(out, summary),
    }
}

fn write_settlement(out: &mut impl Write, settled: &SettlementRecord) -> io::Result<()> {
    write!(
        out,
        "settle {} ({}) {}",
        settled.id, settled.mode, settled.outcome
    )?;
    if let Some(predicted) = &settled.predicted {
        write!(out, ", predicted {predicted} wei")?;
    }
    if let Some(realised) = &settled.realised {
        write!(out, ", realised {realised}")?;
    }
    if let Some(cost) = &settled.gas_cost {
        write!(out, ", gas {cost}")?;
    }
    if let Some(block) = settled.block {
        write!(out, ", block {block}")?;
    }
    if let Some(reason) = &settled.reason {
        write!(out, ": {reason}")?;
    }
    writeln!(out)
}

/// Milli-cores as cores.
pub(crate) fn cores(milli: u32) -> String {
    format!("{}.{:03}", milli / 1000, milli % 1000)
}

fn write_plan(out: &mut impl Write, plan: &PlanRecord) -> io::Result<()> {
    let detected = plan.detected_milli.map_or_else(|| "none".to_owned(), cores);
    writeln!(
        out,
        "plan   {} cores ({}), detected {detected} by {} ({}: {})",
        cores(plan.quota_milli),
        plan.quota_origin,
        plan.bounded_by,
        plan.confidence,
        plan.reason
    )?;
    if let (Some(level), Some(file)) = (&plan.limiting_level, &plan.limiting_file) {
        writeln!(out, "       limited at {level}, read from {file}")?;
    }
    writeln!(
        out,
        "       profile {}, binding {}{}, {} permit{}, {} bins",
        plan.profile,
        plan.binding,
        if plan.oversubscribed {
            ", oversubscribed"
        } else {
            ""
        },
        plan.permits,
        if plan.permits == 1 { "" } else { "s" },
        plan.bins
    )?;
    if let Some(because) = &plan.tier_refused_because {
        writeln!(out, "       {because}")?;
    }
    write_seats(out, "       ", &plan.seats)?;
    write_shares(out, plan)?;
    for key in &plan.idle_overrides {
        writeln!(out, "       {key} is set and has no say on this tier")?;
    }
    Ok(())
}

/// Where seats run and how they are woken, a line each.
pub(crate) fn write_seats(
    out: &mut impl Write,
    indent: &str,
    seats: &SeatsRecord,
) -> io::Result<()> {
    writeln!(
        out,
        "{indent}{} seat{}, on {}: {}",
        seats.count,
        if seats.count == 1 { "" } else { "s" },
        match seats.affinity {
            "one_cpu_each" => "one CPU each",
            _ => "every allowed CPU",
        },
        seats.because
    )?;
    if let (Some(wake), Some(because)) = (seats.wake, &seats.wake_because) {
        writeln!(out, "{indent}woken by {wake}: {because}")?;
    }
    Ok(())
}

/// A line for each share of a plan, under a heading.
pub(crate) fn write_shares(out: &mut impl Write, plan: &PlanRecord) -> io::Result<()> {
    writeln!(
        out,
        "       {:<20} {:>5} {:>7}  {:<14} rule",
        "share", "cores", "threads", "set by"
    )?;
    for row in &plan.budget {
        let share = row
            .within
            .map_or_else(|| row.cores.to_string(), |_| "-".to_owned());
        write!(
            out,
            "       {:<20} {share:>5} {:>7}  {:<14} {}",
            row.name, row.threads, row.origin, row.rule
        )?;
        match row.within {
            Some(within) => writeln!(out, ", on the share of {within}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn write_crawl(out: &mut impl Write, crawl: &CrawlRecord) -> io::Result<()> {
    writeln!(
        out,
        "market {}: {} pools, {} tokens",
        crawl.market, crawl.pools, crawl.tokens
    )?;
    if crawl.skipped_zero_reserve + crawl.skipped_pool_is_token > 0 {
        writeln!(
            out,
            "       {} rows skipped for a zero reserve, {} whose address is a token's",
            crawl.skipped_zero_reserve, crawl.skipped_pool_is_token
        )?;
    }
    let [two, three, four] = crawl.cycles;
    writeln!(
        out,
        "crawl  {} cycles from {} ({}): {two} of 2 hops, {three} of 3, {four} of 4; window {}, {} groups, {:.0} ms",
        crawl.registered,
        crawl.base_symbol,
        crawl.base,
        crawl.window,
        crawl.groups,
        crawl.timing.elapsed_ms
    )
}

fn write_block(out: &mut impl Write, block: &BlockRecord) -> io::Result<()> {
    let best = block.winners.first().map_or("-", |winner| &winner.shown);
    #[expect(
        clippy::cast_precision_loss,
        reason = "three decimals of a millisecond"
    )]
    let cycle_ms = block.timing.cycle_us as f64 / 1e3;
    writeln!(
        out,
        "block {:>6}  touched {:>6}  solved {:>6}  profitable {:>6}  best {best:<24}  cycle {cycle_ms:>8.3} ms  {}{}",
        block.number,
        block.touched,
        block.solved,
        block.profitable,
        block.timing.posture,
        if block.reread {
            "  market read anew"
        } else {
            ""
        },
    )
}

fn write_registered(out: &mut impl Write, registered: &RegisteredRecord) -> io::Result<()> {
    match registered.after {
        Some(block) => write!(out, "grown  after block {block}")?,
        None => write!(out, "grown  before the first block")?,
    }
    write!(
        out,
        " (epoch {}): {} pools and {} cycles came, {} are registered",
        registered.epoch, registered.pools, registered.cycles, registered.total
    )?;
    if registered.skipped > 0 {
        write!(out, "; {} pools were refused", registered.skipped)?;
    }
    match &registered.refused {
        Some(refused) => writeln!(out, "; not registered: {refused}"),
        None => writeln!(out),
    }
}

fn write_scenario(out: &mut impl Write, scenario: &ScenarioRecord) -> io::Result<()> {
    let timing = &scenario.timing;
    writeln!(out, "scenario {}", scenario.scenario)?;
    writeln!(
        out,
        "       a cordon set in at {} of {} paths; {} receipts were outstanding, {} units held ({})",
        scenario.registered_at_cordon,
        scenario.paths,
        scenario.outstanding,
        scenario.held,
        scenario.hold_reason
    )?;
    writeln!(
        out,
        "       {} paths were registered under it; it lifted after {:.0} ms and {} edges reached the host",
        scenario.registered_under_cordon, timing.cordoned_ms, scenario.edges_delivered
    )?;
    writeln!(
        out,
        "       the crawl went on {:.0} ms later, at backstop tick {}, and registered {} of {}: {}",
        timing.resumed_after_ms,
        timing.ticks,
        scenario.registered,
        scenario.paths,
        if scenario.completed {
            "completed"
        } else {
            "NOT COMPLETED"
        }
    )
}

fn percentiles(p: &PercentileRecord) -> String {
    format!(
        "p50 {} us, p90 {} us, p99 {} us, max {} us",
        p.p50, p.p90, p.p99, p.max
    )
}

fn write_summary(out: &mut impl Write, summary: &SummaryRecord) -> io::Result<()> {
    let timing = &summary.timing;
    writeln!(
        out,
        "done   {} blocks ({} missed) in {:.0} ms; {} trades published, {} retracted, {} not proved",
        summary.blocks,
        timing.missed,
        timing.elapsed_ms,
        summary.published,
        summary.retracted,
        summary.unproved
    )?;
    if let (Some(best), Some(block)) = (&summary.best_shown, summary.best_block) {
        writeln!(out, "       best {best} in block {block}")?;
    }
    writeln!(out, "       cycle  {}", percentiles(&timing.cycle_us))?;
    for bin in timing.bins.iter().filter(|bin| bin.walk_us.count > 0) {
        writeln!(
            out,
            "       bin {:>2} {}",
            bin.bin,
            percentiles(&bin.walk_us)
        )?;
    }
    writeln!(
        out,
        "paths  {} touched = {} solved + {} suppressed + {} failed",
        summary.touched, summary.solved, summary.suppressed, summary.failed
    )?;
    if let Some(verifier) = &timing.verifier {
        writeln!(
            out,
            "verify {} of {} blocks, {} skipped, {} reverted, {} not read, {} not compared; {} pools compared, {} quarantined",
            verifier.verified,
            verifier.published,
            verifier.skipped,
            verifier.reverted,
            verifier.read_failed + verifier.read_timed_out,
            verifier.not_run,
            verifier.compared,
            verifier.quarantined
        )?;
    }
    for lane in summary.ledger.iter().chain(&timing.ledger) {
        writeln!(
            out,
            "units  {:<18} {} submitted = {} in flight + {} waiting + {} resolved; {} uncollected",
            lane.role,
            lane.submitted,
            lane.in_flight,
            lane.waiting,
            lane.resolved,
            lane.uncollected
        )?;
    }
    writeln!(
        out,
        "ledger {}, {} receipts abandoned",
        if summary.balanced {
            "balanced"
        } else {
            "NOT BALANCED"
        },
        summary.abandoned
    )
}
