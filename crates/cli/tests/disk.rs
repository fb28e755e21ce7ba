//! A disk without room: in the scratch, and where the blobs are. Needs root, for a small tmpfs.

mod common;

use std::{path::Path, process::Command};

use common::Stage;
use palisade_lab::drill::WorkerOptions;

/// A small file system of its own, taken away when dropped.
struct SmallDisk<'path>(&'path Path);

impl<'path> SmallDisk<'path> {
    #[expect(clippy::disallowed_methods, reason = "the test mounts a disk of its own")]
    fn mount(path: &'path Path, size: &str) -> Option<Self> {
        std::fs::create_dir_all(path).expect("a folder to mount on");
        let options = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "palisade-test"])
            .arg(path)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            let words = "SKIPPED: mounting a tmpfs needs root\n";
            std::io::Write::write_all(&mut std::io::stderr(), words.as_bytes()).expect("stderr");
        }
        mounted.then_some(Self(path))
    }
}

impl Drop for SmallDisk<'_> {
    #[expect(clippy::disallowed_methods, reason = "the test takes its disk away")]
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[tokio::test]
async fn a_worker_without_room_makes_no_claim_and_says_so() {
    let stage = Stage::set().await;
    let dir = stage.cluster.worker_dir("small");
    let Some(_disk) = SmallDisk::mount(&dir, "16m") else { return };
    let clip = stage.clip("clip.mp4", 1).await;
    let job = stage.submit("h264-720p", &clip).await.job;
    let worker = stage.worker("small");
    palisade_lab::drill::wait_for("it to say so", common::LIMIT, async || {
        let said = worker.lines().iter().any(|line| line.contains("no_room"));
        if said { Ok(()) } else { Err(worker.log()) }
    })
    .await
    .expect("it says what it needs");
    let job = stage.client().job(&job).await.expect("it is there");
    assert_eq!((job.state.as_str(), job.attempts.len()), ("queued", 0), "nothing was claimed");
}

#[tokio::test]
async fn a_scratch_that_fills_up_fails_the_attempt_and_another_worker_completes() {
    let stage = Stage::set().await;
    let dir = stage.cluster.worker_dir("small");
    let Some(_disk) = SmallDisk::mount(&dir, "2500k") else { return };
    let clip = stage.clip("clip.mp4", 20).await;
    assert!(std::fs::metadata(&clip).expect("the clip").len() > 1_300_000, "too small a clip");
    let job = stage.submit("slow", &clip).await.job;
    // It believes that there is room: nothing is kept free, and the expectation is met at first.
    let more = vec!["--keep-free".to_owned(), "0".to_owned()];
    let small = stage.worker_with("small", WorkerOptions { more, ..WorkerOptions::default() });
    palisade_lab::drill::wait_for("the attempt to end", common::LIMIT, async || {
        let job = stage.client().job(&job).await.map_err(|error| error.to_string())?;
        let ended = job.attempts.iter().find(|attempt| attempt.outcome != "open");
        ended.map(|_| ()).ok_or_else(|| format!("{:?} {:?}", job.attempts, small.lines()))
    })
    .await
    .expect("it ends");
    stage.assert_scratch_is_empty("small").await;
    drop(small);

    let _large = stage.worker("large");
    let job = stage.over(&job).await;
    assert_eq!(job.state, "complete", "{job:#?}");
    let failed = job.attempts.iter().find(|attempt| attempt.outcome == "failed");
    if let Some(failed) = failed {
        let message = failed.message.clone().unwrap_or_default().to_lowercase();
        assert!(message.contains("space") || message.contains("full"), "{message}");
    }
}

#[tokio::test]
async fn a_full_folder_for_blobs_refuses_the_upload_and_leaves_nothing_half_visible() {
    let stage_dir = tempfile::tempdir().expect("a folder");
    let data = stage_dir.path().join("server");
    let Some(_disk) = SmallDisk::mount(&data, "6m") else { return };
    let cluster =
        palisade_lab::drill::Cluster::start(Path::new(common::PROGRAM), stage_dir.path(), &[]);
    let cluster = cluster.await.expect("the server starts");
    let large = stage_dir.path().join("large.bin");
    std::fs::write(&large, vec![7; 16 << 20]).expect("a file");

    let purpose = palisade_api::client::Upload::Input;
    let refused = cluster.client().upload(&large, &purpose).await.expect_err("there is no room");

    let text = refused.to_string();
    assert!(text.contains("space") || text.contains("full"), "{text}");
    cluster.client().ready().await.expect("the server serves on");
    let small = stage_dir.path().join("small.bin");
    std::fs::write(&small, b"small").expect("a file");
    cluster.client().upload(&small, &purpose).await.expect("what was half-written is gone");
}
