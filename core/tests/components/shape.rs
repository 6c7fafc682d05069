//! Graphs to try.

use regatta_core::component::{ComponentId, ComponentSpec, Graph, GraphError, Plane};

const NAMES: [&str; 16] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p",
];

/// For each component a bit for each that it depends on, and a bit for each of the control plane.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape<const N: usize> {
    pub(crate) depends: [u16; N],
    pub(crate) control: u16,
}

impl<const N: usize> Shape<N> {
    pub(crate) fn graph(&self) -> Result<Graph<N>, GraphError> {
        let depends: Vec<Vec<&str>> = (0..N)
            .map(|i| members(self.depends[i]).map(|d| NAMES[d]).collect())
            .collect();
        let specs: Vec<_> = (0..N)
            .map(|i| ComponentSpec {
                name: NAMES[i],
                depends: &depends[i],
                required: true,
                plane: if self.is_control(i) {
                    Plane::Control
                } else {
                    Plane::Data
                },
                reconnects: false,
                policy: None,
            })
            .collect();
        Graph::new(&specs, &[])
    }

    pub(crate) fn is_control(&self, i: usize) -> bool {
        self.control & (1 << i) != 0
    }

    pub(crate) fn dependents(&self, i: usize) -> impl Iterator<Item = usize> {
        (0..N).filter(move |d| self.depends[*d] & (1 << i) != 0)
    }

    /// Whether the components can be put in a row in which each comes after what it depends on, by trying:
    /// take away whoever depends on nobody that is left, as long as there is one.
    pub(crate) fn has_cycle(&self) -> bool {
        let mut left: Vec<usize> = (0..N).collect();
        loop {
            let before = left.len();
            let rest = left.clone();
            left.retain(|i| members(self.depends[*i]).any(|d| rest.contains(&d)));
            if left.len() == before {
                return before > 0;
            }
        }
    }

    /// Whether somebody of the control plane depends on the data plane.
    pub(crate) fn crosses(&self) -> bool {
        (0..N).any(|i| self.is_control(i) && self.depends[i] & !self.control != 0)
    }
}

pub(crate) fn members(mask: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |i| mask & (1 << i) != 0)
}

pub(crate) fn id(i: usize) -> ComponentId {
    ComponentId::new(u8::try_from(i).unwrap())
}

/// Every shape of `N` components, legal or not: each set of arrows, each choice of planes.
pub(crate) fn all<const N: usize>() -> impl Iterator<Item = Shape<N>> {
    (0..1_u32 << (N * N)).flat_map(|arrows| {
        let row = move |i: usize| u16::try_from((arrows >> (i * N)) & ((1 << N) - 1)).unwrap();
        (0..1_u16 << N).map(move |control| Shape {
            depends: core::array::from_fn(row),
            control,
        })
    })
}

#[test]
fn a_graph_is_built_exactly_if_it_has_no_cycle_and_no_wrong_dependency() {
    fn check<const N: usize>() -> usize {
        let mut built = 0;
        for shape in all::<N>() {
            match shape.graph() {
                Ok(graph) => {
                    built += 1;
                    assert!(!shape.has_cycle() && !shape.crosses(), "{shape:?}");
                    let order: Vec<_> = graph.start_order().iter().map(|id| id.index()).collect();
                    for (place, i) in order.iter().enumerate() {
                        let earlier = &order[..place];
                        let ready =
                            |i: usize| members(shape.depends[i]).all(|d| earlier.contains(&d));
                        let first = (0..N).find(|i| !earlier.contains(i) && ready(*i));
                        assert_eq!(first, Some(*i), "{shape:?}: {order:?}");
                    }
                }
                Err(GraphError::ControlNeedsData { .. }) => assert!(shape.crosses()),
                Err(GraphError::Cycle { members: found }) => {
                    assert!(shape.has_cycle() && !shape.crosses());
                    let found: Vec<usize> = found
                        .names()
                        .iter()
                        .map(|name| NAMES.iter().position(|n| n == name).unwrap())
                        .collect();
                    for (at, i) in found.iter().enumerate() {
                        let next = found[(at + 1) % found.len()];
                        assert!(shape.depends[*i] & (1 << next) != 0, "{shape:?}: {found:?}");
                        assert!(!found[..at].contains(i));
                    }
                    assert!(!found.is_empty());
                }
                Err(other) => panic!("{shape:?}: {other}"),
            }
        }
        built
    }
    // Without planes there are 3, 25 and 543 acyclic graphs.
    assert_eq!((check::<1>(), check::<2>(), check::<3>()), (2, 10, 122));
    check::<4>();
}
