//! Everything that may be wrong in a configuration file or a variable, and the lines that say so.

use super::{GOOD, read};

/// An edit of [`GOOD`] and the lines that must be reported, in full.
struct Bad {
    replace: &'static str,
    with: &'static str,
    env: &'static [(&'static str, &'static str)],
    lines: &'static [&'static str],
}

const fn bad(replace: &'static str, with: &'static str, lines: &'static [&'static str]) -> Bad {
    Bad { replace, with, env: &[], lines }
}

const fn bad_env(env: &'static [(&'static str, &'static str)], lines: &'static [&'static str]) -> Bad {
    Bad { replace: "", with: "", env, lines }
}

const WRONG_KEYS: &[Bad] = &[
    bad(
        "prefix",
        "lease_ttI = \"5s\"\nprefix",
        &["c.toml:5:1: coordinator.lease_ttI: unknown key; did you mean `lease_ttl`?"],
    ),
    bad("schedule", "schedul = 1\nschedule", &["c.toml:1:1: schedul: unknown key; did you mean `schedule`?"]),
    bad(
        "[database]",
        "[http]\nlisten_on = 1\n[databse]\nx = 1\n[database]",
        &[
            "c.toml:7:1: http.listen_on: unknown key; known here are `listen`",
            "c.toml:8:2: databse: unknown key; did you mean `database`?",
        ],
    ),
    bad(
        "[database]",
        "[coordinator.auth]\nuser = \"u\"\npasword_file = \"secret\"\n[database]",
        &[
            "c.toml:6:14: coordinator.auth.password_file: missing; expected `password_file` or `password`",
            "c.toml:8:1: coordinator.auth.pasword_file: unknown key; did you mean `password_file`?",
        ],
    ),
    bad(
        "[database]",
        "[operator]\nfour_eyes = 1\nfor_eyes = true\n[database]",
        &["c.toml:7:13: operator.four_eyes:", "c.toml:8:1: operator.for_eyes: unknown key; did you mean `four_eyes`?"],
    ),
    bad(
        "schedule",
        "\"a.b\" = 1\nschedule",
        &["c.toml:1:1: \"a.b\": not a key: expected letters, digits, '_' and '-'"],
    ),
    bad("schedule", "[coordinator", &["c.toml:1:"]),
];

const WRONG_VALUES: &[Bad] = &[
    bad(
        "[database]",
        "[database]\nmax_connections = \"16\"",
        &["c.toml:7:19: database.max_connections: found the text \"16\", expected a whole number from 5 to 1000"],
    ),
    bad(
        "[database]",
        "[database]\nmax_connections = 16.0",
        &["c.toml:7:19: database.max_connections: found 16.0, expected a whole number from 5 to 1000"],
    ),
    bad(
        "[database]",
        "[database]\nmax_connections = true",
        &["c.toml:7:19: database.max_connections: found true, expected a whole number from 5 to 1000"],
    ),
    bad(
        "[database]",
        "[database]\nmax_connections = 4",
        &["c.toml:7:19: database.max_connections: found 4, expected a whole number from 5 to 1000"],
    ),
    bad(
        "[database]",
        "[database]\nmax_connections = 99999999999999999999",
        &["c.toml:7:19: database.max_connections: found 99999999999999999999, expected a whole number from 5 to 1000"],
    ),
    bad(
        "\"etcd\"",
        "\"etc\"",
        &[
            "c.toml:3:8: coordinator.kind: found the text \"etc\", expected \"etcd\" or \"database\"; did you mean `etcd`?",
        ],
    ),
    bad(
        "\"etcd\"",
        "\"database\"",
        &[
            "c.toml:4:13: coordinator.endpoints: found beside kind = \"database\", which asks no etcd",
            "c.toml:5:10: coordinator.prefix: found beside kind = \"database\", which asks no etcd",
        ],
    ),
    bad(
        "[\"http://127.0.0.1:2379\"]",
        "\"http://127.0.0.1:2379\"",
        &["c.toml:4:13: coordinator.endpoints: found a text, expected a list in [ ]"],
    ),
    bad(
        "[\"http://127.0.0.1:2379\"]",
        "[]",
        &["c.toml:4:13: coordinator.endpoints: missing; expected a list such as [\"https://etcd-0:2379\"]"],
    ),
    bad(
        "[\"http://127.0.0.1:2379\"]",
        "[\"http://a:1\", 5,\n\"ftp://b:1\", \"http://c\", \"http://d:0\"]",
        &[
            "c.toml:4:28: coordinator.endpoints[1]: found 5, expected a text in quotes",
            "c.toml:5:1: coordinator.endpoints[2]: found \"ftp://b:1\", expected http://host:port or https://host:port",
            "c.toml:5:14: coordinator.endpoints[3]: found \"http://c\", expected http://host:port or https://host:port",
            "c.toml:5:26: coordinator.endpoints[4]: found \"http://d:0\", expected http://host:port or https://host:port",
        ],
    ),
    bad("/bursar/test", "bursar/", &["c.toml:5:10: coordinator.prefix: found \"bursar/\", expected parts of"]),
    bad(
        "prefix",
        "lease_ttl = 10\nprefix",
        &["c.toml:5:13: coordinator.lease_ttl: found 10, expected a duration from 5s to 5m such as \"90s\" or \"5m\""],
    ),
    bad(
        "prefix",
        "lease_ttl = \"4s\"\nprefix",
        &["c.toml:5:13: coordinator.lease_ttl: found the text \"4s\", expected a duration from 5s"],
    ),
    bad(
        "prefix",
        "lease_ttl = \"5500ms\"\nprefix",
        &["c.toml:5:13: coordinator.lease_ttl: found the text \"5500ms\", expected whole seconds"],
    ),
    bad(
        "postgres://bursar@db/payments",
        "postgres://bursar:hunter2@db:port/p",
        &["c.toml:7:7: database.url: found a port that is none, expected 1 to 65535"],
    ),
    bad(
        "postgres://bursar@db/payments",
        "postgres://bursar@db/p?sslmode=require",
        &["c.toml:7:7: database.url: found the parameter `sslmode`; expected the keys tls_mode"],
    ),
    bad("postgres://bursar@db/payments", "postgres:///p", &["c.toml:7:7: database.url: found no host"]),
    bad("postgres://bursar@db/payments", "mysql://x", &["c.toml:7:7: database.url: found no postgres:// at its start"]),
    bad(
        "postgres://bursar@db/payments",
        "sqlite://bursar.db",
        &["c.toml:7:7: database.url: found a SQLite file beside coordinator.kind = \"etcd\""],
    ),
    bad(
        "[database]",
        "[http]\nlisten = \"localhost\"\n[database]",
        &["c.toml:7:10: http.listen: found \"localhost\", expected IP:PORT"],
    ),
    bad(
        "[database]",
        "[log]\nformat = \"xml\"\nlevel = \"Info\"\n[database]",
        &[
            "c.toml:7:10: log.format: found the text \"xml\", expected \"json\" or \"text\"",
            "c.toml:8:9: log.level: found the text \"Info\", expected \"error\" or \"warn\" or \"info\" or \"debug\" or \"trace\"; did you mean `info`?",
        ],
    ),
    bad(
        "[database]",
        "[replica]\nid = \"a b\"\nelections = [\"Upper\"]\naddress = \"here\"\n[database]",
        &[
            "c.toml:7:6: replica.id: \"a b\" is not a valid replica id",
            "c.toml:8:14: replica.elections[0]: \"Upper\" is not a valid election name: expected 1 to 32 of a-z",
            "c.toml:9:11: replica.address: found \"here\", expected host:port",
        ],
    ),
    bad(
        "[database]",
        "[replica]\nelections = [\"*\", \"a\"]\n[database]",
        &["c.toml:7:13: replica.elections: found \"*\" beside"],
    ),
    bad(
        "[database]",
        "[replica]\nelections = []\n[database]",
        &["c.toml:7:13: replica.elections: found an empty list"],
    ),
    bad("[coordinator]", "http = 5\n[coordinator]", &["c.toml:2:8: http: found a whole number, expected a table"]),
    bad("\"schedule.toml\"", "2027-01-01", &["c.toml:1:12: schedule: found 2027-01-01, expected a text in quotes"]),
    bad("\"schedule.toml\"", "\"\"", &["c.toml:1:12: schedule: found an empty text, expected one"]),
];

/// Secrets in the wrong place: none of them may be shown.
const WRONG_PLACE_OF_SECRETS: &[Bad] = &[
    bad(
        "[\"http://127.0.0.1:2379\"]",
        "[\"http://u:hunter2@a:1\"]",
        &["c.toml:4:14: coordinator.endpoints[0]: found a user in it, expected the table [coordinator.auth]"],
    ),
    bad(
        "[database]",
        "[database]\npassword = [\"hunter2\"]",
        &["c.toml:7:12: database.password: expected a text in quotes, not empty, without line breaks"],
    ),
    bad("[database]", "[database]\npassword = hunter2", &["c.toml:7:12: not valid TOML"]),
    bad("[database]", "[database]\npassword = \"hunter2", &["c.toml:7:"]),
    bad(
        "[database]",
        "[database]\npassword = \"\"\"hunter2",
        &["c.toml:7:12: database.password: expected", "c.toml:9:1: not valid TOML"],
    ),
    bad("[database]", "[database]\npassword \"hunter2\"", &["c.toml:7:"]),
    bad(
        "[database]",
        "[database]\npasswrd = \"hunter2\"",
        &["c.toml:7:1: database.passwrd: unknown key; did you mean `password`?"],
    ),
    bad_env(
        &[("BURSAR__DATABASE", "postgres://bursar:hunter2@db/payments")],
        &["environment variable BURSAR__DATABASE: database: found a text, expected a table"],
    ),
    bad_env(
        &[("BURSAR__DATABASE__URL", "postgres:/bursar:hunter2@db/payments")],
        &["environment variable BURSAR__DATABASE__URL: database.url: found no postgres:// at its start"],
    ),
    bad_env(
        &[("BURSAR__DATABASE__PASSWORD", "hunter2\u{7}")],
        &[
            "environment variable BURSAR__DATABASE__PASSWORD: database.password: expected a text in quotes, not empty, without line breaks",
        ],
    ),
];

const WRONG_TOGETHER: &[Bad] = &[
    bad("schedule = \"schedule.toml\"\n", "", &["c.toml: schedule: missing; expected the path of the schedule file"]),
    bad("kind = \"etcd\"\n", "", &["c.toml:2:2: coordinator.kind: missing; expected \"etcd\" or \"database\""]),
    bad("url = \"postgres://bursar@db/payments\"\n", "", &["c.toml:6:2: database.url: missing; expected a URL"]),
    bad(
        "prefix",
        "teardown_budget = \"3001ms\"\nprefix",
        &[
            "c.toml:5:19: coordinator.teardown_budget: found 3s 1ms, expected at most 3s: a lease of 10s must leave 7s (three renewals and a second)",
        ],
    ),
    bad(
        "prefix",
        "lease_ttl = \"5s\"\nteardown_budget = \"1001ms\"\nprefix",
        &["c.toml:6:19: coordinator.teardown_budget: found 1s 1ms, expected at most 1s"],
    ),
    bad(
        "[database]",
        "[coordinator.tls]\nca = \"pem\"\ncert = \"pem\"\n[database]",
        &[
            "c.toml:6:1: coordinator.tls: certificates beside http endpoints, expected https endpoints",
            "c.toml:8:8: coordinator.tls.cert: stands alone; expected `key` beside it",
        ],
    ),
    bad(
        "[database]",
        "[database]\npassword = \"hunter2\"\npassword_file = \"secret\"",
        &["c.toml:7:12: database.password: given twice: also as `password_file`; expected one of them"],
    ),
    bad(
        "[database]",
        "[database]\npassword = 5",
        &["c.toml:7:12: database.password: expected a text in quotes, not empty, without line breaks"],
    ),
    bad(
        "[database]",
        "[database]\npassword_file = \"away\"",
        &["c.toml:7:17: database.password_file: cannot read away: No such file or directory"],
    ),
    bad(
        "[database]",
        "[database]\npassword_file = \"empty\"",
        &["c.toml:7:17: database.password_file: empty is empty"],
    ),
    bad(
        "[database]",
        "[database]\npassword_file = \"binary\"",
        &["c.toml:7:17: database.password_file: binary is not UTF-8"],
    ),
    bad("[database]", "[database]\ntls_ca = \"secret\"", &["c.toml:7:10: database.tls_ca: secret holds no PEM"]),
    bad("bursar@db", "bursar:hunter2@db", &[]),
    bad(
        "postgres://bursar@db/payments\"",
        "postgres://bursar:hunter2@db/payments\"\npassword_file = \"secret\"",
        &["c.toml:7:7: database.url: holds a password, and `password` or `password_file` gives one too; keep one"],
    ),
    bad(
        "[database]",
        "[replica]\nelections = [\"a\", \"b\"]\n[database]\nmax_connections = 5",
        &["c.toml:9:19: database.max_connections: found 5, expected at least 6: 4 + the number of elections (2)"],
    ),
];

const WRONG_VARIABLES: &[Bad] = &[
    bad_env(
        &[("BURSAR__DATABASE__MAX_CONNECTIONS", "016")],
        &[
            "environment variable BURSAR__DATABASE__MAX_CONNECTIONS: database.max_connections: found the text \"016\", expected a whole number from 5 to 1000",
        ],
    ),
    bad_env(
        &[("BURSAR__HTTP__LISTN", "127.0.0.1:1")],
        &["environment variable BURSAR__HTTP__LISTN: http.listn: unknown key; did you mean `listen`?"],
    ),
    bad_env(
        &[("BURSAR__HTPP__LISTEN", "127.0.0.1:1"), ("BURSAR__HTPP__X", "1")],
        &[
            "environment variable BURSAR__HTPP__LISTEN: htpp.listen: unknown table; did you mean `http`?",
            "environment variable BURSAR__HTPP__X: htpp.x: unknown table; did you mean `http`?",
        ],
    ),
    bad_env(
        &[("BURSAR__Http__Listen", "127.0.0.1:1")],
        &[
            "environment variable BURSAR__Http__Listen: http.listen: unknown key: expected BURSAR__SECTION__KEY in upper case",
        ],
    ),
    bad_env(&[("BURSAR__HTTP", "x")], &["environment variable BURSAR__HTTP: http: found a text, expected a table"]),
    bad_env(&[("BURSAR__", "x")], &["environment variable BURSAR__: unknown key: expected BURSAR__SECTION__KEY"]),
    bad_env(
        &[("BURSAR__HTTP__LISTEN__PORT", "1")],
        &["environment variable BURSAR__HTTP__LISTEN__PORT: http.listen: found a table, expected a text in quotes"],
    ),
    bad_env(
        &[("BURSAR__COORDINATOR__ENDPOINTS", "http://a:1,,b")],
        &[
            "environment variable BURSAR__COORDINATOR__ENDPOINTS: coordinator.endpoints[1]: found an empty text, expected one",
            "environment variable BURSAR__COORDINATOR__ENDPOINTS: coordinator.endpoints[2]: found \"b\", expected http://host:port",
        ],
    ),
    bad_env(
        &[("BURSAR__COORDINATOR__LEASE_TTL", "")],
        &[
            "environment variable BURSAR__COORDINATOR__LEASE_TTL: coordinator.lease_ttl: found the text \"\", expected a duration",
        ],
    ),
    bad_env(
        &[("BURSAR__DATABASE__PASSWORD", "a\u{fffd}")],
        &["environment variable BURSAR__DATABASE__PASSWORD: database.password: its value is not valid UTF-8"],
    ),
    bad_env(
        &[("BURSAR__JOB__NAME", "x")],
        &["environment variable BURSAR__JOB__NAME: job.name: unknown table; known here are"],
    ),
];

#[test]
fn whatever_is_wrong_is_named_with_its_place_and_nothing_else_is() {
    read(GOOD, &[]).expect("the base");
    let mut missed = Vec::new();
    for case in
        [WRONG_KEYS, WRONG_VALUES, WRONG_PLACE_OF_SECRETS, WRONG_TOGETHER, WRONG_VARIABLES].into_iter().flatten()
    {
        let text = if case.replace.is_empty() { GOOD.to_owned() } else { GOOD.replacen(case.replace, case.with, 1) };
        let found = read(&text, case.env).err().unwrap_or_default();
        let lines: Vec<&str> = found.lines().collect();
        let same = lines.iter().zip(case.lines).all(|(line, expected)| line.starts_with(expected));
        if lines.len() != case.lines.len() || !same {
            missed.push(format!("{} {:?}\nfound:\n{found}\nexpected:\n{}", case.with, case.env, case.lines.join("\n")));
        }
        assert!(!found.contains("hunter2"), "{found}");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}
