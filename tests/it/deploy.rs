//! What is in `deploy/` names what there is: tables in the roles, keys in the configurations. The rest is tried by hand, by
//! `scripts/deploy-check`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::support::cluster::migrated_database;
use super::support::replica::BINARY;
use super::support::{Launch, Postgres, scratch};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[tokio::test]
async fn every_table_has_its_line_in_the_roles() {
    let database = migrated_database(Postgres::shared()).await;
    let query = "select c.relname::text from pg_class c \
                 where c.relnamespace = 'bursar'::regnamespace and c.relkind in ('r', 'p')";
    let rows: Vec<(String,)> = database.rows(query).await;
    let tables: BTreeSet<String> = rows.into_iter().map(|(table,)| table).collect();
    let roles = read("deploy/postgres/roles.sql");
    let listed: BTreeSet<String> = roles
        .lines()
        .filter_map(|line| line.trim().trim_start_matches("values ").strip_prefix("('"))
        .filter_map(|line| line.split_once("', '").map(|(table, _)| table.to_owned()))
        .collect();
    assert!(tables.len() > 15, "the schema is read: {tables:?}");
    assert_eq!(tables, listed, "the tables of the schema, and those of deploy/postgres/roles.sql");
}

/// A folder with `production.toml` and the schedule that it names beside it.
fn set_up(configuration: &str, schedule: &str) -> PathBuf {
    let folder = scratch::folder("deploy");
    fs::write(folder.join("production.toml"), configuration).expect("the folder is new");
    fs::write(folder.join("schedule.toml"), schedule).expect("the folder is new");
    folder
}

#[test]
fn the_trial_of_the_compose_file_has_a_valid_configuration() {
    let folder = set_up(&read("config/production.toml"), &read("deploy/compose/schedule.toml"));
    let check = Launch::new("bursar-check", BINARY).arg("--config").arg(folder.join("production.toml"));
    check.arg("check").arg("--offline").folder(&folder).finish().ok();
}

#[test]
fn the_image_is_built_from_what_is_there_and_fetches_no_syntax() {
    let file = read("Dockerfile");
    assert!(!file.lines().any(|line| line.starts_with("# syntax=")));
    for line in file.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from=")) {
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        for source in &words[..words.len() - 1] {
            assert!(repository().join(source).exists(), "{line}: there is no {source}");
            let ignored = read(".dockerignore");
            assert!(ignored.lines().any(|kept| kept == format!("!{source}")), ".dockerignore keeps {source} out");
        }
    }
}
