//! The server is away: the command is frozen, and thawed. The lock is lost: all of it is killed.

use palisade_api::wire::PairWire;
use palisade_lab::drill::wait_for;

use crate::stage::{Holder, Stage, a_moment, is_frozen, until_frozen, until_state};

/// A command, a child of it, and a grandchild in a session of its own.
const FAMILY: &str = r#"echo "pair $PALISADE_TOKEN $PALISADE_LEASE"
sleep 1000 & echo "child $!"
setsid sh -c 'echo "grandchild $$"; exec sleep 1000' &
echo "pid $$"
while ! [ -e "$DIR/end" ]; do sleep 0.05; done
exit 7"#;

async fn family(holder: &Holder) -> Vec<u32> {
    let mut pids = Vec::new();
    for who in ["pid ", "child ", "grandchild "] {
        pids.push(holder.said(who).await.parse().expect("a pid"));
    }
    pids
}

async fn pair(holder: &Holder) -> PairWire {
    let pair = holder.said("pair ").await;
    let (token, lease) = pair.split_once(' ').expect("two words");
    PairWire { token: token.parse().expect("a number"), lease: lease.to_owned() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_freezes_the_command_and_its_return_thaws_it() {
    let mut stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door", "--ttl", "2s"], FAMILY);
    let pids = family(&holder).await;
    stage.cluster.server().stop();
    holder.logged("is in doubt").await;
    for pid in &pids {
        until_frozen(*pid).await;
    }
    stage.let_go("end");
    a_moment().await;
    assert!(!holder.process.has_ended(), "a frozen command does nothing");
    stage.cluster.server().wake();
    holder.logged("is confirmed again").await;
    assert_eq!(holder.code().await, Some(7), "{}", holder.process.log());
    for pid in pids {
        until_state(pid, " ").await;
    }
    let lock = stage.cluster.client().lock("door").await.expect("it is there");
    assert_eq!(lock.held, None, "it was released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_lock_kills_the_command_and_all_that_it_started() {
    let stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door", "--ttl", "2s"], FAMILY);
    let pids = family(&holder).await;
    let pair = pair(&holder).await;
    stage.cluster.client().release_lock("door", &pair).await.expect("whoever has the pair may");
    assert_eq!(holder.code().await, Some(118), "{}", holder.process.log());
    assert!(holder.process.log().contains("is lost"), "{}", holder.process.log());
    for pid in pids {
        until_state(pid, " ").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doubt_that_lasts_longer_than_the_grace_is_a_loss() {
    let mut stage = Stage::set().await;
    let flags = ["door", "--ttl", "1s", "--doubt-grace", "1s"];
    let mut holder = stage.lock("alice", &flags, FAMILY);
    let pids = family(&holder).await;
    stage.cluster.server().stop();
    assert_eq!(holder.code().await, Some(118), "{}", holder.process.log());
    for pid in pids {
        until_state(pid, " ").await;
    }
    stage.cluster.server().wake();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_command_that_is_asked_to_end_is_killed_for_it_cannot_hear() {
    let mut stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door", "--ttl", "1s"], FAMILY);
    let pids = family(&holder).await;
    stage.cluster.server().stop();
    until_frozen(pids[0]).await;
    holder.signal("TERM");
    assert_eq!(holder.code().await, Some(143), "{}", holder.process.log());
    stage.cluster.server().wake();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_palisade_leaves_nothing_running() {
    let stage = Stage::set().await;
    let holder = stage.lock("alice", &["door", "--ttl", "1s"], FAMILY);
    let pids = family(&holder).await;
    holder.process.kill();
    for pid in pids {
        until_state(pid, " ").await;
    }
    let next = stage.palisade(&["lock", "door", "--wait", "10m", "--", "echo", "mine"], "");
    assert_eq!(String::from_utf8_lossy(&next.stdout), "mine\n", "its lock ends with its ttl");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_palisade_does_not_let_its_command_run_past_the_lock() {
    let stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door", "--ttl", "2s"], FAMILY);
    let pids = family(&holder).await;
    // It alone is stopped: it can neither renew nor see that it does not.
    holder.process.stop();
    for pid in &pids {
        until_frozen(*pid).await;
    }
    let next = stage.palisade(&["lock", "door", "--wait", "10m", "--", "echo", "mine"], "");
    assert_eq!(String::from_utf8_lossy(&next.stdout), "mine\n", "the lock went on");
    for pid in &pids {
        assert!(is_frozen(*pid), "it stands still until it is killed");
    }
    holder.process.wake();
    assert_eq!(holder.code().await, Some(118), "{}", holder.process.log());
    for pid in pids {
        until_state(pid, " ").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_stood_still_with_its_palisade_goes_on_where_nobody_took_the_lock() {
    let stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door", "--ttl", "2s"], FAMILY);
    let pids = family(&holder).await;
    holder.process.stop();
    for pid in &pids {
        until_frozen(*pid).await;
    }
    holder.process.wake();
    stage.let_go("end");
    assert_eq!(holder.code().await, Some(7), "{}", holder.process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_on_for_as_long_as_its_lock_is_renewed() {
    let stage = Stage::set().await;
    let ticks = r#"while ! [ -e "$DIR/end" ]; do echo tick; sleep 0.2; done"#;
    let mut holder = stage.lock("alice", &["door", "--ttl", "1s"], ticks);
    // Many ttls by its own count: had it been stopped, it would not have come so far.
    wait_for("it to run on", crate::common::LIMIT, async || {
        let count = holder.process.lines().len();
        if count >= 20 { Ok(()) } else { Err(format!("{count} ticks")) }
    })
    .await
    .expect("it does");
    stage.let_go("end");
    assert_eq!(holder.code().await, Some(0));
    assert!(!holder.process.log().contains("is in doubt"), "{}", holder.process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_stopped_for_three_ttls_gives_no_living_holders_lock_away() {
    let mut stage = Stage::set().await;
    let mut alice = stage.lock("alice", &["door", "--ttl", "2s"], FAMILY);
    family(&alice).await;
    let flags = ["door", "--ttl", "2s", "--wait", "10m"];
    let mut bob = stage.lock("bob", &flags, "echo mine");
    wait_for("bob to wait", crate::common::LIMIT, async || {
        let lock = stage.cluster.client().lock("door").await.map_err(|error| error.to_string())?;
        if lock.waiters.len() == 1 { Ok(()) } else { Err(format!("{lock:?}")) }
    })
    .await
    .expect("he does");
    stage.cluster.server().stop();
    alice.logged("is in doubt").await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    stage.cluster.server().wake();
    alice.logged("is confirmed again").await;
    assert!(bob.process.lines().is_empty(), "it was alice's all the time");
    stage.let_go("end");
    assert_eq!(alice.code().await, Some(7), "{}", alice.process.log());
    assert_eq!(bob.code().await, Some(0), "{}", bob.process.log());
    assert_eq!(bob.process.lines(), ["mine"]);
}
