//! The two transition tables, as a judge of what a call changed.

use crate::rule::Coverage;
use regatta_core::lane::Progress;
use regatta_core::role::SeatKind;
use regatta_core::seat::SlotPhase;

/// Notes the row of the table by which a seat went from one phase to another. A call takes a seat one
/// step, and a second one if that retires it at a fence.
pub(crate) fn seat(
    covered: &mut Coverage,
    kind: Option<SeatKind>,
    fenced: bool,
    from: SlotPhase,
    to: SlotPhase,
) -> Result<(), String> {
    if from == to {
        return Ok(());
    }
    let row = |from: SlotPhase, to: SlotPhase| {
        let mut rows = SlotPhase::TRANSITIONS.iter();
        rows.position(|t| (t.from, t.to) == (from, to) && is_for(t.name, kind))
    };
    if let Some(row) = row(from, to) {
        covered.slot(row);
        return Ok(());
    }
    let mut between = SlotPhase::ALL.iter();
    let path = between.find_map(|mid| row(from, *mid).zip(row(*mid, SlotPhase::Retired)));
    match path.filter(|_| fenced && to == SlotPhase::Retired) {
        Some((first, second)) => {
            covered.slot(first);
            covered.slot(second);
            Ok(())
        }
        None => Err(format!("went from {from:?} to {to:?}")),
    }
}

/// Which seats a transition is for, where that is not every seat.
fn is_for(name: &str, kind: Option<SeatKind>) -> bool {
    match name {
        "T3" => kind == Some(SeatKind::KeyedPin),
        "T4" => kind == Some(SeatKind::FixedPin),
        "T5" | "T7" | "T8" => kind == Some(SeatKind::Pooled),
        "T6" | "T9" => kind != Some(SeatKind::Pooled),
        _ => true,
    }
}

/// Notes the row of the table by which a lane went from one progress to another.
pub(crate) fn lane(covered: &mut Coverage, from: Progress, to: Progress) -> Result<(), String> {
    if from == to {
        return Ok(());
    }
    let mut rows = Progress::TRANSITIONS.iter();
    let row = rows.position(|t| (t.from, t.to) == (from, to));
    let row = row.ok_or_else(|| format!("went from {from:?} to {to:?}"))?;
    covered.progress(row);
    Ok(())
}
