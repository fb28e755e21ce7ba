//! Every example of `docs/fencing-databases.md` is run, in its order, one session a dialect.

use std::{collections::BTreeMap, ffi::OsString, io::Write, path::Path, process::Stdio};

use crate::{
    database::{Database, fence},
    mariadb::Mariadb,
    postgres::Postgres,
    printed::PROGRAM,
    server::command,
    session::Session,
    sqlite::Sqlite,
};

const DOCUMENT: &str = include_str!("../../../../docs/fencing-databases.md");

/// A fenced block: ```` ```LANGUAGE DIALECT [refused=CODE] ````.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    language: String,
    dialect: String,
    refused: Option<String>,
    text: String,
}

/// The blocks of a document that are to be run.
fn examples(document: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let body: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let words: Vec<_> = info.split(' ').collect();
        let (language, dialect, refused) = match words[..] {
            ["text"] => continue,
            [language @ ("sql" | "sh"), dialect] => (language, dialect, None),
            ["sql", dialect, refused] => {
                let code = refused.strip_prefix("refused=").expect("refused=CODE");
                ("sql", dialect, Some(code.to_owned()))
            }
            _ => panic!("a block that nobody runs: {line}"),
        };
        found.push(Example {
            language: language.to_owned(),
            dialect: dialect.to_owned(),
            refused,
            text: body.join("\n"),
        });
    }
    found
}

/// Runs the examples of a dialect; shell scripts in a folder, with what leads the clients to the
/// database in their environment.
fn run(database: &dyn Database, dialect: &str, folder: &Path, environment: &[(&str, OsString)]) {
    let examples = examples(DOCUMENT);
    let mut session = None;
    let mut count = BTreeMap::new();
    for example in examples.iter().filter(|example| example.dialect == dialect) {
        *count.entry(example.language.as_str()).or_insert(0) += 1;
        if example.language == "sh" {
            run_script(&example.text, folder, environment);
            continue;
        }
        let session = session.get_or_insert_with(|| database.session(""));
        match &example.refused {
            None => drop(session.rows(&example.text)),
            Some(code) => drop(session.refused(code, &example.text)),
        }
    }
    assert_eq!(count.get("sh"), Some(&2), "{count:?}");
    assert!(count["sql"] >= 10, "{count:?}");
    let mut session: Session = database.session("");
    let url = session.rows("SELECT url FROM exports WHERE id = 42;");
    assert_eq!(url, ["https://cdn.example/34.mp4"]);
    assert_eq!(fence(&mut session, "export-42"), 34);
    assert_eq!(fence(&mut session, "published/42"), 51);
    assert_eq!(fence(&mut session, "report"), 61, "the script's");
}

fn run_script(script: &str, folder: &Path, environment: &[(&str, OsString)]) {
    let program = Path::new(PROGRAM).parent().expect("a program is in a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(program.into()).chain(std::env::split_paths(&path));
    let mut shell = command("sh");
    shell.args(["-e", "-s"]).current_dir(folder).env("HOME", folder);
    shell.env("PATH", std::env::join_paths(folders).expect("folders"));
    shell.env("PALISADE_TOKEN", "61").env("PALISADE_LEASE", "77aa01fe");
    shell.envs(environment.iter().map(|(name, value)| (name, value)));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("a shell");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(script.as_bytes()).expect("the shell reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the shell ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}");
}

#[test]
fn the_examples_for_postgres_are_true() {
    let postgres = Postgres::bare();
    let folder = tempfile::tempdir().expect("a folder");
    let host = postgres.home.path().as_os_str().to_owned();
    let environment = [("PGHOST", host), ("PGUSER", "postgres".into())];
    run(&postgres, "postgres", folder.path(), &environment);
}

#[test]
fn the_examples_for_sqlite_are_true() {
    let sqlite = Sqlite::bare();
    run(&sqlite, "sqlite", sqlite.dir.path(), &[]);
}

#[test]
fn the_examples_for_mysql_are_true() {
    let mariadb = Mariadb::bare();
    let folder = tempfile::tempdir().expect("a folder");
    let socket = mariadb.home.path().join("socket");
    let options = format!("[client]\nuser=root\nsocket={}\n", socket.display());
    std::fs::write(folder.path().join(".my.cnf"), options).expect("a file");
    run(&mariadb, "mysql", folder.path(), &[]);
}

#[test]
fn examples_are_found_with_what_is_expected_of_them() {
    let found =
        examples("# A\n```sql mysql refused=PF001\nCALL a;\nCALL b;\n```\n```text\nno\n```\n");
    let expected = Example {
        language: "sql".into(),
        dialect: "mysql".into(),
        refused: Some("PF001".into()),
        text: "CALL a;\nCALL b;".into(),
    };
    assert_eq!(found, [expected]);
}
