//! The main configuration file, table by table. Pure but for the files that secrets are read from, whose reading is handed in.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::database::{address, both, database, enough_connections, pem};
use super::error::Scope;
use super::layers;
use super::reader::{Checked, Context, Reported, TableReader};
use super::tree::Node;
use super::types::{
    Config, Coordinator, CoordinatorConfig, DatabasePlace, Elections, EtcdAuth, EtcdConfig, EtcdTls, HttpConfig,
    LogConfig, LogFormat, LogLevel, OperatorConfig, ReplicaConfig, TracesConfig,
};
use super::values::{Read, choice, duration, flag, parsed, quoted, text};
use crate::domain::{ElectionName, ReplicaId};

/// Bounds of `lease_ttl`.
const LEASE_TTL: RangeInclusive<Duration> = Duration::from_secs(5)..=Duration::from_mins(5);
/// Bounds of `teardown_budget`.
const TEARDOWN_BUDGET: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);
/// Bounds of `drain`.
const DRAIN: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_mins(10);
/// Bounds of `resign_without_store`.
const RESIGN_WITHOUT_STORE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(1);
/// The schedule file of an embedded replica that names none.
const SCHEDULE_FILE: &str = "schedule.toml";
/// The most endpoints.
const MOST_ENDPOINTS: usize = 16;
/// The most elections of a replica.
pub(super) const MOST_ELECTIONS: usize = 16;
/// The longest key prefix, in bytes.
const MOST_PREFIX: usize = 128;

/// Checks a laid tree. An error means that findings were recorded.
pub(super) fn config(context: &Context<'_>, root: &Node) -> Checked<Config> {
    let mut table = TableReader::new(context, String::new(), root)?;
    let schedule = table.optional("schedule", |node| context.path(node));
    let replica = table.table("replica").and_then(replica);
    let coordinator = table.table("coordinator").and_then(coordinator);
    let (mut connections_place, mut url_place) = (table.place().clone(), table.place().clone());
    let database = table.table("database").and_then(|inner| {
        for (key, node) in inner.keys() {
            match key {
                "max_connections" => connections_place = node.place.clone(),
                "url" => url_place = node.place.clone(),
                _ => {}
            }
        }
        database(inner)
    });
    let http = table.table("http").and_then(http);
    let log = table.table("log").and_then(log);
    let operator = table.table("operator").and_then(|inner| {
        operator(inner, matches!(&database, Ok(database) if matches!(database.place, DatabasePlace::Sqlite(_))))
    });
    let traces = table.table("traces").and_then(traces);
    if let (Ok(replica), Ok(database)) = (&replica, &database) {
        let elections = match &replica.elections {
            Elections::All => 1,
            Elections::Named(named) => named.len(),
        };
        if let Err(problem) = enough_connections(database.max_connections, elections) {
            context.push(&connections_place, "database.max_connections", problem, Scope::Whole);
        }
    }
    let embedded = match &database {
        Ok(database) => matches!(database.place, DatabasePlace::Sqlite(_)),
        // Another of its keys is wrong: what is expected beside a file is not asked for twice.
        Err(Reported) => layers::names_a_file(root),
    };
    if embedded && matches!(&coordinator, Ok(coordinator) if matches!(coordinator.kind, Coordinator::Etcd(_))) {
        let problem = "found a SQLite file beside coordinator.kind = \"etcd\", whose replicas may be on several hosts; \
                       expected coordinator.kind = \"database\", or a postgres:// URL";
        context.push(&url_place, "database.url", problem.to_owned(), Scope::Whole);
    }
    let schedule_may_be_missing = embedded && schedule == Ok(None);
    let schedule = schedule.and_then(|named| match named {
        Some(named) => Ok(named),
        None if embedded => Ok(context.beside(Path::new(SCHEDULE_FILE))),
        None => Err(table.refuse("schedule", "missing; expected the path of the schedule file", Scope::Whole)),
    });
    table.finish();
    Ok(Config {
        origin: String::new(),
        schedule_may_be_missing,
        replica: replica?,
        coordinator: coordinator?,
        database: database?,
        http: http?,
        log: log?,
        operator: operator?,
        traces: traces?,
        schedule: schedule?,
        connections_place,
    })
}

fn operator(mut table: TableReader<'_>, on_sqlite: bool) -> Checked<OperatorConfig> {
    let four_eyes = table.optional("four_eyes", |node| match flag(node)? {
        true if on_sqlite => {
            Err("found true beside a SQLite file: the second pair of eyes is another database role, and SQLite has \
                                  none; expected false, or a postgres:// URL in database.url"
                .to_owned())
        }
        four_eyes => Ok(four_eyes),
    });
    table.finish();
    Ok(OperatorConfig { four_eyes: four_eyes? })
}

fn replica(mut table: TableReader<'_>) -> Checked<ReplicaConfig> {
    let id = table.optional("id", |node| parsed(node, |id| ReplicaId::new(id)));
    let names = table.list("elections", MOST_ELECTIONS, |node| {
        let name = text(node)?;
        if name == "*" { Ok(None) } else { ElectionName::new(name).map(Some).map_err(|error| error.to_string()) }
    });
    let elections = names.and_then(|names| elections(&table, names.unwrap_or_default()));
    let address = table.optional("address", address);
    table.finish();
    Ok(ReplicaConfig { id: id?, elections: elections?, address: address? })
}

fn elections(table: &TableReader<'_>, names: Vec<Option<ElectionName>>) -> Checked<Elections> {
    let count = names.len();
    let distinct: BTreeSet<ElectionName> = names.into_iter().flatten().collect();
    let problem = if count == 0 {
        "found an empty list, expected [\"*\"] or names of elections"
    } else if distinct.is_empty() && count == 1 {
        return Ok(Elections::All);
    } else if distinct.len() == count {
        return Ok(Elections::Named(distinct));
    } else {
        "found \"*\" beside other names or a name twice, expected [\"*\"] or names, each once"
    };
    Err(table.refuse("elections", problem, Scope::Key))
}

fn coordinator(mut table: TableReader<'_>) -> Checked<CoordinatorConfig> {
    let in_etcd =
        table.required("kind", "\"etcd\" or \"database\"", |node| choice(node, &[("etcd", true), ("database", false)]));
    let kind = match in_etcd {
        Ok(false) => no_etcd(&mut table).map(|()| Coordinator::Database),
        Ok(true) => etcd(&mut table).map(Coordinator::Etcd),
        // Its keys are held to what they are all the same.
        Err(reported) => etcd(&mut table).and(Err(reported)),
    };
    let lease_ttl = table.required("lease_ttl", "a duration", |node| {
        let ttl = duration(node, &LEASE_TTL)?;
        let whole = ttl.subsec_nanos() == 0;
        if whole { Ok(ttl) } else { Err(format!("found {}, expected whole seconds", super::values::found(node))) }
    });
    let teardown_budget = table.required("teardown_budget", "a duration", |node| duration(node, &TEARDOWN_BUDGET));
    if let (Ok(ttl), Ok(budget)) = (lease_ttl, teardown_budget)
        && let Err(problem) = lease_window(ttl, budget)
    {
        table.refuse("teardown_budget", problem, Scope::Whole);
    }
    let drain = table.required("drain", "a duration", |node| duration(node, &DRAIN));
    let resign = table.required("resign_without_store", "a duration", |node| duration(node, &RESIGN_WITHOUT_STORE));
    table.finish();
    Ok(CoordinatorConfig {
        kind: kind?,
        lease_ttl: lease_ttl?,
        teardown_budget: teardown_budget?,
        drain: drain?,
        resign_without_store: resign?,
    })
}

/// Elections in the database: what would reach etcd is a mistake.
fn no_etcd(table: &mut TableReader<'_>) -> Checked<()> {
    let mut sound = Ok(());
    for key in ["endpoints", "prefix", "tls", "auth"] {
        if table.node(key).is_some() {
            let problem = "found beside kind = \"database\", which asks no etcd; expected it only with kind = \"etcd\"";
            sound = Err(table.refuse(key, problem, Scope::Whole));
        }
    }
    sound
}

/// How often a lease is renewed: a fifth of it, at most once a second.
#[must_use]
pub fn renewal_interval(lease_ttl: Duration) -> Duration {
    (lease_ttl / 5).max(Duration::from_secs(1))
}

/// What the teardown budget leaves of a lease must hold three renewals and a second.
fn lease_window(ttl: Duration, budget: Duration) -> Read<()> {
    let needed = renewal_interval(ttl) * 3 + Duration::from_secs(1);
    let show = humantime::format_duration;
    match ttl.checked_sub(needed) {
        Some(most) if budget <= most => Ok(()),
        Some(most) => Err(format!(
            "found {}, expected at most {}: a lease of {} must leave {} (three renewals and a second)",
            show(budget),
            show(most),
            show(ttl),
            show(needed)
        )),
        None => Err(format!("a lease of {} leaves no room for three renewals and a second", show(ttl))),
    }
}

fn etcd(table: &mut TableReader<'_>) -> Checked<EtcdConfig> {
    let endpoints = table
        .list("endpoints", MOST_ENDPOINTS, |node| parsed(node, |url| endpoint(url, "the table [coordinator.auth]")));
    let endpoints = endpoints.and_then(|all| {
        let missing = "missing; expected a list such as [\"https://etcd-0:2379\"]";
        all.filter(|all| !all.is_empty()).ok_or_else(|| table.refuse("endpoints", missing, Scope::Whole))
    });
    let secure = endpoints.as_ref().ok().map(|all| all.iter().filter(|one| one.starts_with("https:")).count());
    if let (Ok(endpoints), Some(secure)) = (&endpoints, secure)
        && secure != 0
        && secure != endpoints.len()
    {
        table.refuse("endpoints", "found http and https, expected one of them for all", Scope::Whole);
    }
    let prefix =
        table.required("prefix", "the prefix of all keys, such as \"/bursar/production\"", |node| parsed(node, prefix));
    let tls = table.optional_table("tls").and_then(|tls| tls.map(etcd_tls).transpose());
    if secure == Some(0) && tls != Ok(None) {
        table.refuse("tls", "certificates beside http endpoints, expected https endpoints", Scope::Whole);
    }
    let auth = table.optional_table("auth").and_then(|auth| auth.map(etcd_auth).transpose());
    Ok(EtcdConfig { endpoints: endpoints?, prefix: prefix?, tls: tls?, auth: auth? })
}

/// An address without a path; who one is stands in `identity`.
fn endpoint(url: &str, identity: &str) -> Read<String> {
    if url.contains('@') {
        return Err(format!("found a user in it, expected {identity}"));
    }
    let refused = || format!("found {}, expected http://host:port or https://host:port", quoted(url));
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).ok_or_else(refused)?;
    let (host, port) = rest.rsplit_once(':').ok_or_else(refused)?;
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    match port.parse() {
        Ok(1_u16..) if !host.is_empty() && host.chars().all(sound) => Ok(url.to_owned()),
        Ok(_) | Err(_) => Err(refused()),
    }
}

fn prefix(prefix: &str) -> Read<String> {
    let sound = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    match prefix.strip_prefix('/') {
        Some(rest) if rest.split('/').all(sound) && prefix.len() <= MOST_PREFIX => Ok(prefix.to_owned()),
        Some(_) | None => Err(format!(
            "found {}, expected parts of letters, digits, '.', '_' and '-', each after one '/', {MOST_PREFIX} bytes at most",
            quoted(prefix)
        )),
    }
}

fn etcd_tls(mut table: TableReader<'_>) -> Checked<EtcdTls> {
    let ca = pem(&mut table, "ca");
    let (cert, key) = (pem(&mut table, "cert"), pem(&mut table, "key"));
    let identity = both(&table, ("cert", cert), ("key", key));
    let server_name = table.optional("server_name", |node| text(node).map(str::to_owned));
    table.finish();
    Ok(EtcdTls {
        ca: ca?.map(|(path, _)| path),
        identity: identity?.map(|((cert, _), (key, _))| (cert, key)),
        server_name: server_name?,
    })
}

fn etcd_auth(mut table: TableReader<'_>) -> Checked<EtcdAuth> {
    let user = table.required("user", "the user's name", |node| text(node).map(str::to_owned));
    let password = table.secret("password", "password_file").and_then(|password| {
        let missing = "missing; expected `password_file` or `password`";
        password.ok_or_else(|| table.refuse("password_file", missing, Scope::Whole))
    });
    table.finish();
    Ok(EtcdAuth { user: user?, password: password? })
}

fn http(mut table: TableReader<'_>) -> Checked<HttpConfig> {
    let listen = table.required("listen", "an address", |node| {
        parsed(node, |text| {
            text.parse::<SocketAddr>()
                .map_err(|_| format!("found {}, expected IP:PORT such as 127.0.0.1:9464 or [::]:9464", quoted(text)))
        })
    });
    table.finish();
    Ok(HttpConfig { listen: listen? })
}

fn traces(mut table: TableReader<'_>) -> Checked<TracesConfig> {
    let endpoint = table.optional("endpoint", |node| parsed(node, |url| endpoint(url, "OTEL_EXPORTER_OTLP_HEADERS")));
    table.finish();
    Ok(TracesConfig { endpoint: endpoint? })
}

fn log(mut table: TableReader<'_>) -> Checked<LogConfig> {
    let format = table
        .required("format", "a format", |node| choice(node, &[("json", LogFormat::Json), ("text", LogFormat::Text)]));
    let level = table.required("level", "a level", |node| choice(node, &LogLevel::WORDS));
    table.finish();
    Ok(LogConfig { format: format?, level: level? })
}

/// What relative paths of a file are relative to.
pub(super) fn base_of(file: Option<&Path>) -> std::path::PathBuf {
    file.and_then(Path::parent).map(Path::to_path_buf).unwrap_or_default()
}
