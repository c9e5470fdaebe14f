//! What nobody hears: a replica with a secret of each kind, through errors of each kind, and everything that it emits, read
//! for them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::authority::{Authority, LONG};
use super::secure_etcd::SecureEtcd;
use super::{READY, path};
use crate::support::receiver::{Act, Receiver, say};
use crate::support::replica::{quoted, replace};
use crate::support::{Cluster, Entries, LedgerJob, Postgres, Replica, Setup, eventually, scratch};

const OF_THE_DATABASE: &str = "Kastanienallee-db-0815";
const OF_ETCD: &str = "Rosinenbomber-etcd-4711";
const OF_PAYOUTS: &str = "Zwiebelfisch-payout-1234567";
const THE_NEXT_OF_PAYOUTS: &str = "Pusteblume-payout-7654321";
const WRONG: &str = "Fingerhut-wrong-9999";

/// What else a replica may know that is nobody's business: merchants and amounts.
const BUSINESS: [&str; 2] = ["merchant-of-the-test", "123.45"];

fn assert_silent(what: &str, text: &str) {
    for secret in [OF_THE_DATABASE, OF_ETCD, OF_PAYOUTS, THE_NEXT_OF_PAYOUTS, WRONG] {
        assert!(!text.contains(secret), "{what} holds {secret}:\n{text}");
    }
}

/// Everything that a replica shows to whoever asks, and what its process shows to whoever lists it.
async fn emitted(replica: &Replica) -> Vec<(String, String)> {
    let mut all = vec![("the log".to_owned(), replica.log())];
    for route in ["/", "/livez", "/readyz", "/metrics", "/status.json", "/nothing"] {
        let url = format!("http://127.0.0.1:{}{route}", replica.http_port());
        let text = reqwest::get(url).await.expect("it answers").text().await.expect("text");
        all.push((route.to_owned(), text));
    }
    let list = fs::read(format!("/proc/{}/cmdline", replica.pid())).expect("it runs");
    all.push(("the process list".to_owned(), String::from_utf8_lossy(&list).into_owned()));
    all
}

/// What commands say, also where they fail.
fn said_by_commands(replica: &Replica) -> Vec<(String, String)> {
    let commands: [&[&str]; 9] = [
        &["check"],
        &["status"],
        &["status", "--json"],
        &["history"],
        &["audit"],
        &["runs", "list", "--json"],
        &["payouts", "list", "--json"],
        &["receivers", "list", "--json"],
        &["plan", "--days", "1"],
    ];
    let say = |args: &&[&str]| {
        let run = replica.command(args);
        (args.join(" "), format!("{}\n{}", run.stdout, run.stderr))
    };
    commands.iter().map(say).collect()
}

/// Jobs whose units end in words of others: a program's on its standard error, and a statement's. Nothing of the business is in
/// their own text, which logs may hold.
const TALKATIVE: &str = "
[[job]]
name = \"program\"
cron = \"0 0 1 1 *\"
handler = \"command\"
[job.command]
units = '''select 'u' as key, '{}'::jsonb as payload'''
program = \"PROGRAM\"
[[job]]
name = \"statement\"
cron = \"0 0 1 1 *\"
handler = \"sql\"
[job.retry]
max_attempts = 1
[job.sql]
units = '''select 'u' as key, '{}'::jsonb as payload'''
settle = '''select app.fail() from bursar_batch'''
";

/// The program of the first, which says whose and how much.
fn program() -> std::path::PathBuf {
    let program = scratch::folder("program").join("settle");
    fs::write(&program, format!("#!/bin/sh\necho '{} owes {}' >&2\nexit 3\n", BUSINESS[0], BUSINESS[1]))
        .expect("the folder is new");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    program
}

/// The function of the second.
fn failing() -> String {
    format!(
        "create schema app; grant usage on schema app to public;
         create function app.fail() returns int language plpgsql as $$
         begin raise exception '{} owes {}'; end $$",
        BUSINESS[0], BUSINESS[1]
    )
}

struct Ground {
    server: Postgres,
    _etcd: SecureEtcd,
    receiver: Receiver,
    cluster: Cluster,
    files: std::path::PathBuf,
}

/// A database and an etcd with passwords, a receiver with secrets, and two replicas: one has its passwords from files, the
/// other in a URL of its environment.
async fn ground() -> Ground {
    let hba = scratch::folder("hba").join("pg_hba.conf");
    fs::write(&hba, "local all all trust\nhost all all 127.0.0.1/32 trust\n").expect("the folder is new");
    let server = Postgres::start_with(&[&format!("hba_file={}", hba.display())], &[]);
    let authority = Authority::new("of etcd");
    let etcd = SecureEtcd::start(&authority.file(), &authority.sign(1, &["127.0.0.1"], LONG), None, &[]);
    let files = scratch::folder("secrets");
    for (name, text) in [("db", OF_THE_DATABASE), ("etcd", OF_ETCD), ("one", OF_PAYOUTS), ("two", THE_NEXT_OF_PAYOUTS)]
    {
        fs::write(files.join(name), text).expect("the folder is new");
    }
    let receiver = Receiver::start().await;
    let signed = format!("[{}, {}]", path(&files.join("one")), path(&files.join("two")));
    let job =
        LedgerJob::new("daily").paying(&receiver.url()).payout("idempotent", "true").payout("secret_files", &signed);
    let schedule = job.text() + &TALKATIVE.replace("PROGRAM", &program().to_string_lossy());
    let setup = Setup::new(2, &schedule).steady().on_postgres(&server).key("log", "level", "\"trace\"");
    let cluster = setup.prepare().await;
    cluster.database().execute(&failing()).await;
    etcd.with_user("bursar", OF_ETCD, cluster.prefix()).await;
    server.psql(&format!("alter role bursar password '{OF_THE_DATABASE}'"));
    let closed = "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    fs::write(&hba, closed).expect("the file is ours");
    server.psql("select pg_reload_conf()");
    for replica in cluster.replicas() {
        replica.set("coordinator", "endpoints", &etcd.endpoints());
        replica.set("coordinator.tls", "ca", &path(&authority.file()));
        replica.set("coordinator.auth", "user", "\"bursar\"");
    }
    let [from_files, from_environment] = cluster.replicas() else { panic!("two") };
    from_files.set("coordinator.auth", "password_file", &path(&files.join("etcd")));
    from_files.set("database", "password_file", &path(&files.join("db")));
    let url = cluster.database().url().replace("bursar@", &format!("bursar:{OF_THE_DATABASE}@"));
    from_environment.set_env("BURSAR__DATABASE__URL", &url);
    from_environment.set_env("BURSAR__COORDINATOR__AUTH__PASSWORD", OF_ETCD);
    Ground { server, _etcd: etcd, receiver, cluster, files }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_a_log_an_answer_a_command_or_the_process_list_whatever_goes_wrong() {
    let ground = ground().await;
    let cluster = &ground.cluster;
    let [from_files, from_environment] = cluster.replicas() else { panic!("two") };
    from_files.start();
    from_files.wait_leads().await;
    from_environment.start();
    from_environment.wait_ready(READY).await;
    // Work, refused once for its signature, as receivers do where a secret is not theirs.
    ground.receiver.next([Act::Say(say(401, &[], "{\"error\":\"unknown signature\"}"))]);
    let entries = Entries::new().capture(BUSINESS[0], "EUR", BUSINESS[1]).capture("another", "EUR", "10.00");
    cluster.import(&entries, "psp").ok();
    cluster.run_now("daily").await;
    eventually(READY, "both are paid", async || {
        let paid: i64 = cluster.database().value("select count(*) from bursar.instruction where state = 'paid'").await;
        (paid == 2).then_some(())
    })
    .await;
    // Units that fail in the words of others, and an operator who names the merchant.
    for job in ["program", "statement"] {
        cluster.run_now(job).await;
    }
    let reason = format!("{} owes {}", BUSINESS[0], BUSINESS[1]);
    cluster.command(&["merchant", "hold", BUSINESS[0], "--reason", &reason]).ok();
    for (what, whole) in [("exit 3", "program"), ("SQLSTATE P0001", "statement")] {
        eventually(READY, &format!("the page tells the class of the error of {whole}"), async || {
            let url = format!("http://127.0.0.1:{}/", from_files.http_port());
            let page = reqwest::get(url).await.ok()?.text().await.ok()?;
            (page.contains(what) && page.contains("merchant hold")).then_some(())
        })
        .await;
    }
    let whole = cluster.command(&["units", "list", "--state", "set_aside"]).ok().stdout;
    assert_eq!(whole.matches(BUSINESS[1]).count(), 2, "whoever has a role reads all of it: {whole}");
    // Passwords that do not fit any more, in the file and at the servers, and sessions that end.
    replace(&ground.files.join("db"), WRONG);
    replace(&ground.files.join("etcd"), WRONG);
    ground.server.psql("alter role bursar password 'something else'");
    ground.server.psql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'bursar'");
    for replica in [from_files, from_environment] {
        replica.wait_shows(&["store", "28P01"]).await;
    }
    for (what, text) in said_by_commands(from_files).into_iter().chain(said_by_commands(from_environment)) {
        assert_silent(&what, &text);
    }
    replace(&ground.files.join("db"), OF_THE_DATABASE);
    replace(&ground.files.join("etcd"), OF_ETCD);
    ground.server.psql(&format!("alter role bursar password '{OF_THE_DATABASE}'"));
    from_files.wait_ready(READY).await;
    for (what, text) in said_by_commands(from_files) {
        assert_silent(&what, &text);
    }
    for replica in [from_files, from_environment] {
        for (what, text) in emitted(replica).await {
            assert_silent(&what, &text);
            assert!(BUSINESS.iter().all(|words| !text.contains(words)), "{what} of {} holds business", replica.id());
        }
    }
    // What a broken configuration is told shows none either.
    from_files.set("database", "password", &quoted(OF_THE_DATABASE));
    from_files.set("coordinator.auth", "pasword", &quoted(OF_ETCD));
    let run = from_files.command(&["check"]);
    assert_eq!(run.code(), Some(78), "{}", run.stderr);
    assert_silent("a finding", &format!("{}{}", run.stdout, run.stderr));
}
