//! One member of etcd behind TLS, perhaps with users.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Identity, Permission, TlsOptions, UserAddOptions};

use super::authority::Pair;
use crate::support::ports::free_port;
use crate::support::{Launch, Process, eventually_blocking, scratch};

/// The password of the user `root`.
pub const ROOT: &str = "of-root-alone";

/// A member; gone when dropped.
pub struct SecureEtcd {
    pub port: u16,
    /// What those that speak to it here go by: its authority, and a certificate where it asks for one.
    authority: PathBuf,
    identity: Option<Pair>,
    launch: Launch,
    health: u16,
    process: Option<Process>,
}

impl SecureEtcd {
    /// One with that certificate, and further arguments.
    pub fn start(authority: &Path, server: &Pair, identity: Option<&Pair>, args: &[&str]) -> Self {
        let (folder, port, health, peer) = (scratch::folder("secure-etcd"), free_port(), free_port(), free_port());
        let url = format!("https://127.0.0.1:{port}");
        let peer = format!("http://127.0.0.1:{peer}");
        let launch = Launch::new("secure-etcd", "etcd")
            .args(["--name", "s", "--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-metrics-urls", &format!("http://127.0.0.1:{health}")])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("s={peer}")])
            .args(["--cert-file", &server.cert.to_string_lossy(), "--key-file", &server.key.to_string_lossy()])
            .args(["--unsafe-no-fsync", "--logger", "zap", "--log-level", "warn", "--data-dir"])
            .arg(folder.join("data"))
            .args(args)
            .folder(&folder);
        let mut etcd =
            Self { port, authority: authority.to_owned(), identity: identity.cloned(), launch, health, process: None };
        etcd.restart();
        etcd
    }

    /// Starts it, again where it ran: tokens of users are forgotten by that.
    pub fn restart(&mut self) {
        drop(self.process.take());
        let process = self.launch.clone().start();
        eventually_blocking(Duration::from_secs(30), "etcd is healthy", || {
            assert!(process.is_running(), "etcd has ended:\n{}", process.log_tail(40));
            is_healthy(self.health).then_some(())
        });
        self.process = Some(process);
    }

    /// The endpoint as `coordinator.endpoints` has it, through that port of 127.0.0.1.
    pub fn endpoints_through(port: u16) -> String {
        format!("[\"https://127.0.0.1:{port}\"]")
    }

    pub fn endpoints(&self) -> String {
        Self::endpoints_through(self.port)
    }

    /// A client, as `root` where that is known.
    pub async fn client(&self, as_root: bool) -> Client {
        let read = |path: &Path| std::fs::read(path).expect("it was written");
        let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(&self.authority)));
        if let Some(pair) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(&pair.cert), read(&pair.key)));
        }
        let mut options = ConnectOptions::new().with_tls(tls);
        if as_root {
            options = options.with_user("root", ROOT);
        }
        Client::connect([format!("https://127.0.0.1:{}", self.port)], Some(options)).await.expect("etcd answers")
    }

    /// Asks for users from now on: `root`, and one with a password and rights on one prefix alone.
    pub async fn with_user(&self, user: &str, password: &str, prefix: &str) {
        let mut client = self.client(false).await;
        for (name, password) in [("root", ROOT), (user, password)] {
            client.user_add(name, password, None::<UserAddOptions>).await.expect("a user");
            client.role_add(name).await.expect("a role");
            client.user_grant_role(name, name).await.expect("granted");
        }
        let below = Permission::read_write(format!("{prefix}/")).with_prefix();
        client.role_grant_permission(user, below).await.expect("granted");
        client.auth_enable().await.expect("users are asked for");
    }
}

fn is_healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}
