//! What was measured of a node, for people.

use super::record::{AnswerRecord, NodeRecord, Quantiles, Verdict, WatchRecord};
use std::fmt::Display;
use std::io::{self, Write};

pub(super) fn write(out: &mut impl Write, record: &NodeRecord) -> io::Result<()> {
    writeln!(out, "node     {}", record.endpoint)?;
    writeln!(
        out,
        "         {} on chain {}",
        record.client.as_deref().unwrap_or("unknown client"),
        or_unknown(record.chain.id)
    )?;
    let head = &record.head;
    writeln!(
        out,
        "head     block {}, {} s old; a block each {} ms by the last {} timestamps, at most {} s apart",
        or_unknown(head.number),
        or_unknown(head.age_s),
        or_unknown(head.interval_ms),
        head.headers,
        or_unknown(head.interval_max_s)
    )?;
    writeln!(out, "trip     {}", quantiles(record.round_trip_us))?;
    let logs = &record.logs;
    writeln!(
        out,
        "logs     by hash: {}; by range: {} blocks answered with {} logs",
        answer(logs.by_hash.as_ref()),
        or_unknown(logs.largest_range_blocks),
        or_unknown(logs.largest_range_logs)
    )?;
    if let Some(blocks) = logs.refused_range_blocks {
        let refusal = answer(logs.range_refusal.as_ref());
        writeln!(out, "         {blocks} blocks: {refusal}")?;
    }
    writeln!(
        out,
        "unknown  header {}; logs {}; call {}",
        answer(record.unknown_hash.header.as_ref()),
        answer(record.unknown_hash.logs.as_ref()),
        answer(record.unknown_hash.call.as_ref())
    )?;
    writeln!(
        out,
        "state    by hash: {}; {} blocks back: {}",
        answer(record.state.latest.as_ref()),
        or_unknown(record.state.old_blocks),
        answer(record.state.old.as_ref())
    )?;
    for factory in &record.factories {
        writeln!(
            out,
            "factory  {}: {} bytes of code, {} pools",
            factory.address,
            or_unknown(factory.code_bytes),
            factory.pools.as_deref().unwrap_or("unknown")
        )?;
    }
    if let Some(watch) = &record.watch {
        write_watch(out, watch)?;
    }
    for (finding, label) in labelled(&record.findings, "findings") {
        let (step, kind) = (finding.step, finding.kind);
        writeln!(out, "{label:<8} - {step} {kind}: {}", finding.text)?;
    }
    for (verdict, label) in labelled(&record.verdicts, "verdicts") {
        let word = match verdict.verdict {
            Verdict::Ok => "ok",
            Verdict::Limited => "limited",
            Verdict::Unfit => "unfit",
            Verdict::Unmeasured => "unmeasured",
        };
        let requirement = verdict.requirement;
        writeln!(
            out,
            "{label:<8} {word:<10} {requirement}: {}",
            verdict.because
        )?;
    }
    for (hint, label) in labelled(&record.hints, "hints") {
        writeln!(out, "{label:<8} - {} ({})", hint.text, hint.follows_from)?;
    }
    Ok(())
}

fn write_watch(out: &mut impl Write, watch: &WatchRecord) -> io::Result<()> {
    writeln!(
        out,
        "watch    {} headers in {} ms, {} repeated, {} passed over, {} reorganisations; apart by {}",
        watch.heads,
        watch.listened_ms,
        watch.heads_repeated,
        watch.heads_missing,
        watch.reorgs,
        quantiles(watch.arrival_interval_us)
    )?;
    writeln!(
        out,
        "         {} logs of {} blocks, before the header in {}, without one in {}, {} taken back; after it by {}",
        watch.logs,
        watch.blocks_with_logs,
        watch.logs_before_header,
        watch.logs_without_header,
        watch.logs_removed,
        quantiles(watch.log_lag_us)
    )?;
    writeln!(
        out,
        "stall    beside {} calls {}; without {}",
        watch.stall.calls,
        quantiles(watch.stall.loaded_us),
        quantiles(watch.stall.idle_us)
    )
}

/// Each item with the label at the first.
fn labelled<'a, T>(items: &'a [T], label: &'a str) -> impl Iterator<Item = (&'a T, &'a str)> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    items.iter().zip(labels)
}

fn or_unknown(value: Option<impl Display>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

fn quantiles(of: Option<Quantiles>) -> String {
    of.map_or_else(
        || "unmeasured".to_owned(),
        |of| {
            let (p50, p90, max) = (of.p50, of.p90, of.max);
            format!(
                "p50 {p50} us, p90 {p90} us, at most {max} us ({} samples)",
                of.samples
            )
        },
    )
}

fn answer(of: Option<&AnswerRecord>) -> String {
    let Some(of) = of else {
        return "unmeasured".to_owned();
    };
    let code = of.code.map(|code| format!(" {code}")).unwrap_or_default();
    let words = of.message.as_ref().map(|words| format!(" `{words}`"));
    format!("{}{code}{}", of.says, words.unwrap_or_default())
}
