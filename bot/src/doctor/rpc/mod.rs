//! `regatta doctor --rpc`: measures a node before it is trusted, and says what to configure.
//!
//! # Invariants
//! - Everything ends within the time that was given, whatever the node does.
//! - A node that cannot be connected to is an error; whatever else it does is a finding.
//! - It only reads: no call changes anything.

mod judge;
mod line;
mod record;
mod steps;
mod tally;
mod text;
mod watch;

pub use record::{
    AnswerRecord, BatchRecord, ChainRecord, FactoryRecord, FindingRecord, FrameRecord, HeadRecord,
    LogsRecord, NodeHint, NodeRecord, Quantiles, StallRecord, StateRecord, SyncRecord,
    UnknownRecord, Verdict, VerdictRecord, WatchRecord,
};

use super::DoctorError;
use crate::cli::NodeArgs;
use line::Line;
use regatta_chain::endpoint::Endpoint;
use regatta_chain::rpc;
use regatta_chain::transport::ConnectError;
use std::io::{self, Write};
use std::time::Duration;
use steps::{Steps, finding};
use thiserror::Error;
use tokio::time::Instant;
use watch::Plan;

/// The longest that one question may take.
const STEP: Duration = Duration::from_secs(5);

/// Why a node is an error.
#[derive(Debug, Error)]
pub enum NodeError {
    /// It is not there.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system has no runtime for it.
    #[error("the runtime for the node's sockets cannot be made: {0}")]
    Runtime(io::Error),
    /// It is unfit, and `--strict` was given.
    #[error("the node is unfit for: {}", .0.join(", "))]
    Unfit(Vec<&'static str>),
}

/// Measures the node at `endpoint`, and writes what was found to `out`.
pub(super) fn doctor(
    endpoint: &Endpoint,
    args: &NodeArgs,
    json: bool,
    mut out: impl Write,
) -> Result<(), DoctorError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(NodeError::Runtime)?;
    let measured = runtime.block_on(measure(endpoint, args));
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    let record = measured?;
    if json {
        serde_json::to_writer(&mut out, &record).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
    } else {
        text::write(&mut out, &record)?;
    }
    out.flush()?;
    let unfit: Vec<&str> = record
        .verdicts
        .iter()
        .filter(|verdict| verdict.verdict == Verdict::Unfit)
        .map(|verdict| verdict.requirement)
        .collect();
    if args.strict && !unfit.is_empty() {
        return Err(NodeError::Unfit(unfit).into());
    }
    Ok(())
}

async fn measure(endpoint: &Endpoint, args: &NodeArgs) -> Result<NodeRecord, NodeError> {
    let whole = Duration::from_secs(args.seconds);
    let began = Instant::now();
    let half = began + whole / 2;
    let mut limits = rpc::Limits::default();
    limits.transport.connect = limits.transport.connect.min(whole / 2);
    limits.call = STEP;
    let line = Line::connect(endpoint, limits, STEP, half).await?;
    let mut steps = Steps {
        line,
        findings: Vec::new(),
    };
    let id = steps.chain_id().await;
    let client = steps.client().await;
    let sync = steps.sync().await;
    let round_trip_us = steps.round_trip().await;
    let (latest, head) = steps.head().await;
    let unknown_hash = steps.unknown().await;
    let mut state = StateRecord::default();
    let mut factories = Vec::new();
    let mut logs = LogsRecord::default();
    if let Some(latest) = &latest {
        state = steps.state(latest).await;
        for factory in &args.factory {
            factories.push(
                steps
                    .factory(latest, factory.address, args.most_pools)
                    .await,
            );
        }
    }
    let batch = steps.batches().await;
    // Last: what it answers with may end the connection.
    if let Some(latest) = &latest {
        logs = steps.logs(latest).await;
    }
    let Steps { line, mut findings } = steps;
    let frame = FrameRecord {
        largest_bytes: line.largest,
        limit_bytes: limits.transport.message_bytes,
    };
    drop(line);
    let mut watched = None;
    if args.heads > 0 {
        let plan = Plan {
            heads: args.heads,
            interval: Duration::from_millis(head.interval_ms.unwrap_or(0).min(60_000)),
            block: latest.as_ref().map(|latest| latest.hash),
            until: began + whole,
        };
        let mut fails = Vec::new();
        watched = watch::watch(endpoint, &limits, plan, &mut fails).await;
        findings.extend(fails.iter().map(|(step, failure)| finding(step, failure)));
    }
    let mut record = NodeRecord {
        endpoint: endpoint.to_string(),
        chain: ChainRecord {
            id,
            wanted: args.chain_id,
            matches: id.zip(args.chain_id).map(|(id, wanted)| id == wanted),
        },
        client,
        sync,
        head,
        round_trip_us,
        logs,
        batch,
        frame,
        unknown_hash,
        state,
        watch: watched,
        factories,
        findings,
        hints: Vec::new(),
        verdicts: Vec::new(),
    };
    record.verdicts = judge::verdicts(&record, args.heads > 0);
    record.hints = judge::hints(&record);
    Ok(record)
}
