//! How wrong the usual practice is: the closed form in floating point, then the best of the five inputs
//! around it, against the proved optimum, over every cycle of the demonstration pools.
//!
//! `cargo run --release -p regatta-bot --example neighbour_search`

use regatta_bot::cycles::{CycleGraph, CycleTable};
use regatta_bot::market::csv;
use regatta_bot::pipeline::World;
use regatta_bot::solver::{Cycle, bound, optimum};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

#[derive(Default, Clone, Copy)]
struct Row {
    profitable: u32,
    missed: u32,
    none_found: u32,
    worst_loss: u128,
}

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data");
    let files = ["uniswap_v2_pairs.csv", "sushiswap_v2_pairs.csv"].map(|name| data.join(name));
    let market = csv::load(&files, csv::PoolIsToken::Keep)?.market;
    let weth = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2".parse()?;
    let graph = Arc::new(CycleGraph::new(&market, weth, 4)?);
    let mut table = CycleTable::new();
    for cycle in graph.crawl() {
        table.register(cycle)?;
    }
    let ids: Vec<_> = (0..table.len())
        .map_while(|n| u32::try_from(n).ok())
        .collect();
    let mut world = World::new(market, graph);
    world.install(table);

    let mut rows = [Row::default(); 5];
    for id in ids {
        let Some(hops) = world.hops_of(regatta_bot::cycles::CycleId::new(id)) else {
            continue;
        };
        let cycle = Cycle::new(hops.as_slice())?;
        let (Some(bound), Ok(Some(best))) = (bound(&cycle), optimum(&cycle)) else {
            continue;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a candidate, as the practice has it"
        )]
        let near = bound.input_near.round() as u128;
        let found = (near.saturating_sub(2)..=near + 2)
            .filter_map(|input| cycle.forward(input)?.checked_sub(input))
            .max()
            .unwrap_or(0);
        let row = &mut rows[hops.as_slice().len()];
        row.profitable += 1;
        row.missed += u32::from(found < best.profit);
        row.none_found += u32::from(found == 0);
        row.worst_loss = row.worst_loss.max(best.profit - found);
    }

    let mut out = io::stdout().lock();
    writeln!(
        out,
        "| hops | cycles with a profit | optimum missed | no profit found | worst loss, wei |"
    )?;
    writeln!(out, "| --- | --- | --- | --- | --- |")?;
    for (hops, row) in rows.iter().enumerate().skip(2) {
        writeln!(
            out,
            "| {hops} | {} | {} ({} %) | {} | {} |",
            row.profitable,
            row.missed,
            100 * row.missed / row.profitable.max(1),
            row.none_found,
            row.worst_loss
        )?;
    }
    Ok(())
}
