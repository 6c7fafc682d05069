//! The host, driven the way a binding drives it and in every way that it must not be.

mod boot;
mod check;
mod close;
mod cordon;
mod death;
mod epoch;
mod grants;
mod incident;
mod intake;
mod layout;
mod liveness;
mod lockstep;
mod model;
mod normal;
mod rig;
mod scale;
mod stuck;
mod walk;
