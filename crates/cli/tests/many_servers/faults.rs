//! What befalls the servers and their database.

use std::{path::PathBuf, time::Duration};

use palisade_lab::drill::Cluster;
use rustix::process::{Pid, Signal, kill_process};

use super::crowd::Crowd;

/// The pace of the faults: each second one.
const PACE: Duration = Duration::from_secs(1);
/// How often the crowd's progress is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Nothing takes longer.
const LIMIT: Duration = Duration::from_mins(20);

/// Kills one server after another, every third politely, and crashes the database once in the
/// middle, until the crowd has done its work. Answers how many servers ended.
pub(crate) async fn until_over(cluster: &mut Cluster, crowd: &Crowd, jobs: u64) -> u32 {
    let work = async {
        let (mut ended, mut crashed) = (0, false);
        while !crowd.is_over() {
            let pause = tokio::time::sleep(PACE);
            tokio::pin!(pause);
            // The database crashes in the middle, whatever the servers' pace.
            loop {
                if !crashed && crowd.completed() >= jobs / 2 {
                    crash_database();
                    crashed = true;
                }
                tokio::select! {
                    () = &mut pause => break,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
            let index = ended as usize % cluster.servers();
            if ended % 3 == 2 {
                cluster.server_at(index).terminate();
                cluster.server_at(index).ended().await.expect("it ends");
            } else {
                cluster.kill_server_at(index).await.expect("it ends");
            }
            ended += 1;
            // While the database is away a server cannot start; whoever runs it tries again.
            while cluster.start_server_at(index).await.is_err() {
                tokio::time::sleep(LOOK).await;
            }
        }
        assert!(crashed, "the database crashed in the middle");
        ended
    };
    tokio::time::timeout(LIMIT, work).await.expect("the work is done in time")
}

/// An immediate shutdown: the database ends without a word, and recovers when it starts again.
fn crash_database() {
    let folder: PathBuf = std::env::var_os("PALISADE_CLUSTER_DATABASE").expect("it is told").into();
    let text = std::fs::read_to_string(folder.join("postmaster.pid")).expect("it runs");
    let pid = text.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), Signal::QUIT).expect("it is ours");
}
