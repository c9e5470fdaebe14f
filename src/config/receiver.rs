//! The keys of a receiver of requests: those of `[job.payout]` with `kind = "http"` and of `[job.http]`.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::Scope;
use super::reader::{Checked, TableReader};
use super::tree::Node;
use super::values::{Read, duration, flag, parsed, text, whole_u32};
use crate::domain::outside::ReceiverDefinition;
use crate::domain::web_address::{AddressError, WebAddress};

/// Bounds of `timeout`.
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(5);
/// Bounds of `key_valid_for`.
const KEY_VALID_FOR: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(366 * 24);
/// Bounds of `max_refusals`.
const MAX_REFUSALS: RangeInclusive<u32> = 1..=10_000;
/// Bounds of `max_per_second`.
const MAX_PER_SECOND: RangeInclusive<u32> = 1..=10_000;
/// Bounds of `max_in_flight`.
const MAX_IN_FLIGHT: RangeInclusive<u32> = 1..=1_000;
/// The most statuses that a list may name.
const MOST_STATUSES: usize = 64;
/// Secrets that are valid at a time: the old and the new one.
const MOST_SECRETS: usize = 2;
/// Statuses that mean something else than a no, whatever a receiver means by them.
const NEVER_A_REFUSAL: [u32; 7] = [401, 403, 408, 409, 412, 425, 429];
/// Says so much about fencing that it cannot say that nothing was done without it.
const NEVER_NOT_DONE: [u32; 1] = [412];

/// All keys of a receiver.
pub(super) const KEYS: [&str; 12] = [
    "url",
    "idempotent",
    "key_valid_for",
    "refusals",
    "max_refusals",
    "not_done",
    "timeout",
    "secret_files",
    "tls_ca",
    "lookup_url",
    "max_per_second",
    "max_in_flight",
];

/// Reads the keys; the table may have others, so it is not finished here.
pub(super) fn receiver(table: &mut TableReader<'_>) -> Checked<ReceiverDefinition> {
    let url = table.required("url", "where requests go", |node| address(node, WebAddress::new));
    let lookup_url = table.optional("lookup_url", |node| address(node, |text| WebAddress::for_key(text, "k")));
    let idempotent = table.or("idempotent", false, flag);
    let key_valid_for = table.or("key_valid_for", Duration::from_hours(20), |node| duration(node, &KEY_VALID_FOR));
    let timeout = table.or("timeout", Duration::from_secs(10), |node| duration(node, &TIMEOUT));
    if let (Ok(valid), Ok(timeout)) = (key_valid_for, timeout)
        && valid <= 4 * timeout
    {
        let problem = "too short for one try: expected more than four times `timeout`";
        table.refuse("key_valid_for", problem, Scope::Whole);
    }
    let refusals = statuses(table, "refusals", 400..=499, &NEVER_A_REFUSAL);
    let not_done = statuses(table, "not_done", 400..=599, &NEVER_NOT_DONE);
    if let (Ok(refusals), Ok(not_done)) = (&refusals, &not_done)
        && let Some(both) = refusals.intersection(not_done).next()
    {
        table.refuse(
            "not_done",
            format!("names {both}, which `refusals` names too; expected one of them"),
            Scope::Whole,
        );
    }
    let max_refusals = table.or("max_refusals", 20, |node| whole_u32(node, MAX_REFUSALS));
    let secret_files = secret_files(table);
    let tls_ca = table.optional("tls_ca", path);
    let max_per_second = table.optional("max_per_second", |node| whole_u32(node, MAX_PER_SECOND));
    let max_in_flight = table.or("max_in_flight", 16, |node| whole_u32(node, MAX_IN_FLIGHT));
    Ok(ReceiverDefinition {
        url: url?,
        idempotent: idempotent?,
        key_valid_for: key_valid_for?,
        refusals: refusals?,
        max_refusals: max_refusals?,
        not_done: not_done?,
        timeout: timeout?,
        secret_files: secret_files?,
        tls_ca: tls_ca?,
        lookup_url: lookup_url?,
        max_per_second: max_per_second?,
        max_in_flight: max_in_flight?,
    })
}

fn address(node: &Node, read: impl FnOnce(&str) -> Result<WebAddress, AddressError>) -> Read<String> {
    parsed(node, |written| read(written).map(|_| written.to_owned()))
}

/// An absolute path: a schedule is the same on every replica, wherever each was started.
pub(super) fn path(node: &Node) -> Read<String> {
    let written = text(node)?;
    if !written.starts_with('/') {
        return Err("found a relative path, expected an absolute one".to_owned());
    }
    Ok(written.to_owned())
}

fn statuses(
    table: &mut TableReader<'_>,
    key: &'static str,
    bounds: RangeInclusive<u32>,
    never: &[u32],
) -> Checked<BTreeSet<u16>> {
    let list = table.list(key, MOST_STATUSES, |node| {
        let status = whole_u32(node, bounds.clone())?;
        if never.contains(&status) {
            return Err(format!("found {status}, which has a meaning of its own and cannot be listed here"));
        }
        u16::try_from(status).map_err(|error| error.to_string())
    })?;
    Ok(list.unwrap_or_default().into_iter().collect())
}

fn secret_files(table: &mut TableReader<'_>) -> Checked<Vec<String>> {
    let files = table.list("secret_files", MOST_SECRETS, path)?.unwrap_or_default();
    if files.iter().collect::<BTreeSet<_>>().len() < files.len() {
        return Err(table.refuse("secret_files", "names one twice, expected each once", Scope::Key));
    }
    Ok(files)
}
