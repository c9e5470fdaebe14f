//! A receiver's certificate of another authority, whose file is exchanged while a replica leads.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::authority::{Authority, LONG, Pair};
use super::{READY, SAID, path};
use crate::support::receiver::Receiver;
use crate::support::replica::replace;
use crate::support::{Cluster, Entries, LedgerJob, Setup, eventually, scratch};

/// TLS in front of a receiver that speaks none.
struct Front {
    port: u16,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    _server: JoinSet<()>,
}

fn acceptor(pair: &Pair) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(&pair.cert).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(&pair.key).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a pair");
    TlsAcceptor::from(Arc::new(config))
}

impl Front {
    async fn start(pair: &Pair, behind: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Mutex::new(acceptor(pair)));
        let current = Arc::clone(&shared);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = current.lock().expect("nothing panics under it").clone();
                connections.spawn(async move {
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    let Ok(mut inside) = TcpStream::connect((Ipv4Addr::LOCALHOST, behind)).await else { return };
                    // One that breaks off is no failure of the test.
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Self { port, acceptor: shared, _server: server }
    }

    /// Another certificate, for whoever connects from now on.
    fn exchange(&self, pair: &Pair) {
        *self.acceptor.lock().expect("nothing panics under it") = acceptor(pair);
    }
}

/// One replica whose payouts go through that front. It is not idempotent, so that each payout connects anew, and a try at a
/// receiver that is stopped is an hour away.
async fn paying(front: &Front, authorities: &Path) -> Cluster {
    let job = LedgerJob::new("daily")
        .paying(&format!("https://127.0.0.1:{}/payouts", front.port))
        .payout("idempotent", "false")
        .payout("tls_ca", &path(authorities))
        .backoff("1h..1h");
    let cluster = Setup::new(1, &job.text()).steady().start().await;
    cluster.wait_leader(READY).await;
    cluster
}

/// A payout more, of a source of its own: each has the same id.
async fn settle(cluster: &Cluster, merchant: &str) {
    cluster.import(&Entries::new().capture(merchant, "EUR", "10.00"), merchant).ok();
    cluster.run_now("daily").await;
}

async fn wait_paid(cluster: &Cluster, payouts: i64) {
    let query = "select count(*) from bursar.instruction where state = 'paid'";
    let paid = async || (cluster.number(query).await == payouts).then_some(());
    eventually(READY, &format!("{payouts} are paid"), paid).await;
}

/// Pays until that is logged, once: a file is looked at where something is sent, and at most once a second.
async fn pay_until_logged(cluster: &Cluster, paid: &mut i64, words: &str) {
    while cluster.replica(0).log().matches(words).count() == 0 {
        assert!(*paid < 40, "{words:?} is not logged");
        *paid += 1;
        settle(cluster, &format!("m{paid}")).await;
        wait_paid(cluster, *paid).await;
    }
    assert_eq!(cluster.replica(0).log().matches(words).count(), 1, "{words}");
}

async fn wait_logged(cluster: &Cluster, words: &str, times: usize) {
    let logged = async || (cluster.replica(0).log().matches(words).count() == times).then_some(());
    eventually(SAID, &format!("{words:?} is logged {times} times"), logged).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payouts_go_on_at_once_when_the_receivers_new_authority_is_put_into_its_file() {
    let (first, second) = (Authority::new("the first"), Authority::new("the second"));
    let receiver = Receiver::start().await;
    let front = Front::start(&first.sign(1, &["127.0.0.1"], LONG), receiver.port()).await;
    let authorities = scratch::folder("receiver-tls").join("bank-ca.pem");
    replace(&authorities, &first.pem());
    let cluster = paying(&front, &authorities).await;
    let term = cluster.replica(0).term_now().await;
    let mut paid = 1;
    settle(&cluster, "m1").await;
    wait_paid(&cluster, paid).await;

    // A file that is broken, then gone: said once each, and what was read before stays in use.
    replace(&authorities, "-----BEGIN CERTIFICATE-----\nhalf a fi");
    pay_until_logged(&cluster, &mut paid, "a receiver's authorities cannot be used; those before are").await;
    std::fs::remove_file(&authorities).expect("the file is ours");
    pay_until_logged(&cluster, &mut paid, "a receiver's authorities cannot be read; those before are used").await;
    assert!(cluster.replica(0).log().contains("bank-ca.pem"), "the file is named");

    // Another authority's certificate: the receiver stops, and says what to do.
    front.exchange(&second.sign(2, &["127.0.0.1"], LONG));
    settle(&cluster, "last").await;
    wait_logged(&cluster, "a receiver is stopped", 1).await;
    let stopped = cluster.command(&["receivers", "list"]).ok().stdout;
    for words in ["tls", "of no authority in tls_ca"] {
        assert!(stopped.contains(words), "{words}: {stopped}");
    }
    assert_eq!(i64::try_from(receiver.log().len()), Ok(paid), "not a byte was sent");

    // Its authority comes into the file: no restart, no command, and not an hour's wait.
    replace(&authorities, &second.pem());
    wait_paid(&cluster, paid + 1).await;
    wait_logged(&cluster, "a receiver's authorities were read anew", 1).await;
    assert_eq!(cluster.command(&["receivers", "list", "--json"]).ok().json(), serde_json::json!([]));
    cluster.replica(0).assert_still_leads(term).await;
    receiver.judge();
    cluster.assert_audited();
}
