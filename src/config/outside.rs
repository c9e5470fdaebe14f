//! The tables of the handlers of the user's own work: `[job.sql]`, `[job.http]`, `[job.command]`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::reader::{Checked, TableReader};
use super::receiver::{path, receiver};
use super::tree::{Node, Value};
use super::values::{Read, duration, flag, text};
use crate::domain::outside::{CommandDefinition, HttpDefinition, SqlDefinition};

/// The longest statement, in bytes.
const MOST_SQL: usize = 64 * 1024;
/// The most arguments of a command.
const MOST_ARGS: usize = 64;
/// The most variables that are handed through to a command.
const MOST_VARIABLES: usize = 64;
/// Bounds of a command's `timeout`.
const COMMAND_TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24);
/// What `settle` reads its units from.
const BATCH: &str = "bursar_batch";

pub(super) fn sql(mut table: TableReader<'_>) -> Checked<SqlDefinition> {
    let units = units(&mut table);
    let settle = table.required("settle", "one statement over bursar_batch", |node| {
        let written = statement(node)?;
        if !written.contains(BATCH) {
            return Err(format!("found no {BATCH}, expected one statement that settles its rows"));
        }
        Ok(written)
    });
    table.finish();
    Ok(SqlDefinition { units: units?, settle: settle? })
}

pub(super) fn http(mut table: TableReader<'_>) -> Checked<HttpDefinition> {
    let units = units(&mut table);
    let receiver = receiver(&mut table);
    table.finish();
    Ok(HttpDefinition { units: units?, receiver: receiver? })
}

pub(super) fn command(mut table: TableReader<'_>) -> Checked<CommandDefinition> {
    let units = units(&mut table);
    let program = table.required("program", "the absolute path of a program", path);
    let args = table.list("args", MOST_ARGS, argument);
    let environment = table.list("environment", MOST_VARIABLES, variable);
    let idempotent = table.or("idempotent", false, flag);
    let timeout = table.or("timeout", Duration::from_mins(1), |node| duration(node, &COMMAND_TIMEOUT));
    table.finish();
    Ok(CommandDefinition {
        units: units?,
        program: program?,
        args: args?.unwrap_or_default(),
        environment: environment?.unwrap_or_default().into_iter().collect::<BTreeSet<_>>(),
        idempotent: idempotent?,
        timeout: timeout?,
    })
}

fn units(table: &mut TableReader<'_>) -> Checked<String> {
    table.required("units", "a query with the columns key and payload", statement)
}

/// A statement: several lines are fine, which other texts may not have. What it does, only a database can judge.
fn statement(node: &Node) -> Read<String> {
    let (Value::Text(written) | Value::Variable(written)) = &node.value else { return text(node).map(str::to_owned) };
    let written = written.trim();
    if written.is_empty() {
        return Err("found an empty text, expected a statement".to_owned());
    }
    if written.len() > MOST_SQL {
        return Err(format!("found {} bytes, expected at most {MOST_SQL}", written.len()));
    }
    if written.contains('\0') {
        return Err("found the control character '\\0', expected none".to_owned());
    }
    Ok(written.to_owned())
}

/// An argument may be empty.
fn argument(node: &Node) -> Read<String> {
    match &node.value {
        Value::Text(written) if written.is_empty() => Ok(String::new()),
        Value::Text(_)
        | Value::Variable(_)
        | Value::Whole(_)
        | Value::Flag(_)
        | Value::Other(_)
        | Value::List(_)
        | Value::Table(_) => text(node).map(str::to_owned),
    }
}

fn variable(node: &Node) -> Read<String> {
    let name = text(node)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.bytes().all(fits) || name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err("found no name of a variable, expected A-Z, a-z, 0-9 and _".to_owned());
    }
    if name.to_ascii_uppercase().starts_with("BURSAR_") {
        return Err("found a variable of bursar's own, expected another: its configuration is not handed on".to_owned());
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::reader::Context;
    use super::super::tree::read_toml;
    use super::*;

    fn read<T>(text: &str, table: impl FnOnce(TableReader<'_>) -> Checked<T>) -> T {
        let (root, syntax) = read_toml("s.toml", text);
        let context = Context::new(PathBuf::new(), &|_| Err("no files".to_owned()));
        let value = TableReader::new(&context, String::new(), &root).and_then(table);
        let errors = context.into_errors();
        assert!(syntax.is_empty() && errors.is_empty(), "{syntax:?} {errors:?}");
        value.expect("nothing was found")
    }

    #[test]
    fn what_is_left_out_has_its_default_and_what_is_said_is_kept() {
        let least = read("units = \"select\"\nurl = \"https://bank/p\"", http).receiver;
        assert_eq!((least.idempotent, least.max_refusals, least.max_in_flight), (false, 20, 16));
        assert_eq!((least.timeout, least.key_valid_for), (Duration::from_secs(10), Duration::from_hours(20)));
        assert!(least.refusals.is_empty() && least.not_done.is_empty() && least.secret_files.is_empty());
        assert_eq!((least.lookup_url, least.max_per_second, least.tls_ca), (None, None, None));
        let whole = "units = \"select\"\nurl = \"https://bank/p\"\nidempotent = true\nkey_valid_for = \"1h\"\n\
                     refusals = [402, 422]\nmax_refusals = 5\nnot_done = [503]\ntimeout = \"3s\"\n\
                     secret_files = [\"/a\", \"/b\"]\ntls_ca = \"/ca\"\nlookup_url = \"https://bank/p/{key}\"\n\
                     max_per_second = 50\nmax_in_flight = 8";
        let whole = read(whole, http).receiver;
        assert_eq!((whole.refusals, whole.not_done), ([402, 422].into(), [503].into()));
        assert_eq!(
            (whole.secret_files, whole.tls_ca),
            (vec!["/a".to_owned(), "/b".to_owned()], Some("/ca".to_owned()))
        );
        assert_eq!((whole.max_per_second, whole.max_in_flight, whole.max_refusals), (Some(50), 8, 5));
        let least = read("units = \"select\"\nprogram = \"/bin/true\"", command);
        assert_eq!((least.idempotent, least.timeout, least.args.len()), (false, Duration::from_mins(1), 0));
        let sql = read("units = '''\nselect\n 1'''\nsettle = \"select f(key) from bursar_batch\"", sql);
        assert_eq!(sql.units, "select\n 1");
    }
}
