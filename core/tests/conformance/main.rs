//! The conformance stub: a host of nothing, driven by bytes, that every rule of the fleet is tried on.
//!
//! A script is a string of bytes, and each byte is an index into one of the core's own lists:
//! [`ALL_ROLES`](regatta_core::role::ALL_ROLES), [`SlotEvent::ALL`](regatta_core::seat::SlotEvent::ALL),
//! the seats, the keys, or quarters of a core. What the bytes must lead to is written here a second time and by hand,
//! so a role, a transition or a share that is new or changed lands here as well, or the stub fails.

#[cfg(test)]
mod fleet;
#[cfg(test)]
mod pins;
#[cfg(test)]
mod pipe;
#[cfg(test)]
mod quota;
#[cfg(test)]
mod slots;
