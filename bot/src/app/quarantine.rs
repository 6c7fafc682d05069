//! What the verifier finds out takes effect here: on the pump's thread, between two cycles.

use super::stage::Stage;
use crate::dispatch::VerifierPipe;
use crate::pipeline::Arbitrage;
use crate::report::{QuarantineRecord, Record, ReservesRecord};
use crate::run::RunError;
use crate::verify::Mismatch;
use regatta_portable::Fleet;
use std::time::Instant;

/// Takes the pools that were found out since the last time out of trade, and says so. To be called when no unit reads
/// the world, and after what the source said of reverted blocks.
pub(super) fn take(
    stage: &Stage,
    fleet: &Fleet<Arbitrage>,
    findings: &mut Vec<Mismatch>,
) -> Result<(), RunError> {
    let Some(pipe) = stage.dispatch().verifier() else {
        return Ok(());
    };
    pipe.take_findings(findings);
    if findings.is_empty() {
        return Ok(());
    }
    for finding in findings.drain(..) {
        fleet.workload().world_mut().quarantine(finding.pool);
        stage.emit_of_pump(record(stage, &finding))?;
    }
    limit(stage, pipe)
}

/// Says what was found out after the pump had ended.
pub(super) fn say_rest(stage: &Stage, pipe: &VerifierPipe, until: Instant) -> Result<(), RunError> {
    let mut findings = Vec::new();
    pipe.take_findings(&mut findings);
    if findings.is_empty() {
        return Ok(());
    }
    for finding in &findings {
        stage.emit(record(stage, finding), || Instant::now() < until)?;
    }
    limit(stage, pipe)
}

/// Whether so many pools are out of trade that nothing else can be trusted either.
fn limit(stage: &Stage, pipe: &VerifierPipe) -> Result<(), RunError> {
    let (pools, most) = (pipe.status().found_out, stage.args().max_quarantined);
    if pools > u64::from(most) {
        return Err(RunError::Quarantined { pools, most });
    }
    Ok(())
}

/// The record of a finding, which is logged too.
fn record(stage: &Stage, finding: &Mismatch) -> Record {
    let (expected, read) = (finding.expected, finding.read);
    tracing::error!(
        "pool {} is quarantined: at block {} its reserves are {} and {} here, and {} and {} at the source",
        finding.address,
        finding.head.number,
        expected.0,
        expected.1,
        read.0,
        read.1
    );
    Record::Quarantine(QuarantineRecord {
        chain: stage.origin().chain.clone(),
        pool: finding.address,
        number: finding.head.number,
        hash: finding.head.hash,
        expected: ReservesRecord::from(expected),
        read: ReservesRecord::from(read),
    })
}
