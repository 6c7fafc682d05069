//! From a block's result to its record.

use crate::cycles::CycleGraph;
use crate::market::{Address, Market, Token, UntrustedText};
use crate::pipeline::{Arbitrage, BlockResult, Winner, World};
use crate::report::{BlockRecord, BlockTiming, EvmRecord, HopRecord, Moved, WinnerRecord};
use crate::source::Head;
use regatta_portable::Fleet;
use std::time::Duration;

/// The most decimals an amount is shown with; a token with more is shown in its smallest unit.
const MAX_DECIMALS: u8 = 36;

/// The record of a block.
pub(crate) fn block_record(
    chain: &UntrustedText,
    block: &Head,
    reread: bool,
    result: &BlockResult,
    fleet: &Fleet<Arbitrage>,
) -> BlockRecord {
    let world = fleet.workload().world();
    let market = world.market();
    let status = fleet.status();
    BlockRecord {
        chain: chain.clone(),
        number: block.number,
        hash: block.hash,
        parent: block.parent,
        reread,
        moved: result
            .moved
            .iter()
            .map(|update| Moved {
                pool: market.pool(update.pool).address,
                reserve0: update.reserve0,
                reserve1: update.reserve1,
            })
            .collect(),
        touched: result.tally.expected,
        solved: result.tally.solved,
        suppressed: result.tally.suppressed,
        failed: result.tally.failed,
        profitable: result.profitable,
        simulated: result.simulated,
        unproved: result.unproved,
        sim_failed: result.sim_failed,
        evm: result.evm.as_ref().map(EvmRecord::from),
        winners: result
            .winners
            .iter()
            .filter_map(|winner| winner_record(winner, &world))
            .collect(),
        timing: BlockTiming {
            cycle_us: micros(result.cycle),
            posture: status.posture.name(),
            held: status.lanes.iter().map(|lane| lane.ledger.backlog).sum(),
            walk_us: result.walks.iter().copied().map(micros).collect(),
        },
    }
}

fn winner_record(winner: &Winner, world: &World) -> Option<WinnerRecord> {
    let (market, graph) = (world.market(), world.graph());
    let cycle = world.table().get(winner.id)?;
    let address = |token| market.token(token).address;
    let hops: Vec<HopRecord> = cycle
        .edges()
        .iter()
        .zip(winner.trade.amounts().windows(2))
        .map(|(id, amounts)| {
            let edge = graph.edge(*id);
            HopRecord {
                pool: market.pool(edge.pool).address,
                token_in: address(edge.token_in),
                token_out: address(edge.token_out),
                amount_in: amounts[0],
                amount_out: amounts[1],
            }
        })
        .collect();
    let optimum = winner.trade.optimum;
    Some(WinnerRecord {
        kind: "opportunity",
        cycle: winner.id.number(),
        path: path(&hops),
        input: optimum.input,
        output: optimum.output,
        profit: optimum.profit,
        least_input: winner.least_input,
        hops,
        shown: show_amount(optimum.profit, base_token(market, graph)),
    })
}

fn base_token<'m>(market: &'m Market, graph: &CycleGraph) -> &'m Token {
    market.token(graph.base())
}

fn path(hops: &[HopRecord]) -> String {
    let pools: Vec<String> = hops
        .iter()
        .map(|hop| Address::to_string(&hop.pool))
        .collect();
    pools.join("-")
}

/// An amount in its token, with six significant decimals, for people.
pub(crate) fn show_amount(amount: u128, token: &Token) -> String {
    let symbol = &token.symbol;
    if token.decimals > MAX_DECIMALS {
        return format!("{amount} smallest units of {symbol}");
    }
    let one = 10_u128.pow(u32::from(token.decimals));
    let fraction = format!(
        "{:0width$}",
        amount % one,
        width = usize::from(token.decimals)
    );
    // Up to six digits after the leading zeros.
    let zeros = fraction.len() - fraction.trim_start_matches('0').len();
    let shown = &fraction[..fraction.len().min(zeros + 6)];
    let shown = shown.trim_end_matches('0');
    match (amount / one, shown) {
        (whole, "") => format!("{whole} {symbol}"),
        (whole, fraction) => format!("{whole}.{fraction} {symbol}"),
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_shown_whatever_the_decimals() {
        let token = |decimals| Token {
            address: Address::new([0; 20]),
            decimals,
            symbol: UntrustedText::new("T\u{1b}[2J"),
        };
        for (amount, decimals, shown) in [
            (0, 18, "0 "),
            (1, 18, "0.000000000000000001 "),
            (1_500_000_000_000_000_000, 18, "1.5 "),
            (123_456_789, 6, "123.456789 "),
            (12_345_678_900_000_000, 18, "0.0123456 "),
            (7, 0, "7 "),
            (7, 255, "7 smallest units of "),
            (u128::MAX, 36, "340.282366 "),
        ] {
            let text = show_amount(amount, &token(decimals));
            assert!(
                text.starts_with(shown),
                "{text:?} for {amount} with {decimals}"
            );
            assert!(
                !text.contains('\u{1b}'),
                "{text:?} would reach the terminal raw"
            );
        }
    }
}
