//! The schedule file: `[[job]]` tables to complete [`JobDefinition`]s.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::database::enough_connections;
use super::error::{ConfigError, ConfigErrors, Place, Scope};
use super::ledger::overlap;
use super::reader::{Checked, Context, Reported, TableReader};
use super::tree::{Node, Value, read_toml};
use super::types::Config;
use super::validate::MOST_ELECTIONS;
use super::{calendar, job, keep_one_syntax_error_per_line, read_file, read_text, text_of};
use crate::domain::ElectionName;
use crate::domain::job::{HandlerDefinition, JobDefinition, LedgerDefinition, fingerprint};

/// The most jobs of a schedule. Only the first few hundred have series of their own in the metrics.
pub const MOST_JOBS: usize = 10_000;

/// A schedule, complete and checked. At least one job, where there is a file; names are unique; no two jobs select the same entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleFile {
    /// The jobs, in the order of the file.
    pub jobs: Vec<JobDefinition>,
}

impl ScheduleFile {
    /// Reads a file.
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        Self::from_str(&path.display().to_string(), &read_text(path)?)
    }

    /// Reads a text; `name` stands for the file in findings.
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn from_str(name: &str, text: &str) -> Result<Self, ConfigErrors> {
        let (root, mut errors) = read_toml(name, text);
        let unreadable = !errors.is_empty();
        let context = Context::new(PathBuf::new(), &|_| Err("a schedule names no secrets".to_owned()));
        let jobs = schedule(&context, &root);
        let found = context.into_errors();
        errors.extend(found.into_iter().filter(|error| !unreadable || error.scope == Scope::Key));
        if unreadable {
            keep_one_syntax_error_per_line(&mut errors);
        }
        match (jobs, ConfigErrors::new(errors)) {
            (Ok(jobs), None) => Ok(Self { jobs }),
            (_, Some(errors)) => Err(errors),
            (Err(Reported), None) => {
                Err(ConfigErrors::of_file(name, "refused without a reason: a defect of bursar".to_owned()))
            }
        }
    }

    /// SHA-256 over all definitions in their order, as 64 hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.jobs)
    }

    /// Where a key of a job's table stands in a schedule file, `FILE:LINE:COLUMN`: for what only a store can find out. The
    /// file alone, where it does not say the key (any more).
    #[must_use]
    pub fn place_of(path: &Path, job: &str, table: &str, key: &str) -> String {
        let name = path.display().to_string();
        let find = |text: &str| {
            let (root, _) = read_toml(&name, text);
            let Value::Table(root) = root.value else { return None };
            let Value::List(jobs) = &root.get("job")?.value else { return None };
            jobs.iter().find_map(|node| {
                let Value::Table(found) = &node.value else { return None };
                let is = matches!(&found.get("name")?.value, Value::Text(name) if name == job);
                let Value::Table(inner) = &found.get(table).filter(|_| is)?.value else { return None };
                Some(inner.get(key)?.key_place.to_string())
            })
        };
        read_text(path).ok().and_then(|text| find(&text)).unwrap_or(name.clone())
    }

    /// The elections that its jobs belong to.
    #[must_use]
    pub fn elections(&self) -> BTreeSet<ElectionName> {
        self.jobs.iter().map(|job| job.election.clone()).collect()
    }
}

impl Config {
    /// Reads the schedule, and judges it beside the configuration. No jobs, where nobody named a file and there is none.
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn load_schedule(&self) -> Result<ScheduleFile, ConfigErrors> {
        self.schedule_of(self.schedule_bytes()?)
    }

    /// The bytes of the schedule file; `None` where nobody named one and there is none.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn schedule_bytes(&self) -> Result<Option<Vec<u8>>, ConfigErrors> {
        if self.schedule_may_be_missing && is_absent(&self.schedule) {
            return Ok(None);
        }
        read_file(&self.schedule).map(Some)
    }

    /// The same as [`Config::load_schedule`], of bytes that were read.
    ///
    /// # Errors
    /// Everything that is wrong, in one go.
    pub fn schedule_of(&self, bytes: Option<Vec<u8>>) -> Result<ScheduleFile, ConfigErrors> {
        let Some(bytes) = bytes else { return Ok(ScheduleFile { jobs: Vec::new() }) };
        let text = text_of(&self.schedule, bytes)?;
        let schedule = ScheduleFile::from_str(&self.schedule.display().to_string(), &text)?;
        self.check_schedule(&schedule)?;
        Ok(schedule)
    }

    /// What can be judged only with both files at hand: connections for every election that this replica stands for.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn check_schedule(&self, schedule: &ScheduleFile) -> Result<(), ConfigErrors> {
        let elections = self.replica.elections.among(&schedule.elections()).len();
        let finding = |problem| ConfigError {
            place: self.connections_place.clone(),
            key: "database.max_connections".to_owned(),
            problem,
            scope: Scope::Whole,
        };
        let errors = enough_connections(self.database.max_connections, elections).err().map(finding);
        ConfigErrors::new(errors.into_iter().collect()).map_or(Ok(()), Err)
    }
}

/// Whether there is nothing of that name: a link to nowhere, or what may not be looked at, is something.
pub(crate) fn is_absent(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn schedule(context: &Context<'_>, root: &Node) -> Checked<Vec<JobDefinition>> {
    let mut table = TableReader::new(context, String::new(), root)?;
    let (calendars, tables) = (tables(&mut table, "calendar"), tables(&mut table, "job"));
    table.finish();
    let (calendars, tables) = (calendar::calendars(context, calendars?), tables?);
    if tables.is_empty() {
        context.push(&root.place, "job", "missing; expected at least one [[job]]".to_owned(), Scope::Whole);
    }
    if tables.len() > MOST_JOBS {
        let problem = format!("found {} jobs, expected at most {MOST_JOBS}", tables.len());
        context.push(&root.place, "job", problem, Scope::Whole);
        return Err(Reported);
    }
    let read: Vec<(&Node, Checked<JobDefinition>)> =
        tables.iter().enumerate().map(|(n, node)| (node, job::job(context, n, node, &calendars))).collect();
    let sound: Vec<(&Node, &JobDefinition)> =
        read.iter().filter_map(|(node, job)| job.as_ref().ok().map(|job| (*node, job))).collect();
    names_are_unique(context, tables);
    selections_are_apart(context, &sound);
    elections_are_few(context, root, &sound);
    read.into_iter().map(|(_, job)| job).collect()
}

/// The tables of a list.
fn tables<'a>(table: &mut TableReader<'a>, key: &'static str) -> Checked<&'a [Node]> {
    match table.node(key).map(|node| &node.value) {
        Some(Value::List(items)) => Ok(items),
        Some(
            Value::Text(_) | Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::Table(_) | Value::Variable(_),
        ) => Err(table.refuse(key, format!("expected a list of tables: write [[{key}]]"), Scope::Key)),
        None => Ok(&[]),
    }
}

/// Also among jobs with other findings: so they are compared as written.
fn names_are_unique(context: &Context<'_>, tables: &[Node]) {
    let mut seen: BTreeMap<&str, &Place> = BTreeMap::new();
    for node in tables {
        let Value::Table(table) = &node.value else { continue };
        let Some(Node { place, value: Value::Text(name), .. }) = table.get("name") else { continue };
        if let Some(first) = seen.get(name.as_str()) {
            let problem = format!("another job has this name too ({first}), expected each once");
            context.push(place, &format!("job[{name}].name"), problem, Scope::Whole);
        } else {
            seen.insert(name, place);
        }
    }
}

fn selections_are_apart(context: &Context<'_>, jobs: &[(&Node, &JobDefinition)]) {
    let mut ledgers: Vec<(&Node, &JobDefinition, &LedgerDefinition)> = Vec::new();
    for (node, job) in jobs {
        match &job.handler {
            HandlerDefinition::Ledger(ledger) => ledgers.push((node, job, ledger)),
            HandlerDefinition::Sql(_) | HandlerDefinition::Http(_) | HandlerDefinition::Command(_) => {}
            #[cfg(feature = "chaos")]
            HandlerDefinition::Probe(_) => {}
        }
    }
    // Only jobs that share a source, or take all, can share an entry.
    let mut by_source: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut takes_all: Vec<usize> = Vec::new();
    for (n, (node, job, mine)) in ledgers.iter().enumerate() {
        let earlier: BTreeSet<usize> = if mine.sources.is_empty() {
            (0..n).collect()
        } else {
            let same = mine.sources.iter().filter_map(|source| by_source.get(source.as_str())).flatten();
            same.chain(&takes_all).copied().collect()
        };
        if mine.sources.is_empty() {
            takes_all.push(n);
        }
        for source in &mine.sources {
            by_source.entry(source).or_default().push(n);
        }
        for (other_node, other, theirs) in earlier.into_iter().map(|place| &ledgers[place]) {
            if let Some(shared) = overlap(mine, theirs) {
                let problem = format!(
                    "selects entries that job \"{}\" ({}) selects too ({shared}); expected each entry to be of one job",
                    other.name, other_node.place
                );
                context.push(&node.place, &format!("job[{}].ledger", job.name), problem, Scope::Whole);
            }
        }
    }
}

fn elections_are_few(context: &Context<'_>, root: &Node, jobs: &[(&Node, &JobDefinition)]) {
    let elections: BTreeSet<&ElectionName> = jobs.iter().map(|(_, job)| &job.election).collect();
    if elections.len() > MOST_ELECTIONS {
        let problem = format!("found {} elections, expected at most {MOST_ELECTIONS}", elections.len());
        context.push(&root.place, "job", problem, Scope::Whole);
    }
}
