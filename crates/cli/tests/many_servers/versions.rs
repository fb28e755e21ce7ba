//! A new version is rolled out under load: its migration comes first, then one server after another
//! is replaced, and those of the version before serve on meanwhile.

use std::time::Duration;

use crate::{all_is_done_once, audits, common::engines::psql, crowd::Crowd, three_servers};

const JOBS: u64 = 6_000;

/// What a release may do to the schema: servers that do not know of it go on.
const NEXT: &str = "BEGIN; \
    ALTER TABLE jobs ADD COLUMN of_the_next text NOT NULL DEFAULT 'as before'; \
    ALTER TABLE leases ADD COLUMN of_the_next bigint; \
    ALTER TABLE lock_grants ADD COLUMN of_the_next bigint; \
    CREATE INDEX of_the_next ON jobs (of_the_next) WHERE state = 'queued'; \
    INSERT INTO refinery_schema_history (version, name, applied_on, checksum) \
        SELECT max(version) + 1, 'next', max(applied_on), '0' FROM refinery_schema_history; \
    COMMIT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_one_step_ahead_is_served_on_and_servers_are_replaced_under_load() {
    let Some((mut stage, flags)) = three_servers(&[]).await else { return };
    let crowd = Crowd::gather(&stage, JOBS).await;
    let working = crowd.work(8);
    let come_to = async |count: u64| {
        while crowd.completed() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    come_to(JOBS / 10).await;
    psql(&flags[1], NEXT);
    come_to(JOBS / 5).await;
    for index in 0..stage.cluster.servers() {
        let server = stage.cluster.server_at(index);
        server.terminate();
        let ended = server.ended().await.expect("it ends");
        assert_eq!(ended.0.code(), Some(0), "it finishes what it was asked");
        stage.cluster.start_server_at(index).await.expect("it serves one step ahead");
    }
    assert!(!crowd.is_over(), "all that was under load");
    for client in working {
        client.await.expect("no panic");
    }
    all_is_done_once(&stage, &crowd, JOBS).await;
    audits::in_order(flags.clone(), JOBS).await;
    // Two steps are more than was promised.
    psql(&flags[1], &NEXT.replace("of_the_next", "of_the_one_after"));
    stage.cluster.kill_server_at(0).await.expect("it ends");
    let refused = stage.cluster.start_server_at(0).await.expect_err("it does not know that schema");
    assert!(format!("{refused:?}").contains("one version behind, no more"), "{refused:?}");
}
