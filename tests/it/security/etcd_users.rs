//! etcd's users: a role with one prefix is enough; tokens end, and users, roles and passwords change, without a change of
//! leader.

use std::path::PathBuf;
use std::time::Duration;

use etcd_client::Permission;

use super::authority::{Authority, LONG, Pair};
use super::secure_etcd::SecureEtcd;
use super::{path, prepared};
use crate::support::replica::{quoted, replace};
use crate::support::{Cluster, eventually, holds_for, scratch};

const USER: &str = "bursar";
/// Seconds that a token lives.
const TOKEN: u64 = 2;

struct Ground {
    etcd: SecureEtcd,
    cluster: Cluster,
    password: PathBuf,
}

/// An etcd behind TLS that asks for users, and a replica whose password is in a file.
async fn ground(args: &[&str], replicas: usize) -> Ground {
    let authority = Authority::new("of etcd");
    ground_of(&authority, None, args, replicas).await
}

/// One that asks for certificates of clients too. etcd takes a common name for a user's where nothing else says who asks; those
/// here are nobody's.
async fn mutual(args: &[&str]) -> Ground {
    let authority = Authority::new("of etcd and its clients");
    let own = authority.sign(2, &[], LONG);
    let ca = authority.file().display().to_string();
    let args = [&["--client-cert-auth", "--trusted-ca-file", &ca], args].concat();
    ground_of(&authority, Some(&own), &args, 1).await
}

async fn ground_of(authority: &Authority, own: Option<&Pair>, args: &[&str], replicas: usize) -> Ground {
    let server = authority.sign(1, &["127.0.0.1"], LONG);
    let etcd = SecureEtcd::start(&authority.file(), &server, own, args);
    let cluster = prepared(replicas).await;
    let password = scratch::folder("password").join("etcd");
    replace(&password, "the right one\n");
    for replica in cluster.replicas() {
        replica.set("coordinator", "endpoints", &etcd.endpoints());
        replica.set("coordinator.tls", "ca", &path(&authority.file()));
        if let Some(own) = own {
            replica.set("coordinator.tls", "cert", &path(&own.cert));
            replica.set("coordinator.tls", "key", &path(&own.key));
        }
        replica.set("coordinator.auth", "user", &quoted(USER));
        replica.set("coordinator.auth", "password_file", &path(&password));
    }
    etcd.with_user(USER, "the right one", cluster.prefix()).await;
    Ground { etcd, cluster, password }
}

/// It leads, in one term, through several lives of a token.
async fn leads_through_tokens(ground: &Ground) {
    let replica = ground.cluster.replica(0);
    replica.start();
    let term = replica.wait_leads().await;
    holds_for(Duration::from_secs(TOKEN * 4), "it leads on", async || {
        if replica.leads(super::ELECTION).await { Ok(()) } else { Err(replica.log()) }
    })
    .await;
    replica.wait_renews().await;
    replica.assert_still_leads(term).await;
    // Tokens are needed for more than renewals: who is there is listed by every reading of the registry.
    crate::support::eventually(Duration::from_secs(20), "the registry is read", async || {
        let status = ground.cluster.command(&["status", "--json"]).ok().json();
        (status["coordinator"]["replicas"].as_array().map(Vec::len) == Some(1)).then_some(())
    })
    .await;
    replica.assert_still_leads(term).await;
}

/// Tokens that a member keeps.
fn simple() -> [String; 4] {
    ["--auth-token", "simple", "--auth-token-ttl", &TOKEN.to_string()].map(str::to_owned)
}

/// Tokens that are signed: each ends when it says, however often it was used.
fn signed() -> [String; 2] {
    let key = scratch::folder("jwt").join("jwt.key");
    std::fs::write(&key, "one that signs tokens").expect("the folder is new");
    ["--auth-token".to_owned(), format!("jwt,priv-key={},sign-method=HS256,ttl={TOKEN}s", key.display())]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_outlives_tokens_that_are_kept_by_the_member() {
    leads_through_tokens(&ground(&simple().each_ref().map(String::as_str), 1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_outlives_tokens_whose_end_stands_in_them() {
    leads_through_tokens(&ground(&signed().each_ref().map(String::as_str), 1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_certificate_is_no_users_outlives_tokens_of_either_kind() {
    leads_through_tokens(&mutual(&simple().each_ref().map(String::as_str)).await).await;
    leads_through_tokens(&mutual(&signed().each_ref().map(String::as_str)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_roles_and_passwords_change_without_a_change_of_leader() {
    outlives_changes(ground(&["--auth-token", "simple"], 1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_roles_and_passwords_change_behind_certificates_that_are_no_users() {
    outlives_changes(mutual(&["--auth-token", "simple"]).await).await;
}

async fn outlives_changes(mut ground: Ground) {
    let replica = ground.cluster.replica(0);
    replica.start();
    let term = replica.wait_leads().await;
    // Any change of users or roles makes all tokens old.
    let mut root = ground.etcd.client(true).await;
    root.role_add("somebody").await.expect("a role");
    root.role_grant_permission("somebody", Permission::read("/elsewhere")).await.expect("granted");
    // Another password: the file first, as a rotation does, then etcd.
    replace(&ground.password, "another one\n");
    root.user_change_password(USER, "another one").await.expect("changed");
    // A member that starts anew knows no token.
    ground.etcd.restart();
    let readings = || replica.log().matches("a secret was read anew").count();
    eventually(super::READY, "the new password is read", async || (readings() > 0).then_some(())).await;
    holds_for(Duration::from_secs(4), "it leads on", async || {
        if replica.leads(super::ELECTION).await { Ok(()) } else { Err(replica.log()) }
    })
    .await;
    replica.assert_still_leads(term).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_missing_rights_are_named_until_they_are_mended() {
    let ground = ground(&[], 2).await;
    replace(&ground.password, "a wrong one\n");
    let [wrong, rightless] = ground.cluster.replicas() else { panic!("two") };
    rightless.set("coordinator", "prefix", "\"/bursar/of-others\"");
    wrong.start();
    wrong.wait_says(&["coordinator", "coordinator.auth", "password_file"]).await;
    replace(&ground.password, "the right one\n");
    wrong.wait_leads().await;
    let check = rightless.command(&["check"]);
    assert!(check.stdout.contains("readwrite on every key"), "{}", check.stdout);
}
