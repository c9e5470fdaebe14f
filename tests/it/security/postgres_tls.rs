//! PostgreSQL over TLS, in every mode, and passwords and certificates that change while a replica leads.

use std::fs;
use std::path::PathBuf;

use super::authority::{Authority, LONG, Pair};
use super::{READY, path};
use crate::support::cluster::IDLE;
use crate::support::postgres::owned_by_postgres;
use crate::support::replica::{quoted, replace};
use crate::support::{Cluster, Pair as Kept, Postgres, Setup, eventually, scratch};

/// For setting things up.
const OPEN: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\n";
/// The product's role gets in over TLS alone, with its password.
const CLOSED: &str =
    "local all all trust\nhost all postgres 127.0.0.1/32 trust\nhostssl all bursar 127.0.0.1/32 scram-sha-256\n";

/// A server behind TLS.
pub(super) struct Secured {
    pub(super) server: Postgres,
    hba: PathBuf,
    own: Pair,
}

impl Secured {
    /// With that certificate, and still open to all.
    fn start(certificate: &Pair) -> Self {
        Self::start_with(certificate, &[])
    }

    /// The same with further settings.
    pub(super) fn start_with(certificate: &Pair, more: &[&str]) -> Self {
        let own = Pair::places("postgres-tls");
        let hba = scratch::folder("hba").join("pg_hba.conf");
        fs::write(&hba, OPEN).expect("the folder is new");
        put(certificate, &own);
        let of = |name: &str, file: &std::path::Path| format!("{name}={}", file.display());
        let settings =
            ["ssl=on".to_owned(), of("ssl_cert_file", &own.cert), of("ssl_key_file", &own.key), of("hba_file", &hba)];
        let settings: Vec<&str> = settings.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Self { server: Postgres::start_with(&settings, &[]), hba, own }
    }

    /// Asks for TLS and this password from now on.
    fn close(&self, password: &str) {
        self.password(password);
        self.ask_for(CLOSED);
    }

    /// Asks whoever connects for what these rules say.
    pub(super) fn ask_for(&self, rules: &str) {
        fs::write(&self.hba, rules).expect("the file is ours");
        self.server.psql("select pg_reload_conf()");
    }

    fn password(&self, password: &str) {
        self.server.psql(&format!("alter role bursar password '{password}'"));
    }

    /// Another certificate, for whoever connects from now on.
    fn exchange(&self, certificate: &Pair) {
        put(certificate, &self.own);
        self.server.psql("select pg_reload_conf()");
    }

    /// Ends what is open: whoever goes on has to get in again.
    pub(super) fn end_sessions(&self) {
        self.server.psql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'bursar'");
    }
}

fn put(certificate: &Pair, own: &Pair) {
    certificate.put(own);
    own.only_for_its_owner();
    owned_by_postgres(&own.key);
}

/// Replicas with the store and the elections there, not started.
pub(super) async fn replicas(count: usize, secured: &Secured) -> Cluster {
    Setup::new(count, IDLE).steady().on(Kept::PostgresAlone).on_postgres(&secured.server).prepare().await
}

/// What a command says to a mode, an authority and a host.
struct Case {
    mode: &'static str,
    authority: Option<&'static str>,
    host: &'static str,
    /// The exit code, and words of the error.
    outcome: (i32, &'static str),
}

const CASES: [Case; 11] = [
    Case { mode: "prefer", authority: None, host: "127.0.0.1", outcome: (0, "") },
    Case { mode: "require", authority: None, host: "localhost", outcome: (0, "") },
    Case { mode: "verify-ca", authority: Some("right"), host: "localhost", outcome: (0, "") },
    Case { mode: "verify-full", authority: Some("right"), host: "127.0.0.1", outcome: (0, "") },
    Case { mode: "disable", authority: None, host: "127.0.0.1", outcome: (75, "no encryption") },
    Case {
        mode: "verify-full",
        authority: Some("right"),
        host: "localhost",
        outcome: (75, "the host of database.url"),
    },
    Case { mode: "verify-full", authority: Some("wrong"), host: "127.0.0.1", outcome: (75, "database.tls_ca") },
    Case { mode: "verify-ca", authority: Some("wrong"), host: "127.0.0.1", outcome: (75, "database.tls_ca") },
    // What would not do what whoever wrote it believes.
    Case { mode: "require", authority: Some("wrong"), host: "127.0.0.1", outcome: (78, "does not look at") },
    Case { mode: "prefer", authority: Some("right"), host: "127.0.0.1", outcome: (78, "does not look at") },
    Case { mode: "verify-ca", authority: None, host: "127.0.0.1", outcome: (78, "without `tls_ca`") },
];

#[tokio::test(flavor = "multi_thread")]
async fn each_mode_takes_the_server_that_it_should_and_refuses_all_others() {
    let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
    let secured = Secured::start(&right.sign(1, &["127.0.0.1", "db.internal"], LONG));
    let cluster = replicas(CASES.len(), &secured).await;
    secured.close("the right one");
    for (replica, case) in cluster.replicas().iter().zip(&CASES) {
        let url = cluster.database().url().replace("127.0.0.1", case.host);
        replica.set("database", "url", &quoted(&url));
        replica.set("database", "password", "\"the right one\"");
        replica.set("database", "tls_mode", &quoted(case.mode));
        match case.authority {
            Some("right") => replica.set("database", "tls_ca", &path(&right.file())),
            Some(_) => replica.set("database", "tls_ca", &path(&wrong.file())),
            None => {}
        }
        let run = replica.command(&["status"]);
        let (code, words) = case.outcome;
        let said = format!("{} {:?} {}: {}", case.mode, case.authority, case.host, run.stderr);
        assert_eq!(run.code(), Some(code), "{said}");
        assert!(run.stderr.contains(words), "{words}: {said}");
    }
    let plain = Postgres::shared();
    let replica = cluster.replica(3);
    replica.set("database", "url", &quoted(&cluster.database().url_through(plain.port())));
    let run = replica.command(&["status"]);
    assert_eq!(run.code(), Some(75), "{}", run.stderr);
    assert!(run.stderr.contains("ssl = on"), "a server without TLS: {}", run.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_and_certificates_change_under_a_replica_that_is_never_started_again() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let secured = Secured::start(&old.sign(1, &["127.0.0.1"], LONG));
    let cluster = replicas(1, &secured).await;
    secured.close("the first one");
    let files = scratch::folder("files");
    let (password, authorities) = (files.join("password"), files.join("ca.pem"));
    replace(&password, "a wrong one\n");
    replace(&authorities, &old.pem());
    let replica = cluster.replica(0);
    replica.set("database", "password_file", &path(&password));
    replica.set("database", "tls_mode", "\"verify-full\"");
    replica.set("database", "tls_ca", &path(&authorities));
    replica.start();
    replica.wait_says(&["store", "28P01", "password of [database]"]).await;
    replace(&password, "the first one\n");
    replica.wait_leads().await;
    // The role first, then the file: in between nobody gets in, and nothing is given up.
    secured.password("the second one");
    secured.end_sessions();
    replace(&password, "the second one\n");
    secured.exchange(&new.sign(2, &["127.0.0.1"], LONG));
    replace(&authorities, &new.pem());
    let since: String = secured.server.psql("select clock_timestamp()").trim().to_owned();
    secured.end_sessions();
    let database = cluster.database();
    let count = format!("select count(*) from pg_stat_activity where usename = 'bursar' and backend_start > '{since}'");
    eventually(READY, "it gets in with the second password, to the second certificate", async || {
        replica.assert_running();
        (database.value::<i64>(&count).await > 0).then_some(())
    })
    .await;
    replica.wait_leads().await;
    replica.wait_ready(READY).await;
}
