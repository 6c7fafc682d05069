//! The solver on the cycles of the real pools, against big integers.

use std::collections::BTreeMap;
use std::path::Path;

use super::reference::{self, Verdict, big};
use crate::solver::{
    Cycle, Fee, HOPS_MAX, Hop, Optimum, bound, may_profit, optimum, optimum_least_input, rate,
};

const WETH: &str = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";

/// The pools as a graph: for each token, where its pools lead.
struct Graph {
    base: usize,
    edges: Vec<Vec<Edge>>,
}

#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    pool: usize,
    hop: Hop,
}

fn graph() -> Graph {
    let mut tokens = BTreeMap::new();
    let mut edges: Vec<Vec<Edge>> = Vec::new();
    let mut pool = 0;
    for file in ["uniswap_v2_pairs.csv", "sushiswap_v2_pairs.csv"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../data")
            .join(file);
        for row in csv::Reader::from_path(path).unwrap().records() {
            let row = row.unwrap();
            let mut token = |name: &str| {
                *tokens.entry(name.to_lowercase()).or_insert_with(|| {
                    edges.push(Vec::new());
                    edges.len() - 1
                })
            };
            let (one, other) = (token(&row[1]), token(&row[4]));
            let [left, right] = [3, 6].map(|column| row[column].parse().unwrap());
            let (Ok(there), Ok(back)) = (
                Hop::new(left, right, Fee::default()),
                Hop::new(right, left, Fee::default()),
            ) else {
                continue;
            };
            edges[one].push(Edge {
                to: other,
                pool,
                hop: there,
            });
            edges[other].push(Edge {
                to: one,
                pool,
                hop: back,
            });
            pool += 1;
        }
    }
    Graph {
        base: tokens[WETH],
        edges,
    }
}

/// Calls `each` with the hops of every cycle of distinct pools and tokens from and to the base.
fn for_each_cycle(graph: &Graph, each: &mut impl FnMut(&[Hop])) {
    fn extend(graph: &Graph, at: usize, path: &mut Vec<Edge>, each: &mut impl FnMut(&[Hop])) {
        for edge in &graph.edges[at] {
            if path
                .iter()
                .any(|before| before.pool == edge.pool || before.to == edge.to)
            {
                continue;
            }
            path.push(*edge);
            if edge.to == graph.base {
                if path.len() >= 2 {
                    each(&path.iter().map(|edge| edge.hop).collect::<Vec<_>>());
                }
            } else if path.len() < HOPS_MAX {
                extend(graph, edge.to, path, each);
            }
            path.pop();
        }
    }
    extend(graph, graph.base, &mut Vec::new(), each);
}

/// Every cycle of two hops, and an even sample of the longer ones.
fn sample(strides: [usize; 5]) -> Vec<Vec<Hop>> {
    let (mut seen, mut taken) = ([0; 5], Vec::new());
    for_each_cycle(&graph(), &mut |hops| {
        let count = &mut seen[hops.len()];
        if *count % strides[hops.len()] == 0 {
            taken.push(hops.to_vec());
        }
        *count += 1;
    });
    assert_eq!(
        seen,
        [0, 0, 182, 6_172, 299_450],
        "the cycles of the pools in data/"
    );
    taken
}

fn passes(hops: &[Hop]) -> bool {
    may_profit(&hops.iter().map(rate).collect::<Vec<_>>())
}

#[test]
fn proved_optima_stand_up_to_big_integers() {
    let (mut profitable, mut open, mut wide) = (0, 0, 0);
    for hops in sample([1, 1, 1, 3, 61]) {
        let cycle = Cycle::new(&hops).unwrap();
        let Ok(found) = optimum(&cycle) else {
            open += 1;
            continue;
        };
        let profit = found.map_or(0, |best| best.profit);
        if let Some(Optimum { input, output, .. }) = found {
            profitable += 1;
            let exact = reference::output(&big(&hops), input.into()).unwrap();
            assert_eq!((exact, profit), (output.into(), output - input));
            assert!(passes(&hops), "a cycle with a profit is screened out");
            #[expect(clippy::cast_precision_loss, reason = "only loses where both are huge")]
            let profit = profit as f64;
            assert!(bound(&cycle).unwrap().profit_at_most >= profit);
        }
        match reference::check(&big(&hops), profit, 2_000) {
            Verdict::Holds => {}
            Verdict::TooWide => wide += 1,
            Verdict::Refuted(better) => panic!("{better} is more than {profit}: {hops:?}"),
        }
    }
    assert!(profitable > 1_500, "{profitable} cycles with a profit");
    assert!(open < 5, "{open} cycles are not proved");
    assert!(
        wide < 150,
        "{wide} cycles are too wide for the reference to finish"
    );
}

#[test]
fn the_least_input_has_the_same_profit() {
    let mut smaller = 0;
    for hops in sample([1, 1, 1, 40, 2_000]) {
        let cycle = Cycle::new(&hops).unwrap();
        let (Ok(Some(best)), Ok(Some(least))) = (optimum(&cycle), optimum_least_input(&cycle))
        else {
            continue;
        };
        assert_eq!(least.profit, best.profit);
        assert_eq!(cycle.forward(least.input), Some(least.output));
        assert!(least.input <= best.input);
        smaller += usize::from(least.input < best.input);
    }
    assert!(smaller > 10, "{smaller} cycles have ties");
}

/// How the usual practice fares: the closed form in `f64`, and the best of five inputs around it.
#[derive(Default, Clone, Copy, Debug)]
struct NeighbourSearch {
    /// Cycles with a proved profit.
    profitable: u32,
    /// Of these, how often it misses the optimum.
    misses: u32,
    /// Of these, how often it finds no profit at all.
    blind: u32,
    /// The most it loses in one cycle, in base units.
    worst_loss: u128,
}

fn neighbour_search(cycles: &[Vec<Hop>]) -> [NeighbourSearch; HOPS_MAX + 1] {
    let mut table = [NeighbourSearch::default(); HOPS_MAX + 1];
    for hops in cycles {
        let cycle = Cycle::new(hops).unwrap();
        let (Some(bound), Ok(Some(best))) = (bound(&cycle), optimum(&cycle)) else {
            continue;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a candidate"
        )]
        let near = bound.input_near.round() as u128;
        let found = (near.saturating_sub(2)..=near + 2)
            .filter_map(|input| cycle.forward(input)?.checked_sub(input))
            .max()
            .unwrap_or(0);
        assert!(
            found <= best.profit,
            "a neighbour is better than the proved optimum: {hops:?}"
        );
        let row = &mut table[hops.len()];
        row.profitable += 1;
        row.misses += u32::from(found < best.profit);
        row.blind += u32::from(found == 0);
        row.worst_loss = row.worst_loss.max(best.profit - found);
    }
    table
}

#[test]
fn the_neighbourhood_of_the_real_optimum_is_not_enough() {
    let table = neighbour_search(&sample([1, 1, 1, 7, 400]));
    for row in &table[2..] {
        assert!(
            row.misses * 5 > row.profitable && row.misses < row.profitable,
            "{table:?}"
        );
    }
}
