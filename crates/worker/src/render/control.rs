//! The handle by which a keeper steers a render from outside.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::process::ChildControl;

/// Freezes, thaws and kills a render with all its children, those it has and those it has yet to
/// start. Cheap to clone; never blocks, needs no runtime, works from any thread: a heartbeat must
/// be able to call it whatever the renders are doing.
#[derive(Debug, Clone)]
pub struct RenderControl(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    wish: watch::Sender<Wish>,
    /// The child of the step that runs now. Wishes are passed on under this lock, so that a child
    /// that is just being attached misses none.
    child: Mutex<Option<ChildControl>>,
}

/// What the keeper wants of the render.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Run,
    Freeze,
    Kill,
}

/// The render was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Killed;

impl Default for RenderControl {
    fn default() -> Self {
        Self::new()
    }
}

impl RenderControl {
    /// A handle for a render that is to run.
    pub fn new() -> Self {
        Self(Arc::new(Inner { wish: watch::Sender::new(Wish::Run), child: Mutex::new(None) }))
    }

    /// Stops everything until [`thaw`](Self::thaw). Time and stall limits stand still.
    pub fn freeze(&self) {
        self.steer(Wish::Freeze);
    }

    /// Lets everything go on.
    pub fn thaw(&self) {
        self.steer(Wish::Run);
    }

    /// Ends everything, for good. The render answers [`super::RenderError::Killed`] once nothing
    /// of it is left.
    pub fn kill(&self) {
        self.steer(Wish::Kill);
    }

    /// Whether it is frozen.
    pub fn is_frozen(&self) -> bool {
        self.wish() == Wish::Freeze
    }

    pub(crate) fn wish(&self) -> Wish {
        *self.0.wish.borrow()
    }

    fn steer(&self, wish: Wish) {
        let child = self.0.child.lock().unwrap_or_else(PoisonError::into_inner);
        // Killed is killed: a thaw that comes later must not wake what is being ended.
        let changed = self.0.wish.send_if_modified(|current| {
            let changes = *current != Wish::Kill && *current != wish;
            if changes {
                *current = wish;
            }
            changes
        });
        if let (true, Some(child)) = (changed, child.as_ref()) {
            pass_on(child, wish);
        }
    }

    /// From now on this child is steered, beginning with what is wished now.
    pub(crate) fn attach(&self, control: ChildControl) {
        let mut child = self.0.child.lock().unwrap_or_else(PoisonError::into_inner);
        if self.wish() != Wish::Run {
            pass_on(&control, self.wish());
        }
        *child = Some(control);
    }

    /// The child is gone.
    pub(crate) fn detach(&self) {
        *self.0.child.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns when the render is to run; nothing new is begun while it is frozen.
    pub(crate) async fn until_running(&self) -> Result<(), Killed> {
        let mut wishes = self.0.wish.subscribe();
        let wish =
            *wishes.wait_for(|wish| *wish != Wish::Freeze).await.expect("the sender lives in self");
        if wish == Wish::Kill { Err(Killed) } else { Ok(()) }
    }
}

fn pass_on(child: &ChildControl, wish: Wish) {
    match wish {
        Wish::Run => child.thaw(),
        Wish::Freeze => child.freeze(),
        Wish::Kill => child.kill(),
    }
}
