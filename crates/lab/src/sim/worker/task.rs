//! What a worker is at.

use std::collections::BTreeMap;

use palisade_core::{
    Digest, JobId, Number, Timestamp,
    keeper::Keeper,
    lease::Pair,
    manifest::{Manifest, Output},
};

use crate::{designs::Effects, sim::outside::Kind};

/// One step of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Raise the outside's fence to the own token: a new holder's first act.
    Raise(Kind),
    /// Render.
    Render,
    /// Ask for the blob's place, and pin it.
    BeginBlob,
    /// Bring the bytes there.
    Upload(Number),
    /// Say that they are there.
    FinishBlob(Number),
    /// Do something to the outside.
    Effect(Kind),
    /// Commit.
    Complete,
    /// Report that it came to nothing.
    Fail,
    /// Hand the job back.
    Release,
}

/// How far a step is. Between any two stages the process may be paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Not begun: the keeper is to be asked.
    Ready,
    /// The keeper said yes; the message is not sent.
    Checked,
    /// The message is sent.
    Waiting(u64),
}

/// One job in work.
#[derive(Debug)]
pub(crate) struct Task {
    /// Its number within the worker: what belongs to an earlier task is not heard.
    pub number: u64,
    /// The job.
    pub job: JobId,
    /// The grant's pair.
    pub pair: Pair,
    /// Who keeps the lease, where somebody does.
    pub keeper: Option<Keeper>,
    /// Heartbeats that were not answered, each with when it was sent.
    pub beats: BTreeMap<u64, Timestamp>,
    /// Pauses to be reported.
    pub pauses: Vec<u64>,
    /// Where it is.
    pub step: Step,
    /// How far the step is.
    pub stage: Stage,
    /// What comes after it, the next one last.
    pub rest: Vec<Step>,
    /// What is left to render, in ms.
    pub left_ms: u64,
    /// Whether the children are stopped.
    pub frozen: bool,
    /// Whether the work thread waits for them to go on.
    pub waits_for_thaw: bool,
    /// What the rendering makes.
    pub content: Digest,
    /// Which of the tally's renderings it is.
    pub rendering: usize,
    /// How often the present call was refused or not answered.
    pub tries: u32,
}

/// The steps of an export, the first one last.
pub(super) fn steps(effects: Effects) -> Vec<Step> {
    let mut steps = Vec::new();
    if effects == Effects::Fenced {
        steps.extend(Kind::ALL.map(Step::Raise));
    }
    steps.push(Step::Render);
    if effects != Effects::Bare {
        steps.push(Step::BeginBlob);
    }
    if effects != Effects::Projected {
        steps.extend(Kind::ALL.map(Step::Effect));
    }
    steps.push(Step::Complete);
    steps.reverse();
    steps
}

/// A manifest of one file with this content.
pub(crate) fn manifest_of(content: Digest) -> Manifest {
    let output = Output {
        name: "export.mp4".parse().expect("a fine name"),
        digest: content,
        size_bytes: 1,
        media_type: "video/mp4".to_owned(),
        facts: BTreeMap::new(),
    };
    Manifest { outputs: vec![output], ..Manifest::default() }
}
