//! The table of the handler of the tests.

use super::reader::{Checked, TableReader};
use super::tree::Node;
use super::values::{Read, choice, flag, text, whole, whole_u32};
use crate::domain::job::{ProbeDefinition, ProbeShape};

/// The most units of a probe's run.
const MOST_UNITS: u32 = 1_000_000;
/// The longest wait, in milliseconds.
const MOST_WAIT: i64 = 3_600_000;
/// The most keys in one of its lists.
const MOST_KEYS: usize = 10_000;

pub(super) fn probe(mut table: TableReader<'_>) -> Checked<ProbeDefinition> {
    let shape = table.or("shape", ProbeShape::InStore, |node| {
        choice(node, &[("in_store", ProbeShape::InStore), ("outside", ProbeShape::Outside)])
    });
    let units = table.or("units", 0, |node| whole_u32(node, 0..=MOST_UNITS));
    let millis = |node: &Node| -> Read<u64> {
        whole(node, &(0..=MOST_WAIT)).and_then(|millis| u64::try_from(millis).map_err(|error| error.to_string()))
    };
    let wait_ms = table.or("wait_ms", 0, millis);
    let spin_ms = table.or("spin_ms", 0, millis);
    let mut keys = |key| {
        let list = table.list(key, MOST_KEYS, |node| text(node).map(str::to_owned))?;
        Ok(list.unwrap_or_default().into_iter().collect())
    };
    let (fail, fail_once, panic, wedge) = (keys("fail"), keys("fail_once"), keys("panic"), keys("wedge"));
    let log_file = table.optional("log_file", |node| text(node).map(str::to_owned));
    let idempotent = table.or("idempotent", false, flag);
    table.finish();
    Ok(ProbeDefinition {
        shape: shape?,
        units: units?,
        wait_ms: wait_ms?,
        spin_ms: spin_ms?,
        fail: fail?,
        fail_once: fail_once?,
        panic: panic?,
        wedge: wedge?,
        log_file: log_file?,
        idempotent: idempotent?,
    })
}
