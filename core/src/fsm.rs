//! One declaration per state machine.
//!
//! [`fsm!`](crate::fsm!) takes the legal transitions of a machine, each with its name, and yields the
//! state and event enums, the step function with its typed error, and the transition list as data.
//! The step function and the list come from the same lines, so the documentation generated from
//! the list cannot disagree with what runs.
//!
//! # Invariants
//! - A pair of state and event has at most one successor: a second one is an unreachable match arm,
//!   which the expansion denies at compile time.
//! - A rejected event leaves the state as it was: `on` takes the state by value and returns an error.

/// One legal transition, as data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition<S: 'static, E: 'static> {
    /// The name by which documentation and errors refer to the transition.
    pub name: &'static str,
    /// State before.
    pub from: S,
    /// What happens.
    pub event: E,
    /// State after.
    pub to: S,
}

/// Declares a state machine; see the [module documentation](self).
#[macro_export]
macro_rules! fsm {
    (
        $(#[$state_meta:meta])*
        pub states $State:ident { $($(#[$s_meta:meta])* $s:ident),+ $(,)? }
        $(#[$event_meta:meta])*
        pub events $Event:ident { $($(#[$e_meta:meta])* $e:ident),+ $(,)? }
        $(#[$err_meta:meta])*
        pub error $Error:ident;
        transitions { $($name:literal: $from:ident -- $event:ident --> $to:ident);+ $(;)? }
    ) => {
        $(#[$state_meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum $State { $($(#[$s_meta])* $s),+ }

        $(#[$event_meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub enum $Event { $($(#[$e_meta])* $e),+ }

        $(#[$err_meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[error("no transition from {from:?} on {event:?}; legal there: {}", $crate::fsm::Legal(Self::legal(*from)))]
        pub struct $Error {
            /// The state, which is unchanged.
            pub from: $State,
            /// The event that was rejected.
            pub event: $Event,
        }

        impl $State {
            /// Every state, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$s),+];

            /// Every legal transition, in declaration order.
            pub const TRANSITIONS: &'static [$crate::fsm::Transition<Self, $Event>] = &[
                $($crate::fsm::Transition {
                    name: $name,
                    from: Self::$from,
                    event: $Event::$event,
                    to: Self::$to,
                }),+
            ];

            /// The state after `event`, or a typed rejection that changes nothing.
            #[deny(unreachable_patterns)]
            pub const fn on(self, event: $Event) -> Result<Self, $Error> {
                match (self, event) {
                    $((Self::$from, $Event::$event) => Ok(Self::$to),)+
                    (from, event) => Err($Error { from, event }),
                }
            }
        }

        impl $Event {
            /// Every event, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$e),+];
        }

        impl $Error {
            /// The events that `from` would have taken.
            pub fn legal(from: $State) -> impl Iterator<Item = $Event> + Clone {
                $State::TRANSITIONS.iter().filter(move |t| t.from == from).map(|t| t.event)
            }
        }
    };
}

/// Writes the events of an iterator as a list for an error message.
#[doc(hidden)]
pub struct Legal<I>(pub I);

impl<I> core::fmt::Display for Legal<I>
where
    I: Iterator<Item: core::fmt::Debug> + Clone,
{
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut first = true;
        for event in self.0.clone() {
            if !core::mem::take(&mut first) {
                f.write_str(", ")?;
            }
            write!(f, "{event:?}")?;
        }
        if first {
            f.write_str("nothing")?;
        }
        Ok(())
    }
}
