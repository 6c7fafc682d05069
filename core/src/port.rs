//! What the core asks of a platform: the ports.
//!
//! The core decides and the platform delivers. Each trait is one thing that only a platform can do;
//! none of them decides anything.

use crate::guard::PostureView;
use crate::time::Instant;

/// A monotonic clock.
pub trait Clock {
    /// The time now. Never earlier than an answer given before.
    fn now(&self) -> Instant;
}

/// Where a posture owner makes its state live.
pub trait PosturePort {
    /// Makes `view` the live posture; the next read of the guard must see it or a later one.
    fn store(&self, view: PostureView);

    /// Nudges whoever runs the host. `seq` counts this owner's changes and carries no value: a
    /// delivery may be lost, late, doubled or out of order.
    fn edge(&self, seq: u32);
}

/// Blocks and wakes one waiting thread.
///
/// A wake that comes before the block must end the block at once: the platform keeps one token, as
/// [`std::thread::park`](https://doc.rust-lang.org/std/thread/fn.park.html) does.
pub trait Park {
    /// Blocks until woken or until `deadline`; without a deadline until woken. May return early.
    fn park(&self, deadline: Option<Instant>);
}

/// Wakes the thread that blocks in the matching [`Park`].
pub trait Wake {
    /// Ends the current block, or the next one.
    fn wake(&self);
}
