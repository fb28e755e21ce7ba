//! What the database makes of the statements: each by an index, however many rows there are.

use tokio_postgres::{Client, NoTls};

use crate::postgres::{
    engine::SETTINGS,
    records::{job, lease, outbox},
};

use super::cluster::Cluster;

const DEFINITION: &str = "decode(repeat('ab', 32), 'hex')";

async fn connect(cluster: &Cluster, database: &str) -> Client {
    let (client, connection) = cluster.address(database).config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(SETTINGS).await.unwrap();
    client
}

/// Waiting jobs with these ids, of three priorities.
async fn fill(client: &Client, from: u64, to: u64) {
    let sql = format!(
        "INSERT INTO jobs (id, tenant, job_key, recipe, definition, priority, run_at_ms, state, \
         live, fence, version, record) SELECT id, 'tenant', sha256(id::text::bytea), 'recipe', \
         {DEFINITION}, id % 3, id, 'queued', true, 0, 1, repeat('x', 500) \
         FROM generate_series({from}, {to}) AS id; ANALYZE jobs"
    );
    client.batch_execute(&sql).await.unwrap();
}

/// The plan of a statement, made without knowing its values, and what it touched.
async fn plan(client: &Client, sql: &str, values: &str) -> String {
    client.batch_execute(&format!("DEALLOCATE ALL; PREPARE one AS {sql}")).await.unwrap();
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE one ({values})");
    let rows = client.simple_query(&explain).await.unwrap();
    let lines = rows.iter().filter_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Pages that the whole of a plan touched.
fn pages(plan: &str) -> u64 {
    let line = plan.lines().find_map(|line| line.trim().strip_prefix("Buffers: shared "));
    let numbers = line.unwrap().split([' ', '=']).filter_map(|word| word.parse::<u64>().ok());
    numbers.sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_touches_as_much_with_twenty_thousand_waiting_as_with_a_thousand() {
    let cluster = Cluster::start();
    let client = connect(&cluster, &cluster.database().await).await;
    let due = format!("'recipe', {DEFINITION}, 1000000, 10");
    let next = format!("'recipe', {DEFINITION}, ARRAY[3, 6]::bigint[], 1000000");
    let mut touched = Vec::new();
    let mut there = 0;
    for waiting in [1_000, 20_000] {
        fill(&client, there + 1, waiting).await;
        there = waiting;
        // Once before, so that what is asked for the first time does not count.
        plan(&client, job::DUE, &due).await;
        let due = plan(&client, job::DUE, &due).await;
        let next = plan(&client, job::NEXT_DUE, &next).await;
        for plan in [&due, &next] {
            assert!(plan.contains("jobs_due"), "{plan}");
            assert!(!plan.contains("Seq Scan") && !plan.contains("Sort"), "{plan}");
        }
        touched.push((pages(&due), pages(&next)));
    }
    let [few, many] = touched[..] else { panic!("{touched:?}") };
    // A level more of the index at each probe, at the most.
    assert!(many.0 <= few.0 + 10 && many.1 <= few.1 + 10, "{touched:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_looked_for_by_time_is_found_by_an_index() {
    let cluster = Cluster::start();
    let client = connect(&cluster, &cluster.database().await).await;
    let of = format!("'recipe', {DEFINITION}, 1000000, 10");
    let looks = [
        (lease::LAPSED, of.as_str(), "leases_by_end"),
        (lease::BACKUPS, of.as_str(), "leases_by_backup"),
        (lease::SPENT, "1000000", "leases_last_chance"),
        (outbox::DUE, "1000000, 10", "outbox_due"),
        (outbox::NEXT, "1000000, 10", "outbox_next"),
    ];
    for (sql, values, index) in looks {
        let plan = plan(&client, sql, values).await;
        let reads_all = plan.contains("Seq Scan") || plan.contains("Join Filter");
        assert!(plan.contains(index) && !reads_all, "{index}: {plan}");
    }
}
