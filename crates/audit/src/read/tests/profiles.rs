//! Realistic excerpts of the logs that built-in profiles are for.

use super::*;

fn profiled(name: &str) -> Translation {
    let mut translation = Translation::new();
    translation.profile(&built_in(name).unwrap()).unwrap();
    translation
}

#[test]
fn bullmq_listeners_lines_are_understood() {
    let log = r#"{"level":30,"time":1773478800000,"worker":"enc-1:4121","event":"active","jobId":"1842","prev":"waiting"}
{"level":30,"time":1773478815000,"worker":"enc-1:4121","event":"locksRenewed","jobId":"1842"}
{"level":30,"time":1773478816000,"worker":"enc-1:4121","event":"drained"}
{"level":40,"time":1773478850000,"worker":"enc-2:88","event":"stalled","jobId":"1842"}
{"level":30,"time":1773478850100,"worker":"enc-2:88","event":"active","jobId":"1842","prev":"waiting"}
{"level":50,"time":1773478861000,"worker":"enc-1:4121","event":"lockRenewalFailed","jobId":"1842","message":"could not renew lock for job 1842"}
{"level":30,"time":1773478870000,"worker":"enc-2:88","event":"completed","jobId":"1842"}
"#;
    let (entries, tally) = read(&profiled("bullmq"), log);
    assert_eq!(
        entries,
        [
            "1773478800000 enc-1:4121 1842 acquired ttl=30000",
            "1773478815000 enc-1:4121 1842 renewed ttl=30000",
            "1773478850000 enc-2:88 1842 expired",
            "1773478850100 enc-2:88 1842 acquired ttl=30000",
            "1773478861000 enc-1:4121 1842 renew_failed detail=could not renew lock for job 1842",
            "1773478870000 enc-2:88 1842 effect kind=completion",
            "1773478870000 enc-2:88 1842 completed",
        ]
    );
    assert_eq!((tally.unreadable_lines, tally.other_lines), (0, 1));
}

#[test]
fn celery_worker_logs_are_understood() {
    let log = "[2026-03-14 09:00:00,100: INFO/MainProcess] celery@node-1 ready.\n\
[2026-03-14 09:00:01,000: INFO/MainProcess] Task media.tasks.export[7c9d-41] received\n\
[2026-03-14 09:00:01,010: DEBUG/MainProcess] Task accepted: media.tasks.export[7c9d-41] pid:412\n\
[2026-03-14 09:01:31,000: INFO/ForkPoolWorker-2] Task media.tasks.export[7c9d-41] succeeded in 90.0s: None\n\
[2026-03-14 09:02:00,000: INFO/MainProcess] Task media.tasks.export[7c9d-42] received\n\
[2026-03-14 09:02:30,000: ERROR/MainProcess] Task media.tasks.export[7c9d-42] raised unexpected: WorkerLostError('Worker exited prematurely: signal 9 (SIGKILL) Job: 42.')\n\
Traceback (most recent call last):\n";
    let (entries, tally) = read(&profiled("celery"), log);
    assert_eq!(entries[0], "1773478801000 node-1 7c9d-41 acquired ttl=3600000");
    assert_eq!(entries[1], "1773478801010 node-1 7c9d-41 started");
    assert_eq!(entries[2], "1773478891000 node-1 7c9d-41 effect kind=completion");
    assert_eq!(entries[3], "1773478891000 node-1 7c9d-41 completed");
    assert!(entries[5].starts_with("1773478950000 node-1 7c9d-42 exited detail=WorkerLost"));
    assert_eq!((entries.len(), tally.unreadable_lines, tally.other_lines), (6, 0, 2));
}

#[test]
fn sidekiq_lines_are_understood() {
    let log = "2026-03-14T09:00:00.000Z pid=4321 tid=gx3 class=ExportJob jid=5d8bf898 INFO: start\n\
2026-03-14T09:01:00.000Z pid=4321 tid=gx3 class=ExportJob jid=5d8bf898 elapsed=60.0 INFO: done\n\
2026-03-14T09:01:01.000Z pid=4321 tid=gx4 class=ExportJob jid=77aa INFO: start\n\
2026-03-14T09:01:02.000Z pid=4321 tid=gx4 class=ExportJob jid=77aa elapsed=1.0 INFO: fail\n\
2026-03-14T09:01:03.000Z pid=4321 tid=gx4 WARN: out of memory soon\n";
    let (entries, tally) = read(&profiled("sidekiq"), log);
    assert_eq!(
        entries,
        [
            "1773478800000 pid=4321 tid=gx3 5d8bf898 acquired",
            "1773478860000 pid=4321 tid=gx3 5d8bf898 completed",
            "1773478861000 pid=4321 tid=gx4 77aa acquired",
            "1773478862000 pid=4321 tid=gx4 77aa released",
        ]
    );
    assert_eq!((tally.unreadable_lines, tally.other_lines), (0, 1));
}

#[test]
fn redisson_applications_lines_are_understood() {
    let log = "2026-03-14 09:00:00.000 [export-3] INFO  m.ExportService - Lock acquired: export:42\n\
2026-03-14 09:00:40.000 [redisson-timer-4-1] ERROR o.r.r.RenewalTask - Can't update lock export:42 expiration\n\
2026-03-14 09:00:50.000 [export-7] INFO  m.ExportService - Lock acquired: export:42\n\
2026-03-14 09:00:55.000 [export-3] INFO  m.ExportService - uploaded 42.mp4 under export:42\n\
2026-03-14 09:00:56.000 [export-3] WARN  m.ExportService - unlock of export:42 failed: attempt to unlock lock, not locked by current thread by node id: c03a thread-id: 55\n\
2026-03-14 09:00:57.000 [export-9] INFO  m.ExportService - could not acquire lock export:42\n";
    let (entries, tally) = read(&profiled("redisson"), log);
    assert_eq!(entries[0], "1773478800000 export-3 export:42 acquired ttl=30000");
    assert!(entries[1].contains("export:42 renew_failed"), "{entries:#?}");
    assert_eq!(entries[3], "1773478855000 export-3 export:42 effect kind=uploaded");
    assert!(entries.len() == 6, "{entries:#?}");
    assert!(entries[4].contains("export:42 released detail=not locked by current thread"));
    assert_eq!(entries[5], "1773478857000 export-9 export:42 denied");
    assert_eq!((entries.len(), tally.unreadable_lines), (6, 0));
}

#[test]
fn kubernetes_leader_election_is_understood_in_both_wordings() {
    let mut translation = profiled("kubernetes");
    translation.set_year(2026);
    let log = "I0314 09:00:00.000000       1 leaderelection.go:248] attempting to acquire leader lease media/exporter...\n\
I0314 09:00:02.000000       1 leaderelection.go:258] successfully acquired lease media/exporter\n\
I0314 09:00:02.100000       1 main.go:57] leading\n\
E0314 09:10:00.000000       1 leaderelection.go:332] error retrieving resource lock media/exporter: context deadline exceeded\n\
I0314 09:10:10.000000       1 leaderelection.go:283] failed to renew lease media/exporter: timed out waiting for the condition\n\
F0314 09:10:10.100000       1 main.go:80] leader election lost\n\
I0314 09:20:00.000000       1 leaderelection.go:257] \"Attempting to acquire leader lease\" lock=\"media/exporter\"\n\
I0314 09:20:16.000000       1 leaderelection.go:271] \"Successfully acquired lease\" lock=\"media/exporter\"\n";
    let (entries, tally) = read(&translation, log);
    assert_eq!(
        entries,
        [
            "1773478800000 node-1 media/exporter requested",
            "1773478802000 node-1 media/exporter acquired ttl=15000",
            "1773479400000 node-1 media/exporter renew_failed detail=context deadline exceeded",
            "1773479410000 node-1 media/exporter renew_failed detail=timed out waiting for the condition",
            "1773479410100 node-1  exited",
            "1773480000000 node-1 media/exporter requested",
            "1773480016000 node-1 media/exporter acquired ttl=15000",
        ]
    );
    assert_eq!((tally.unreadable_lines, tally.other_lines), (0, 1));
}
