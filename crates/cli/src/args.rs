//! The command line: flags that every verb shares, and one variant a verb.

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::commands::{
    cancel::CancelArgs, demo::DemoArgs, export::ExportArgs, get::GetArgs, history::HistoryArgs,
    job::JobArgs, jobs::JobsArgs, retry::RetryArgs, serve::ServeArgs, submit::SubmitArgs,
    up::UpArgs, wait::WaitArgs, worker::WorkerArgs,
};

/// Runs expensive media exports on many workers, and stays correct when workers crash, pause, or
/// run the same job twice.
#[derive(Debug, Parser)]
#[command(name = "palisade", version, after_help = crate::exit::HELP)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Flags that every verb takes.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct Common {
    /// The server's address, for the verbs that are its clients; or several servers' of one store,
    /// separated by commas: one that does not answer is left for the next.
    #[arg(long, global = true, env = "PALISADE_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Print JSON instead of tables and bars.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The token that the server asks for, if it asks for one.
    #[arg(long, global = true, env = "PALISADE_TOKEN_FILE", value_name = "FILE")]
    pub(crate) token_file: Option<std::path::PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a server and workers in one process: all that one machine needs.
    Up(UpArgs),
    /// Run a server.
    Serve(ServeArgs),
    /// Run a worker of a server.
    Worker(WorkerArgs),
    /// Export a file: submit it, show its progress, fetch the result. Without a server, all of it
    /// runs in this process.
    Export(ExportArgs),
    /// Submit a job and print its id.
    Submit(SubmitArgs),
    /// List jobs, newest first.
    Jobs(JobsArgs),
    /// Show one job: who wants it, who tried it, what came of it.
    Job(JobArgs),
    /// Wait until a job is over.
    Wait(WaitArgs),
    /// Fetch a job's outputs.
    Get(GetArgs),
    /// Withdraw a submission; a job that nobody wants any more is cancelled.
    Cancel(CancelArgs),
    /// Give a failed or cancelled job another try.
    Retry(RetryArgs),
    /// Show the recipes, their parameters and what they make.
    Recipes(crate::commands::recipes::RecipesArgs),
    /// Show a job's history, or a lock's: who was granted what when, what was refused and why.
    History(HistoryArgs),
    /// Draw a job's history, or a lock's: a lane for each worker, with its leases, pauses, effects.
    Timeline(crate::commands::history::TimelineArgs),
    /// Show the server's journal as it is written: every grant, refusal, completion, and why.
    Events(crate::commands::events::EventsArgs),
    /// Show what the server's workers hold.
    Workers,
    /// Run a command under a lock: its token in the environment, killed if the lock is lost.
    Lock(crate::commands::lock::LockArgs),
    /// List locks: who holds them, who waits.
    Locks(crate::commands::locks::LocksArgs),
    /// Write and read fenced objects.
    Object(crate::commands::object::ObjectArgs),
    /// Say who is told when jobs end, and look at what was told.
    Webhooks(crate::commands::webhooks::WebhooksArgs),
    /// Look whether a data directory's records and blobs are as they must be, while it is served
    /// or in a copy.
    // Spelled out: it would name flags that every verb takes, and this one does not use.
    #[command(
        override_usage = "palisade audit [--quick] [--artefacts URL] <--data DIR|--store URL>"
    )]
    Audit(crate::commands::audit::AuditArgs),
    /// Explain what went wrong, in somebody else's lock logs or in Palisade's own history.
    Diagnose(crate::diagnose::DiagnoseArgs),
    /// Print the fence for a database of your own: a table, and a guard to call in your transaction.
    SqlGuard(crate::commands::sql_guard::SqlGuardArgs),
    /// Export real videos on real workers, one of which is killed and two of which are paused.
    Demo(DemoArgs),
    /// Put six designs under the same faults, drawn from seeds, and count what each gets wrong.
    Simulate(crate::commands::simulate::SimulateArgs),
    /// Search every schedule of small worlds, over the real rules.
    Explore(crate::commands::explore::ExploreArgs),
    /// Set right what no server can notice by itself.
    Admin(crate::commands::admin::AdminArgs),
}
