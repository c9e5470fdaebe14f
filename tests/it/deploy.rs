//! What is in `deploy/` names what there is: tables in the roles, keys in the configurations, objects in the order in which they are
//! made. The rest is tried by hand, by `scripts/deploy-check`.

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

/// The documents of a file of YAML, as text.
fn documents(path: &str) -> Vec<String> {
    read(path).split("\n---\n").map(str::to_owned).collect()
}

/// What follows `key: ` on some line, also within braces, without quotes.
fn values(document: &str, key: &str) -> Vec<String> {
    let key = format!("{key}: ");
    let of_line = |line: &str| {
        let line = line.split(" #").next().unwrap_or_default();
        let ends = |c: char| [' ', ',', '}'].contains(&c);
        let starts = line.match_indices(&key).filter(|(at, _)| line[..*at].ends_with([' ', '{']) || *at == 0);
        starts
            .map(|(at, _)| line[at + key.len()..].split(ends).next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    document.lines().flat_map(of_line).collect()
}

/// Kind and name of what a document makes.
fn object(document: &str) -> (String, String) {
    let metadata = document.split_once("metadata:").expect("an object has metadata").1;
    (values(document, "kind").remove(0), values(metadata, "name").remove(0))
}

/// What has to be there before it is of use: the namespace, the account, what is mounted.
fn needs(document: &str) -> Vec<(String, String)> {
    let mut needs = Vec::new();
    let named = [("namespace", "Namespace"), ("serviceAccountName", "ServiceAccount"), ("secretName", "Secret")];
    for (key, kind) in named {
        needs.extend(values(document, key).into_iter().map(|name| (kind.to_owned(), name)));
    }
    for maps in document.split("configMap: {").skip(1) {
        needs.push(("ConfigMap".to_owned(), values(&format!("{{{maps}"), "name").remove(0)));
    }
    needs
}

/// The files that `kubectl apply -k` takes from a folder.
fn kustomized(folder: &str) -> Vec<String> {
    let file = read(&format!("{folder}/kustomization.yaml"));
    let resources = file.split_once("resources:\n").expect("resources").1;
    let of = |line: &str| line.strip_prefix("  - ").map(|name| format!("{folder}/{name}"));
    resources
        .lines()
        .filter_map(of)
        .flat_map(|path| if repository().join(&path).is_file() { vec![path] } else { kustomized(&path) })
        .collect()
}

/// The lines of the first code block behind a heading.
fn block(text: &str, heading: &str, language: &str) -> Vec<String> {
    let chapter = text.split_once(&format!("\n## {heading}\n")).expect("the heading is there").1;
    let code = chapter.split_once(&format!("```{language}\n")).expect("a block").1;
    code.split_once("```").expect("its end").0.lines().map(str::to_owned).collect()
}

#[test]
fn whatever_the_documented_order_for_kubernetes_makes_finds_what_it_needs() {
    let mut there: BTreeSet<(String, String)> = BTreeSet::new();
    let mut made_by_files = 0;
    for line in block(&read("deploy/README.md"), "Kubernetes", "sh") {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let files = match words[..] {
            ["kubectl", "apply", "-k", folder] => kustomized(folder),
            ["kubectl", "apply", "-f", file] => vec![file.to_owned()],
            ["kubectl", "-n", namespace, "create", "secret", "generic", name, ..] => {
                assert!(there.contains(&("Namespace".to_owned(), namespace.to_owned())), "{line}");
                let template = documents("deploy/kubernetes/secret.example.yaml");
                let template = template.iter().find(|one| object(one).1 == name).unwrap_or_else(|| panic!("{line}"));
                let keys: BTreeSet<&str> = template
                    .lines()
                    .filter_map(|line| line.strip_prefix("  ")?.split_once(": \"\""))
                    .map(|(key, _)| key)
                    .collect();
                let given = words.iter().filter_map(|word| word.strip_prefix("--from-file="));
                let given: BTreeSet<&str> = given.map(|file| file.split('=').next().unwrap_or_default()).collect();
                assert_eq!(keys, given, "{line}");
                there.insert(("Secret".to_owned(), name.to_owned()));
                continue;
            }
            ["psql" | "kubectl", ..] => continue,
            _ => panic!("a line of the order that is not known: {line}"),
        };
        let made: Vec<String> = files.iter().flat_map(|file| documents(file)).collect();
        there.extend(made.iter().map(|document| object(document)));
        made_by_files += made.len();
        for document in &made {
            for need in needs(document) {
                assert!(there.contains(&need), "{line}: {:?} needs {need:?}; there are {there:?}", object(document));
            }
        }
    }
    assert!(made_by_files > 10, "the files are read");
    for file in fs::read_dir(repository().join("deploy/kubernetes")).expect("it is there").flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let apart = ["base", "kustomization.yaml", "secret.example.yaml"].contains(&name.as_str());
        let listed =
            apart || documents(&format!("deploy/kubernetes/{name}")).iter().all(|one| there.contains(&object(one)));
        assert!(listed, "{name} is in no line of the order");
    }
}

/// A folder with files where the deployments have theirs, and what makes their paths those.
fn placed(text: &str, folder: &Path) -> String {
    let folder = folder.display().to_string();
    ["/run/secrets/bursar", "/etc/bursar-schedule", "/etc/bursar", "$HOME/.config/bursar", "%d"]
        .iter()
        .fold(text.to_owned(), |text, place| text.replace(place, &folder))
}

/// A folder with a certificate, its key and a password under all the names that deployments have for theirs.
fn with_secrets() -> PathBuf {
    let folder = scratch::folder("deploy-secrets");
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = rcgen::CertificateParams::new(vec!["bursar".to_owned()]).expect("a name");
    let certificate = certificate.self_signed(&key).expect("a certificate").pem();
    for name in ["etcd-ca.pem", "etcd.pem", "db-ca.pem"] {
        fs::write(folder.join(name), &certificate).expect("the folder is new");
    }
    for (name, text) in
        [("etcd.key", key.serialize_pem()), ("db", "secret".to_owned()), ("db-reader", "secret".to_owned())]
    {
        fs::write(folder.join(name), text).expect("the folder is new");
    }
    folder
}

fn check(folder: &Path, configuration: &str) -> Launch {
    let check = Launch::new("bursar-check", BINARY).arg("--config").arg(folder.join(configuration));
    check.args(["check", "--offline"]).folder(folder)
}

/// The files in the maps of the configuration: name and text.
fn in_maps() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    for line in read("deploy/kubernetes/base/config.yaml").lines() {
        if let Some(name) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(": |")) {
            files.push((name.to_owned(), String::new()));
        } else if let (Some(text), Some((_, file))) = (line.strip_prefix("    "), files.last_mut()) {
            file.push_str(text);
            file.push('\n');
        }
    }
    files
}

#[test]
fn the_configurations_of_kubernetes_are_valid() {
    let folder = with_secrets();
    let files = in_maps();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["production.toml", "store.toml", "schedule.toml"]);
    for (name, text) in &files {
        fs::write(folder.join(name), placed(text, &folder)).expect("the folder is ours");
    }
    for configuration in ["production.toml", "store.toml"] {
        check(&folder, configuration).finish().ok();
    }
}

#[test]
fn what_units_and_people_say_in_the_environment_is_read() {
    let folder = with_secrets();
    fs::write(folder.join("production.toml"), read("config/production.toml")).expect("the folder is ours");
    fs::write(folder.join("schedule.toml"), read("deploy/compose/schedule.toml")).expect("the folder is ours");
    let of_units = ["bursar.service", "bursar-audit.service"].map(|unit| {
        let unit = read(&format!("deploy/systemd/{unit}"));
        unit.lines().filter_map(|line| line.strip_prefix("Environment=")).map(str::to_owned).collect::<Vec<_>>()
    });
    let people = block(&read("deploy/README.md"), "People", "sh");
    let people = people.iter().filter_map(|line| line.strip_prefix("export ")).map(str::to_owned).collect();
    let [replica, audit] = of_units;
    for (whose, variables, least) in [("replica", replica, 2), ("audit", audit, 3), ("people", people, 6)] {
        assert!(variables.len() >= least, "{whose}: {variables:?}");
        let launch = check(&folder, "production.toml");
        let said = variables.iter().fold(launch, |launch, variable| {
            let (name, value) = variable.split_once('=').expect("a variable");
            launch.env(name, placed(value, &folder))
        });
        said.finish().ok();
    }
}

#[test]
fn prometheus_takes_the_trials_configuration() {
    let check = Launch::new("promtool", "promtool").args(["check", "config", "--syntax-only"]);
    check.arg(repository().join("deploy/prometheus/prometheus.yml")).finish().ok();
}
