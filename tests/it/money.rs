//! Control over money, as operators have it: the report of a run, a statement against the payouts, a unit's history, two pairs
//! of eyes, and what `check` asks the store.

use std::path::{Path, PathBuf};

use bursar::domain::entry::EntryKind;
use bursar::store::{OpenRun, PayoutFilter, PayoutView, Resolution};
use chrono::SecondsFormat;
use sqlx::{Connection, PgConnection};

use super::desk::{Desk, Ground, actor, capture, entry, everything, on_every_store};
use super::support::process::Launch;
use super::support::replica::BINARY;
use super::support::{Database, Finished, scratch};

on_every_store!(
    a_report_and_a_statement_agree_with_the_store_to_the_last_minor_unit,
    check_names_the_query_that_the_store_does_not_understand,
    check_warns_of_open_carries_of_a_job_that_is_not_in_the_schedule,
);

/// A job that never fires while a test runs.
const NEVER: &str = "[[job]]\nname = \"daily\"\ncron = \"0 0 29 2 *\"\nhandler = \"ledger\"\n";

/// The same job, which settles no ledger any more.
const NO_LEDGER: &str = "[[job]]\nname = \"daily\"\ncron = \"0 0 29 2 *\"\nhandler = \"sql\"\n[job.sql]\n\
    units = \"select 'a' as key, null as payload\"\nsettle = \"select key from bursar_batch\"\n";

/// A configuration for commands, with a schedule beside it.
fn configured(url: &str, schedule: &str, more: &str) -> PathBuf {
    let folder = scratch::folder("money");
    let text = format!(
        "schedule = \"schedule.toml\"\n[coordinator]\nkind = \"database\"\n[database]\nurl = \"{url}\"\n{more}"
    );
    std::fs::write(folder.join("bursar.toml"), text).expect("the folder is ours");
    std::fs::write(folder.join("schedule.toml"), schedule).expect("the folder is ours");
    folder.join("bursar.toml")
}

fn bursar(config: &Path, args: &[&str]) -> Finished {
    Launch::new("money", BINARY).args(["--config"]).arg(config).args(args).finish()
}

/// Payouts of a run that are paid: 10900 JPY and 18.600 KWD.
async fn paid<D: Ground>(desk: &Desk<D>) -> (OpenRun, Vec<PayoutView>) {
    let job = desk.job("daily", everything()).await;
    let entries = vec![
        capture("a1", "acme", "JPY", "10000"),
        entry("a2", "acme", "JPY", EntryKind::Capture, "1050", "150"),
        capture("a3", "acme", "KWD", "18.600"),
    ];
    desk.import("psp", entries).await;
    let run = desk.settled(&job).await;
    let filter = PayoutFilter { run: Some(run.id), limit: 10, ..PayoutFilter::default() };
    let payouts = desk.store.payouts(&filter).await.expect("an answer");
    for payout in &payouts {
        let word = Resolution::Paid(format!("R-{}", payout.currency));
        desk.store.resolve_payout(&payout.key, &word, "on the statement", &actor()).await.expect("an answer");
    }
    (run, payouts)
}

async fn a_report_and_a_statement_agree_with_the_store_to_the_last_minor_unit<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (run, payouts) = paid(&desk).await;
    let config = configured(&desk.database.address(), NEVER, "");
    let tick = run.tick.to_rfc3339_opts(SecondsFormat::Secs, true);
    let report = ["report", "daily", "--tick", &tick];
    let json = bursar(&config, &[&report[..], &["--json"]].concat()).ok().json();
    let [jpy, kwd] = json[0]["currencies"].as_array().expect("a list").as_slice() else { panic!("two: {json}") };
    assert_eq!((&jpy["imported"], &jpy["fees"], &jpy["paid"]), (&"11050".into(), &"150".into(), &"10900".into()));
    assert_eq!((&kwd["currency"], &kwd["paid"], &kwd["in_flight"]), (&"KWD".into(), &"18.600".into(), &"0.000".into()));
    let csv = bursar(&config, &[&report[..], &["--csv"]].concat()).ok().stdout;
    assert!(csv.contains(&format!("sum,{},JPY,0,11050,150,10900,0,0,0,0,0,0,yes,", run.id)), "{csv}");
    for payout in &payouts {
        let line = format!("{},acme,{},{},R-{},paid,", payout.key, payout.amount, run.value_date, payout.currency);
        assert!(csv.contains(&line), "{line}\n{csv}");
    }
    let text = bursar(&config, &report).ok().stdout;
    assert!(text.contains("JPY: adds up, and agrees with units and journal"), "{text}");
    assert_eq!(bursar(&config, &["report", "none", "--tick", &tick]).code(), Some(1));
    assert_eq!(bursar(&config, &[&report[..], &["--csv", "--json"]].concat()).code(), Some(64));

    let file = scratch::folder("statement").join("statement.csv");
    let file = file.to_string_lossy();
    let header = "key,reference,amount,currency,value_date\n";
    let day = run.value_date;
    let state = |lines: &[String]| {
        std::fs::write(&*file, format!("{header}{}", lines.join(""))).expect("the folder is ours");
        bursar(&config, &["reconcile", &file, "--json"])
    };
    let by_key = format!("{},,{},{},{day}\n", payouts[0].key, payouts[0].amount, payouts[0].currency);
    let by_reference = format!(",R-{},{},{},{day}\n", payouts[1].currency, payouts[1].amount, payouts[1].currency);
    let agreed = state(&[by_key.clone(), by_reference]).ok().json();
    assert_eq!((&agreed["agrees"], &agreed["counts"]["matched"]), (&true.into(), &2.into()));
    let differs = state(&[format!("{},,1,JPY,{day}\n", payouts[0].key), format!("bnone,,1,EUR,{day}\n")]);
    assert_eq!(differs.code(), Some(1), "{}", differs.stderr);
    let counts = &differs.json()["counts"];
    for verdict in ["amount_differs", "unknown", "missing"] {
        assert_eq!(counts[verdict], 1, "{verdict}: {counts}");
    }
    let bad = state(&["b,,10.5,JPY,2027-01-04\n".to_owned()]);
    assert_eq!(bad.code(), Some(1));
    assert!(bad.stderr.contains("statement.csv:2: amount:"), "{}", bad.stderr);

    let unit = bursar(&config, &["units", "show", &run.id.to_string(), "JPY:acme", "--json"]).ok().json();
    assert_eq!((&unit["key"], &unit["entries"][0]["entries"]), (&"JPY:acme".into(), &2.into()));
    assert_eq!(
        (&unit["requests"][0]["state"], &unit["acts"][0]["action"]),
        (&"paid".into(), &"payouts resolve".into())
    );
    // A minor unit somewhere, and the report says where.
    desk.database.broken_by("update bursar.unit set net = net + 1 where key = 'JPY:acme'").await;
    let broken = bursar(&config, &report);
    assert_eq!(broken.code(), Some(1), "{}", broken.stdout);
    assert!(
        broken
            .stdout
            .contains("DOES NOT AGREE: JPY: brought forward + imported - fees is 10900, the nets of the units 10901")
    );
    desk.store.close().await;
}

async fn check_names_the_query_that_the_store_does_not_understand<D: Ground>() {
    let database = Desk::<D>::migrated().await;
    let job = |name: &str, units: &str, settle: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ncron = \"0 0 29 2 *\"\nhandler = \"sql\"\n[job.sql]\nunits = \"{units}\"\nsettle = \"{settle}\"\n"
        )
    };
    let good = job("good", "select 'a' as key, null as payload", "select key from bursar_batch");
    let config = configured(&database.address(), &good, "");
    let asked = bursar(&config, &["check", "--json"]).ok().json();
    assert_eq!(asked["queries"]["understood"], 2, "{asked}");
    let bad = [
        good,
        job("units", "select nothing as key, null as payload from nowhere", "select 1 from bursar_batch"),
        job("settle", "select 'a' as key, null as payload", "select no_such_column from bursar_batch"),
        job("two", "select 'a' as key, null as payload; select 1", "select 1 from bursar_batch"),
    ];
    let config = configured(&database.address(), &bad.concat(), "");
    let refused = bursar(&config, &["check"]);
    assert_eq!(refused.code(), Some(78), "{}", refused.stdout);
    for what in [
        "schedule.toml:13:1: job[units].sql.units:",
        "schedule.toml:21:1: job[settle].sql.settle:",
        "job[two].sql.units:",
    ] {
        assert!(refused.stderr.contains(what), "{what}: {}", refused.stderr);
    }
    assert!(!refused.stderr.contains("job[good]"), "{}", refused.stderr);
    let offline = bursar(&config, &["check", "--offline"]).ok().stdout;
    assert!(offline.contains("warning: the queries of jobs were not checked: --offline"), "{offline}");
    let tables: i64 = database
        .value(D::words(
            "select count(*) from pg_class where relname = 'bursar_batch'",
            "select count(*) from sqlite_schema where name = 'bursar_batch'",
        ))
        .await;
    assert_eq!(tables, 0, "nothing is left behind");
}

async fn check_warns_of_open_carries_of_a_job_that_is_not_in_the_schedule<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("psp", vec![entry("r1", "acme", "JPY", EntryKind::Refund, "-50", "0")]).await;
    desk.settled(&job).await;
    let warned = |schedule: &str| {
        let asked = bursar(&configured(&desk.database.address(), schedule, ""), &["check", "--json"]).ok().json();
        let warnings = asked["warnings"].as_array().expect("a list").clone();
        let gone = asked["carries"]["of_jobs_that_are_gone"].as_array().expect("a list").len();
        (
            gone,
            warnings.iter().any(|warning| warning.as_str().is_some_and(|words| words.contains("has 1 open carries"))),
        )
    };
    assert_eq!(warned(NEVER), (0, false));
    assert_eq!(warned(&NEVER.replace("daily", "weekly")), (1, true));
    assert_eq!(warned(NO_LEDGER), (1, true));
    desk.store.close().await;
}

#[tokio::test]
async fn a_second_role_approves_and_nobody_gets_round_it() {
    let database = Desk::<Database>::migrated().await;
    let second = database.as_second_role().await;
    let desk = Desk::on(database.clone()).await;
    let job = desk.job("daily", everything()).await;
    desk.import("psp", vec![capture("a1", "acme", "JPY", "10900")]).await;
    let run = desk.settled(&job).await;
    let filter = PayoutFilter { run: Some(run.id), limit: 1, ..PayoutFilter::default() };
    let key = desk.store.payouts(&filter).await.expect("an answer").remove(0).key;
    let ann = configured(&database.url(), NEVER, "[operator]\nfour_eyes = true\n");
    // This one knows nothing of it, and that makes no difference.
    let bob = configured(&second, NEVER, "");
    let resolve = ["payouts", "resolve", &key, "--paid", "R-1", "--reason", "on the statement", "--json"];
    let waits = bursar(&ann, &resolve).ok().json();
    let request = waits["request"].as_i64().unwrap_or_else(|| panic!("it waits: {waits}")).to_string();
    assert_eq!(bursar(&bob, &resolve).ok().json()["request"].to_string(), request, "the same is asked once");
    let list = bursar(&bob, &["approve"]).ok().stdout;
    assert!(list.contains(&format!("payouts resolve {key} --paid R-1")) && list.contains("bursar ("), "{list}");
    let alone = bursar(&ann, &["approve", &request]);
    assert_eq!(alone.code(), Some(1));
    assert!(alone.stderr.contains("asked by the database role bursar, and bursar approves"), "{}", alone.stderr);
    // Nor past the product, whichever role it is.
    for url in [&database.url(), &second] {
        let mut connection = PgConnection::connect(url).await.expect("the server answers");
        for statement in [
            "update bursar.instruction set resolved_act_id = (select min(id) from bursar.operator_act)",
            "update bursar.instruction set release = 'released'",
            "update bursar.import set reverted_at = now()",
            "update bursar.deployment set four_eyes = false",
            "update bursar.approval set role = 'other'",
            "update bursar.approval set state = 'approved', decided_role = 'other', decided_user = 'x', decided_host = 'x', \
             decided_at = now(), decided_act_id = act_id, decided_xact = pg_current_xact_id()",
            "insert into bursar.approval (action, target, request, found, reason, role, os_user, host, act_id) \
             select action, target, request, found, reason, 'other', os_user, host, act_id from bursar.approval",
            "delete from bursar.approval",
        ] {
            let outcome = sqlx::raw_sql(statement).execute(&mut connection).await;
            let error = outcome.expect_err(statement);
            let state =
                error.as_database_error().and_then(sqlx::error::DatabaseError::code).unwrap_or_default().into_owned();
            // The second role has no right to delete at all.
            assert!(["BU004", "BU005", "42501"].contains(&state.as_str()), "{statement}: {state}");
        }
        connection.close().await.ok();
    }
    let approved = bursar(&bob, &["approve", &request, "--reason", "seen on my copy", "--json"]).ok().json();
    assert_eq!((&approved["outcome"], &approved["did"]["now"]), (&"approved".into(), &"paid".into()), "{approved}");
    let history = bursar(&bob, &["history", "--json"]).ok().json();
    let acts = history["acts"].as_array().expect("a list");
    let by = |action: &str| acts.iter().find(|act| act["action"] == action).map(|act| act["role"].clone());
    assert_eq!(by("ask: payouts resolve"), Some("bursar".into()));
    assert_eq!((by("approve"), by("payouts resolve")), (Some("second_eyes".into()), Some("second_eyes".into())));
    // Its end waits for the other role too.
    let off = configured(&database.url(), NEVER, "[operator]\nfour_eyes = false\n");
    let asked = bursar(&off, &["migrate", "--json"]).ok().json();
    let end = asked["four_eyes"]["request"].to_string();
    assert_eq!(bursar(&off, &["approve", &end]).code(), Some(1));
    bursar(&bob, &["approve", &end]).ok();
    assert_eq!(bursar(&off, &["migrate", "--json"]).ok().json()["four_eyes"]["outcome"], "off");
    desk.audit_is_clean().await;
    desk.store.close().await;
}

#[test]
fn four_eyes_are_refused_where_there_are_no_roles() {
    let config = configured("sqlite://bursar.db", NEVER, "[operator]\nfour_eyes = true\n");
    let refused = bursar(&config, &["check", "--offline"]);
    assert_eq!(refused.code(), Some(78));
    assert!(
        refused.stderr.contains("bursar.toml:7:13: operator.four_eyes: found true beside a SQLite file"),
        "{}",
        refused.stderr
    );
}
