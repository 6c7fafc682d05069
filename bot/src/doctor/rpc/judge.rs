//! Whether a node is fit, and what to configure: from the record alone.
//!
//! # Invariants
//! - What was not measured is neither fit nor unfit.
//! - A hint names the field that it follows from.

use super::record::{AnswerRecord, NodeHint, NodeRecord, Verdict, VerdictRecord};
use regatta_chain::read;

/// A head that is older is not fresh, in seconds, whatever the interval.
const OLD_S: u64 = 60;
/// How many seconds the node's clock may be ahead of this machine's.
const AHEAD_S: i64 = 15;
/// So many intervals without a header are too many.
const SILENT: u64 = 3;
/// A header that comes so much later beside calls is a stall, in microseconds.
const STALL_US: u64 = 50_000;

/// A verdict and its reason.
type Judged = (Verdict, String);

/// A verdict for each thing that the bot needs, in a set order. `listened`: whether it was to be.
pub(super) fn verdicts(record: &NodeRecord, listened: bool) -> Vec<VerdictRecord> {
    let mut all = vec![
        ("chain", chain(record)),
        ("synced", synced(record)),
        ("fresh", fresh(record)),
        ("unknown_hash", unknown_hash(record)),
        ("logs_by_hash", logs_by_hash(record)),
        ("state_by_hash", state_by_hash(record)),
        ("batches", batches(record)),
        ("frames", frames(record)),
    ];
    if listened {
        all.push(("header_announcements", headers(record)));
        all.push(("log_announcements", logs(record)));
    }
    if !record.factories.is_empty() {
        all.push(("factories", factories(record)));
    }
    all.into_iter()
        .map(|(requirement, (verdict, because))| VerdictRecord {
            requirement,
            verdict,
            because,
        })
        .collect()
}

fn ok(because: impl Into<String>) -> Judged {
    (Verdict::Ok, because.into())
}

fn limited(because: impl Into<String>) -> Judged {
    (Verdict::Limited, because.into())
}

fn unfit(because: impl Into<String>) -> Judged {
    (Verdict::Unfit, because.into())
}

fn unmeasured(because: impl Into<String>) -> Judged {
    (Verdict::Unmeasured, because.into())
}

/// What came instead of an answer.
fn instead(answer: &AnswerRecord) -> String {
    let code = answer.code.map(|code| format!(" with code {code}"));
    let words = answer.message.as_ref().map(|words| format!(": {words}"));
    format!(
        "{}{}{}",
        answer.says,
        code.unwrap_or_default(),
        words.unwrap_or_default()
    )
}

fn chain(record: &NodeRecord) -> Judged {
    match (record.chain.id, record.chain.wanted) {
        (None, _) => {
            unfit("the node does not say its chain id, without which the bot does not start")
        }
        (Some(id), Some(wanted)) if id != wanted => {
            unfit(format!("the node is on chain {id}, and {wanted} is wanted"))
        }
        (Some(id), Some(_)) => ok(format!("chain {id}, as wanted")),
        (Some(id), None) => ok(format!(
            "chain {id}; no --chain-id was given to compare it with"
        )),
    }
}

fn synced(record: &NodeRecord) -> Judged {
    match (record.sync.syncing, record.sync.behind_blocks) {
        (None, _) => unfit(
            "the node does not say whether it is syncing, and the bot does not start without that",
        ),
        (Some(false), _) => ok("the node is not syncing"),
        (Some(true), None) => unfit("the node is syncing: what it says is old"),
        (Some(true), Some(behind)) => unfit(format!(
            "the node is syncing, {behind} blocks behind: what it says is old"
        )),
    }
}

fn fresh(record: &NodeRecord) -> Judged {
    let Some(age) = record.head.age_s else {
        return unmeasured("the latest block is not known");
    };
    let interval = record.head.interval_ms.unwrap_or(0) / 1000;
    let most = interval.saturating_mul(5).max(OLD_S);
    if age < -AHEAD_S {
        limited(format!(
            "the latest block is {} s ahead of this machine's clock: one of the clocks is wrong",
            age.saturating_neg()
        ))
    } else if age > i64::try_from(most).unwrap_or(i64::MAX) {
        limited(format!(
            "the latest block is {age} s old, more than {most} s: the node is behind, or the chain stands still"
        ))
    } else {
        ok(format!("the latest block is {age} s old"))
    }
}

fn unknown_hash(record: &NodeRecord) -> Judged {
    let asked = [
        ("header", &record.unknown_hash.header),
        ("logs", &record.unknown_hash.logs),
        ("call", &record.unknown_hash.call),
    ];
    let of = |says: &[&str]| -> Vec<&str> {
        let found = asked.iter().filter(|(_, answer)| {
            answer
                .as_ref()
                .is_some_and(|answer| says.contains(&answer.says))
        });
        found.map(|(name, _)| *name).collect()
    };
    let (lies, told) = (of(&["data", "empty"]), of(&["refused", "not_found"]));
    if !lies.is_empty() {
        unfit(format!(
            "for a block that there is not, the node answers as if there were one ({}): a block that it does not have \
             yet would be taken for one without logs or state",
            lies.join(", ")
        ))
    } else if told.len() < asked.len() {
        unmeasured("not every question for a block that there is not was answered")
    } else {
        ok("a block that there is not is refused or null")
    }
}

fn logs_by_hash(record: &NodeRecord) -> Judged {
    let foreign = record
        .findings
        .iter()
        .find(|finding| finding.step == "logs_by_hash" && finding.kind == "wrong");
    match (&record.logs.by_hash, foreign) {
        (_, Some(finding)) => unfit(finding.text.clone()),
        (None, _) => unmeasured("the latest block is not known"),
        (Some(answer), None) => match answer.says {
            "data" | "empty" => ok("the latest block's logs are answered by its hash"),
            "refused" => limited(format!(
                "the latest block's logs are {}; the bot then asks for parts of its pools",
                instead(answer)
            )),
            "no_time" => unmeasured("no time was left for it"),
            _ => unfit(format!(
                "the latest block's logs by its hash: {}",
                instead(answer)
            )),
        },
    }
}

fn state_by_hash(record: &NodeRecord) -> Judged {
    let Some(latest) = &record.state.latest else {
        return unmeasured("the latest block is not known");
    };
    let old = record.state.old.as_ref().zip(record.state.old_blocks);
    match (latest.says, old) {
        ("data", Some((old, blocks))) if old.says == "data" => ok(format!(
            "eth_call takes a block's hash, also of one {blocks} blocks back"
        )),
        ("data", Some((old, blocks))) => ok(format!(
            "eth_call takes a block's hash; {blocks} blocks back: {}, which the bot does not need",
            instead(old)
        )),
        ("data", None) => ok("eth_call takes a block's hash"),
        ("no_time", _) => unmeasured("no time was left for it"),
        _ => unfit(format!(
            "eth_call by a block's hash (EIP-1898): {}",
            instead(latest)
        )),
    }
}

fn batches(record: &NodeRecord) -> Judged {
    let usual = read::Limits::default().batch;
    let refusal = record
        .batch
        .refusal
        .as_ref()
        .map(instead)
        .unwrap_or_default();
    match (record.batch.largest, record.batch.refused) {
        (Some(largest), _) if largest >= usual => ok(format!("a batch of {largest} is answered")),
        (Some(largest), _) => limited(format!(
            "a batch of {largest} is answered, and the bot's {usual} are not ({refusal}): each is halved until it is"
        )),
        (None, Some(refused)) => limited(format!(
            "a batch of {refused} is not answered ({refusal}): questions go one by one in the end, and the start takes long"
        )),
        (None, None) => unmeasured("no batch was asked"),
    }
}

fn frames(record: &NodeRecord) -> Judged {
    let (largest, limit) = (record.frame.largest_bytes, record.frame.limit_bytes);
    if largest > limit {
        limited(format!(
            "an answer has {largest} bytes or more, and the limit here is {limit}: such an answer ends the connection"
        ))
    } else {
        ok(format!(
            "the largest answer has {largest} bytes, the limit here is {limit}"
        ))
    }
}

/// Why announcements were not heard.
fn not_heard(record: &NodeRecord, step: &str) -> Option<Judged> {
    let finding = record
        .findings
        .iter()
        .find(|finding| finding.step == step)?;
    Some(if finding.kind == "no_time" {
        unmeasured(finding.text.clone())
    } else {
        unfit(format!("the node does not announce them: {}", finding.text))
    })
}

fn headers(record: &NodeRecord) -> Judged {
    if let Some(judged) = not_heard(record, "subscribe_heads") {
        return judged;
    }
    let Some(watch) = &record.watch else {
        return unmeasured("nothing was listened to");
    };
    let interval = record.head.interval_ms.filter(|interval| *interval > 0);
    let due = interval.map_or(0, |interval| watch.listened_ms / interval);
    if watch.heads == 0 && due >= SILENT {
        return unfit(format!(
            "no header came in {} ms, in which {due} were due",
            watch.listened_ms
        ));
    }
    if watch.heads == 0 {
        return unmeasured(format!(
            "no header came in {} ms: give more with --for",
            watch.listened_ms
        ));
    }
    if let Some(ended) = record
        .findings
        .iter()
        .find(|finding| finding.step == "watch")
    {
        return limited(ended.text.clone());
    }
    let odd = watch.heads_missing + watch.heads_repeated + watch.malformed;
    let says = format!(
        "{} headers, {} passed over, {} repeated, {} reorganisations, {} unreadable announcements",
        watch.heads, watch.heads_missing, watch.heads_repeated, watch.reorgs, watch.malformed
    );
    if odd > 0 { limited(says) } else { ok(says) }
}

fn logs(record: &NodeRecord) -> Judged {
    if let Some(judged) = not_heard(record, "subscribe_logs") {
        return judged;
    }
    let Some(watch) = &record.watch else {
        return unmeasured("nothing was listened to");
    };
    if watch.logs == 0 {
        return unmeasured("no log of a pool came");
    }
    let lag = watch.log_lag_us.map_or(0, |lag| lag.max);
    let says = format!(
        "{} logs of {} blocks, the last of a block at most {lag} us after its header; before it in {} blocks",
        watch.logs, watch.blocks_with_logs, watch.logs_before_header
    );
    if watch.logs_without_header > 0 {
        limited(format!(
            "{says}; {} blocks have logs and no header",
            watch.logs_without_header
        ))
    } else {
        ok(says)
    }
}

fn factories(record: &NodeRecord) -> Judged {
    for factory in &record.factories {
        let address = &factory.address;
        match (factory.code_bytes, factory.fits) {
            (Some(0), _) => return unfit(format!("there is no code at {address}")),
            (Some(_), None) => {
                return unfit(format!("{address} does not say how many pools it made"));
            }
            (_, Some(false)) => {
                return unfit(format!(
                    "{address} made {} pools, more than --most-pools {}: the bot does not start",
                    factory.pools.as_deref().unwrap_or_default(),
                    factory.most_pools
                ));
            }
            (None, _) => return unmeasured(format!("the code of {address} is not known")),
            (Some(_), Some(true)) => {}
        }
    }
    ok("each has code, and its pools fit")
}

/// What to configure.
pub(super) fn hints(record: &NodeRecord) -> Vec<NodeHint> {
    let mut hints = Vec::new();
    let mut hint = |name, follows_from, text: String| {
        hints.push(NodeHint {
            name,
            text,
            follows_from,
        });
    };
    if let (Some(id), None) = (record.chain.id, record.chain.wanted) {
        hint(
            "chain_id",
            "chain.id",
            format!(
                "pass --chain-id {id}: a node that is exchanged for one of another chain is then refused"
            ),
        );
    }
    if record.batch.largest.unwrap_or(0) < read::Limits::default().batch
        && record.batch.refused.is_some()
    {
        hint(
            "batch",
            "batch.largest",
            format!(
                "raise the node's limit of batches to {} (geth: --rpc.batch-request-limit), or use another endpoint: \
                 each refused batch is asked again in halves",
                read::Limits::default().batch
            ),
        );
    }
    if record.frame.largest_bytes > record.frame.limit_bytes {
        hint(
            "frame",
            "frame.largest_bytes",
            format!(
                "ask for less at once: an answer of {} bytes is over the {} that are taken; with --pools only the \
                 listed pools are asked for where a node refuses all",
                record.frame.largest_bytes, record.frame.limit_bytes
            ),
        );
    }
    if record.head.age_s.is_some_and(|age| age < -AHEAD_S) {
        hint(
            "clock",
            "head.age_s",
            "set this machine's clock (NTP): blocks come from its future".to_owned(),
        );
    }
    for factory in record.factories.iter().filter(|f| f.fits == Some(false)) {
        hint(
            "most_pools",
            "factories.pools",
            format!(
                "pass --most-pools {} or more, or --pools with those that are wanted of {}",
                factory.pools.as_deref().unwrap_or_default(),
                factory.address
            ),
        );
    }
    let watch = record.watch.as_ref();
    if watch.is_some_and(|watch| watch.heads_missing > 0 || watch.logs_without_header > 0) {
        hint(
            "second_endpoint",
            "watch.heads_missing",
            "headers are lost: follow another endpoint, and keep this one as its replacement"
                .to_owned(),
        );
    }
    let stall = watch.and_then(|watch| watch.stall.loaded_us);
    if let Some(stall) = stall.filter(|stall| stall.p50 > STALL_US) {
        hint(
            "two_sockets",
            "watch.stall.loaded_us",
            format!(
                "headers come {} us later beside calls on one socket: the bot announces on a socket of its own; do not \
                 put both behind a proxy that joins them",
                stall.p50
            ),
        );
    }
    let trip = record.round_trip_us.filter(|trip| trip.p50 > 100_000);
    if let Some(trip) = trip {
        hint(
            "far",
            "round_trip_us",
            format!(
                "a call takes {} us: use a node that is nearer, or its IPC socket",
                trip.p50
            ),
        );
    }
    hints
}
