//! Walks a tree table by table and collects findings: what a table is asked for is known, whatever else it holds is not.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::error::{ConfigError, Place, Scope};
use super::tree::{Node, Table, Value};
use super::values::{Read, did_you_mean, kind, nearest, text};
use crate::secret::{Secret, SecretSource, text_of};

/// Reads a file that a key names. Handed in, so that validation itself touches nothing.
pub(super) type ReadFile<'a> = dyn Fn(&Path) -> Result<Vec<u8>, String> + 'a;

/// Stands for a value that a finding was recorded about: what depends on it is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reported;

/// A value, or that a finding was recorded about it.
pub(super) type Checked<T> = Result<T, Reported>;

/// What a whole reading shares: the findings and the way to files.
pub(super) struct Context<'a> {
    errors: RefCell<Vec<ConfigError>>,
    /// What relative paths of the file are relative to. Those of variables are relative to the working directory.
    base: PathBuf,
    read: &'a ReadFile<'a>,
}

impl<'a> Context<'a> {
    pub(super) fn new(base: PathBuf, read: &'a ReadFile<'a>) -> Self {
        Self { errors: RefCell::default(), base, read }
    }

    pub(super) fn push(&self, place: &Place, key: &str, problem: String, scope: Scope) {
        self.errors.borrow_mut().push(ConfigError { place: place.clone(), key: key.to_owned(), problem, scope });
    }

    pub(super) fn into_errors(self) -> Vec<ConfigError> {
        self.errors.into_inner()
    }

    /// The path that a node names, made whole.
    pub(super) fn path(&self, node: &Node) -> Read<PathBuf> {
        Ok(self.whole(Path::new(text(node)?), node))
    }

    /// A path that is written in a node, made whole.
    pub(super) fn whole(&self, path: &Path, node: &Node) -> PathBuf {
        match &node.value {
            Value::Variable(_) => path.to_path_buf(),
            Value::Text(_) | Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::List(_) | Value::Table(_) => {
                self.beside(path)
            }
        }
    }

    /// A path beside the file, or in the working directory where there is none.
    pub(super) fn beside(&self, path: &Path) -> PathBuf {
        self.base.join(path)
    }

    fn file(&self, path: &Path) -> Read<Secret> {
        let shown = path.display();
        let bytes = (self.read)(path).map_err(|error| format!("cannot read {shown}: {error}"))?;
        text_of(bytes).map_err(|problem| format!("{shown} {problem}"))
    }
}

/// One table while it is read. Every method that asks for a key makes it known; [`TableReader::finish`] refuses the rest.
pub(super) struct TableReader<'a> {
    pub(super) context: &'a Context<'a>,
    path: String,
    place: Place,
    table: Option<&'a Table>,
    known: Vec<&'static str>,
    later: Vec<&'static str>,
}

impl<'a> TableReader<'a> {
    /// Reads a node that must be a table.
    pub(super) fn new(context: &'a Context<'a>, path: String, node: &'a Node) -> Checked<Self> {
        match &node.value {
            Value::Table(table) => {
                let place = node.key_place.clone();
                Ok(Self { context, path, place, table: Some(table), known: Vec::new(), later: Vec::new() })
            }
            Value::Text(_)
            | Value::Whole(_)
            | Value::Flag(_)
            | Value::Other(_)
            | Value::List(_)
            | Value::Variable(_) => {
                // Only what kind of value it is: a URL or a password may stand in the wrong place.
                context.push(&node.place, &path, format!("found {}, expected a table", kind(node)), Scope::Key);
                Err(Reported)
            }
        }
    }

    /// A key of this table with its path.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Where the table stands.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The table's keys, known and unknown.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        self.table.into_iter().flatten().map(|(key, node)| (key.as_str(), node))
    }

    /// The node at a key, which becomes known.
    pub(super) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.table.and_then(|table| table.get(key))
    }

    /// Records a finding about a key: at its value where there is one, else at the table.
    pub(super) fn refuse(&self, key: &str, problem: impl Into<String>, scope: Scope) -> Reported {
        let place = self.table.and_then(|table| table.get(key)).map_or(&self.place, |node| &node.place);
        self.context.push(place, &self.key(key), problem.into(), scope);
        Reported
    }

    /// A key that may be absent.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Node) -> Read<T>,
    ) -> Checked<Option<T>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        read(node).map(Some).map_err(|problem| self.refuse(key, problem, Scope::Key))
    }

    /// A key that must be there; `allowed` is said where it is not.
    pub(super) fn required<T>(
        &mut self,
        key: &'static str,
        allowed: &str,
        read: impl FnOnce(&'a Node) -> Read<T>,
    ) -> Checked<T> {
        let missing = format!("missing; expected {allowed}");
        self.optional(key, read)?.ok_or_else(|| self.refuse(key, missing, Scope::Whole))
    }

    /// A key with a default.
    pub(super) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&'a Node) -> Read<T>,
    ) -> Checked<T> {
        self.optional(key, read).map(|value| value.unwrap_or(default))
    }

    /// A list of up to `most` items, each of them read by itself; a variable is one item or several, separated by commas.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        most: usize,
        read: impl Fn(&Node) -> Read<T>,
    ) -> Checked<Option<Vec<T>>> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let split;
        let items = match &node.value {
            Value::List(items) => items,
            Value::Variable(text) => {
                let item = |part: &str| Node { value: Value::Variable(part.to_owned()), ..node.clone() };
                split = text.split(',').map(item).collect();
                &split
            }
            Value::Text(_) | Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::Table(_) => {
                return Err(self.refuse(key, format!("found {}, expected a list in [ ]", kind(node)), Scope::Key));
            }
        };
        if items.len() > most {
            let problem = format!("found {} items, expected at most {most}", items.len());
            return Err(self.refuse(key, problem, Scope::Key));
        }
        let mut values = Vec::with_capacity(items.len());
        for (n, item) in items.iter().enumerate() {
            match read(item) {
                Ok(value) => values.push(value),
                Err(problem) => {
                    self.context.push(&item.place, &format!("{}[{n}]", self.key(key)), problem, Scope::Key);
                }
            }
        }
        if values.len() == items.len() { Ok(Some(values)) } else { Err(Reported) }
    }

    /// A table inside this one; an empty one where it is absent.
    pub(super) fn table(&mut self, key: &'static str) -> Checked<Self> {
        let path = self.key(key);
        match self.node(key) {
            Some(node) => Self::new(self.context, path, node),
            None => Ok(Self {
                context: self.context,
                path,
                place: self.place.clone(),
                table: None,
                known: Vec::new(),
                later: Vec::new(),
            }),
        }
    }

    /// A table inside this one, where it is there.
    pub(super) fn optional_table(&mut self, key: &'static str) -> Checked<Option<Self>> {
        let path = self.key(key);
        match self.node(key) {
            Some(node) => Self::new(self.context, path, node).map(Some),
            None => Ok(None),
        }
    }

    /// A secret: written at `key`, or in the file that `file_key` names, where it will be read anew.
    pub(super) fn secret(&mut self, key: &'static str, file_key: &'static str) -> Checked<Option<SecretSource>> {
        let inline = self.optional(key, |node| {
            text(node)
                .map(Secret::new)
                .map_err(|_| "expected a text in quotes, not empty, without line breaks".to_owned())
        });
        let file = self.file(file_key);
        match (inline?, file?) {
            (Some(_), Some(_)) => {
                let problem = format!("given twice: also as `{file_key}`; expected one of them");
                Err(self.refuse(key, problem, Scope::Whole))
            }
            (Some(secret), None) => Ok(Some(SecretSource::written(secret))),
            (None, Some((path, secret))) => Ok(Some(SecretSource::in_file(path, secret))),
            (None, None) => Ok(None),
        }
    }

    /// The content of the file that a key names, without the newline at its end, and its path.
    pub(super) fn file(&mut self, key: &'static str) -> Checked<Option<(PathBuf, Secret)>> {
        let context = self.context;
        let Some(path) = self.optional(key, |node| context.path(node))? else { return Ok(None) };
        let read = context.file(&path).map_err(|problem| self.refuse(key, problem, Scope::Whole))?;
        Ok(Some((path, read)))
    }

    /// Keys that a later version will know: refused where they are there, with the reason.
    pub(super) fn not_yet(&mut self, keys: &[&'static str], instead: &str) {
        // The finding stands; nothing else depends on these keys.
        let _reported = self.not_here(keys, &format!("not in this version; {instead}"));
    }

    /// Keys that have no place here: refused where they are there, with the reason, and not judged.
    pub(super) fn not_here(&mut self, keys: &[&'static str], problem: &str) -> Checked<()> {
        self.pass_over(keys);
        let mut sound = Ok(());
        for key in keys {
            if self.table.is_some_and(|table| table.contains_key(*key)) {
                sound = Err(self.refuse(key, problem, Scope::Key));
            }
        }
        sound
    }

    /// Keys that are not judged, nor offered as known.
    pub(super) fn pass_over(&mut self, keys: &[&'static str]) {
        self.later.extend(keys);
    }

    /// Refuses every key that nobody asked for.
    pub(super) fn finish(self) {
        let mut known = self.known.clone();
        known.sort_unstable();
        for (key, node) in self.table.into_iter().flatten() {
            if known.contains(&key.as_str()) || self.later.contains(&key.as_str()) {
                continue;
            }
            let problem = match nearest(key, known.iter().copied()) {
                Some(near) => format!("unknown key{}", did_you_mean(Some(near))),
                None => format!("unknown key; known here are `{}`", known.join("`, `")),
            };
            report(self.context, &self.key(key), node, &problem);
        }
    }
}

/// Refuses an unknown key once; each variable of an unknown section for itself, because each is to be taken away.
fn report(context: &Context<'_>, key: &str, node: &Node, problem: &str) {
    match &node.value {
        Value::Table(table) if node.place.line().is_none() && !table.is_empty() => {
            for (inner, node) in table {
                report(context, &format!("{key}.{inner}"), node, &problem.replace("unknown key", "unknown table"));
            }
        }
        Value::Text(_)
        | Value::Whole(_)
        | Value::Flag(_)
        | Value::Other(_)
        | Value::List(_)
        | Value::Table(_)
        | Value::Variable(_) => context.push(&node.key_place, key, problem.to_owned(), Scope::Key),
    }
}
