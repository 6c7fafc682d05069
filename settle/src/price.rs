//! What a unit of gas is offered.
//!
//! A block's base fee is at most an eighth above its parent's
//! (<https://eips.ethereum.org/EIPS/eip-1559>), and a node takes a replacement that offers at least a tenth more, of
//! both fees. All sums round up and saturate.
//!
//! # Invariants
//! - An uncapped offer can pay the base fee of every block up to the expiry, whatever happens until then.
//! - A replacement offers at least an eighth more of both fees, or is not made.

/// What a transaction offers for a unit of gas, in wei.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fees {
    /// All in all, at most.
    pub max: u128,
    /// To the block's maker.
    pub priority: u128,
}

/// The highest base fee of a block whose parent's is `base_fee`.
#[must_use]
pub fn highest_next(base_fee: u128) -> u128 {
    // EIP-1559 raises by an eighth, rounded down, and by 1 at least.
    base_fee.saturating_add((base_fee / 8).max(1))
}

/// What to offer at a head with `base_fee` so that a block up to `blocks` later can take it, but at most `cap`; nothing if
/// the cap does not even pay the next block's highest base fee.
#[must_use]
pub fn offer(base_fee: u128, blocks: u64, priority: u128, cap: u128) -> Option<Fees> {
    let mut highest = base_fee;
    for _ in 0..blocks {
        highest = highest_next(highest);
        if highest >= cap {
            break;
        }
    }
    let max = highest.saturating_add(priority).min(cap);
    (blocks > 0 && highest_next(base_fee) <= max).then_some(Fees {
        max,
        priority: priority.min(max),
    })
}

/// An eighth more, rounded up; 1 more at least.
fn raised(fee: u128) -> u128 {
    fee.saturating_add(fee.div_ceil(8).max(1))
}

/// What replaces a transaction that offered `old`: at least an eighth more of both, and no less than `wanted`; nothing
/// if that is above `cap`.
#[must_use]
pub fn replacement(old: Fees, wanted: Option<Fees>, cap: u128) -> Option<Fees> {
    let wanted = wanted.unwrap_or(Fees {
        max: 0,
        priority: 0,
    });
    let priority = raised(old.priority).max(wanted.priority);
    let max = raised(old.max).max(wanted.max).max(priority);
    (max <= cap).then_some(Fees { max, priority })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U512;
    use proptest::prelude::*;

    /// The plain formula: the base fee after `blocks` full blocks, unbounded.
    fn after_full_blocks(base_fee: u128, blocks: u64) -> U512 {
        let mut fee = U512::from(base_fee);
        for _ in 0..blocks {
            fee += (fee / U512::from(8)).max(U512::from(1));
        }
        fee
    }

    proptest! {
        /// N19.
        #[test]
        fn n19_an_offer_pays_every_block_until_expiry(
            base_fee in 0_u128..1 << 100, blocks in 1_u64..60, priority in 0_u128..1 << 90, cap: u128,
        ) {
            let needed = after_full_blocks(base_fee, blocks) + U512::from(priority);
            let next = after_full_blocks(base_fee, 1);
            match offer(base_fee, blocks, priority, cap) {
                Some(fees) => {
                    prop_assert_eq!(U512::from(fees.max), needed.min(U512::from(cap)));
                    prop_assert!(fees.priority <= fees.max && fees.priority <= priority);
                    prop_assert!(U512::from(fees.max) >= next);
                }
                None => prop_assert!(next > U512::from(cap)),
            }
        }

        /// N18: +8.75 % was refused for ever; nodes ask for 10 %, here it is 12.5 %.
        #[test]
        fn n18_a_replacement_raises_both_fees_by_an_eighth(
            max: u128, tip: u128, other: u128, cap: u128, wants: bool,
        ) {
            let old = Fees { max, priority: tip.min(max) };
            let wanted = wants.then_some(Fees { max: other, priority: other / 3 });
            let enough = |new: u128, old: u128| {
                U512::from(new) * U512::from(8) >= U512::from(old) * U512::from(9) && new > old
            };
            if let Some(new) = replacement(old, wanted, cap) {
                // At the end of the numbers nothing can be raised, and the cap is there.
                prop_assert!(new.max == u128::MAX || enough(new.max, old.max));
                prop_assert!(new.priority == u128::MAX || enough(new.priority, old.priority));
                prop_assert!(new.max <= cap && new.priority <= new.max);
                prop_assert!(wanted.is_none_or(|wanted| new.max >= wanted.max));
            } else {
                let least = (U512::from(max) * U512::from(9)).div_ceil(U512::from(8));
                let most = least.max(U512::from(other)).max(U512::from(max) + U512::from(1));
                prop_assert!(most > U512::from(cap));
            }
        }
    }

    #[test]
    fn no_offer_after_the_expiry_or_above_the_cap() {
        assert_eq!(offer(100, 0, 1, 1000), None);
        assert_eq!(offer(100, 3, 1, 111), None);
        assert!(offer(100, 3, 1, 112).is_some());
    }
}
