//! The way to the database, secured: a real handshake with a certificate of our own.

use std::{net::TcpListener, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use crate::postgres::{Address, OpenError, PostgresOptions, PostgresStore};

use super::{cluster::Cluster, faults::Boottime};

/// A certificate for a name, signed by itself, and its key.
fn certificate(cluster: &Cluster, name: &str) -> (PathBuf, PathBuf) {
    let file = |kind: &str| cluster.home().join(format!("{name}.{kind}"));
    let (certificate, key) = (file("crt"), file("key"));
    let mut openssl = cluster.plain("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-days", "2", "-subj", &format!("/CN={name}")]);
    openssl.args(["-addext", &format!("subjectAltName=DNS:{name}")]);
    // One that may sign others is not taken for a server's own.
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    let output = openssl.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    cluster.give(&key);
    (certificate, key)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

async fn open(url: &str) -> Result<PostgresStore, OpenError> {
    PostgresStore::open(PostgresOptions::new(Address::parse(url)?, Arc::new(Boottime))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_trusted_by_its_certificate_and_its_name() {
    let mut cluster = Cluster::start();
    let database = cluster.database().await;
    let (trusted, key) = certificate(&cluster, "localhost");
    let (stranger, _) = certificate(&cluster, "stranger");
    let port = free_port();
    tokio::task::block_in_place(|| {
        cluster.stop_at_once();
        cluster.set(&format!("port={port}"));
        cluster.set("listen_addresses=127.0.0.1");
        cluster.set("ssl=on");
        cluster.set(&format!("ssl_cert_file={}", trusted.display()));
        cluster.set(&format!("ssl_key_file={}", key.display()));
        cluster.go_on();
    });
    let at = |host: &str, rest: &str| {
        format!("postgres://postgres@{host}:{port}/{database}?connect_timeout=5&{rest}")
    };
    let roots = |file: &PathBuf| format!("sslmode=verify-full&sslrootcert={}", file.display());
    // The certificate that it shows, for the name that we asked for.
    drop(open(&at("localhost", &roots(&trusted))).await.unwrap());
    let refused = |error: OpenError| {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    };
    // Signed by somebody else than whom we trust.
    let error = refused(open(&at("localhost", &roots(&stranger))).await.unwrap_err());
    assert!(error.contains("UnknownIssuer"), "{error}");
    // Trusted, but of another name.
    let error = refused(open(&at("127.0.0.1", &roots(&trusted))).await.unwrap_err());
    assert!(error.contains("not valid for name"), "{error}");
    // With no certificates to trust, `require` encrypts, whoever is there.
    drop(open(&at("127.0.0.1", "sslmode=require")).await.unwrap());
    let address = Address::parse(&at("127.0.0.1", "sslmode=require")).unwrap();
    let (client, connection) = address.config.connect(address.tls()).await.unwrap();
    let driver = tokio::spawn(connection);
    let sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert!(client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0));
    drop(client);
    driver.await.unwrap().unwrap();
}
