//! The registry: checked once, then the orders follow from it.
//!
//! # Invariants
//! - Every dependency of a component comes before it in [`Graph::start_order`], and where the
//!   dependencies leave a choice, whoever was registered first.
//! - A graph with a cycle, or one in which the control plane would have to stop before the data plane,
//!   is not built.

use super::backoff::{BackoffError, BackoffPolicy};
use super::threads::ThreadClaim;
use super::{ComponentId, ComponentSet, MAX_COMPONENTS};
use crate::text::Excerpt;
use core::fmt;
use heapless::Vec;
use thiserror::Error;

/// Which part of the process a component belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Plane {
    /// It works on what the process is for. Quiesces, drains and stops first.
    Data,
    /// It answers about the process: health, metrics, control. Goes on answering until the data plane is
    /// over.
    Control,
}

/// A component as it is registered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComponentSpec<'a> {
    /// Its name; unique.
    pub name: &'static str,
    /// The names of what it needs while it runs.
    pub depends: &'a [&'a str],
    /// Whether the process is ready only with it.
    pub required: bool,
    /// Its plane.
    pub plane: Plane,
    /// Whether it can attempt to reconnect when it is told to.
    pub reconnects: bool,
    /// When it is told to; `None` for never.
    pub policy: Option<BackoffPolicy>,
}

/// Why a graph cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[expect(
    clippy::large_enum_variant,
    reason = "a graph is refused once, at boot, and without an allocator a cycle names its members itself"
)]
pub enum GraphError {
    /// More components than the graph has room for.
    #[error("{count} components and there is room for {room}")]
    TooMany {
        /// How many were given.
        count: usize,
        /// How many fit.
        room: usize,
    },
    /// Two components have the same name.
    #[error("two components are called {name}: names are unique")]
    Duplicate {
        /// The name.
        name: &'static str,
    },
    /// A dependency has no such name.
    #[error("{component} depends on {dependency}, and no component is called that")]
    UnknownDependency {
        /// Who depends on it.
        component: &'static str,
        /// The name.
        dependency: Excerpt,
    },
    /// Components depend on each other, around.
    #[error("a cycle of dependencies: {members}")]
    Cycle {
        /// Who, each depending on the next, and the last on the first.
        members: Members,
    },
    /// Threads belong to nobody.
    #[error(
        "the {count} threads of {resource} are owned by {owner}, and no component is called that"
    )]
    ThreadsWithoutOwner {
        /// What they are.
        resource: &'static str,
        /// The name.
        owner: Excerpt,
        /// How many.
        count: u16,
    },
    /// Threads are claimed twice by the same component.
    #[error("{owner} claims threads of {resource} twice: one claim says how many")]
    ThreadsTwice {
        /// What they are.
        resource: &'static str,
        /// Who claims them.
        owner: &'static str,
    },
    /// A component that cannot reconnect has a policy for it.
    #[error("{component} has a reconnect policy and nothing that could reconnect it")]
    PolicyWithoutAdapter {
        /// The component.
        component: &'static str,
    },
    /// A reconnect policy is out of range.
    #[error("the reconnect policy of {component}: {source}")]
    Policy {
        /// The component.
        component: &'static str,
        /// What is wrong with it.
        source: BackoffError,
    },
    /// The control plane stops last, and this one would have to stop before its dependency.
    #[error(
        "{control} of the control plane depends on {data} of the data plane, which stops before it: \
         let it read what it shows, or put it in the data plane"
    )]
    ControlNeedsData {
        /// Who depends.
        control: &'static str,
        /// On whom.
        data: &'static str,
    },
}

/// The members of a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Members(Vec<&'static str, MAX_COMPONENTS>);

impl Members {
    /// The names, each depending on the next.
    #[must_use]
    pub fn names(&self) -> &[&'static str] {
        &self.0
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for name in &self.0 {
            write!(f, "{name} -> ")?;
        }
        f.write_str(self.0.first().copied().unwrap_or_default())
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Node {
    name: &'static str,
    required: bool,
    plane: Plane,
    policy: Option<BackoffPolicy>,
    depends: ComponentSet,
    dependents: ComponentSet,
    threads: u16,
}

/// The components and their orders. At most [`MAX_COMPONENTS`] of them, whatever `N`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Graph<const N: usize> {
    nodes: Vec<Node, N>,
    order: Vec<ComponentId, N>,
    data: ComponentSet,
}

impl<const N: usize> Graph<N> {
    /// Checks `specs`, in the order of registration, with the threads that they `claim`.
    pub fn new(
        specs: &[ComponentSpec<'_>],
        claims: &[ThreadClaim<'_>],
    ) -> Result<Self, GraphError> {
        let room = N.min(MAX_COMPONENTS);
        let mut graph = Self {
            nodes: Vec::new(),
            order: Vec::new(),
            data: ComponentSet::EMPTY,
        };
        for (id, spec) in ComponentId::all(specs.len()).zip(specs) {
            let fits = id.index() < room && graph.register(id, spec, specs)?;
            if !fits {
                let count = specs.len();
                return Err(GraphError::TooMany { count, room });
            }
        }
        graph.check_planes()?;
        graph.sort()?;
        graph.assign(claims)?;
        Ok(graph)
    }

    fn register(
        &mut self,
        id: ComponentId,
        spec: &ComponentSpec<'_>,
        specs: &[ComponentSpec<'_>],
    ) -> Result<bool, GraphError> {
        let component = spec.name;
        if self.find(component).is_some() {
            return Err(GraphError::Duplicate { name: component });
        }
        if let Some(policy) = spec.policy {
            if !spec.reconnects {
                return Err(GraphError::PolicyWithoutAdapter { component });
            }
            policy
                .check()
                .map_err(|source| GraphError::Policy { component, source })?;
        }
        let mut depends = ComponentSet::EMPTY;
        for name in spec.depends {
            let mut ids = ComponentId::all(specs.len()).zip(specs);
            let Some((dependency, _)) = ids.find(|(_, spec)| spec.name == *name) else {
                return Err(GraphError::UnknownDependency {
                    component,
                    dependency: Excerpt::of(name),
                });
            };
            depends = depends.with(dependency);
        }
        if spec.plane == Plane::Data {
            self.data = self.data.with(id);
        }
        let node = Node {
            name: component,
            required: spec.required,
            plane: spec.plane,
            policy: spec.policy,
            depends,
            dependents: ComponentSet::EMPTY,
            threads: 0,
        };
        Ok(self.nodes.push(node).is_ok())
    }

    fn check_planes(&mut self) -> Result<(), GraphError> {
        for id in self.ids() {
            for dependency in self.depends(id).iter() {
                if self.plane(id) == Plane::Control && self.plane(dependency) == Plane::Data {
                    let (control, data) = (self.name(id), self.name(dependency));
                    return Err(GraphError::ControlNeedsData { control, data });
                }
                if let Some(node) = self.nodes.get_mut(dependency.index()) {
                    node.dependents = node.dependents.with(id);
                }
            }
        }
        Ok(())
    }

    fn sort(&mut self) -> Result<(), GraphError> {
        let mut placed = ComponentSet::EMPTY;
        while self.order.len() < self.nodes.len() {
            let mut open = self.ids().filter(|id| !placed.contains(*id));
            let Some(id) = open.find(|id| self.depends(*id).is_within(placed)) else {
                return Err(self.cycle(placed));
            };
            placed = placed.with(id);
            // As many as there are nodes.
            let _ = self.order.push(id);
        }
        Ok(())
    }

    /// A cycle among what could not be placed: each of these has a dependency that could not either, so
    /// following them comes round.
    fn cycle(&self, placed: ComponentSet) -> GraphError {
        let next = |id: ComponentId| self.depends(id).iter().find(|d| !placed.contains(*d));
        let mut at = self.ids().find(|id| !placed.contains(*id));
        // After as many steps as there are components it is on the cycle.
        for _ in self.ids() {
            at = at.and_then(next);
        }
        let mut members = Members(Vec::new());
        let first = at;
        while let Some(id) = at {
            // No more members than components.
            let _ = members.0.push(self.name(id));
            at = next(id).filter(|id| Some(*id) != first);
        }
        GraphError::Cycle { members }
    }

    fn assign(&mut self, claims: &[ThreadClaim<'_>]) -> Result<(), GraphError> {
        for (index, claim) in claims.iter().enumerate() {
            let ThreadClaim {
                resource, count, ..
            } = *claim;
            let Some(id) = self.find(claim.owner) else {
                let owner = Excerpt::of(claim.owner);
                return Err(GraphError::ThreadsWithoutOwner {
                    resource,
                    owner,
                    count,
                });
            };
            let mut earlier = claims.iter().take(index);
            if earlier.any(|other| (other.resource, other.owner) == (resource, claim.owner)) {
                let owner = self.name(id);
                return Err(GraphError::ThreadsTwice { resource, owner });
            }
            if let Some(node) = self.nodes.get_mut(id.index()) {
                node.threads = node.threads.saturating_add(count);
            }
        }
        Ok(())
    }

    fn node(&self, id: ComponentId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// How many components there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Every component, in the order of registration.
    pub fn ids(&self) -> impl Iterator<Item = ComponentId> + use<N> {
        ComponentId::all(self.nodes.len())
    }

    /// The component called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ComponentId> {
        self.ids().find(|id| self.name(*id) == name)
    }

    /// The name of a component; empty if there is no such component.
    #[must_use]
    pub fn name(&self, id: ComponentId) -> &'static str {
        self.node(id).map_or("", |node| node.name)
    }

    /// Whether the process is ready only with it.
    #[must_use]
    pub fn required(&self, id: ComponentId) -> bool {
        self.node(id).is_some_and(|node| node.required)
    }

    /// The plane of a component.
    #[must_use]
    pub fn plane(&self, id: ComponentId) -> Plane {
        self.node(id).map_or(Plane::Data, |node| node.plane)
    }

    /// When the component is told to reconnect.
    #[must_use]
    pub fn policy(&self, id: ComponentId) -> Option<BackoffPolicy> {
        self.node(id)?.policy
    }

    /// What it needs.
    #[must_use]
    pub fn depends(&self, id: ComponentId) -> ComponentSet {
        self.node(id)
            .map_or(ComponentSet::EMPTY, |node| node.depends)
    }

    /// Who needs it.
    #[must_use]
    pub fn dependents(&self, id: ComponentId) -> ComponentSet {
        self.node(id)
            .map_or(ComponentSet::EMPTY, |node| node.dependents)
    }

    /// How many threads it claims.
    #[must_use]
    pub fn threads(&self, id: ComponentId) -> u16 {
        self.node(id).map_or(0, |node| node.threads)
    }

    /// The components of the data plane.
    #[must_use]
    pub const fn data_plane(&self) -> ComponentSet {
        self.data
    }

    /// The order in which components start, one after the other.
    #[must_use]
    pub fn start_order(&self) -> &[ComponentId] {
        &self.order
    }

    /// The order of start, backwards.
    pub fn stop_order(&self) -> impl Iterator<Item = ComponentId> + '_ {
        self.order.iter().rev().copied()
    }

    /// Who must be over before `id` stops: its dependents, and for the control plane also the data plane.
    #[must_use]
    pub fn stops_after(&self, id: ComponentId) -> ComponentSet {
        match self.plane(id) {
            Plane::Data => self.dependents(id),
            Plane::Control => self.dependents(id).union(self.data),
        }
    }

    /// The sets that may stop at the same time, first to last: each component is in the earliest that
    /// comes after everybody in [`stops_after`](Self::stops_after).
    #[must_use]
    pub fn stop_waves(&self) -> Vec<ComponentSet, N> {
        let mut waves: Vec<ComponentSet, N> = Vec::new();
        let mut over = ComponentSet::EMPTY;
        loop {
            let waiting = self.ids().filter(|id| !over.contains(*id));
            let ready = waiting.filter(|id| self.stops_after(*id).is_within(over));
            let wave: ComponentSet = ready.collect();
            if wave.is_empty() || waves.push(wave).is_err() {
                return waves;
            }
            over = over.union(wave);
        }
    }
}
