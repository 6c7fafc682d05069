//! The fleet as a component: boot, drain, and the summary.

use super::stage::Stage;
use crate::report::Record;
use crate::run::RunError;
use regatta_core::component::{DrainCounts, Probe, Remaining};
use regatta_portable::NotReady;
use regatta_portable::runtime::{Came, Component, Context, Failed, Vitals};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) fn component(stage: &Arc<Stage>) -> Box<dyn Component> {
    Box::new(FleetComponent(Arc::clone(stage)))
}

struct FleetComponent(Arc<Stage>);

struct FleetVitals(Arc<Stage>);

impl Vitals for FleetVitals {
    fn probe(&self) -> Probe {
        let Some(fleet) = self.0.fleet() else {
            return Probe::NotReady("not_booted");
        };
        match fleet.status().not_ready {
            None => Probe::Ready,
            Some(NotReady::BelowFloor) => Probe::NotReady("quota_below_floor"),
            Some(_) => Probe::NotReady("closing"),
        }
    }

    fn fence(&self) {
        if let Some(fleet) = self.0.fleet() {
            fleet.close(Duration::ZERO);
        }
    }

    fn remaining(&self) -> Remaining {
        let Some(fleet) = self.0.fleet() else {
            return Remaining::NONE;
        };
        let lanes = fleet.status().lanes;
        Remaining {
            receipts: lanes
                .iter()
                .map(|lane| lane.ledger.submitted - lane.ledger.resolved)
                .sum(),
            threads: fleet.threads(),
            handles: 0,
        }
    }
}

impl Component for FleetComponent {
    fn vitals(&self) -> Arc<dyn Vitals> {
        Arc::new(FleetVitals(Arc::clone(&self.0)))
    }

    fn start(&mut self, context: Context) -> Result<Came, Failed> {
        let stage = &self.0;
        let boot = stage
            .take_boot()
            .ok_or_else(|| Failed::new("started_twice", "a fleet boots once"))?;
        let booted = stage
            .emit(Record::Plan(boot.plan_record), || {
                Instant::now() < context.until
            })
            .and_then(|()| {
                Ok(stage
                    .seats()
                    .boot(boot.workload, boot.config, stage.census())?)
            });
        match booted {
            Ok(fleet) => {
                stage.tune(&fleet);
                stage.set_fleet(Arc::new(fleet));
                Ok(Came::Up)
            }
            Err(error) => {
                let failed = Failed::new("boot", error.to_string());
                stage.fail(error);
                Err(failed)
            }
        }
    }

    // Its only producer has drained by the time it is to quiesce, so nothing comes in that the drain
    // would have to refuse.

    fn drain(&mut self, until: Instant) -> Result<DrainCounts, Failed> {
        let stage = &self.0;
        let Some(fleet) = stage.fleet() else {
            return Ok(DrainCounts::default());
        };
        let closed = fleet.close(until.saturating_duration_since(Instant::now()));
        let status = fleet.status();
        let verifier = stage.dispatch().verifier().map(|pipe| pipe.status());
        let summary = stage.totals().summary(&status, closed, verifier, |amount| {
            let world = fleet.workload().world();
            crate::publish::show_amount(amount, world.market().token(stage.graph().base()))
        });
        let balanced = summary.balanced;
        match stage.emit(Record::Summary(summary), || Instant::now() < until) {
            Ok(()) => stage.account(),
            Err(error) => stage.fail(error),
        }
        if !balanced {
            stage.fail(RunError::Unbalanced);
        }
        Ok(fleet.drain_counts().unwrap_or_default())
    }

    fn stop(&mut self, until: Instant) -> Result<(), Failed> {
        if let Some(fleet) = self.0.fleet() {
            fleet.close(until.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }
}
