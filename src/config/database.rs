//! The `[database]` table.
//!
//! A URL may hold a password, so no finding ever shows one, whole or in part.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::Scope;
use super::reader::{Checked, Reported, TableReader};
use super::types::{DatabaseConfig, DatabasePlace, PostgresConfig, TlsMode};
use super::values::{Read, choice, did_you_mean, duration, nearest, quoted, text, whole_u32};
use crate::secret::{Secret, SecretSource};

/// Connections kept outside tenures: three of the control pool, one for commands.
pub(super) const CONTROL_CONNECTIONS: u32 = 4;
/// Bounds of `max_connections`.
pub(super) const CONNECTIONS: RangeInclusive<u32> = CONTROL_CONNECTIONS + 1..=1000;
/// The longest wait of a tenure for a lock.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// Bounds of `statement_timeout`: above [`LOCK_TIMEOUT`], so that a wait for a lock always ends as one.
const STATEMENT_TIMEOUT: RangeInclusive<Duration> = Duration::from_secs(6)..=Duration::from_hours(24);
/// What the URL of a SQLite file starts with; the path follows, so three slashes begin one that is whole.
const SQLITE: &str = "sqlite://";
/// Parameters that a URL may have. What secures or names a connection is a key of its own or bursar's own business.
const PARAMETERS: [&str; 7] = ["host", "hostaddr", "port", "user", "password", "dbname", "options"];

pub(super) fn database(mut table: TableReader<'_>) -> Checked<DatabaseConfig> {
    let place = if names_a_file(&table) {
        sqlite(&mut table).map(DatabasePlace::Sqlite)
    } else {
        postgres(&mut table).map(DatabasePlace::Postgres)
    };
    let max_connections = table.required("max_connections", "a whole number", |node| whole_u32(node, CONNECTIONS));
    let statement_timeout =
        table.required("statement_timeout", "a duration", |node| duration(node, &STATEMENT_TIMEOUT));
    table.finish();
    Ok(DatabaseConfig { place: place?, max_connections: max_connections?, statement_timeout: statement_timeout? })
}

/// Whether `url` names a file of SQLite.
fn names_a_file(table: &TableReader<'_>) -> bool {
    table.keys().any(|(key, node)| key == "url" && text(node).is_ok_and(|url| url.starts_with(SQLITE)))
}

/// `url = "sqlite://PATH"`. What secures the way to a server has no meaning beside it.
fn sqlite(table: &mut TableReader<'_>) -> Checked<PathBuf> {
    let context = table.context;
    let path = table.required("url", "a URL", |node| {
        let path = text(node)?.strip_prefix(SQLITE).unwrap_or_default();
        if path.is_empty() || path.contains(['?', '#']) {
            return Err(format!("found {}, expected \"sqlite://PATH\" without parameters", quoted(text(node)?)));
        }
        Ok(behind_links(context.whole(Path::new(path), node)))
    });
    let mut sound = true;
    for key in ["url_file", "password", "password_file", "tls_ca", "tls_cert", "tls_key"] {
        if table.node(key).is_some() {
            table.refuse(key, "found beside a sqlite:// URL, which is a file and has no use for it", Scope::Whole);
            sound = false;
        }
    }
    // It has a default, so that it is there always.
    table.optional("tls_mode", |node| choice(node, &TlsMode::WORDS))?;
    if sound { path } else { Err(Reported) }
}

/// The file that a symbolic link leads to. The lease file stands beside the store and is named after it: replicas that come by
/// different names must not elect by different leases. A link that leads nowhere is left to the store, which says so.
fn behind_links(path: PathBuf) -> PathBuf {
    if path.is_symlink() { path.canonicalize().unwrap_or(path) } else { path }
}

fn postgres(table: &mut TableReader<'_>) -> Checked<PostgresConfig> {
    let (url, password) = (url(table), table.secret("password", "password_file"));
    if let (Ok(url), Ok(Some(_))) = (&url, &password)
        && url.holds_password
    {
        table.refuse(
            "url",
            "holds a password, and `password` or `password_file` gives one too; keep one",
            Scope::Whole,
        );
    }
    let tls_mode = table.required("tls_mode", "a mode", |node| choice(node, &TlsMode::WORDS));
    let tls_ca = pem(table, "tls_ca");
    let (cert, key) = (pem(table, "tls_cert"), pem(table, "tls_key"));
    let tls_identity = both(table, ("tls_cert", cert), ("tls_key", key));
    if let (Ok(mode), Ok(ca), Ok(identity)) = (tls_mode, &tls_ca, &tls_identity)
        && let Err(problem) = sensible(mode, ca.is_some(), identity.is_some())
    {
        return Err(table.refuse("tls_mode", problem, Scope::Whole));
    }
    Ok(PostgresConfig {
        url: url?.url,
        password: password?,
        tls_mode: tls_mode?,
        tls_ca: tls_ca?.map(|(path, _)| path),
        tls_identity: tls_identity?.map(|((cert, _), (key, _))| (cert, key)),
    })
}

/// Whether a mode does what whoever gave certificates with it will believe; the sentence where not.
fn sensible(mode: TlsMode, has_ca: bool, has_identity: bool) -> Read<()> {
    match mode {
        TlsMode::Disable if has_ca || has_identity => {
            Err("found \"disable\" beside certificates that it would not use".to_owned())
        }
        TlsMode::Prefer | TlsMode::Require if has_ca => Err(format!(
            "found \"{}\" beside `tls_ca`, which it does not look at: whoever sits between could be the server; expected \
             \"verify-full\" or \"verify-ca\", or no `tls_ca`",
            mode.as_str()
        )),
        TlsMode::VerifyCa if !has_ca => Err(
            "found \"verify-ca\" without `tls_ca`: any certificate of any of the system's authorities would do, whatever host \
             it is for; expected `tls_ca` beside it, or \"verify-full\""
                .to_owned(),
        ),
        TlsMode::Disable | TlsMode::Prefer | TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => Ok(()),
    }
}

/// A file in PEM, with its path.
pub(super) fn pem(table: &mut TableReader<'_>, key: &'static str) -> Checked<Option<(PathBuf, Secret)>> {
    let file = table.file(key)?;
    if let Some((path, content)) = &file
        && !content.expose().contains("-----BEGIN ")
    {
        let problem = format!("{} holds no PEM: expected a line that starts with -----BEGIN", path.display());
        return Err(table.refuse(key, problem, Scope::Whole));
    }
    Ok(file)
}

/// A certificate and its key: both or none.
pub(super) fn both<T>(
    table: &TableReader<'_>,
    (cert_key, cert): (&'static str, Checked<Option<T>>),
    (key_key, key): (&'static str, Checked<Option<T>>),
) -> Checked<Option<(T, T)>> {
    match (cert?, key?) {
        (Some(cert), Some(key)) => Ok(Some((cert, key))),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(table.refuse(cert_key, format!("stands alone; expected `{key_key}` beside it"), Scope::Whole))
        }
        (None, Some(_)) => {
            Err(table.refuse(key_key, format!("stands alone; expected `{cert_key}` beside it"), Scope::Whole))
        }
    }
}

struct Url {
    url: SecretSource,
    holds_password: bool,
}

/// `url`, or the file that `url_file` names: a URL with a password in it is a secret too.
fn url(table: &mut TableReader<'_>) -> Checked<Url> {
    let key = if table.keys().any(|(key, _)| key == "url_file") { "url_file" } else { "url" };
    let Some(url) = table.secret("url", "url_file")? else {
        let problem = "missing; expected a URL such as \"postgres://bursar@db/payments\" or \"sqlite://bursar.db\"";
        return Err(table.refuse("url", problem, Scope::Whole));
    };
    match check_url(url.known().expose()) {
        Ok(holds_password) => Ok(Url { url, holds_password }),
        Err(problem) => Err(table.refuse(key, problem, if key == "url" { Scope::Key } else { Scope::Whole })),
    }
}

/// Checks the shape of a URL, which is parsed in full by the store; says whether it holds a password.
fn check_url(url: &str) -> Read<bool> {
    let allowed = "a URL such as \"postgres://bursar@db/payments\"";
    if url.starts_with("sqlite:") {
        return Err("found a SQLite file that is not written as \"sqlite://PATH\" at `url`".to_owned());
    }
    let Some(rest) = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")) else {
        return Err(format!("found no postgres:// at its start, expected {allowed} or \"sqlite://bursar.db\""));
    };
    if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("found white space in it, expected none (write %20)".to_owned());
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, _) = place.split_once('/').unwrap_or((place, ""));
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let mut holds_password = user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    let mut names_host = !host.is_empty();
    if let Some((_, port)) = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'))
        && port.parse::<u16>().is_err()
    {
        return Err("found a port that is none, expected 1 to 65535".to_owned());
    }
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, _) = parameter.split_once('=').unwrap_or((parameter, ""));
        if name.starts_with("ssl") {
            return Err(format!(
                "found the parameter `{name}`; expected the keys tls_mode, tls_ca, tls_cert and tls_key instead"
            ));
        }
        if !PARAMETERS.contains(&name) {
            let near = did_you_mean(nearest(name, PARAMETERS.into_iter()));
            return Err(format!("found the parameter `{name}`, expected {}{near}", PARAMETERS.join(", ")));
        }
        holds_password |= name == "password";
        names_host |= name == "host" || name == "hostaddr";
    }
    if names_host { Ok(holds_password) } else { Err(format!("found no host, expected {allowed}")) }
}

/// Whether this many connections are enough for so many elections; the sentence where not.
pub(super) fn enough_connections(max_connections: u32, elections: usize) -> Read<()> {
    let elections = u32::try_from(elections).unwrap_or(u32::MAX);
    let least = CONTROL_CONNECTIONS.saturating_add(elections);
    if max_connections >= least {
        Ok(())
    } else {
        Err(format!("found {max_connections}, expected at least {least}: 4 + the number of elections ({elections})"))
    }
}

/// `host:port`, as others are told it.
pub(super) fn address(node: &super::tree::Node) -> Read<String> {
    let written = text(node)?;
    let port = written.rsplit_once(':').filter(|(host, _)| !host.is_empty()).and_then(|(_, port)| port.parse().ok());
    match port {
        Some(1_u16..) if !written.contains(char::is_whitespace) && written.len() <= 255 => Ok(written.to_owned()),
        Some(_) | None => Err(format!("found {}, expected host:port", super::values::quoted(written))),
    }
}
