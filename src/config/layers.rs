//! Layers: the built-in defaults, the file, and the environment, the later over the earlier, key by key.
//!
//! The `config` crate decides which layer wins. It is handed the *numbers* of values, never values themselves: it would
//! turn `"5"` into 5 and 5.7 into 6 without a word, and it forgets lines. Deliberately absent: lists merged item by item; a
//! later list replaces an earlier one.

use std::collections::BTreeMap;

use config::builder::DefaultState;
use config::{ConfigBuilder, Map, Source, ValueKind};

use super::error::{ConfigError, Place, Scope};
use super::tree::{Node, Table, Value};

/// What the names of environment variables start with; sections are separated by two underscores too.
pub const PREFIX: &str = "BURSAR__";
/// The longest value of an environment variable, in bytes.
const MOST_VARIABLE_BYTES: usize = 64 * 1024;

/// The variable that names the configuration file.
pub const CONFIG_VARIABLE: &str = "BURSAR_CONFIG";
/// The variable that says who runs a command.
pub const OPERATOR_VARIABLE: &str = "BURSAR_OPERATOR";
/// What the names of all variables that are bursar's own start with, in any case.
const OWN: &str = "BURSAR_";
/// Variables that say nothing of the configuration and may be there: those that name the file and the operator, what a
/// process of the handler `command` is given, which may call bursar, and the image that `deploy/compose.yaml` starts.
const OTHERS: [&str; 6] =
    [CONFIG_VARIABLE, OPERATOR_VARIABLE, "BURSAR_TERM", "BURSAR_SCOPE", "BURSAR_IDEMPOTENCY_KEY", "BURSAR_IMAGE"];
/// The same, by what they begin with: those of the project's own scripts and tests.
const OTHERS_BEGIN: [&str; 5] = ["BURSAR_TEST_", "BURSAR_SIM_", "BURSAR_FAULTS_", "BURSAR_MODEL_", "BURSAR_LIVE_"];
/// And those of a test build, whose names a release does not hold.
#[cfg(feature = "chaos")]
const OTHERS_OF_CHAOS: [&str; 2] = ["BURSAR_CHAOS", "BURSAR_MUTANTS"];
#[cfg(not(feature = "chaos"))]
const OTHERS_OF_CHAOS: [&str; 0] = [];
/// The tables of a configuration file.
const SECTIONS: [&str; 7] = ["REPLICA", "COORDINATOR", "DATABASE", "HTTP", "LOG", "TRACES", "OPERATOR"];

fn is_own(name: &str) -> bool {
    name.get(..OWN.len()).is_some_and(|start| start.eq_ignore_ascii_case(OWN))
}

/// The process's variables that begin as bursar's do. Bytes that are not UTF-8 are replaced by U+FFFD, which is
/// refused later: so such a variable is reported and not taken for something else.
#[must_use]
pub fn process_environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .filter(|(name, _)| is_own(name))
        .collect()
}

/// Whether a variable that is not read as configuration may be there all the same.
fn is_other(name: &str, value: &str) -> bool {
    OTHERS.contains(&name)
        || OTHERS_BEGIN.iter().chain(&OTHERS_OF_CHAOS).any(|begin| name.starts_with(begin))
        || is_of_a_service(name, value)
}

/// Whether Kubernetes made this variable for a service whose name begins with `bursar`, as it does in every pod beside one:
/// `BURSAR_SERVICE_HOST`, `BURSAR_PORT=tcp://…`, `BURSAR_PORT_9464_TCP_ADDR`.
fn is_of_a_service(name: &str, value: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let rest = name.get(OWN.len() - 1..).unwrap_or_default();
    let of_a_port = |port: &str| {
        let mut parts = port.split('_');
        let (number, protocol) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        is_number(number) && matches!(protocol, "TCP" | "UDP" | "SCTP")
    };
    (rest.ends_with("_SERVICE_HOST") && value.parse::<std::net::IpAddr>().is_ok())
        || (rest.contains("_SERVICE_PORT") && is_number(value))
        || (rest.ends_with("_PORT") && value.contains("://"))
        || rest.split("_PORT_").skip(1).any(of_a_port)
}

/// The variable that was meant by one that is not read.
fn meant(name: &str) -> Option<String> {
    let upper = name.to_ascii_uppercase();
    if upper.starts_with(PREFIX) || OTHERS.contains(&upper.as_str()) {
        return Some(upper);
    }
    let rest = upper.get(OWN.len()..)?;
    if rest == "SCHEDULE" {
        return Some(format!("{PREFIX}{rest}"));
    }
    let of_a_section = |section: &&str| {
        let key = rest.strip_prefix(*section)?.strip_prefix('_')?;
        Some(format!("{PREFIX}{section}__{}", key.trim_start_matches('_')))
    };
    let near = || super::values::nearest(name, OTHERS.into_iter()).map(str::to_owned);
    SECTIONS.iter().find_map(of_a_section).or_else(near)
}

/// Turns `BURSAR__SECTION__KEY` variables into a tree. One that begins as bursar's do and is none of them is refused: it would be
/// passed over without a word. Others are nobody's business.
pub(super) fn environment(variables: impl Iterator<Item = (String, String)>) -> (Node, Vec<ConfigError>) {
    let mut errors = Vec::new();
    let mut root = Table::new();
    let mut sorted: Vec<_> = variables.filter(|(name, _)| is_own(name)).collect();
    sorted.sort();
    for (name, value) in sorted {
        let place = Place::of(&format!("environment variable {name}"));
        if !name.starts_with(PREFIX) {
            if !is_other(&name, &value) {
                let known = format!("known are {PREFIX}SECTION__KEY and {CONFIG_VARIABLE}");
                let near = meant(&name).map_or(known, |near| format!("did you mean `{near}`?"));
                let problem = format!("nothing reads it; {near}");
                errors.push(ConfigError { place, key: String::new(), problem, scope: Scope::Key });
            }
            continue;
        }
        let rest = name.get(PREFIX.len()..).unwrap_or_default();
        let key = rest.to_ascii_lowercase().replace("__", ".");
        let mut refuse = |problem: String| {
            errors.push(ConfigError { place: place.clone(), key: key.clone(), problem, scope: Scope::Key });
        };
        let path: Vec<&str> = key.split('.').collect();
        let sound = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if rest != rest.to_ascii_uppercase() || !path.iter().all(sound) {
            refuse("unknown key: expected BURSAR__SECTION__KEY in upper case".to_owned());
        } else if value.contains('\u{fffd}') {
            refuse("its value is not valid UTF-8".to_owned());
        } else if value.len() > MOST_VARIABLE_BYTES {
            refuse(format!("found {} bytes, expected at most {MOST_VARIABLE_BYTES}", value.len()));
        } else if !insert(&mut root, &path, &place, value) {
            refuse("stands for a table and for a value at once: another variable names a key in it".to_owned());
        }
    }
    let place = Place::of("environment");
    (Node { key_place: place.clone(), place, value: Value::Table(root) }, errors)
}

/// Puts a variable's value at its path; `false` where a value stands on the way or at its end.
fn insert(table: &mut Table, path: &[&str], place: &Place, value: String) -> bool {
    let node = |value| Node { key_place: place.clone(), place: place.clone(), value };
    match path {
        [] => false,
        [key] => table.insert((*key).to_owned(), node(Value::Variable(value))).is_none(),
        [key, rest @ ..] => {
            let inner = table.entry((*key).to_owned()).or_insert_with(|| node(Value::Table(Table::new())));
            match &mut inner.value {
                Value::Table(inner) => insert(inner, rest, place, value),
                Value::Text(_)
                | Value::Whole(_)
                | Value::Flag(_)
                | Value::Other(_)
                | Value::List(_)
                | Value::Variable(_) => false,
            }
        }
    }
}

/// The built-in defaults, a TOML text, as a layer. They have no line; what is missing in spite of them is missing in `file`.
pub(super) fn defaults(text: &str, file: &Place) -> Node {
    fn replace(node: &mut Node, place: &Place) {
        node.key_place = place.clone();
        node.place = place.clone();
        if let Value::Table(table) = &mut node.value {
            for inner in table.values_mut() {
                replace(inner, place);
            }
        }
    }
    let (mut root, _) = super::tree::read_toml("defaults", text);
    replace(&mut root, file);
    root
}

/// Whether the environment says where elections are held, or names a database server.
pub(super) fn names_servers(environment: &Node) -> bool {
    let url = found(environment, "database", "url");
    let server = url.is_some_and(|node| super::values::text(node).is_ok_and(|url| !url.starts_with("sqlite:")));
    server
        || found(environment, "database", "url_file").is_some()
        || found(environment, "coordinator", "kind").is_some()
}

/// Whether the store is named as a SQLite file.
pub(super) fn names_a_file(root: &Node) -> bool {
    let url = found(root, "database", "url");
    url.is_some_and(|node| super::values::text(node).is_ok_and(|url| url.starts_with("sqlite:")))
}

/// The node at a key of a section.
fn found<'a>(root: &'a Node, section: &str, key: &str) -> Option<&'a Node> {
    fn inner<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
        match &node.value {
            Value::Table(table) => table.get(key),
            Value::Text(_)
            | Value::Whole(_)
            | Value::Flag(_)
            | Value::Other(_)
            | Value::List(_)
            | Value::Variable(_) => None,
        }
    }
    inner(inner(root, section)?, key)
}

/// Lays trees over each other, the later over the earlier.
///
/// # Errors
/// What the `config` crate refuses; it is handed nothing that it could refuse.
pub(super) fn lay(layers: &[&Node]) -> Result<Node, config::ConfigError> {
    let mut arena = Arena::default();
    let mut builder: ConfigBuilder<DefaultState> = config::Config::builder();
    for layer in layers {
        if let Value::Table(table) = &layer.value {
            builder = builder.add_source(Numbers(arena.number(table, "")));
        }
    }
    let laid: Map<String, config::Value> = builder.build()?.collect()?;
    let place = layers.first().map_or_else(|| Place::of("configuration"), |layer| layer.place.clone());
    Ok(Node { key_place: place.clone(), place, value: Value::Table(arena.resolve(laid, "")) })
}

/// All values of all layers by number, and the places of tables by path (a line of a file goes before what has none).
#[derive(Default)]
struct Arena {
    values: Vec<Node>,
    tables: BTreeMap<String, (Place, Place)>,
}

impl Arena {
    fn number(&mut self, table: &Table, path: &str) -> Map<String, config::Value> {
        let mut numbers = Map::new();
        for (key, node) in table {
            let kind = match &node.value {
                Value::Table(inner) => {
                    let path = format!("{path}.{key}");
                    let numbers = self.number(inner, &path);
                    if node.place.line().is_some() || !self.tables.contains_key(&path) {
                        self.tables.insert(path, (node.key_place.clone(), node.place.clone()));
                    }
                    ValueKind::Table(numbers)
                }
                Value::Text(_)
                | Value::Whole(_)
                | Value::Flag(_)
                | Value::Other(_)
                | Value::List(_)
                | Value::Variable(_) => {
                    self.values.push(node.clone());
                    ValueKind::U64(self.values.len() as u64 - 1)
                }
            };
            numbers.insert(key.clone(), config::Value::new(None, kind));
        }
        numbers
    }

    fn resolve(&self, laid: Map<String, config::Value>, path: &str) -> Table {
        let mut table = Table::new();
        for (key, value) in laid {
            let node = match value.kind {
                ValueKind::Table(inner) => {
                    let path = format!("{path}.{key}");
                    self.tables.get(&path).map(|(key_place, place)| Node {
                        key_place: key_place.clone(),
                        place: place.clone(),
                        value: Value::Table(self.resolve(inner, &path)),
                    })
                }
                ValueKind::U64(number) => {
                    usize::try_from(number).ok().and_then(|number| self.values.get(number)).cloned()
                }
                ValueKind::Nil
                | ValueKind::Boolean(_)
                | ValueKind::I64(_)
                | ValueKind::I128(_)
                | ValueKind::U128(_)
                | ValueKind::Float(_)
                | ValueKind::String(_)
                | ValueKind::Array(_) => None,
            };
            if let Some(node) = node {
                table.insert(key, node);
            }
        }
        table
    }
}

/// One layer as the `config` crate sees it.
#[derive(Debug, Clone)]
struct Numbers(Map<String, config::Value>);

impl Source for Numbers {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, config::Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_nothing_reads_is_refused_with_the_one_that_was_meant() {
        let refused = |name: &str, value: &str| {
            let (_, errors) = environment([(name.to_owned(), value.to_owned())].into_iter());
            errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        for (name, near) in [
            ("BURSAR_DATABASE__URL", "`BURSAR__DATABASE__URL`"),
            ("BURSAR_DATABASE_URL", "`BURSAR__DATABASE__URL`"),
            ("BURSAR_COORDINATOR__AUTH__USER", "`BURSAR__COORDINATOR__AUTH__USER`"),
            ("bursar__database__url", "`BURSAR__DATABASE__URL`"),
            ("Bursar_Config", "`BURSAR_CONFIG`"),
            ("BURSAR_CONFG", "`BURSAR_CONFIG`"),
            ("BURSAR_SCHEDULE", "`BURSAR__SCHEDULE`"),
            ("BURSAR_HTTP_PORT", "`BURSAR__HTTP__PORT`"),
            ("BURSAR_SOMETHING_ELSE", "known are BURSAR__SECTION__KEY"),
        ] {
            let said = refused(name, "9464");
            assert!(said.starts_with(&format!("environment variable {name}: nothing reads it; ")), "{said}");
            assert!(said.contains(near), "{said}");
        }
        for (name, value) in [
            ("BURSAR_CONFIG", "/etc/bursar.toml"),
            ("BURSAR_OPERATOR", "ada"),
            ("BURSAR_TERM", "7"),
            ("BURSAR_TEST_LONG", "1"),
            ("BURSAR_IMAGE", "bursar:trial"),
            ("BURSAR_SERVICE_HOST", "10.0.0.7"),
            ("BURSAR_SERVICE_PORT", "9464"),
            ("BURSAR_SERVICE_PORT_HTTP", "9464"),
            ("BURSAR_PORT", "tcp://10.0.0.7:9464"),
            ("BURSAR_PORT_9464_TCP", "tcp://10.0.0.7:9464"),
            ("BURSAR_PORT_9464_TCP_ADDR", "10.0.0.7"),
            ("BURSAR_DB_SERVICE_HOST", "10.0.0.8"),
            ("BURSAR_DB_PORT_5432_TCP_PROTO", "tcp"),
            ("BURSARY_DATABASE_URL", "x"),
            ("PATH", "/bin"),
        ] {
            assert_eq!(refused(name, value), "", "{name}");
        }
    }
}
