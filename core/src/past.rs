//! Values that describe the past and decide nothing.
//!
//! Counters and time stamps for gauges ride along in the state of a machine, yet two machines that
//! differ only in them behave alike. [`Past`] makes that a fact of the type: it takes no part in
//! comparison and hashing, so an explorer merges such states by itself.

use core::hash::{Hash, Hasher};

/// A value that is left out of comparison and hashing.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Past<T>(pub(crate) T);

impl<T> PartialEq for Past<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Past<T> {}

impl<T> Hash for Past<T> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
