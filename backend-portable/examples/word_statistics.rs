//! Counts distinct words: two threads submit lines, one fleet with a role of its own reads them.
use regatta_core::role::{
    CordonClass, GrantStep, RoleId, RoleSpec, RoleTable, SeatKind, ShareRule,
};
use regatta_portable::census::ThreadSpec;
use regatta_portable::{Census, Fleet, FleetConfig, Pin, UnitContext, Workload};
use std::{collections::BTreeSet, error::Error, io::Write, sync::Arc};

const READ: RoleId = RoleId::new(0);
static ROLES: RoleTable = RoleTable {
    roles: &[RoleSpec {
        name: "read",
        short: "read",
        cordon: CordonClass::Deferrable,
        seat: SeatKind::Pooled,
        share: ShareRule::Permits,
        owns_receipts: true,
    }],
    consumers: &[],
    order: &[GrantStep::Pooled(READ)],
};

struct Words;
impl Workload for Words {
    type Unit = &'static str;
    type Output = usize;
    type Arena = BTreeSet<&'static str>;
    fn arena(&self, _: Pin) -> Self::Arena {
        BTreeSet::new()
    }
    /// How many words of the line no line before had.
    fn run(&self, line: &'static str, known: &mut Self::Arena, _: &UnitContext) -> usize {
        line.split(' ').filter(|word| known.insert(word)).count()
    }
}

pub(crate) fn report(texts: [&'static str; 2]) -> Result<String, Box<dyn Error>> {
    let config = FleetConfig::serial_with(&ROLES, 2)?.lane(READ, 64);
    let fleet = Arc::new(Fleet::boot(Words, config, &Census::new())?);
    let mut submitters = Vec::new();
    for (name, text) in ["left", "right"].into_iter().zip(texts) {
        let (spec, to) = (ThreadSpec::one("example", name), Arc::clone(&fleet));
        let lines = move || text.lines().map(|line| to.submit(READ, 0, line)).collect();
        submitters.push(fleet.census().spawn::<Vec<_>>(spec, lines)?);
    }
    let mut words = 0;
    for submitter in submitters {
        for receipt in submitter.join().map_err(|_| "a submitter panicked")? {
            words += receipt?.wait()?.done().ok_or("a line was not read")?;
        }
    }
    Ok(format!("{words} distinct words\n{}", fleet.status()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let report = report(["catch\ndrive", "drive\nrelease and recover"])?;
    Ok(std::io::stdout().write_all(report.as_bytes())?)
}
