//! A whole worker between a scripted server and a scripted runner, on a clock that is moved.

mod leases;
mod life;
mod outcomes;
mod starving;
