//! etcd over TLS: with an authority alone and with certificates of clients; what is wrong is said, and mended without a
//! restart.

use std::time::Duration;

use super::authority::{Authority, LONG, Pair};
use super::secure_etcd::SecureEtcd;
use super::{READY, path, prepared};
use crate::support::replica::replace;
use crate::support::{Proxy, eventually, holds_for, scratch};

/// Where the servers are found.
const HERE: &str = "127.0.0.1";

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_alone_is_enough_and_a_wrong_one_or_a_wrong_name_is_named_until_it_is_mended() {
    let (right, wrong) = (Authority::new("right"), Authority::new("wrong"));
    let server = Pair::places("etcd-server");
    right.sign(1, &["etcd.internal"], LONG).put(&server);
    let etcd = SecureEtcd::start(&right.file(), &server, None, &[]);
    let cluster = prepared(3).await;
    let authorities = scratch::folder("authorities").join("ca.pem");
    replace(&authorities, &wrong.pem());
    for replica in cluster.replicas() {
        replica.set("coordinator", "endpoints", &etcd.endpoints());
        replica.set("coordinator.tls", "ca", &path(&authorities));
    }
    let [strange, other_name, named] = cluster.replicas() else { panic!("three") };
    named.set("coordinator.tls", "server_name", "\"etcd.internal\"");
    strange.start();
    strange.wait_says(&["coordinator", "coordinator.tls.ca", "UnknownIssuer"]).await;
    // The right authority, in the same file: no restart. The name is still another's.
    replace(&authorities, &right.pem());
    strange.wait_says(&["coordinator", "coordinator.tls.server_name", "etcd.internal"]).await;
    other_name.start();
    other_name.wait_says(&["coordinator", "coordinator.tls.server_name"]).await;
    // One that says which name to expect leads.
    named.start();
    named.wait_leads().await;
    // And all of them know each other once the server bears the address.
    right.sign(2, &["etcd.internal", HERE], LONG).put(&server);
    strange.wait_ready(READY).await;
    other_name.wait_ready(READY).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_certificate_or_with_a_revoked_one_is_told_and_leads_once_it_has_another() {
    let authority = Authority::new("one for all");
    let server = authority.sign(1, &[HERE], LONG);
    let (tester, revoked, good) =
        (authority.sign(2, &[], LONG), authority.sign(3, &[], LONG), authority.sign(4, &[], LONG));
    let list = scratch::folder("revoked").join("crl.pem");
    authority.revoke(&list, &[&revoked]);
    let (ca, list) = (authority.file().display().to_string(), list.display().to_string());
    let args = ["--client-cert-auth", "--trusted-ca-file", &ca, "--client-crl-file", &list];
    let etcd = SecureEtcd::start(&authority.file(), &server, Some(&tester), &args);
    let cluster = prepared(2).await;
    for replica in cluster.replicas() {
        replica.set("coordinator", "endpoints", &etcd.endpoints());
        replica.set("coordinator.tls", "ca", &path(&authority.file()));
    }
    let [bare, shut_out] = cluster.replicas() else { panic!("two") };
    let own = Pair::places("own");
    revoked.put(&own);
    shut_out.set("coordinator.tls", "cert", &path(&own.cert));
    shut_out.set("coordinator.tls", "key", &path(&own.key));
    bare.start();
    shut_out.start();
    bare.wait_says(&["coordinator", "coordinator.tls", "certificate"]).await;
    shut_out.wait_says(&["coordinator", "coordinator.tls.cert", "revoked"]).await;
    // `check` says the same.
    let check = shut_out.command(&["check"]);
    assert!(check.stdout.contains("coordinator.tls.cert"), "{}", check.stdout);
    good.put(&own);
    shut_out.wait_leads().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_read_anew_and_the_end_of_the_old_ones_changes_no_leader() {
    let (old, new, clients) = (Authority::new("old"), Authority::new("new"), Authority::new("clients"));
    let (server, own) = (Pair::places("server"), Pair::places("own"));
    old.sign(1, &[HERE], LONG).put(&server);
    let lifetime = Duration::from_secs(12);
    clients.sign(2, &[], lifetime).put(&own);
    let until = bursar::clock::boottime() + lifetime + Duration::from_secs(1);
    let tester = clients.sign(3, &[], LONG);
    let ca = clients.file().display().to_string();
    let etcd =
        SecureEtcd::start(&old.file(), &server, Some(&tester), &["--client-cert-auth", "--trusted-ca-file", &ca]);
    let line = Proxy::to(etcd.port);
    let cluster = prepared(1).await;
    let replica = cluster.replica(0);
    let authorities = scratch::folder("authorities").join("ca.pem");
    replace(&authorities, &old.pem());
    replica.set("coordinator", "endpoints", &SecureEtcd::endpoints_through(line.port()));
    replica.set("coordinator.tls", "ca", &path(&authorities));
    replica.set("coordinator.tls", "cert", &path(&own.cert));
    replica.set("coordinator.tls", "key", &path(&own.key));
    replica.start();
    let term = replica.wait_leads().await;
    // Both sides get others, of another authority; then the old one of the client comes to its end.
    clients.sign(4, &[], LONG).put(&own);
    replace(&authorities, &new.pem());
    new.sign(5, &[HERE], LONG).put(&server);
    eventually(lifetime * 2, "the old certificate has expired", async || {
        (bursar::clock::boottime() >= until).then_some(())
    })
    .await;
    replica.assert_still_leads(term).await;
    let before = line.accepted();
    line.reset();
    line.heal();
    eventually(READY, "it connects anew", async || (line.accepted() > before + 1).then_some(())).await;
    holds_for(Duration::from_secs(3), "it leads on", async || {
        if replica.leads(super::ELECTION).await { Ok(()) } else { Err(replica.log()) }
    })
    .await;
    replica.wait_renews().await;
    replica.assert_still_leads(term).await;
    // The old certificate would not have done: with it nobody gets in.
    clients.sign(6, &[], Duration::ZERO).put(&own);
    // Ends have whole seconds: within the one in which it was made it would still do.
    let until = bursar::clock::boottime() + Duration::from_secs(2);
    eventually(READY, "it has expired", async || (bursar::clock::boottime() >= until).then_some(())).await;
    line.reset();
    line.heal();
    replica.wait_says(&["coordinator", "coordinator.tls.cert"]).await;
}
