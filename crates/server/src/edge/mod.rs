//! Where requests come in: what is read of them, and what all of them pass through.

mod body;
mod gate;
mod leftover;
mod observe;
mod params;
mod unfit;

pub(crate) use body::{
    Json, Pieces, json_bytes, json_from_slice, json_from_value, refuse_announced,
};
pub(crate) use gate::gate;
pub(crate) use leftover::drain_leftover;
pub(crate) use observe::observe;
pub(crate) use params::{Params, Segments, Text};
