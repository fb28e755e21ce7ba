//! Databases that are not ours, or that have no store: left as they are.

use std::sync::Arc;

use palisade_core::Number;

use crate::postgres::{OpenError, PostgresOptions, PostgresStore, raise_tokens};

use super::{cluster::Cluster, faults::Boottime};

fn options(cluster: &Cluster, database: &str) -> PostgresOptions {
    PostgresOptions::new(cluster.address(database), Arc::new(Boottime))
}

/// Every relation of the database, by name.
async fn relations(cluster: &Cluster, database: &str) -> Vec<String> {
    let address = cluster.address(database);
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    let all = "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'S') \
               AND relnamespace = 'public'::regnamespace ORDER BY 1";
    let rows = client.query(all, &[]).await.unwrap();
    let names = rows.iter().map(|row| row.get(0)).collect();
    drop(client);
    let _ = driver.await;
    names
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_applications_database_is_refused_and_left_as_it_is() {
    let cluster = Cluster::start();
    let history = "CREATE TABLE refinery_schema_history (version int4 PRIMARY KEY, \
                   name varchar(255), applied_on varchar(255), checksum varchar(255));";
    let strangers = [
        ("other_tables", "CREATE TABLE jobs (id int)".to_owned()),
        ("other_history", "CREATE TABLE refinery_schema_history (at int)".to_owned()),
        (
            "other_migrations",
            format!("{history} INSERT INTO refinery_schema_history VALUES (1, 'users', '', '7')"),
        ),
    ];
    for (database, sql) in strangers {
        cluster.sql("postgres", &format!("CREATE DATABASE {database}")).await;
        cluster.sql(database, &sql).await;
        let before = relations(&cluster, database).await;
        let opened = PostgresStore::open(options(&cluster, database)).await;
        let raised = raise_tokens(&options(&cluster, database), 1).await;
        for refused in [opened.map(drop).unwrap_err(), raised.map(drop).unwrap_err()] {
            assert!(matches!(refused, OpenError::Foreign { .. }), "{database}: {refused:?}");
            assert!(refused.to_string().contains("one of its own"), "{refused}");
        }
        assert_eq!(relations(&cluster, database).await, before, "{database}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raise_makes_no_store_and_leaves_half_of_the_numbers() {
    let cluster = Cluster::start();
    cluster.sql("postgres", "CREATE DATABASE nothing").await;
    let refused = raise_tokens(&options(&cluster, "nothing"), 1).await.unwrap_err();
    assert!(matches!(refused, OpenError::NoStore { .. }) && !refused.is_away(), "{refused:?}");
    assert_eq!(relations(&cluster, "nothing").await, Vec::<String>::new());
    // A limit of the database's own does not hold up a migration, nor does a start broken off.
    cluster.sql("postgres", "ALTER DATABASE nothing SET statement_timeout = '1ms'").await;
    drop(PostgresStore::open(options(&cluster, "nothing")).await.unwrap());
    for by in [0, Number::MAX.get() / 2 + 1, Number::MAX.get(), u64::MAX] {
        let refused = raise_tokens(&options(&cluster, "nothing"), by).await.unwrap_err();
        assert!(matches!(refused, OpenError::Invalid(_)), "{by}: {refused:?}");
    }
    let standing = raise_tokens(&options(&cluster, "nothing"), 1_000).await.unwrap();
    assert_eq!(raise_tokens(&options(&cluster, "nothing"), 1).await.unwrap(), standing + 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_does_not_exist_is_not_away() {
    let cluster = Cluster::start();
    let refused = PostgresStore::open(options(&cluster, "nowhere")).await.map(drop).unwrap_err();
    assert!(matches!(refused, OpenError::Database { .. }) && !refused.is_away(), "{refused:?}");
}
