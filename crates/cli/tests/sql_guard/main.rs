//! The fence for a customer's own database, on real databases: `PostgreSQL`, `SQLite`, `MariaDB`.
//! Sessions are the databases' own clients; `scripts/setup test` installs what is missing.

mod crowd;
mod database;
mod document;
mod interleaving;
mod mariadb;
mod on_mariadb;
mod on_postgres;
mod on_sqlite;
mod orders;
mod paused;
mod postgres;
mod printed;
mod refusals;
mod server;
mod session;
mod sqlite;
mod story;
