//! The ledger on whole replicas, end to end: files come in by the command, a leader settles them, and store, instruction and
//! what the commands show agree to the last minor unit.
//!
//! The ledger's own rules are tested at the store's port; here it is the way through all parts that counts.

mod files;
mod reverting;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Cluster, Entries, FakeClock, LedgerJob, Postgres, Setup};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);

/// One replica that leads, with one ledger job named `daily` that runs when it is triggered.
async fn one_replica() -> Cluster {
    let cluster = Setup::new(1, &LedgerJob::new("daily").text()).steady().start().await;
    cluster.wait_leader(READY).await;
    cluster
}

/// What a unit's journal moves out of source clearing, into fees and into payout clearing, in minor units.
async fn journal_of(cluster: &Cluster, run: i64, key: &str) -> (i64, i64, i64) {
    let moved = |condition: &str| format!("coalesce(sum(p.amount) filter (where {condition}), 0)::bigint");
    let query = format!(
        "select {}, {}, {} from bursar.posting p join bursar.journal j on j.id = p.journal_id
           join bursar.unit u on u.id = j.unit_id where u.run_id = {run} and u.key = '{key}'",
        moved("debit_kind = 'source_clearing'"),
        moved("credit_kind = 'fees'"),
        moved("credit_kind = 'payout_clearing'")
    );
    cluster.database().rows(&query).await.remove(0)
}

/// The stored body of a unit's instruction.
async fn body_of(cluster: &Cluster, run: i64, key: &str) -> Value {
    let query = format!(
        "select convert_from(i.body, 'UTF8') from bursar.instruction i join bursar.unit u on u.id = i.unit_id
          where u.run_id = {run} and u.key = '{key}'"
    );
    serde_json::from_str(&cluster.database().value::<String>(&query).await).expect("a body is JSON")
}

/// Sees that a unit was settled with that net, everywhere the same: `minor` units in store, journal and body, `major` in body
/// and command.
async fn assert_paid(cluster: &Cluster, run: i64, key: &str, major: &str, minor: i64) {
    let shown = cluster.unit_shown(run, key);
    assert_eq!((&shown["state"], &shown["net"]), (&"settled".into(), &major.into()), "{shown}");
    let instruction = &shown["instructions"][0];
    let currency = key.split(':').next().expect("a key has a currency");
    assert_eq!(
        (&instruction["amount"], &instruction["currency"], &instruction["state"]),
        (&major.into(), &currency.into(), &"pending".into()),
        "{shown}"
    );
    assert_eq!(shown["instructions"].as_array().map(Vec::len), Some(1), "{shown}");
    let stored = format!(
        "select u.net, i.amount from bursar.unit u join bursar.instruction i on i.unit_id = u.id
          where u.run_id = {run} and u.key = '{key}'"
    );
    assert_eq!(cluster.database().rows::<(i64, i64)>(&stored).await, [(minor, minor)], "{key}");
    let (gross, fees, paid) = journal_of(cluster, run, key).await;
    assert_eq!((gross - fees, paid), (minor, minor), "{key}");
    let body = body_of(cluster, run, key).await;
    let minor = minor.to_string();
    assert_eq!(
        (&body["amount"], &body["amount_minor"], &body["currency"]),
        (&major.into(), &minor.as_str().into(), &currency.into()),
        "{body}"
    );
    assert_eq!(body["key"], instruction["key"], "{body}");
    let named = ["job", "tick"].map(|part| body[part].as_str().unwrap_or_default()).join("/");
    assert!(body["run"].as_str().is_some_and(|run| run.starts_with(&named)), "{body}");
}

#[tokio::test]
async fn amounts_agree_to_the_minor_unit_in_store_journal_instruction_and_command() {
    let cluster = one_replica().await;
    let entries = Entries::new()
        .capture("tori", "JPY", "10000")
        .fee("150")
        .capture("tori", "JPY", "1050")
        .capture("dar", "KWD", "18.600")
        .capture("cent", "EUR", "0.03")
        .fee("0.01")
        .capture("cent", "EUR", "70000000000000.10")
        .refund("cent", "EUR", "-0.01")
        .fee("-0.01")
        .capture("uf", "CLF", "1.0001");
    let imported = cluster.import_file(&entries.write("entries.csv"), "psp").ok().json();
    assert_eq!(imported["outcome"], "imported");
    assert_eq!(
        (&imported["import"]["sums"]["JPY"], &imported["import"]["sums"]["KWD"]),
        (&"11050".into(), &"18.600".into()),
        "{imported}"
    );
    let run = cluster.run_now("daily").await;
    assert_paid(&cluster, run, "JPY:tori", "10900", 10_900).await;
    assert_paid(&cluster, run, "KWD:dar", "18.600", 18_600).await;
    assert_paid(&cluster, run, "EUR:cent", "70000000000000.12", 7_000_000_000_000_012).await;
    assert_paid(&cluster, run, "CLF:uf", "1.0001", 10_001).await;
    let shown = cluster.run_shown(run);
    let paid_out: BTreeMap<String, String> =
        serde_json::from_value(shown["paid_out"].clone()).expect("sums by currency, as text");
    let expected = [("CLF", "1.0001"), ("EUR", "70000000000000.12"), ("JPY", "10900"), ("KWD", "18.600")];
    assert_eq!(paid_out, expected.map(|(currency, sum)| (currency.to_owned(), sum.to_owned())).into());
    assert_eq!((&shown["summary"]["state"], &shown["summary"]["units"]["settled"]), (&"complete".into(), &4.into()));
    let table = cluster.command(&["units", "show", &run.to_string(), "JPY:tori"]).ok().stdout;
    assert!(table.contains("10900 JPY") && !table.contains("10900.0"), "{table}");
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_negative_net_is_carried_and_netted_by_the_next_run() {
    let cluster = one_replica().await;
    cluster.import(&Entries::new().capture("m", "EUR", "10.00").refund("m", "EUR", "-35.00"), "psp").ok();
    let first = cluster.run_now("daily").await;
    let shown = cluster.unit_shown(first, "EUR:m");
    assert_eq!((&shown["state"], &shown["net"]), (&"carried".into(), &"-25.00".into()), "{shown}");
    assert_eq!(shown["instructions"].as_array().map(Vec::len), Some(0), "{shown}");
    assert_eq!(cluster.run_shown(first)["summary"]["units"]["carried"], 1);
    let open: String = cluster.command(&["audit", "--json"]).ok().json()["open"]["EUR"].as_str().unwrap_or("").into();
    assert_eq!(open, "-25.00");
    cluster.import(&Entries::with_ids("n").capture("m", "EUR", "100.00"), "psp").ok();
    let second = cluster.run_now("daily").await;
    let shown = cluster.unit_shown(second, "EUR:m");
    assert_eq!((&shown["state"], &shown["net"]), (&"settled".into(), &"75.00".into()), "{shown}");
    assert_eq!(shown["instructions"][0]["amount"], "75.00");
    assert_eq!(body_of(&cluster, second, "EUR:m").await["amount_minor"], "7500");
    cluster.assert_sound().await;
}

#[tokio::test]
async fn entries_that_are_committed_after_the_run_has_read_are_in_the_next_one() {
    let cluster = Setup::new(2, &LedgerJob::new("daily").text()).steady().prepare().await;
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    // Never started: its commands stop at the point.
    let late = cluster.replica(1);
    late.set_chaos("store.import.before_commit=pause");
    cluster.import(&Entries::new().capture("m", "EUR", "10.00"), "psp").ok();
    let entries = Entries::with_ids("late").capture("m", "EUR", "5.00").capture("only-late", "EUR", "1.00");
    let file = entries.write("late.csv");
    let importing = late.begin(&["import", &file.to_string_lossy(), "--source", "psp"]);
    late.wait_hit("store.import.before_commit", READY).await;

    let first = cluster.run_now("daily").await;
    assert_eq!(cluster.units_shown(first), [("EUR:m".to_owned(), ("10.00".to_owned(), "settled".to_owned()))].into());
    late.release("store.import.before_commit");
    assert!(importing.wait(READY).success(), "{}", importing.log());
    let second = cluster.run_now("daily").await;
    let expected = [("EUR:m", "5.00"), ("EUR:only-late", "1.00")];
    assert_eq!(
        cluster.units_shown(second),
        expected.map(|(key, net)| (key.to_owned(), (net.to_owned(), "settled".to_owned()))).into()
    );
    cluster.assert_sound().await;
}

/// The repository's sample of that name.
fn sample(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config/samples").join(name)
}

#[tokio::test]
async fn the_sample_entries_settle_to_the_nets_that_an_independent_program_worked_out() {
    // The sample lies in a year to come, or one that is past by now: the store's clock is set behind all of it.
    let clock = FakeClock::new();
    clock.set("+400d");
    let server = Postgres::start_with(&[], &clock.env());
    let setup = Setup::new(2, &LedgerJob::new("daily").batch(500, 2).text()).steady().on_postgres(&server);
    let cluster = setup.start().await;
    cluster.wait_leader(READY).await;
    let imported = cluster.import_file(&sample("entries.csv"), "psp").ok().json();
    assert_eq!(imported["import"]["rows"], 12_000);
    let run = cluster.run_now("daily").await;

    let mut expected = BTreeMap::new();
    let mut payouts = BTreeMap::new();
    let mut reader = csv::Reader::from_path(sample("expected-nets.csv")).expect("the nets");
    for row in reader.records() {
        let row = row.expect("a row");
        let (merchant, currency, net, state) = (&row[0], &row[1], &row[5], &row[6]);
        let key = format!("{currency}:{merchant}");
        if state == "settled" && net.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
            payouts.insert(key.clone(), net.to_owned());
        }
        expected.insert(key, (net.to_owned(), state.to_owned()));
    }
    let found = cluster.units_shown(run);
    assert_eq!(found.len(), expected.len());
    for (key, net) in &expected {
        assert_eq!(found.get(key), Some(net), "{key}");
    }
    // What is written for the receiver says the same as the unit.
    let written = "select u.key, convert_from(i.body, 'UTF8')::jsonb ->> 'amount'
                     from bursar.instruction i join bursar.unit u on u.id = i.unit_id";
    let written: BTreeMap<String, String> =
        cluster.database().rows::<(String, String)>(written).await.into_iter().collect();
    assert_eq!(written.len(), payouts.len());
    for (key, net) in &payouts {
        assert_eq!(written.get(key), Some(net), "{key}");
    }
    cluster.assert_sound().await;
}
