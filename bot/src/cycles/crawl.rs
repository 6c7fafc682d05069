//! The enumeration of cycles.
//!
//! A cycle is a *head* of one or two edges from the base and a *tail* of one or two edges to it. The
//! graph lists the tails of each token, so the innermost loop runs over consecutive memory. Distinct
//! tokens make distinct pools, except where head and tail are one edge each: there the tail must not be
//! the head's own pool.

use super::graph::{CycleGraph, EdgeId, Tail};
use super::table::Cycle;

/// A place in the crawl of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// Hops of the current cycles; above the graph's most when the crawl is over.
    hops: u8,
    /// Place of the current first step.
    first: usize,
    /// Place of the current second step, for four hops.
    second: usize,
    /// Place of the next tail.
    tail: usize,
}

impl Cursor {
    /// Before the first cycle.
    pub const START: Self = Self {
        hops: 2,
        first: 0,
        second: 0,
        tail: 0,
    };

    /// Moves on to the next head, of as many edges.
    #[inline]
    const fn next_head(&mut self) {
        self.tail = 0;
        if self.hops == 4 {
            self.second += 1;
        } else {
            self.first += 1;
        }
    }
}

/// A run of cycles with the same head.
struct Run<'g> {
    /// The head: two edges, or one and [`EdgeId::NONE`].
    head: [EdgeId; 2],
    /// What tails must not have.
    avoid: u16,
    tails: &'g [Tail],
}

impl Run<'_> {
    #[inline]
    fn cycle(&self, tail: Tail) -> Option<Cycle> {
        let [a, b] = self.head;
        let [c, d] = tail.edges;
        (tail.key != self.avoid).then(|| {
            if b == EdgeId::NONE {
                Cycle::from_edges([a, c, d, EdgeId::NONE])
            } else {
                Cycle::from_edges([a, b, c, d])
            }
        })
    }
}

/// The cycles of a graph in their fixed order, each once.
///
/// Going over all of them by `for_each` or another adapter that folds is several times as fast as a
/// loop over `next`.
#[derive(Clone, Debug)]
pub struct Crawl<'g> {
    graph: &'g CycleGraph,
    cursor: Cursor,
}

impl<'g> Crawl<'g> {
    pub(super) const fn new(graph: &'g CycleGraph, cursor: Cursor) -> Self {
        Self { graph, cursor }
    }

    /// Where the crawl stands; [`CycleGraph::crawl_from`] goes on there.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// The tails from the cursor on that share its head, or `None` after the last head.
    #[inline]
    fn run(&mut self) -> Option<Run<'g>> {
        let (graph, at) = (self.graph, &mut self.cursor);
        loop {
            if at.hops > graph.max_hops() {
                return None;
            }
            let Some(first) = graph.first.get(at.first) else {
                *at = Cursor {
                    hops: at.hops + 1,
                    ..Cursor::START
                };
                continue;
            };
            let (second, avoid, tails) = match at.hops {
                2 => (
                    EdgeId::NONE,
                    first.edge.reverse().raw(),
                    graph.one_hop.list(first.to),
                ),
                // A tail from the first token cannot lead over that token again.
                3 => (EdgeId::NONE, u16::MAX, graph.two_hops.list(first.to)),
                _ => {
                    let Some(second) = graph.on.list(first.to).get(at.second) else {
                        *at = Cursor {
                            first: at.first + 1,
                            second: 0,
                            tail: 0,
                            ..*at
                        };
                        continue;
                    };
                    (second.edge, first.to, graph.two_hops.list(second.to))
                }
            };
            let rest = tails.get(at.tail..).unwrap_or_default();
            if !rest.is_empty() {
                return Some(Run {
                    head: [first.edge, second],
                    avoid,
                    tails: rest,
                });
            }
            at.next_head();
        }
    }
}

impl Iterator for Crawl<'_> {
    type Item = Cycle;

    fn next(&mut self) -> Option<Cycle> {
        while let Some(run) = self.run() {
            for &tail in run.tails {
                self.cursor.tail += 1;
                let cycle = run.cycle(tail);
                if cycle.is_some() {
                    return cycle;
                }
            }
            self.cursor.next_head();
        }
        None
    }

    fn fold<B, F: FnMut(B, Cycle) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = init;
        while let Some(run) = self.run() {
            for &tail in run.tails {
                if let Some(cycle) = run.cycle(tail) {
                    folded = f(folded, cycle);
                }
            }
            self.cursor.next_head();
        }
        folded
    }
}

impl core::iter::FusedIterator for Crawl<'_> {}
