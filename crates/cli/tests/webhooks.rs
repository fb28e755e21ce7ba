//! Notifications, end to end: a real server, real workers, and the receiver of the documents.

mod common;

use common::{
    Stage,
    receiver::{Receiver, delivered, free_port, text, webhooks},
};
use palisade_lab::drill::{Proxy, WorkerOptions};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::test]
async fn a_server_killed_between_commit_and_delivery_delivers_after_its_restart() {
    let mut stage = Stage::set_with(&["--allow-private-webhooks"]).await;
    let port = free_port();
    let address = ([127, 0, 0, 1], port).into();
    // Nothing passes until the test says so: the first notification is on its way and no further.
    let proxy = Proxy::start(address, Some("POST /hook")).await.expect("a proxy");
    let added = webhooks(&stage, &["add", &format!("{}/hook", proxy.url())]);
    let (hook, secret) = (text(&added["id"]), text(&added["secret"]));
    let receiver = Receiver::start(stage.dir.path(), port, &secret).await;

    let clip = stage.clip("clip.mp4", 1).await;
    let first = stage.submit("slow", &clip).await;
    let worker = stage.worker("worker");
    let done = stage.over(&first.job).await;
    assert_eq!(done.state, "complete");
    drop(worker);
    let held = proxy.held().await;
    // Answered from the finished job, and committed; it waits for the one before it.
    let second = stage.submit("slow", &clip).await;
    assert_eq!(second.job, first.job);
    let before = webhooks(&stage, &["deliveries", &hook]);
    assert_eq!(before["deliveries"][0]["state"], "pending", "{before}");

    stage.cluster.kill_server().await.expect("it ends");
    assert_eq!(receiver.lines().len(), 0, "nothing has arrived");
    proxy.cut();
    held.let_go();
    stage.cluster.start_server().await.expect("it starts again");
    assert_eq!(receiver.lines().len(), 0, "what was on its way is lost");
    proxy.mend();

    let rows = delivered(&stage, &hook, 2).await;
    let lines = receiver.until(2).await;
    let ids: Vec<_> = rows.iter().rev().map(|row| text(&row["id"])).collect();
    let expected = [&first, &second].map(|one| one.submission.to_string());
    for (index, submission) in expected.iter().enumerate() {
        let line = ["done", ids[index].as_str(), first.job.as_str(), submission.as_str()];
        assert_eq!(lines[index], line, "{lines:?}");
    }
    let token = done.completion.expect("it is complete").token;
    assert!(rows.iter().all(|row| row["token"] == token), "{rows:?}");

    // Asked for by hand it comes again under its id, and the receiver drops it.
    webhooks(&stage, &["redeliver", &ids[1]]);
    let lines = receiver.until(3).await;
    assert_eq!(lines[2][..2], ["repeated".to_owned(), ids[1].clone()]);
    assert_eq!(receiver.port, port);
}

#[tokio::test]
async fn a_paused_worker_leads_to_one_notification_with_the_others_token() {
    let stage = Stage::set_with(&["--webhook-allow", "127.0.0.0/8"]).await;
    let port = free_port();
    let added = webhooks(&stage, &["add", &format!("http://127.0.0.1:{port}/")]);
    let (hook, secret) = (text(&added["id"]), text(&added["secret"]));
    let receiver = Receiver::start(stage.dir.path(), port, &secret).await;

    let job = stage.submit("slow", &stage.clip("clip.mp4", 2).await).await.job;
    let hold = Some("/complete HTTP/1.1");
    let proxy = Proxy::start(stage.cluster.address(), hold).await.expect("a proxy");
    let how = WorkerOptions { url: Some(proxy.url()), ..WorkerOptions::default() };
    let zombie = stage.worker_with("zombie", how);
    let held = proxy.held().await;
    zombie.stop();
    let _other = stage.worker("other");
    let done = stage.over(&job).await;
    let completion = done.completion.expect("it is complete");
    assert_eq!(completion.worker, "other");
    zombie.wake();
    held.let_go();
    let refused = stage.event(&zombie, "refused", &job).await;
    assert_eq!(refused["code"], "stale_token", "{refused}");

    let rows = delivered(&stage, &hook, 1).await;
    assert_eq!(rows[0]["token"], completion.token);
    let all = webhooks(&stage, &["deliveries", &hook]);
    assert_eq!(all["deliveries"].as_array().expect("a list").len(), 1, "no row was added");
    let lines = receiver.until(1).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0][0], "done");

    let listed = webhooks(&stage, &["ls"]);
    assert!(!listed.to_string().contains("whsec_"), "secrets are shown once: {listed}");
    webhooks(&stage, &["rm", &hook]);
    assert_eq!(webhooks(&stage, &["ls"])["webhooks"], Value::Array(Vec::new()));
}

/// The document's receiver refuses what is not genuine, and drops what is older.
#[tokio::test]
async fn the_documents_receiver_refuses_what_is_forged() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let receiver = Receiver::start(folder.path(), port, "whsec_c2VjcmV0").await;
    let forged = "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nwebhook-id: evt_1\r\n\
                  webhook-timestamp: 1\r\nwebhook-signature: v1,AAAA\r\ncontent-length: 2\r\n\r\n{}";
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
    stream.write_all(forged.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it is answered");
    assert!(answer.contains(" 401 "), "{answer}");
    assert_eq!(receiver.lines().len(), 0);
}
