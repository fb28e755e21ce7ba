//! What a script sees of `palisade lock`: streams, environment, signals, exit codes.

use crate::stage::{Stage, run, text};

#[tokio::test(flavor = "multi_thread")]
async fn the_command_has_the_streams_and_is_told_its_pair_and_nothing_else_is_said() {
    let stage = Stage::set().await;
    let script = "cat; echo \"$PALISADE_LOCK $PALISADE_SERVER ${#PALISADE_LEASE}\"; echo oops >&2";
    let done = stage.palisade(&["lock", "a/b", "--", "sh", "-c", script], "typed\n");
    assert_eq!(done.status.code(), Some(0));
    let expected = format!("typed\na/b {} 32\n", stage.cluster.url());
    assert_eq!((text(&done.stdout), text(&done.stderr)), (expected, "oops\n".to_owned()));
    let lock = stage.cluster.client().lock("a/b").await.expect("it is there");
    assert_eq!(lock.held, None, "it was released");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_end_is_the_exit_code() {
    let stage = Stage::set().await;
    let denied = stage.path("denied");
    std::fs::write(&denied, "").expect("a file");
    let denied = denied.display().to_string();
    let cases: [(&[&str], i32); 6] = [
        (&["true"], 0),
        (&["sh", "-c", "exit 33"], 33),
        (&["sh", "-c", "kill -SEGV $$"], 139),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["no-such-program"], 127),
        (&[denied.as_str()], 126),
    ];
    for (argv, code) in cases {
        let mut args = vec!["lock", "door", "--"];
        args.extend(argv);
        let done = stage.palisade(&args, "");
        assert_eq!(done.status.code(), Some(code), "{argv:?}: {}", text(&done.stderr));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_held_or_a_server_that_is_away_has_an_exit_code_of_its_own() {
    let stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door"], "echo ready; read -r line; exec sleep 1000");
    holder.said("ready").await;
    let marker = stage.path("ran");
    let touch = marker.display().to_string();
    for wait in ["--no-wait", "--wait=300ms"] {
        let done = stage.palisade(&["lock", "door", wait, "--", "touch", &touch], "");
        assert_eq!(done.status.code(), Some(117), "{}", text(&done.stderr));
        assert!(text(&done.stderr).contains("held by alice"), "{}", text(&done.stderr));
    }
    let done = stage.palisade(&["lock", "door", "--quiet", "--", "touch", &touch], "");
    assert_eq!((done.status.code(), text(&done.stderr)), (Some(117), String::new()));
    let away = run("http://127.0.0.1:9", &["lock", "door", "--", "touch", &touch], "");
    assert_eq!(away.status.code(), Some(119), "{}", text(&away.stderr));
    for bad in [
        &["lock", ".x", "--", "true"][..],
        &["lock", "door"],
        &["lock", "door", "--ttl", "1x", "--", "true"],
        &["lock", "door", "--ttl", "900h", "--", "true"],
    ] {
        let done = stage.palisade(bad, "");
        assert_eq!(done.status.code(), Some(2), "{bad:?}: {}", text(&done.stderr));
    }
    assert!(!marker.exists(), "nothing was run");
    holder.signal("TERM");
    assert_eq!(holder.code().await, Some(143));
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_are_passed_on_and_the_command_decides() {
    let stage = Stage::set().await;
    for (name, code) in
        [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("USR1", 10), ("USR2", 12)]
    {
        let script = format!(
            "trap 'echo got; exit {code}' {name}; echo ready; while :; do sleep 0.05; done"
        );
        let mut holder = stage.lock(name, &["door", "--wait", "5m"], &script);
        holder.said("ready").await;
        holder.signal(name);
        assert_eq!(holder.code().await, Some(code), "{name}: {}", holder.process.log());
        holder.said("got").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_and_is_asked_to_end_leaves_the_queue() {
    let stage = Stage::set().await;
    let mut holder = stage.lock("alice", &["door"], "echo ready; exec sleep 1000");
    holder.said("ready").await;
    let mut waiter = stage.lock("bob", &["door", "--wait", "10m"], "echo never");
    let waiting = async |count: usize| {
        palisade_lab::drill::wait_for("the queue", crate::common::LIMIT, async || {
            let lock = stage.cluster.client().lock("door").await.map_err(|e| e.to_string())?;
            if lock.waiters.len() == count { Ok(()) } else { Err(format!("{lock:?}")) }
        })
        .await
        .expect("the queue is of that length");
    };
    waiting(1).await;
    let shown = stage.palisade(&["--json", "lock", "door", "--inspect"], "");
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(
        (&shown["held"]["holder"], &shown["waiters"][0]["holder"]),
        (&"alice".into(), &"bob".into())
    );
    assert!(text(&stage.palisade(&["locks", "do"], "").stdout).contains("alice"));
    waiter.signal("TERM");
    assert_eq!(waiter.code().await, Some(143));
    waiting(0).await;
    assert!(waiter.process.lines().is_empty());
    holder.signal("TERM");
    assert_eq!(holder.code().await, Some(143));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let stage = Stage::set().await;
    let script = "echo ready; while ! [ -e \"$DIR/end\" ]; do sleep 0.05; done; exit 9";
    let argv = ["lock", "door", "--", "sh", "-c", script];
    let nohup = "trap '' HUP; exec \"$@\"";
    let mut args = vec!["-c", nohup, "sh", crate::common::PROGRAM];
    args.extend(argv);
    let args: Vec<_> = args.into_iter().map(str::to_owned).collect();
    let (url, dir) = (stage.cluster.url(), stage.dir.path().display().to_string());
    let environment = [("PALISADE_SERVER", url.as_str()), ("DIR", dir.as_str())];
    let log = stage.path("nohup.log");
    let shell = std::path::Path::new("/bin/sh");
    let process = palisade_lab::drill::Process::start("nohup", shell, &args, &environment, &log);
    let mut holder = crate::stage::Holder { process: process.expect("it starts") };
    holder.said("ready").await;
    holder.signal("HUP");
    crate::stage::a_moment().await;
    stage.let_go("end");
    assert_eq!(holder.code().await, Some(9), "{}", holder.process.log());
}
