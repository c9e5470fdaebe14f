//! The link to etcd: one client for one endpoint, kept while it works, the next at once when it does not.
//!
//! A client over several endpoints picks one at random for each call and has no memory of bad ones, so with one of three
//! members down every third call fails. And a time-out of the transport does not cover an open stream. So each attempt,
//! sending and answer together, has one deadline here, and a client that failed is dropped with all its streams.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use etcd_client::{
    Certificate, Client, ConnectOptions, Error, Identity, LeaseKeepAliveStream, LeaseKeeper, TlsOptions,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::config::{EtcdConfig, EtcdTls};
use super::refusal::{is_refusal, words};
use crate::leadership::coordinator::CoordinatorError;
use crate::leadership::lease::ATTEMPT_LIMIT;
use crate::leadership::record::{LeaseId, Members};

/// An open keepalive stream of one lease.
pub(super) struct Keepalive {
    pub(super) lease: LeaseId,
    pub(super) keeper: LeaseKeeper,
    pub(super) answers: LeaseKeepAliveStream,
}

/// A client of one endpoint, with the keepalive stream that goes through it.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    /// The member that it talks to.
    pub(super) endpoint: String,
    /// Taken out for the time of a renewal, and put back only after a good answer: an answer that came too late is never
    /// taken for that of a later renewal.
    pub(super) keepalive: Arc<Mutex<Option<Keepalive>>>,
}

struct Current {
    endpoint: usize,
    /// Grows with each drop, so that two operations that fail together drop one client, not two.
    generation: u64,
    connection: Option<Connection>,
}

pub(super) struct Link {
    config: EtcdConfig,
    current: Mutex<Current>,
    probes: Vec<Mutex<Option<Client>>>,
}

impl Link {
    pub(super) fn new(config: EtcdConfig) -> Self {
        let probes = config.endpoints.iter().map(|_| Mutex::new(None)).collect();
        let current = Mutex::new(Current { endpoint: 0, generation: 0, connection: None });
        Self { config, current, probes }
    }

    /// One attempt through the client in use. Whatever fails, except a refusal, drops that client.
    ///
    /// The future is boxed: tonic's are large, and they would add up in every caller.
    pub(super) async fn attempt<T, F>(&self, call: impl FnOnce(Connection) -> F + Send) -> Result<T, CoordinatorError>
    where
        F: Future<Output = Result<T, Error>> + Send,
    {
        let (endpoint, generation) = {
            let current = self.current.lock().await;
            (current.endpoint, current.generation)
        };
        let name = self.config.endpoints.get(endpoint).cloned().unwrap_or_default();
        let attempt = Box::pin(async { call(self.connection(generation).await?).await });
        let error = match timeout(ATTEMPT_LIMIT, attempt).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(_) => {
                self.drop_client(generation).await;
                return Err(CoordinatorError::Unknown { endpoint: name, limit: ATTEMPT_LIMIT });
            }
        };
        self.drop_client(generation).await;
        let why = words(&error, &self.config);
        if is_refusal(&error) {
            return Err(CoordinatorError::Denied { endpoint: name, why });
        }
        Err(CoordinatorError::Unreachable { endpoint: name, why })
    }

    async fn connection(&self, generation: u64) -> Result<Connection, Error> {
        let mut current = self.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok(connection.clone());
        }
        let client = self.connect(current.endpoint).await?;
        let endpoint = self.config.endpoints.get(current.endpoint).cloned().unwrap_or_default();
        let connection = Connection { client, endpoint, keepalive: Arc::new(Mutex::new(None)) };
        // Dropped meanwhile by another operation: good for this one attempt only.
        if current.generation == generation {
            current.connection = Some(connection.clone());
        }
        Ok(connection)
    }

    async fn drop_client(&self, generation: u64) {
        let mut current = self.current.lock().await;
        if current.generation == generation {
            current.generation += 1;
            current.endpoint = (current.endpoint + 1) % self.config.endpoints.len().max(1);
            current.connection = None;
        }
    }

    async fn connect(&self, endpoint: usize) -> Result<Client, Error> {
        let url = self
            .config
            .endpoints
            .get(endpoint)
            .ok_or_else(|| Error::InvalidArgs("no endpoint is configured".to_owned()))?;
        let mut options = ConnectOptions::new().with_connect_timeout(ATTEMPT_LIMIT).with_require_leader(true);
        if url.starts_with("https://") {
            options = options.with_tls(tls_options(self.config.tls.as_ref()).await?);
        }
        if let Some(auth) = &self.config.auth {
            options = options.with_user(&auth.user, auth.password.current().await.expose());
        }
        Client::connect([url], Some(options)).await
    }

    /// Asks each member for its status, all at once, on connections of their own.
    pub(super) async fn members(&self) -> Members {
        let asked = (0..self.probes.len()).map(|endpoint| self.answers(endpoint));
        let answers = futures_util::future::join_all(asked).await;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Members { reachable: count(answers.iter().filter(|ok| **ok).count()), total: count(answers.len()) }
    }

    async fn answers(&self, endpoint: usize) -> bool {
        let Some(probe) = self.probes.get(endpoint) else { return false };
        let mut probe = probe.lock().await;
        let asked = async {
            let mut client = match probe.take() {
                Some(client) => client,
                None => self.connect(endpoint).await?,
            };
            match client.status().await {
                Ok(_) => Ok(client),
                // A member that does not tell this user how it is has answered.
                Err(error) if is_refusal(&error) => Ok(client),
                Err(error) => Err(error),
            }
        };
        match timeout(ATTEMPT_LIMIT, asked).await {
            Ok(Ok(client)) => {
                *probe = Some(client);
                true
            }
            Ok(Err(_)) | Err(_) => false,
        }
    }
}

/// Reads the files of a certificate, key or authority; an error names the file.
async fn pem(path: &Path) -> Result<Vec<u8>, Error> {
    tokio::fs::read(path).await.map_err(|error| {
        let named = format!("{} cannot be read: {error}", path.display());
        Error::IoError(std::io::Error::new(error.kind(), named))
    })
}

async fn tls_options(tls: Option<&EtcdTls>) -> Result<TlsOptions, Error> {
    let mut options = TlsOptions::new();
    let Some(tls) = tls else { return Ok(options.with_enabled_roots()) };
    options = match &tls.ca {
        Some(ca) => options.ca_certificate(Certificate::from_pem(pem(ca).await?)),
        None => options.with_enabled_roots(),
    };
    if let (Some(cert), Some(key)) = (&tls.cert, &tls.key) {
        options = options.identity(Identity::from_pem(pem(cert).await?, pem(key).await?));
    }
    if let Some(name) = &tls.server_name {
        options = options.domain_name(name);
    }
    Ok(options)
}
