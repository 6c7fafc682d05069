//! Waiting with something to see to.

use super::*;
use crate::cycles::CycleGraph;
use crate::pipeline::{Arbitrage, Feed, LiveFeed, Next, World, crawl, fleet_config};
use crate::source::embedded::{Config, EmbeddedSource, MarketConfig, generate};
use regatta_core::budget::{BoundedBy, MilliCpu, Overrides, Quota, Reason};
use regatta_core::plan::{FleetPlan, PlanInput, Profile};
use regatta_core::posture::{Posture, PosturePolicyPatch, ThrottleSample};
use regatta_core::role::FLEET_ROLES;
use regatta_core::time;
use regatta_portable::{BINDINGS, Census, Fleet, PostureControl};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

fn fleet(census: &Census) -> Fleet<Arbitrage> {
    let made = generate(&MarketConfig::with_seed(1)).unwrap();
    let graph = Arc::new(CycleGraph::new(&made.market, made.base, 2).unwrap());
    let quota = Quota::exact(MilliCpu::from_cores(2), BoundedBy::Override, Reason::Given);
    let plan = FleetPlan::derive(&PlanInput {
        table: &FLEET_ROLES,
        quota,
        profile: Profile::Serial,
        overrides: &Overrides::none(),
        bindings: BINDINGS,
    });
    let world = World::new(made.market, graph);
    let config = fleet_config(plan.unwrap(), 2);
    Fleet::boot(Arbitrage::new(world, 2).unwrap(), config, census).unwrap()
}

fn sample(posture: &PostureControl, nr_throttled: u64) {
    posture.sample(ThrottleSample {
        at: posture.now(),
        nr_throttled: Some(nr_throttled),
        throttled: Some(time::Duration::ZERO),
    });
}

/// Samples clean counters whenever it is tended.
#[derive(Debug)]
struct Clean<'a> {
    posture: &'a PostureControl,
    tended: Cell<u32>,
}

impl Watch for Clean<'_> {
    fn work(&self, _: bool) {}

    fn tend(&self) -> Option<Duration> {
        self.tended.set(self.tended.get() + 1);
        sample(self.posture, 2);
        (self.posture.posture() == Posture::Cordoned).then_some(Duration::from_millis(1))
    }
}

#[test]
fn a_cordon_that_holds_what_the_crawl_waits_for_is_left_by_the_waiting_thread_alone() {
    let fleet = fleet(&Census::new());
    let posture = fleet.posture();
    let mut patch = PosturePolicyPatch::default();
    patch.set("cordon_exit_clean_ms", "5").unwrap();
    patch.set("cordon_enter_window_ms", "5").unwrap();
    posture.retune(&patch).unwrap();
    sample(posture, 0);
    sample(posture, 2);
    assert_eq!(posture.posture(), Posture::Cordoned);
    let watch = Clean {
        posture,
        tended: Cell::new(0),
    };
    // Registrations wait under a cordon, and nobody but this thread can end it.
    let crawled = crawl(&fleet, &watch, |_| Next::Submit).unwrap();
    assert!(crawled.registered > 0);
    assert_eq!(posture.posture(), Posture::Nominal);
    assert!(watch.tended.get() > 1);
}

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Told(RefCell<Vec<&'static str>>);

impl Watch for Told {
    fn work(&self, working: bool) {
        self.0
            .borrow_mut()
            .push(if working { "work" } else { "rest" });
    }

    fn tend(&self) -> Option<Duration> {
        self.0.borrow_mut().push("tend");
        None
    }
}

#[test]
fn a_live_feed_rests_while_it_waits_and_a_replay_never_does_before_its_end() {
    let source = || {
        let made = generate(&MarketConfig::with_seed(1)).unwrap();
        let base = made.market.token_by_address(made.base).unwrap();
        let config = Config {
            blocks: Some(1),
            ..Config::with_seed(1)
        };
        Box::new(EmbeddedSource::new(made.market, base, config).unwrap())
    };
    let follow = |mut feed: Feed| {
        let told = Told::default();
        let mut batches = 0;
        loop {
            let mut events = Vec::new();
            feed.next_batch(&mut events, &told).unwrap();
            if events.is_empty() {
                return (batches, told.0.into_inner());
            }
            batches += 1;
        }
    };
    let (batches, told) = follow(Feed::Replay(source()));
    assert_eq!(batches, 1);
    assert_eq!(told, ["tend", "work", "tend", "rest"]);
    let census = Census::new();
    let (live, _source) =
        LiveFeed::start(source(), Duration::from_millis(1), Arc::default(), &census).unwrap();
    let (batches, told) = follow(Feed::Live(live));
    assert_eq!(batches, 1);
    // Block and end may each have come before anybody waited for them; whatever is waited for is rest.
    assert_eq!(told.iter().filter(|said| **said == "work").count(), 1);
    assert_eq!(told.last(), Some(&"rest"), "{told:?}");
    let tended: Vec<_> = told.windows(2).filter(|pair| pair[1] == "tend").collect();
    assert!(tended.iter().all(|pair| pair[0] == "rest"), "{told:?}");
}
