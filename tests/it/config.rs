//! Configuration and schedule from the outside: the examples load, and whatever is wrong is named with its place.

mod bad_files;
mod bad_schedules;

use std::path::{Path, PathBuf};
use std::time::Duration;

use bursar::config::{
    Config, ConfigErrors, Coordinator, DatabasePlace, Elections, EtcdConfig, LogFormat, PostgresConfig, ScheduleFile,
    Secret, SecretSource, TlsMode,
};
use bursar::domain::job::{CutoffRule, FoldRule, GapRule, HandlerDefinition, Misfire};
use bursar::domain::money::Currency;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name)
}

fn load(path: &Path, env: &[(&str, &str)]) -> Result<Config, String> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(Some(path), env).map_err(|errors| errors.to_string())
}

/// Reads a text as `c.toml`, with no file to read secrets from.
fn read(text: &str, env: &[(&str, &str)]) -> Result<Config, String> {
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let files = |path: &Path| match path.to_str() {
        Some("secret") => Ok(b"hunter2\n".to_vec()),
        Some("crlf") => Ok(b"hunter2\r\n".to_vec()),
        Some("empty") => Ok(b"\n".to_vec()),
        Some("binary") => Ok(vec![0xff, 0xfe]),
        Some("pem") => Ok(b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n".to_vec()),
        Some(_) | None => Err("No such file or directory".to_owned()),
    };
    Config::from_text(Some(Path::new("c.toml")), text, env, &files).map_err(|errors| errors.to_string())
}

const GOOD: &str = r#"schedule = "schedule.toml"
[coordinator]
kind = "etcd"
endpoints = ["http://127.0.0.1:2379"]
prefix = "/bursar/test"
[database]
url = "postgres://bursar@db/payments"
"#;

#[test]
fn the_example_of_production_loads() {
    let config = load(&example("production.toml"), &[]).expect("the example");
    assert_eq!(config.schedule, example("schedule.toml"));
    assert_eq!(config.replica.elections, Elections::All);
    assert_eq!(config.coordinator.lease_ttl, Duration::from_secs(10));
    let etcd = etcd(&config);
    assert_eq!((etcd.endpoints.len(), etcd.prefix.as_str()), (3, "/bursar/production"));
    assert_eq!((config.database.max_connections, postgres(&config).tls_mode), (16, TlsMode::Prefer));
    assert_eq!(config.http.listen.to_string(), "127.0.0.1:9464");
    assert_eq!(config.log.format, LogFormat::Json);
    let schedule = ScheduleFile::load(&config.schedule).expect("the example");
    config.check_schedule(&schedule).expect("connections for one election");
}

#[test]
fn the_example_of_a_schedule_loads_with_every_default() {
    let schedule = ScheduleFile::load(&example("schedule.toml")).expect("the example");
    let [daily, hourly, own @ ..] = schedule.jobs.as_slice() else { panic!("two jobs and more") };
    let handlers: Vec<&str> = own.iter().map(|job| job.handler.as_str()).collect();
    assert_eq!(handlers, ["sql", "http", "command"]);
    assert_eq!((daily.name.as_str(), daily.timing.timezone.name()), ("daily-payouts", "Europe/London"));
    assert_eq!((daily.timing.gap, daily.timing.fold), (GapRule::Shift, FoldRule::First));
    assert_eq!(daily.timing.cutoff, CutoffRule::Before(Duration::from_mins(30)));
    let HandlerDefinition::Ledger(ledger) = &daily.handler else { panic!("a ledger") };
    let eur = Currency::new("EUR").expect("a currency");
    assert_eq!((ledger.minimum_payout[&eur], ledger.maximum_payout[&eur]), (100, 25_000_000));
    assert_eq!((hourly.timing.gap, hourly.timing.fold), (GapRule::Skip, FoldRule::Both));
    assert_eq!((hourly.timing.timezone.name(), hourly.timing.misfire), ("UTC", Misfire::RunLatest));
    assert_eq!((hourly.election.as_str(), hourly.batch.size, hourly.retry.max_attempts), ("settlement", 2000, 8));
    assert_eq!(hourly.timing.cutoff, CutoffRule::Before(Duration::ZERO));
    assert_eq!(schedule.fingerprint().len(), 64);
    assert_eq!(schedule.elections().len(), 1);
}

#[test]
fn a_value_that_a_variable_overrides_is_still_held_to_its_type() {
    let text =
        GOOD.replace("[database]", "[database]\nmax_connections = 5.7\n[http]\nlisten = 1\n[log]\nx = 1\n[database.y]");
    let _ = read(&text, &[]).expect_err("wrong by itself");
    let text = GOOD.replace("[database]", "[database]\nmax_connections = 5.7");
    let found = read(&text, &[("BURSAR__DATABASE__MAX_CONNECTIONS", "7")]).expect_err("wrong in the file");
    assert_eq!(found, "c.toml:7:19: database.max_connections: found 5.7, expected a whole number from 5 to 1000");
    let text = GOOD.replace("[coordinator]", "http = 5\n[coordinator]");
    let found = read(&text, &[("BURSAR__HTTP__LISTEN", "127.0.0.1:1")]).expect_err("wrong in the file");
    assert_eq!(found, "c.toml:2:8: http: found a whole number, expected a table");
}

#[test]
fn variables_go_before_the_file_and_the_file_before_the_defaults() {
    let text = GOOD.replace("[database]", "[database]\nmax_connections = 20");
    let config = read(&text, &[]).expect("good");
    assert_eq!((config.database.max_connections, config.http.listen.port()), (20, 9464));
    let env = [
        ("BURSAR__DATABASE__MAX_CONNECTIONS", "21"),
        ("BURSAR__HTTP__LISTEN", "[::1]:0"),
        ("BURSAR__COORDINATOR__ENDPOINTS", "http://a:1,http://b:2"),
        ("BURSAR__COORDINATOR__AUTH__USER", "u"),
        ("BURSAR__COORDINATOR__AUTH__PASSWORD_FILE", "crlf"),
        ("BURSAR__SCHEDULE", "other.toml"),
        ("BURSAR__REPLICA__ELECTIONS", "settlement,reports"),
        ("BURSAR_TERM", "not ours"),
        ("PATH", "not ours"),
    ];
    let config = read(&text, &env).expect("good");
    assert_eq!((config.database.max_connections, config.http.listen.port()), (21, 0));
    let etcd = etcd(&config);
    assert_eq!(etcd.endpoints, ["http://a:1", "http://b:2"]);
    assert_eq!(etcd.auth.as_ref().map(|auth| auth.password.known()), Some(Secret::new("hunter2")));
    assert_eq!(config.schedule, Path::new("other.toml"));
    assert!(matches!(&config.replica.elections, Elections::Named(names) if names.len() == 2));
    let all = [
        ("BURSAR__SCHEDULE", "s.toml"),
        ("BURSAR__COORDINATOR__KIND", "etcd"),
        ("BURSAR__COORDINATOR__ENDPOINTS", "http://a:1"),
        ("BURSAR__COORDINATOR__PREFIX", "/x"),
        ("BURSAR__DATABASE__URL", "postgres:///p?host=/tmp&port=5433"),
    ];
    let by_variables = variables(&all).expect("all by variables");
    assert_eq!(
        (by_variables.log.format, by_variables.coordinator.lease_ttl),
        (LogFormat::Json, Duration::from_secs(10))
    );
    let some = variables(&all[1..]).expect_err("no schedule").to_string();
    assert!(some.contains("configuration: schedule: missing"), "{some}");
}

/// Reads variables alone: no file.
fn variables(all: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Config::load(None, all.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())))
}

fn etcd(config: &Config) -> &EtcdConfig {
    match &config.coordinator.kind {
        Coordinator::Etcd(etcd) => etcd,
        Coordinator::Database => panic!("etcd was configured"),
    }
}

fn postgres(config: &Config) -> &PostgresConfig {
    match &config.database.place {
        DatabasePlace::Postgres(postgres) => postgres,
        DatabasePlace::Sqlite(path) => panic!("PostgreSQL was configured, found {}", path.display()),
    }
}

fn file_of(config: &Config) -> &Path {
    match &config.database.place {
        DatabasePlace::Sqlite(path) => path,
        DatabasePlace::Postgres(_) => panic!("SQLite was configured"),
    }
}

#[test]
fn without_any_configuration_the_embedded_example_holds() {
    let none = variables(&[]).expect("nothing is said");
    assert!(matches!(none.coordinator.kind, Coordinator::Database));
    assert_eq!(file_of(&none), Path::new("bursar.db"));
    assert_eq!((none.schedule.as_path(), none.schedule_may_be_missing), (Path::new("schedule.toml"), true));
    let text = std::fs::read_to_string(example("embedded.toml")).expect("the example");
    let files = |_: &Path| Err("none".to_owned());
    let read = Config::from_text(Some(Path::new("embedded.toml")), &text, std::iter::empty(), &files).expect("good");
    let shown = |config: &Config| {
        let Config { replica, coordinator, database, http, log, schedule, schedule_may_be_missing, .. } = config;
        format!("{replica:?} {coordinator:?} {database:?} {http:?} {log:?} {schedule:?} {schedule_may_be_missing}")
    };
    assert_eq!(shown(&none), shown(&read));
    let moved = variables(&[("BURSAR__DATABASE__URL", "sqlite:///var/b.db"), ("BURSAR__HTTP__LISTEN", "127.0.0.1:0")]);
    assert_eq!(file_of(&moved.expect("a variable goes before it")), Path::new("/var/b.db"));
}

#[test]
fn a_sqlite_file_is_beside_the_configuration_file_and_goes_with_elections_in_the_database_only() {
    let embedded = "[coordinator]\nkind = \"database\"\n[database]\nurl = \"sqlite://data/b.db\"\n";
    let files = |_: &Path| Err("none".to_owned());
    let read = |text: &str, env: &[(&str, &str)]| {
        let env = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Config::from_text(Some(Path::new("/etc/bursar/c.toml")), text, env, &files).map_err(|errors| errors.to_string())
    };
    let config = read(embedded, &[]).expect("good");
    assert_eq!(file_of(&config), Path::new("/etc/bursar/data/b.db"));
    assert_eq!(config.schedule, Path::new("/etc/bursar/schedule.toml"));
    assert!(config.schedule_may_be_missing);
    let config = read(embedded, &[("BURSAR__DATABASE__URL", "sqlite://b.db")]).expect("good");
    assert_eq!(file_of(&config), Path::new("b.db"), "a variable's is of the working directory");
    let named = read(&format!("schedule = \"s.toml\"\n{embedded}"), &[]).expect("good");
    assert!(!named.schedule_may_be_missing, "what is named has to be there");

    let with_etcd = GOOD.replace("postgres://bursar@db/payments", "sqlite://b.db");
    let found = read(&with_etcd, &[]).expect_err("refused");
    assert!(
        found.contains("c.toml:7:7: database.url: found a SQLite file beside coordinator.kind = \"etcd\""),
        "{found}"
    );
    for (key, value) in [("password", "\"x\""), ("tls_ca", "\"pem\""), ("url_file", "\"secret\"")] {
        let found = read(&format!("{embedded}{key} = {value}\n"), &[]).expect_err("refused");
        assert!(found.contains(&format!("database.{key}: found beside a sqlite:// URL")), "{found}");
    }
    for url in ["sqlite://", "sqlite:b.db", "sqlite://b.db?mode=ro"] {
        let found = read(&embedded.replace("sqlite://data/b.db", url), &[]).expect_err("refused");
        assert!(found.contains("sqlite://PATH"), "{url}: {found}");
    }
    let postgres_too = embedded.replace("sqlite://data/b.db", "postgres://bursar@db/p");
    let config = read(&format!("schedule = \"s.toml\"\n{postgres_too}"), &[]).expect("good");
    assert!(matches!(config.coordinator.kind, Coordinator::Database));
    postgres(&config);
}

/// The lease file stands beside the store: two names of one store must not come to two leases.
#[test]
fn a_store_behind_a_symbolic_link_is_the_file_that_it_leads_to() {
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("there").join("real.db");
    std::fs::write(&real, "").expect("written");
    std::os::unix::fs::symlink("real.db", folder.path().join("second.db")).expect("linked");
    std::os::unix::fs::symlink("second.db", folder.path().join("first.db")).expect("linked");
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "[coordinator]\nkind = \"database\"\n[database]\nurl = \"sqlite://first.db\"\n")
        .expect("written");
    assert_eq!(file_of(&load(&file, &[]).expect("good")), &real);
    let named = format!("sqlite://{}", folder.path().join("second.db").display());
    assert_eq!(file_of(&load(&file, &[("BURSAR__DATABASE__URL", &named)]).expect("good")), &real);
}

#[test]
fn a_schedule_that_nobody_named_may_be_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "[coordinator]\nkind = \"database\"\n[database]\nurl = \"sqlite://b.db\"\n")
        .expect("written");
    let config = load(&file, &[]).expect("good");
    assert_eq!(config.load_schedule().expect("none yet").jobs.len(), 0);
    std::fs::copy(example("schedule.toml"), folder.path().join("schedule.toml")).expect("copied");
    assert_eq!(config.load_schedule().expect("the example").jobs.len(), 5);
    let named = load(&file, &[("BURSAR__SCHEDULE", "/nowhere/schedule.toml")]).expect("good");
    let missing = named.load_schedule().expect_err("named, so it has to be there").to_string();
    assert!(missing.contains("cannot be read"), "{missing}");
}

#[test]
fn secrets_are_read_trimmed_and_never_shown() {
    let text = GOOD.replace("[database]", "[database]\npassword_file = \"secret\"");
    let config = read(&text, &[]).expect("good");
    assert_eq!(postgres(&config).password.as_ref().map(SecretSource::known), Some(Secret::new("hunter2")));
    let text = GOOD.replace("bursar@db", "bursar:hunter2@db");
    let shown = format!("{config:?}{:?}", read(&text, &[]).expect("good"));
    assert!(!shown.contains("hunter2") && shown.contains("***"), "{shown}");
    let text = GOOD.replace("url = \"postgres://bursar@db/payments\"", "url_file = \"secret\"");
    let found = read(&text, &[]).expect_err("no URL");
    assert_eq!(
        found,
        "c.toml:7:12: database.url_file: found no postgres:// at its start, expected a URL such as \"postgres://bursar@db/payments\" or \"sqlite://bursar.db\""
    );
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let away = folder.path().join("away.toml");
    assert!(load(&away, &[]).expect_err("away").contains("away.toml: cannot be read: No such file"));
    assert!(load(folder.path(), &[]).expect_err("a folder").contains("cannot be read: it is a directory"));
    let binary = folder.path().join("binary.toml");
    std::fs::write(&binary, b"a = 1\nb = \"\xff\"\n").expect("written");
    assert!(load(&binary, &[]).expect_err("binary").contains("binary.toml: line 2 is not UTF-8"));
    let large = folder.path().join("large.toml");
    std::fs::write(&large, vec![b'#'; 8 * 1024 * 1024 + 1]).expect("written");
    assert!(load(&large, &[]).expect_err("large").contains("it has more than 8388608 bytes"));
    let marked = folder.path().join("marked.toml");
    std::fs::write(&marked, format!("\u{feff}{}", GOOD.replace('\n', "\r\n"))).expect("written");
    load(&marked, &[]).expect("a byte-order mark and CRLF are no fault");
}
