//! The tables of a `ledger` job: `[job.ledger]` and `[job.payout]`.

use std::collections::{BTreeMap, BTreeSet};

use super::error::Scope;
use super::reader::{Checked, Reported, TableReader};
use super::receiver::{KEYS, receiver};
use super::values::{choice, parsed, text};
use crate::domain::entry::{merchant_id, source_name};
use crate::domain::job::{LedgerDefinition, PayoutDefinition, Release};
use crate::domain::money::Currency;

/// The most sources and currencies that a job may name.
const MOST_NAMES: usize = 256;
/// The most merchants that a job may name.
const MOST_MERCHANTS: usize = 10_000;

/// Reads both tables; `payout` may be absent.
pub(super) fn ledger(mut table: TableReader<'_>, payout: Option<TableReader<'_>>) -> Checked<LedgerDefinition> {
    let sources =
        set(&mut table, "sources", MOST_NAMES, |node| parsed(node, |name| source_name(name).map(str::to_owned)));
    let currencies = set(&mut table, "currencies", MOST_NAMES, |node| parsed(node, Currency::new));
    let merchants = set(&mut table, "merchants", MOST_MERCHANTS, |node| merchant_id(text(node)?));
    let minimum_payout = amounts(&mut table, "minimum_payout");
    let maximum_payout = amounts(&mut table, "maximum_payout");
    if let (Ok(minimum), Ok(maximum)) = (&minimum_payout, &maximum_payout) {
        for (currency, most) in maximum {
            if minimum.get(currency).is_some_and(|least| least > most) {
                let problem = format!("for {currency} below minimum_payout, so nothing could ever be paid");
                table.refuse("maximum_payout", problem, Scope::Whole);
            }
        }
    }
    let release = table
        .or("release", Release::Auto, |node| choice(node, &[("auto", Release::Auto), ("manual", Release::Manual)]));
    table.finish();
    let payout = match payout {
        Some(payout) => self::payout(payout),
        None => Ok(PayoutDefinition::None),
    };
    Ok(LedgerDefinition {
        sources: sources?,
        currencies: currencies?,
        merchants: merchants?,
        minimum_payout: minimum_payout?,
        maximum_payout: maximum_payout?,
        release: release?,
        payout: payout?,
    })
}

fn payout(mut table: TableReader<'_>) -> Checked<PayoutDefinition> {
    let http = table.or("kind", false, |node| choice(node, &[("none", false), ("http", true)]));
    let kind = match http {
        Ok(true) => receiver(&mut table).map(|receiver| PayoutDefinition::Http(Box::new(receiver))),
        Ok(false) => {
            let foreign = table.not_here(&KEYS, "belongs to payouts of kind \"http\"; this job's is \"none\"");
            foreign.map(|()| PayoutDefinition::None)
        }
        Err(Reported) => {
            table.pass_over(&KEYS);
            Err(Reported)
        }
    };
    table.finish();
    kind
}

fn set<T: Ord>(
    table: &mut TableReader<'_>,
    key: &'static str,
    most: usize,
    read: impl Fn(&super::tree::Node) -> super::values::Read<T>,
) -> Checked<BTreeSet<T>> {
    let Some(items) = table.list(key, most, read)? else { return Ok(BTreeSet::new()) };
    let count = items.len();
    let set: BTreeSet<T> = items.into_iter().collect();
    if count == 0 {
        let problem = "found an empty list, expected at least one (or no such key: all)";
        return Err(table.refuse(key, problem, Scope::Key));
    }
    if set.len() < count {
        return Err(table.refuse(key, "names one twice, expected each once", Scope::Key));
    }
    Ok(set)
}

/// A table of amounts by currency, each a text in major units with the currency's own digits.
fn amounts(table: &mut TableReader<'_>, key: &'static str) -> Checked<BTreeMap<Currency, i64>> {
    let Some(inner) = table.optional_table(key)? else { return Ok(BTreeMap::new()) };
    let mut amounts = BTreeMap::new();
    let mut sound = Ok(());
    for (code, node) in inner.keys() {
        let amount = match Currency::new(code) {
            Ok(currency) => parsed(node, |text| currency.parse(text)).and_then(|minor| {
                if minor < 0 {
                    Err(format!("found {}, expected at least 0", currency.format(minor)))
                } else if amounts.insert(currency, minor).is_some() {
                    Err(format!("{currency} stands here twice"))
                } else {
                    Ok(())
                }
            }),
            Err(error) => Err(error.to_string()),
        };
        if let Err(problem) = amount {
            sound = Err(inner.refuse(code, problem, Scope::Key));
        }
    }
    sound.map(|()| amounts)
}

/// What two jobs both take, in words; `None` where no entry can be in both.
pub(super) fn overlap(a: &LedgerDefinition, b: &LedgerDefinition) -> Option<String> {
    let sources = common(&a.sources, &b.sources, "sources")?;
    let currencies = common(&a.currencies, &b.currencies, "currencies")?;
    let merchants = common(&a.merchants, &b.merchants, "merchants")?;
    Some(format!("{sources}, {currencies}, {merchants}"))
}

/// An empty set means all.
fn common<T: Ord + ToString>(a: &BTreeSet<T>, b: &BTreeSet<T>, what: &str) -> Option<String> {
    let shared: Vec<String> = match (a.is_empty(), b.is_empty()) {
        (true, true) => return Some(format!("all {what}")),
        (true, false) => b.iter().map(T::to_string).collect(),
        (false, true) => a.iter().map(T::to_string).collect(),
        (false, false) => a.intersection(b).map(T::to_string).collect(),
    };
    match shared.as_slice() {
        [] => None,
        few if few.len() <= 3 => Some(format!("{what} {}", few.join(" and "))),
        many => Some(format!("{} {what}", many.len())),
    }
}
