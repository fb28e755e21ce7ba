//! Children: the only room in which processes are started.
//!
//! Every child runs under a *nanny*: our own binary, started again for each child, which stands
//! between the worker and the tool. The nanny is the subreaper of all that its child starts, so
//! whatever forks, calls `setsid` or loses its parent stays in reach of freeze, thaw and kill. It
//! dies last: when the worker goes, however it goes, the nanny sees the end of its pipe (and gets
//! a signal from the kernel) and kills the tree.
//!
//! What is bound to what:
//! - the nanny to the worker: end of a socket, and PDEATHSIG. The latter is bound to the *thread*
//!   that spawned, so one thread that lives as long as the process spawns them all (`spawner`);
//! - the tool to the nanny: PDEATHSIG of SIGKILL, set by a second stage that then becomes the tool;
//! - an *attached* child (a command under a lock) keeps its caller's terminal, standard streams and
//!   environment; the nanny, which talks through its own standard input, is handed the caller's;
//! - an attached child to what its caller last said of its lease: a caller that is stopped says
//!   nothing, and then the nanny stops the child (`leash`);
//! - what even so is left (nanny and worker both killed) is found by the next worker: see
//!   [`leftovers`].
//!
//! Must not know: recipes, media, what a lease is.

mod attached;
mod child;
mod leash;
pub mod leftovers;
mod nanny;
mod record;
mod signals;
mod spawner;
mod tail;
mod tree;
mod words;

pub use attached::{AttachedSpec, is_in_foreground};
pub use child::{Child, ChildControl, Exit};
pub use nanny::nanny_main;
pub use signals::is_ignored;
pub use spawner::{ChildSpec, NannyCommand, SpawnError, Supervisor};
