//! Bugs of a binding, to be switched on: a simulator that finds nothing must be seen to find these.

/// Something that the binding does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bug {
    /// A seat that finishes rings nobody.
    BellNotRung,
    /// A seat looks for its bell before it says that it will sleep.
    LookBeforeDeclare,
    /// The timekeeper is granted a unit and nobody takes its deadline over.
    KeeperNotHandedOver,
    /// The timekeeper dies and stays the timekeeper.
    KeeperNotBuried,
    /// An input arms the backstop while every seat sleeps without a deadline.
    ArmedWithoutHolder,
    /// Two seats sleep with the deadline.
    TwoKeepers,
    /// A change of the quota polls no grants.
    ResizeNotPolled,
    /// A unit that is handed back is nobody's.
    HandBackNotPolled,
    /// A report that the host refuses, or takes for late, counts all the same.
    LateResultTaken,
    /// The payload of a unit that a fence ended is run.
    FencedPayloadRun,
}

impl Bug {
    /// Every bug.
    pub const ALL: [Self; 10] = [
        Self::BellNotRung,
        Self::LookBeforeDeclare,
        Self::KeeperNotHandedOver,
        Self::KeeperNotBuried,
        Self::ArmedWithoutHolder,
        Self::TwoKeepers,
        Self::ResizeNotPolled,
        Self::HandBackNotPolled,
        Self::LateResultTaken,
        Self::FencedPayloadRun,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BellNotRung => "bell-not-rung",
            Self::LookBeforeDeclare => "look-before-declare",
            Self::KeeperNotHandedOver => "keeper-not-handed-over",
            Self::KeeperNotBuried => "keeper-not-buried",
            Self::ArmedWithoutHolder => "armed-without-holder",
            Self::TwoKeepers => "two-keepers",
            Self::ResizeNotPolled => "resize-not-polled",
            Self::HandBackNotPolled => "hand-back-not-polled",
            Self::LateResultTaken => "late-result-taken",
            Self::FencedPayloadRun => "fenced-payload-run",
        }
    }

    /// What is wrong.
    #[must_use]
    pub const fn says(self) -> &'static str {
        match self {
            Self::BellNotRung => "a seat that finishes rings nobody",
            Self::LookBeforeDeclare => {
                "a seat looks for its bell before it declares that it sleeps"
            }
            Self::KeeperNotHandedOver => {
                "the timekeeper gets a unit and nobody takes the deadline over"
            }
            Self::KeeperNotBuried => "the timekeeper dies and stays the timekeeper",
            Self::ArmedWithoutHolder => "an input arms the backstop and no seat is rung",
            Self::TwoKeepers => "every seat that sleeps takes the deadline",
            Self::ResizeNotPolled => "a change of the quota polls no grants",
            Self::HandBackNotPolled => "after a hand-back no grants are polled",
            Self::LateResultTaken => "a report that is refused or late counts all the same",
            Self::FencedPayloadRun => "the payload of a unit that a fence ended is run",
        }
    }

    /// The bug called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }
}
