//! x
/// x
#[must_use]
pub fn sim_cap(slots: u16, floor: Option<u16>) -> u16 {
    floor.unwrap_or(slots.div_ceil(2)).max(1)
}
