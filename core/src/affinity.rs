//! On which CPUs seats run.
//!
//! Binding each seat to one CPU keeps its caches warm and takes from the scheduler the freedom to move
//! it. Where CPUs are shared with others under a quota that costs more than it gives: a neighbour that
//! runs on the same CPU delays the seat while another CPU idles. So seats run on the whole allowed set
//! unless the set is theirs alone or the operator says otherwise. The same function answers what will
//! be done and why.

/// How seats are bound.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SeatAffinity {
    /// Each seat runs on every allowed CPU.
    AllowedSet,
    /// Each seat runs on one CPU of its own.
    OneCpuEach,
}

/// Why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AffinityReason {
    /// The operator said so.
    Configured,
    /// The CPUs belong to this process alone, and there is one for each seat.
    ExclusiveSet,
    /// The CPUs belong to this process alone, and there are fewer than seats.
    TooFewCpus,
    /// Others may run on the same CPUs.
    SharedSet,
}

impl AffinityReason {
    /// The reason as a sentence.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Configured => "the configuration says so",
            Self::ExclusiveSet => "the CPUs are exclusive and there is one for each seat",
            Self::TooFewCpus => "the CPUs are exclusive and fewer than the seats",
            Self::SharedSet => "others may run on the same CPUs",
        }
    }
}

/// What is known of the CPUs on which the process may run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AllowedCpus {
    /// How many there are.
    pub count: u16,
    /// Whether the platform keeps others off them.
    pub exclusive: bool,
}

/// How `seats` seats are bound on `cpus`. What the operator configured wins, whatever it costs.
#[must_use]
pub const fn seat_affinity(
    cpus: AllowedCpus,
    seats: u16,
    configured: Option<SeatAffinity>,
) -> (SeatAffinity, AffinityReason) {
    match configured {
        Some(affinity) => (affinity, AffinityReason::Configured),
        None if !cpus.exclusive => (SeatAffinity::AllowedSet, AffinityReason::SharedSet),
        None if cpus.count < seats => (SeatAffinity::AllowedSet, AffinityReason::TooFewCpus),
        None => (SeatAffinity::OneCpuEach, AffinityReason::ExclusiveSet),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_each_needs_an_exclusive_set_that_is_large_enough_or_the_operators_word() {
        for count in 0..4 {
            for seats in 1..4 {
                for exclusive in [false, true] {
                    let cpus = AllowedCpus { count, exclusive };
                    let (affinity, reason) = seat_affinity(cpus, seats, None);
                    let single = exclusive && count >= seats;
                    assert_eq!(affinity == SeatAffinity::OneCpuEach, single);
                    assert_ne!(reason, AffinityReason::Configured);
                    for wanted in [SeatAffinity::AllowedSet, SeatAffinity::OneCpuEach] {
                        let told = seat_affinity(cpus, seats, Some(wanted));
                        assert_eq!(told, (wanted, AffinityReason::Configured));
                    }
                }
            }
        }
    }
}
