//! The loop of the verifier's thread: take the newest block, read, have it compared, say what came of it.
//!
//! # Invariants
//! - It has one block at a time, and says of each what became of it.
//! - It never waits for the pump, and for the fleet only while nothing fences it.

use super::{Check, ReadError, ReserveReader, VerifyJob};
use crate::dispatch::VerifierPipe;
use crate::dispatch::verifier::Unverified;
use crate::market::Address;
use crate::pipeline::{Output, Pipeline, Unit};
use crate::source::BlockHash;
use regatta_core::role::WorkerRole;
use regatta_portable::{Ended, Fleet, WaitError};
use std::time::{Duration, Instant};

/// How often a comparison that the fleet holds is looked after.
const LOOK: Duration = Duration::from_millis(100);

/// How long a comparison may be held once no more blocks come: it is deferrable, and a cordon may last.
const HELD: Duration = Duration::from_secs(1);

/// Verifies what comes through `pipe` until that is closed and empty, or fenced.
pub fn verify<W: Pipeline>(fleet: &Fleet<W>, pipe: &VerifierPipe, reader: &dyn ReserveReader) {
    let mut addresses = Vec::new();
    let mut in_vain = 0_u64;
    while let Some(mut job) = pipe.take() {
        let number = job.head().number;
        if let Err(error) = read(&mut job, &mut addresses, reader) {
            in_vain += 1;
            if in_vain == 1 {
                tracing::warn!("block {number} was not verified: {error}");
            }
            let why = match error {
                ReadError::TimedOut(_) => Unverified::ReadTimedOut,
                _ => Unverified::ReadFailed,
            };
            pipe.unverified(Some(job), why);
            continue;
        }
        if std::mem::take(&mut in_vain) > 0 {
            tracing::warn!("the source is read again, at block {number}");
        }
        if !pipe.compare() {
            return;
        }
        compare(fleet, pipe, job);
    }
}

/// Reads what the job asks for; what differs, twice.
fn read(
    job: &mut VerifyJob,
    addresses: &mut Vec<Address>,
    reader: &dyn ReserveReader,
) -> Result<(), ReadError> {
    let head = job.head().hash;
    addresses.clear();
    addresses.extend(job.checks().iter().map(|check| check.address));
    let first = asked(reader, head, addresses)?;
    for (check, read) in job.checks_mut().iter_mut().zip(first) {
        check.read = read;
    }
    // A node that was asked while its next block was made may answer from there, and a pool is out of trade for good: what
    // differs is asked once more, and counts if the source says the same again.
    let differs = |check: &Check| check.read.is_some_and(|read| read != check.expected);
    addresses.clear();
    addresses.extend(
        job.checks()
            .iter()
            .filter(|c| differs(c))
            .map(|c| c.address),
    );
    if addresses.is_empty() {
        return Ok(());
    }
    let second = asked(reader, head, addresses)?;
    let checks = job.checks_mut().iter_mut().filter(|check| differs(check));
    for (check, again) in checks.zip(second) {
        if again != check.read {
            check.read = again.filter(|read| *read == check.expected);
        }
    }
    Ok(())
}

/// One reading.
fn asked(
    reader: &dyn ReserveReader,
    block: BlockHash,
    pools: &[Address],
) -> Result<Vec<Option<(u128, u128)>>, ReadError> {
    let read = reader.reserves_at(block, pools)?;
    if read.len() != pools.len() {
        return Err(ReadError::Count {
            asked: pools.len(),
            answered: read.len(),
        });
    }
    Ok(read)
}

/// Has the fleet compare.
fn compare<W: Pipeline>(fleet: &Fleet<W>, pipe: &VerifierPipe, job: Box<VerifyJob>) {
    let number = job.head().number;
    let not_run = |job, why: &dyn std::fmt::Display| {
        if !pipe.is_closed() {
            tracing::warn!("block {number} was not verified: {why}");
        }
        pipe.unverified(job, Unverified::NotRun);
    };
    let mut receipt = match fleet.submit(WorkerRole::Verifier, 0, Unit::Verify(job)) {
        Ok(receipt) => receipt,
        Err(refused) => {
            let job = match refused.unit {
                Unit::Verify(job) => Some(job),
                _ => None,
            };
            return not_run(job, &refused.error);
        }
    };
    let mut until = None;
    loop {
        receipt = match receipt.wait_for(LOOK) {
            Ok(Ended::Done(Output::Verified(job))) => {
                pipe.verified(job);
                tracing::debug!("block {number} was verified");
                return;
            }
            Ok(Ended::Done(_)) => return not_run(None, &"its unit answered as another"),
            Ok(Ended::Failed(failure, unit)) => {
                let job = match unit {
                    Some(Unit::Verify(job)) => Some(job),
                    _ => None,
                };
                return not_run(job, &failure);
            }
            Err(WaitError::TimedOut(receipt) | WaitError::WouldDeadlock(receipt)) => receipt,
        };
        if pipe.is_closed() {
            let until = *until.get_or_insert_with(|| Instant::now() + HELD);
            if pipe.is_fenced() || Instant::now() >= until {
                pipe.give_up();
                drop(receipt);
                return pipe.unverified(None, Unverified::NotRun);
            }
        }
    }
}
