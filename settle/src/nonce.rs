//! Which nonce is next, and what is wrong with those that are out: our own record against a node's counts.
//!
//! # Invariants
//! - A nonce that is given out is above all that were, and no node counts it: not in a block, not in its mempool.
//! - Nothing is skipped: between the chain's count and the next nonce, each is out, or held by the mempool, or a gap
//!   that is reported.

use std::collections::BTreeSet;

/// A node's counts of an account's transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// In blocks.
    pub latest: u64,
    /// In blocks and, without a gap after them, in the mempool.
    pub pending: u64,
}

/// What comes of comparing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reconciled {
    /// The next nonce to give out.
    pub next: u64,
    /// Out, and a block has a transaction with it: ours or not.
    pub passed: Vec<u64>,
    /// Out, and the mempool does not show it: to be sent again.
    pub absent: Vec<u64>,
    /// Below the next, not out, not in a block, and not in the mempool: nothing after it can go on.
    pub gaps: Vec<u64>,
}

/// The chain has far fewer transactions than our record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the chain has {latest} transactions of the account and the ledger {next}: it is another chain, or lost its end: \
     begin another ledger"
)]
pub struct Behind {
    /// The chain's.
    pub latest: u64,
    /// Ours.
    pub next: u64,
}

/// Compares `next`, the record's, and the nonces that are `out` with what a node counts. `kept` are those that the
/// record knows to be in blocks; more than `most` gaps are none that one would fill.
pub fn reconcile(
    next: Option<u64>,
    out: &BTreeSet<u64>,
    kept: &BTreeSet<u64>,
    counts: Counts,
    most: usize,
) -> Result<Reconciled, Behind> {
    let Counts { latest, pending } = counts;
    // Two answers of a node need not be of one moment.
    let shown = latest.max(pending);
    let ours = next.unwrap_or(0);
    let gaps = (shown..ours).filter(|nonce| !out.contains(nonce) && !kept.contains(nonce));
    let gaps: Vec<u64> = gaps.take(most.saturating_add(1)).collect();
    if gaps.len() > most {
        return Err(Behind { latest, next: ours });
    }
    Ok(Reconciled {
        next: ours.max(shown),
        passed: out
            .iter()
            .copied()
            .filter(|nonce| *nonce < latest)
            .collect(),
        absent: out
            .iter()
            .copied()
            .filter(|nonce| *nonce >= shown)
            .collect(),
        gaps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N17, for every record and every count up to 6: the sets say each which nonces are out and in blocks.
    #[test]
    fn n17_no_nonce_is_skipped_or_used_twice() {
        const N: u64 = 5;
        let set = |bits: u64| -> BTreeSet<u64> { (0..N).filter(|n| bits >> n & 1 == 1).collect() };
        for (out, kept) in (0..1 << N).flat_map(|out| (0..1 << N).map(move |kept| (out, kept))) {
            if out & kept != 0 {
                continue;
            }
            let (out, kept) = (set(out), set(kept));
            let least = out.iter().chain(&kept).max().map_or(0, |nonce| nonce + 1);
            for (ours, latest, pending) in (least..=N)
                .flat_map(|ours| (0..=N + 1).map(move |latest| (ours, latest)))
                .flat_map(|(ours, latest)| (0..=N + 1).map(move |pending| (ours, latest, pending)))
            {
                let counts = Counts { latest, pending };
                let next = (ours > 0).then_some(ours);
                let done = reconcile(next, &out, &kept, counts, 99).unwrap();
                let free = |nonce| nonce >= latest && nonce >= pending && nonce >= ours;
                assert_eq!(Some(done.next), (0..=N + 1).find(|nonce| free(*nonce)));
                for nonce in 0..=N + 1 {
                    let (is_out, mined) = (out.contains(&nonce), nonce < latest);
                    let in_pool = !mined && nonce < pending;
                    assert_eq!(done.passed.contains(&nonce), is_out && mined);
                    assert_eq!(done.absent.contains(&nonce), is_out && !mined && !in_pool);
                    let known = is_out || mined || in_pool || kept.contains(&nonce);
                    assert_eq!(done.gaps.contains(&nonce), nonce < done.next && !known);
                }
                let n = done.gaps.len();
                assert!(n == 0 || reconcile(next, &out, &kept, counts, n - 1).is_err());
            }
        }
    }

    #[test]
    fn another_chains_ledger_is_told_without_counting_to_it() {
        let (none, counts) = (
            BTreeSet::new(),
            Counts {
                latest: 0,
                pending: 0,
            },
        );
        let error = reconcile(Some(u64::MAX), &none, &none, counts, 8).unwrap_err();
        assert_eq!(
            error,
            Behind {
                latest: 0,
                next: u64::MAX
            }
        );
    }
}
