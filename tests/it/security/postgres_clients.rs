//! Certificates of clients at PostgreSQL: with one of its own role a replica leads, without one or with another's nobody gets in,
//! and they are exchanged while it leads.

use super::authority::{Authority, LONG, Pair};
use super::postgres_tls::{Secured, replicas};
use super::{READY, path};
use crate::support::replica::replace;
use crate::support::{eventually, scratch};

/// The product's role gets in with a certificate that bears its name, and with nothing else.
const BY_CERTIFICATE: &str = "local all all trust\nhost all postgres 127.0.0.1/32 trust\n\
                              hostssl all bursar 127.0.0.1/32 trust clientcert=verify-full\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_the_role_lets_it_in_and_is_exchanged_while_it_leads() {
    let (servers, old, new) = (Authority::new("of servers"), Authority::new("old"), Authority::new("new"));
    let trusted = scratch::folder("trusted").join("clients.pem");
    replace(&trusted, &old.pem());
    let secured =
        Secured::start_with(&servers.sign(1, &["127.0.0.1"], LONG), &[&format!("ssl_ca_file={}", trusted.display())]);
    let cluster = replicas(3, &secured).await;
    secured.ask_for(BY_CERTIFICATE);
    let own = Pair::places("own");
    old.sign_as("bursar", 2, &[], LONG).put(&own);
    let others = old.sign_as("somebody", 3, &[], LONG);
    let [replica, bare, other] = cluster.replicas() else { panic!("three") };
    for replica in cluster.replicas() {
        replica.set("database", "tls_mode", "\"verify-full\"");
        replica.set("database", "tls_ca", &path(&servers.file()));
    }
    for (replica, pair) in [(replica, &own), (other, &others)] {
        replica.set("database", "tls_cert", &path(&pair.cert));
        replica.set("database", "tls_key", &path(&pair.key));
    }
    for (replica, words) in [(bare, "client certificate"), (other, "28000")] {
        let run = replica.command(&["status"]);
        assert_eq!(run.code(), Some(75), "{}", run.stderr);
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
    replica.start();
    replica.wait_leads().await;
    // Others sign from now on: the server believes in both, the replica gets its new one, the server forgets the old.
    let believes = |authorities: &str| {
        replace(&trusted, authorities);
        secured.server.psql("select pg_reload_conf()");
    };
    believes(&format!("{}{}", old.pem(), new.pem()));
    new.sign_as("bursar", 4, &[], LONG).put(&own);
    believes(&new.pem());
    let since: String = secured.server.psql("select clock_timestamp()").trim().to_owned();
    secured.end_sessions();
    let count = format!("select count(*) from pg_stat_activity where usename = 'bursar' and backend_start > '{since}'");
    eventually(READY, "it gets in with the new one", async || {
        replica.assert_running();
        (secured.server.psql(&count).trim() != "0").then_some(())
    })
    .await;
    replica.wait_leads().await;
    // The old one opens nothing any more.
    let run = other.command(&["status"]);
    assert_eq!(run.code(), Some(75), "{}", run.stderr);
}
