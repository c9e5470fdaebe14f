//! Everything that may be wrong in a schedule, and the lines that say so.

use std::time::Duration;

use bursar::config::ScheduleFile;
use bursar::domain::job::{CutoffRule, HandlerDefinition};
use chrono::NaiveTime;
use proptest::prelude::*;

const JOB: &str = "[[job]]\nname = \"a\"\ncron = \"0 6 * * *\"\nhandler = \"ledger\"\n";

fn read(text: &str) -> Result<ScheduleFile, String> {
    ScheduleFile::from_str("s.toml", text).map_err(|errors| errors.to_string())
}

/// What follows [`JOB`], and the starts of the lines that must be reported.
const AFTER_JOB: &[(&str, &[&str])] = &[
    ("x = 1", &["s.toml:5:1: job[a].x: unknown key; known here are `batch`"]),
    ("missfire = \"skip\"", &["s.toml:5:1: job[a].missfire: unknown key; did you mean `misfire`?"]),
    ("[job.bach]\nsize = 1", &["s.toml:5:6: job[a].bach: unknown key; did you mean `batch`?"]),
    ("[job.batch]\nsizes = 1", &["s.toml:6:1: job[a].batch.sizes: unknown key; did you mean `size`?"]),
    (
        "dst = { gap = \"skip\", fould = \"both\" }",
        &["s.toml:5:23: job[a].dst.fould: unknown key; did you mean `fold`?"],
    ),
    ("dst = \"skip\"", &["s.toml:5:7: job[a].dst: found a text, expected a table"]),
    (
        "dst = { gap = \"first\" }",
        &["s.toml:5:15: job[a].dst.gap: found the text \"first\", expected \"shift\" or \"skip\""],
    ),
    (
        "calendar = \"target\"",
        &[
            "s.toml:5:12: job[a].calendar: found \"target\", expected a calendar: england-and-wales, target2, us-federal-reserve; did you mean `target2`?",
        ],
    ),
    ("roll = \"skip\"", &["s.toml:5:8: job[a].roll: says nothing without a calendar"]),
    (
        "calendar = \"target2\"\nroll = \"folowing\"",
        &[
            "s.toml:6:8: job[a].roll: found the text \"folowing\", expected \"following\" or \"modified_following\" or \"preceding\" or \"skip\"; did you mean `following`?",
        ],
    ),
    (
        "calendar = \"hous\"\n[[calendar]]\nname = \"house\"\nholidays = [\"2027-02-30\", \"2300-01-01\", 2027-01-01]\nweekends = []",
        &[
            "s.toml:5:12: job[a].calendar: found \"hous\", expected a calendar: england-and-wales, house, target2, us-federal-reserve; did you mean `house`?",
            "s.toml:8:13: calendar[house].holidays[0]: found \"2027-02-30\", expected a date of the years 2000 to 2199 in quotes",
            "s.toml:8:27: calendar[house].holidays[1]: found \"2300-01-01\"",
            "s.toml:8:41: calendar[house].holidays[2]: found 2027-01-01, expected a date",
            "s.toml:9:1: calendar[house].weekends: unknown key; did you mean `weekend`?",
        ],
    ),
    (
        "[[calendar]]\nname = \"target2\"\n[[calendar]]\nname = \"x\"\nweekend = [\"SAT\", \"Sunday\"]",
        &[
            "s.toml:6:8: calendar[target2].name: target2 is built in; choose another name, and extend it",
            "s.toml:9:19: calendar[x].weekend[1]: found the text \"Sunday\", expected \"MON\" or",
        ],
    ),
    (
        "[[calendar]]\nname = \"x\"\nextends = \"y\"\n[[calendar]]\nname = \"y\"\nextends = \"x\"\n[[calendar]]\nname = \"z\"\nextends = \"tarjet2\"",
        &[
            "s.toml:5:1: calendar[x].extends: extends itself",
            "s.toml:8:1: calendar[y].extends: extends itself",
            "s.toml:11:1: calendar[z].extends: found \"tarjet2\", expected a calendar: england-and-wales, target2, us-federal-reserve, x, y, z; did you mean `target2`?",
        ],
    ),
    (
        "[[calendar]]\nname = \"x\"\nweekend = [\"MON\", \"TUE\", \"WED\", \"THU\", \"FRI\", \"SAT\", \"SUN\"]\n[[calendar]]\nname = \"x\"\nholidays = [\"2027-01-02\", \"2027-01-02\"]",
        &[
            "s.toml:5:1: calendar[x]: every day of the week is off",
            "s.toml:8:1: calendar[x].name: another calendar has this name too (s.toml:5:1)",
            "s.toml:10:12: calendar[x].holidays: 2027-01-02 is there twice",
        ],
    ),
    ("statement_timeout = \"5m\"", &["s.toml:5:21: job[a].statement_timeout: not in this version"]),
    ("[job.sql]\nunits = \"x\"", &["s.toml:5:1: job[a].sql: belongs to another handler; this job's is \"ledger\""]),
    ("[calendar]\nname = \"house\"", &["s.toml:5:1: calendar: expected a list of tables: write [[calendar]]"]),
    (
        "timezone = \"Europe/Londn\"",
        &[
            "s.toml:5:12: job[a].timezone: found \"Europe/Londn\", expected a zone of the IANA database such as \"Europe/London\"; did you mean `Europe/London`?",
        ],
    ),
    ("election = \"Settlement\"", &["s.toml:5:12: job[a].election: \"Settlement\" is not a valid election name"]),
    ("misfire = \"latest\"", &["s.toml:5:11: job[a].misfire: found the text \"latest\", expected \"run_latest\" or"]),
    (
        "misfire_grace = \"0s\"",
        &["s.toml:5:17: job[a].misfire_grace: found the text \"0s\", expected a duration from 1s to 1day"],
    ),
    (
        "misfire_grace = \"2h\"\ncatch_up_window = \"1h\"",
        &["s.toml:6:19: job[a].catch_up_window: shorter than misfire_grace"],
    ),
    ("catch_up_max = 0", &["s.toml:5:16: job[a].catch_up_max: found 0, expected a whole number from 1 to 100"]),
    ("catch_up_max = \"1\"", &["s.toml:5:16: job[a].catch_up_max: found the text \"1\", expected a whole number"]),
    ("catch_up_order = 1", &["s.toml:5:18: job[a].catch_up_order: found 1, expected \"oldest\" or \"newest\""]),
    ("overlap = false", &["s.toml:5:11: job[a].overlap: found false, expected \"queue\" or \"skip\""]),
    ("run_deadline = \"later\"", &["s.toml:5:16: job[a].run_deadline: found the text \"later\", expected a duration"]),
    (
        "cutoff = \"30m\"",
        &["s.toml:5:10: job[a].cutoff: found \"30m\", expected a time before the due time such as \"-30m\""],
    ),
    ("cutoff = \"-1bd 25:00\"", &["s.toml:5:10: job[a].cutoff: found \"-1bd 25:00\""]),
    ("cutoff = \"1bd 17:00\"", &["s.toml:5:10: job[a].cutoff: found \"1bd 17:00\""]),
    ("cutoff = \"-32bd 17:00\"", &["s.toml:5:10: job[a].cutoff: found \"-32bd 17:00\""]),
    ("cutoff = \"-1bd 7:00\"", &["s.toml:5:10: job[a].cutoff: found \"-1bd 7:00\""]),
    ("cutoff = \"-32d\"", &["s.toml:5:10: job[a].cutoff: found \"-32d\""]),
    (
        "[job.batch]\nsize = 10001\nconcurrency = 9",
        &[
            "s.toml:6:8: job[a].batch.size: found 10001, expected a whole number from 1 to 10000",
            "s.toml:7:15: job[a].batch.concurrency: found 9, expected a whole number from 1 to 8",
        ],
    ),
    (
        "[job.retry]\nmax_attempts = 0\nbackoff = \"5m..2s\"",
        &[
            "s.toml:6:16: job[a].retry.max_attempts: found 0, expected a whole number from 1 to 100",
            "s.toml:7:11: job[a].retry.backoff: found \"5m..2s\", expected the shortest and the longest wait",
        ],
    ),
    ("[job.retry]\nbackoff = \"2s\"", &["s.toml:6:11: job[a].retry.backoff: found \"2s\""]),
    (
        "[job.ledger]\nsources = [\"bursar\", \"a b\"]",
        &[
            "s.toml:6:12: job[a].ledger.sources[0]: \"bursar\" is the source of entries that bursar writes itself",
            "s.toml:6:22: job[a].ledger.sources[1]: \"a b\" is not a source",
        ],
    ),
    ("[job.ledger]\nsources = []", &["s.toml:6:11: job[a].ledger.sources: found an empty list"]),
    ("[job.ledger]\ncurrencies = [\"EUR\", \"eur\"]", &["s.toml:6:14: job[a].ledger.currencies: names one twice"]),
    (
        "[job.ledger]\ncurrencies = [\"XAU\", \"EUX\"]",
        &[
            "s.toml:6:15: job[a].ledger.currencies[0]: XAU has no minor unit",
            "s.toml:6:22: job[a].ledger.currencies[1]: \"EUX\" is not an ISO 4217 currency",
        ],
    ),
    ("[job.ledger]\nmerchants = [\" \"]", &["s.toml:6:14: job[a].ledger.merchants[0]: the merchant is empty"]),
    (
        "[job.ledger]\nminimum_payout = { EUR = 1.00, JPY = \"1.5\", KWD = \"-1\", eur = \"2\", ABC = \"1\" }",
        &[
            "s.toml:6:26: job[a].ledger.minimum_payout.EUR: found 1.00, expected a text in quotes",
            "s.toml:6:38: job[a].ledger.minimum_payout.JPY: \"1.5\" has 1 digits after the point, JPY has 0",
            "s.toml:6:51: job[a].ledger.minimum_payout.KWD: found -1.000, expected at least 0",
            "s.toml:6:74: job[a].ledger.minimum_payout.ABC: \"ABC\" is not an ISO 4217 currency",
        ],
    ),
    (
        "[job.ledger]\nminimum_payout = { EUR = \"2\", eur = \"2\" }",
        &["s.toml:6:37: job[a].ledger.minimum_payout.eur: EUR stands here twice"],
    ),
    (
        "[job.ledger]\nminimum_payout = { EUR = \"2\" }\nmaximum_payout = { EUR = \"1.99\" }",
        &["s.toml:7:18: job[a].ledger.maximum_payout: for EUR below minimum_payout"],
    ),
    (
        "[job.ledger]\nrelease = \"later\"",
        &["s.toml:6:11: job[a].ledger.release: found the text \"later\", expected \"auto\" or \"manual\""],
    ),
    (
        "[job.payout]\nkind = \"http\"\nurl = \"https://bank\"\nrefusals = [402]\nxyz = 1",
        &["s.toml:9:1: job[a].payout.xyz: unknown key"],
    ),
    (
        "[job.payout]\nkind = \"http\"\nurl = \"ftp://bank\"\nidempotent = 1\nkey_valid_for = \"30s\"\nrefusals = [401, 500, 422]\nnot_done = [422, 412]\nmax_refusals = 0\ntimeout = \"6m\"\nsecret_files = [\"a\"]\nlookup_url = \"https://bank\"\nmax_per_second = 0\nmax_in_flight = 1001\ntls_ca = \"ca.pem\"",
        &[
            "s.toml:7:7: job[a].payout.url: found no http:// or https:// at its start, expected a URL such as",
            "s.toml:8:14: job[a].payout.idempotent: found 1, expected true or false",
            "s.toml:10:13: job[a].payout.refusals[0]: found 401, which has a meaning of its own",
            "s.toml:10:18: job[a].payout.refusals[1]: found 500, expected a whole number from 400 to 499",
            "s.toml:11:18: job[a].payout.not_done[1]: found 412, which has a meaning of its own",
            "s.toml:12:16: job[a].payout.max_refusals: found 0, expected a whole number from 1 to 10000",
            "s.toml:13:11: job[a].payout.timeout: found the text \"6m\", expected a duration from 100ms to 5m",
            "s.toml:14:17: job[a].payout.secret_files[0]: found a relative path, expected an absolute one",
            "s.toml:15:14: job[a].payout.lookup_url: found not exactly one {key}, expected a URL such as",
            "s.toml:16:18: job[a].payout.max_per_second: found 0, expected a whole number from 1 to 10000",
            "s.toml:17:17: job[a].payout.max_in_flight: found 1001, expected a whole number from 1 to 1000",
            "s.toml:18:10: job[a].payout.tls_ca: found a relative path, expected an absolute one",
        ],
    ),
    (
        "[job.payout]\nkind = \"http\"\nurl = \"https://bank\"\nkey_valid_for = \"40s\"\nrefusals = [422]\nnot_done = [422]\nsecret_files = [\"/a\", \"/a\"]",
        &[
            "s.toml:8:17: job[a].payout.key_valid_for: too short for one try",
            "s.toml:10:12: job[a].payout.not_done: names 422, which `refusals` names too",
            "s.toml:11:16: job[a].payout.secret_files: names one twice",
        ],
    ),
    (
        "[job.payout]\nkind = \"none\"\nurl = \"https://bank\"",
        &["s.toml:7:7: job[a].payout.url: belongs to payouts of kind \"http\"; this job's is \"none\""],
    ),
    (
        "[job.payout]\nkind = \"wire\"",
        &["s.toml:6:8: job[a].payout.kind: found the text \"wire\", expected \"none\" or \"http\""],
    ),
    ("[job.probe]\nunits = 1", &["s.toml:5:1: job[a].probe: belongs to another handler; this job's is \"ledger\""]),
    (
        "x = = 1\ny = 2\n[job.batch]\nsize = \"1\"",
        &[
            "s.toml:5:5: not valid TOML",
            "s.toml:6:1: job[a].y: unknown key",
            "s.toml:8:8: job[a].batch.size: found the text \"1\"",
        ],
    ),
    (
        "[[job]]\nname = \"b\"\ncron = \"0 6 * * *\"\nhandler = \"ledger\"",
        &[
            "s.toml:5:1: job[b].ledger: selects entries that job \"a\" (s.toml:1:1) selects too (all sources, all currencies, all merchants)",
        ],
    ),
    (
        "[[job]]\nname = \"a\"\ncron = \"0 6 * *\"\nhandler = \"sql\"",
        &[
            "s.toml:5:1: job[a].sql.settle: missing; expected one statement over bursar_batch",
            "s.toml:5:1: job[a].sql.units: missing; expected a query with the columns key and payload",
            "s.toml:6:8: job[a].name: another job has this name too (s.toml:2:8), expected each once",
            "s.toml:7:8: job[a].cron: ",
        ],
    ),
];

/// Whole files, and the starts of the lines that must be reported.
const WHOLE: &[(&str, &[&str])] = &[
    ("", &["s.toml: job: missing; expected at least one [[job]]"]),
    ("# nothing\n", &["s.toml: job: missing; expected at least one [[job]]"]),
    ("job = []", &["s.toml: job: missing; expected at least one [[job]]"]),
    ("[job]\nname = \"a\"", &["s.toml:1:1: job: expected a list of tables: write [[job]]"]),
    ("job = [1]", &["s.toml:1:8: job[#1]: found a whole number, expected a table"]),
    ("[[jobs]]\nname = \"a\"", &["s.toml: job: missing", "s.toml:1:3: jobs: unknown key; did you mean `job`?"]),
    (
        "[[job]]",
        &[
            "s.toml:1:1: job[#1].cron: missing; expected five fields, or six with seconds first",
            "s.toml:1:1: job[#1].handler: missing; expected \"ledger\", \"sql\", \"http\" or \"command\"",
            "s.toml:1:1: job[#1].name: missing; expected a name of a-z, 0-9 and '-'",
        ],
    ),
    (
        "[[job]]\nname = \"Daily\"\ncron = \"61 * * * *\"\nhandler = \"leger\"",
        &[
            "s.toml:2:8: job[#1].name: \"Daily\" is not a valid job name: expected 1 to 64 of a-z, 0-9 and '-'",
            "s.toml:3:8: job[#1].cron: ",
            "s.toml:4:11: job[#1].handler: found the text \"leger\", expected \"ledger\"",
        ],
    ),
    (
        "[[job]]\nname = \"q\"\ncron = \"0 6 * * *\"\nhandler = \"sql\"\n[job.sql]\nunits = \" \"\nsettle = \"\"\"update t\nset x = 1\"\"\"\nsize = 1\n[job.ledger]",
        &[
            "s.toml:6:9: job[q].sql.units: found an empty text, expected a statement",
            "s.toml:7:10: job[q].sql.settle: found no bursar_batch, expected one statement that settles its rows",
            "s.toml:9:1: job[q].sql.size: unknown key",
            "s.toml:10:1: job[q].ledger: belongs to another handler; this job's is \"sql\"",
        ],
    ),
    (
        "[[job]]\nname = \"q\"\ncron = \"0 6 * * *\"\nhandler = \"http\"\n[job.http]\nurl = \"https://u:p@bank\"",
        &[
            "s.toml:5:6: job[q].http.units: missing; expected a query with the columns key and payload",
            "s.toml:6:7: job[q].http.url: found a user in the URL, expected a URL such as",
        ],
    ),
    (
        "[[job]]\nname = \"q\"\ncron = \"0 6 * * *\"\nhandler = \"command\"\n[job.command]\nunits = \"select 1\"\nprogram = \"settle\"\nargs = [\"\", 1]\nenvironment = [\"HOME\", \"BURSAR_X\", \"A-B\"]\ntimeout = \"25h\"",
        &[
            "s.toml:7:11: job[q].command.program: found a relative path, expected an absolute one",
            "s.toml:8:13: job[q].command.args[1]: found 1, expected a text in quotes",
            "s.toml:9:24: job[q].command.environment[1]: found a variable of bursar's own",
            "s.toml:9:36: job[q].command.environment[2]: found no name of a variable",
            "s.toml:10:11: job[q].command.timeout: found the text \"25h\", expected a duration from 100ms to 1day",
        ],
    ),
    (
        "[[job]]\nname = \"p\"\ncron = \"0 6 * * *\"\nhandler = \"probe\"\n[job.probe]\nshape = \"inside\"\nunits = -1\nfail = \"x\"\nidempotent = \"true\"\nwait = 5",
        &[
            "s.toml:6:9: job[p].probe.shape: found the text \"inside\", expected \"in_store\" or \"outside\"",
            "s.toml:7:9: job[p].probe.units: found -1, expected a whole number from 0 to 1000000",
            "s.toml:8:8: job[p].probe.fail: found a text, expected a list in [ ]",
            "s.toml:9:14: job[p].probe.idempotent: found the text \"true\", expected true or false, without quotes",
            "s.toml:10:1: job[p].probe.wait: unknown key",
        ],
    ),
];

#[test]
fn whatever_is_wrong_in_a_schedule_is_named_with_its_place() {
    read(JOB).expect("the base");
    let whole = WHOLE.iter().map(|(text, lines)| ((*text).to_owned(), *lines));
    let after = AFTER_JOB.iter().map(|(text, lines)| (format!("{JOB}{text}\n"), *lines));
    let mut missed = Vec::new();
    for (text, expected) in whole.chain(after) {
        let found = read(&text).err().unwrap_or_default();
        let lines: Vec<&str> = found.lines().collect();
        if lines.len() != expected.len() || !lines.iter().zip(expected).all(|(line, start)| line.starts_with(start)) {
            missed.push(format!("{text}\nfound:\n{found}\nexpected:\n{}", expected.join("\n")));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn a_schedule_that_never_fires_is_refused_when_it_is_read() {
    let found = read(&JOB.replace("0 6 * * *", "0 0 30 2 *")).expect_err("never");
    assert!(found.starts_with("s.toml:3:8: job[a].cron: ") && found.contains("never occurs"), "{found}");
}

#[test]
fn jobs_may_share_what_they_do_not_both_select() {
    let second = "[[job]]\nname = \"b\"\ncron = \"0 7 * * *\"\nhandler = \"ledger\"\n";
    let ledger = |keys: &str| format!("[job.ledger]\n{keys}\n");
    for (first, other, apart) in [
        ("sources = [\"x\"]", "sources = [\"y\"]", true),
        ("sources = [\"x\", \"z\"]", "sources = [\"y\", \"z\"]", false),
        ("sources = [\"x\"]", "currencies = [\"EUR\"]", false),
        ("sources = [\"x\"]\ncurrencies = [\"EUR\"]", "sources = [\"x\"]\ncurrencies = [\"GBP\"]", true),
        ("merchants = [\"m\"]", "merchants = [\"M\"]", true),
        ("merchants = [\"m\"]", "merchants = [\"n\"]\nsources = [\"x\"]", true),
        ("merchants = [\"e\u{301}\"]", "merchants = [\"\u{e9}\"]", false),
    ] {
        let text = format!("{JOB}{}{second}{}", ledger(first), ledger(other));
        assert_eq!(read(&text).is_ok(), apart, "{first} beside {other}");
    }
}

#[test]
fn cutoffs_and_probes_are_read() {
    for (text, rule) in [
        ("-30m", CutoffRule::Before(Duration::from_mins(30))),
        ("0s", CutoffRule::Before(Duration::ZERO)),
        ("-1bd 17:00", CutoffRule::BusinessDays { days: 1, at: NaiveTime::from_hms_opt(17, 0, 0).expect("a time") }),
        ("-0bd 00:00:01", CutoffRule::BusinessDays { days: 0, at: NaiveTime::from_hms_opt(0, 0, 1).expect("a time") }),
    ] {
        let schedule = read(&format!("{JOB}cutoff = \"{text}\"\n")).expect(text);
        assert_eq!(schedule.jobs[0].timing.cutoff, rule, "{text}");
    }
    let probe =
        JOB.replace("ledger", "probe") + "[job.probe]\nshape = \"outside\"\nunits = 3\nfail = [\"unit-00001\"]\n";
    let schedule = read(&probe).expect("a probe");
    let HandlerDefinition::Probe(probe) = &schedule.jobs[0].handler else { panic!("a probe") };
    assert_eq!((probe.units, probe.fail.len(), probe.idempotent), (3, 1, false));
}

#[test]
fn a_flood_of_findings_is_bounded() {
    use std::fmt::Write as _;
    let mut text = JOB.to_owned();
    for n in 0..1000 {
        writeln!(text, "k{n} = 1").expect("written");
    }
    let found = read(&text).expect_err("unknown keys");
    assert_eq!(found.lines().count(), 201);
    assert!(found.ends_with("and 800 more"), "{found}");
}

proptest! {
    #[test]
    fn any_text_is_refused_or_read_without_a_panic(text in "(\\PC|\n|\\[|\\]|=|\"|#|job){0,200}") {
        if let Err(found) = read(&text) {
            prop_assert!(found.lines().all(|line| line.starts_with("s.toml") || line.starts_with("and ")), "{}", found);
        }
    }

    #[test]
    fn a_byte_struck_out_of_the_example_is_found_or_harmless(at in 0usize..2000) {
        let example = include_str!("../../../config/schedule.toml");
        let mut bytes = example.as_bytes().to_vec();
        bytes.remove(at.min(bytes.len() - 1));
        if let Ok(text) = String::from_utf8(bytes)
            && let Err(found) = read(&text)
        {
            prop_assert!(found.lines().count() >= 1);
        }
    }
}
