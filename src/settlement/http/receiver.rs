//! A receiver with everything that its requests share: limits, secrets, TLS, and, where it is idempotent, connections.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST, USER_AGENT};

use super::answer::{Asked, Seen, Unsent, Verdict, quiet_for, verdict};
use super::client::{Connection, Outgoing, connect};
use super::echo::Expected;
use super::limits::Limits;
use super::look_up::{LookUp, look_up_verdict};
use super::secrets::{Secrets, SigningKey};
use super::signature::{self, Signed};
use super::tls::Tls;
use crate::clock;
use crate::domain::Moment;
use crate::domain::job::fingerprint;
use crate::domain::outside::ReceiverDefinition;
use crate::domain::web_address::WebAddress;
use crate::settlement::{Departure, Fence};

/// A connection that was not used for so long is not used again: many servers close theirs after five seconds.
const IDLE_MOST: Duration = Duration::from_secs(3);
/// How often a connection that was lost while leave was awaited is made anew.
const CONNECTS_MOST: u32 = 3;

/// The store's time as it was known at a moment, from which it is known later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreTime {
    /// The store's time.
    pub store: DateTime<Utc>,
    /// When it was that.
    pub at: Moment,
}

impl StoreTime {
    /// The store's time at a later moment.
    #[must_use]
    pub fn at(self, moment: Moment) -> DateTime<Utc> {
        let passed = TimeDelta::from_std(moment.since(self.at)).unwrap_or(TimeDelta::MAX);
        self.store.checked_add_signed(passed).unwrap_or(self.store)
    }
}

/// One try of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The idempotency key.
    pub key: &'a str,
    /// The stored bytes.
    pub body: &'a [u8],
    /// Token and scope.
    pub fence: &'a Fence,
    /// Whether any earlier try of this key is in doubt.
    pub in_doubt: bool,
    /// The store's time, for the signature and for dates in answers.
    pub store_time: StoreTime,
    /// The first byte leaves before this moment or not at all; `None`: no limit.
    pub not_after: Option<Moment>,
}

/// Why a receiver cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// Its address.
    #[error("the receiver's address: {0}")]
    Address(#[from] crate::domain::web_address::AddressError),
    /// Its authorities.
    #[error("the receiver's tls_ca: {0}")]
    Authorities(String),
}

/// A receiver.
pub struct Receiver {
    rules: ReceiverDefinition,
    address: WebAddress,
    tls: Option<Tls>,
    secrets: Secrets,
    limits: Arc<Limits>,
    idle: Mutex<Vec<(Connection, Moment)>>,
}

impl Receiver {
    /// Sets one up. Reads the authorities' certificates; connects to nothing.
    ///
    /// # Errors
    /// [`ReceiverError`].
    pub fn new(rules: ReceiverDefinition) -> Result<Self, ReceiverError> {
        Self::within(rules, Arc::default())
    }

    /// The same, within the limits that all of its origin share.
    fn within(rules: ReceiverDefinition, limits: Arc<Limits>) -> Result<Self, ReceiverError> {
        let address = WebAddress::new(&rules.url)?;
        let mut secure = address.is_secure();
        if let Some(url) = &rules.lookup_url {
            secure |= WebAddress::for_key(url, "k")?.is_secure();
        }
        let ca = rules.tls_ca.as_ref().map(PathBuf::from);
        let tls = if secure { Some(Tls::new(ca).map_err(ReceiverError::Authorities)?) } else { None };
        Ok(Self {
            address,
            tls,
            secrets: Secrets::new(rules.secret_files.iter().map(PathBuf::from).collect()),
            limits,
            idle: Mutex::default(),
            rules,
        })
    }

    /// What keeps one from being set up and sent to, as its files are now: its authorities, its secrets.
    pub async fn wrong_with_files(rules: &ReceiverDefinition) -> Vec<String> {
        let secrets = Secrets::new(rules.secret_files.iter().map(PathBuf::from).collect());
        let authorities = Self::new(rules.clone()).err().map(|error| error.to_string());
        let secrets = secrets.current(clock::boottime()).await.err().map(|error| error.to_string());
        authorities.into_iter().chain(secrets).collect()
    }

    /// The rules.
    #[must_use]
    pub const fn rules(&self) -> &ReceiverDefinition {
        &self.rules
    }

    /// What it is stopped by: scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> String {
        self.address.origin()
    }

    /// Requests that could go on the wire now: no more instructions are to be taken as `sending`.
    #[must_use]
    pub fn free(&self) -> usize {
        self.limits.free(&self.rules)
    }

    /// How often its secrets and its authorities have changed.
    pub async fn changes(&self) -> u64 {
        let now = clock::boottime();
        let of_authorities = match &self.tls {
            Some(tls) => tls.changes(now).await,
            None => 0,
        };
        self.secrets.changes(now).await + of_authorities
    }

    /// Makes one try. Waits for its turn; asks for leave right before the first byte. Dropped, it closes its connection.
    pub async fn send(&self, request: &Request<'_>, departure: &Departure) -> Verdict {
        let expected = Expected::of(request.key, request.body);
        let reuse = self.rules.idempotent || crate::mutant!("http.connection-used-again");
        let seen = self.exchange("POST", &self.address, request, departure, reuse).await;
        let store_now = self.heed(&seen, request);
        let asked = Asked { expected: &expected, term: request.fence.term, in_doubt: request.in_doubt, store_now };
        verdict(&seen, &self.rules, asked)
    }

    /// Asks the receiver for the key; `None` where it offers no look-up. Asks for leave as well: nothing of a tenure goes on
    /// after it.
    pub async fn look_up(&self, request: &Request<'_>, departure: &Departure) -> Option<LookUp> {
        let url = self.rules.lookup_url.as_deref()?;
        let expected = Expected::of(request.key, request.body);
        let seen = match WebAddress::for_key(url, request.key) {
            Ok(address) => {
                let asking = Request { body: &[], ..*request };
                let seen = self.exchange("GET", &address, &asking, departure, false).await;
                self.heed(&seen, request);
                seen
            }
            Err(error) => Seen::Unsent(Unsent::Unfit(error.to_string())),
        };
        Some(look_up_verdict(&seen, &expected))
    }

    /// How long it is to be sent nothing, as it asked for itself; `None`: it may be.
    #[must_use]
    pub fn quiet_for(&self) -> Option<Duration> {
        self.limits.quiet_for(clock::boottime())
    }

    /// Takes in the wait that an answer asks for. Answers the store's time now.
    fn heed(&self, seen: &Seen, request: &Request<'_>) -> DateTime<Utc> {
        let now = clock::boottime();
        let store_now = request.store_time.at(now);
        if let Some(wait) = quiet_for(seen, store_now) {
            if self.limits.quiet_for(now).is_none() && !wait.is_zero() {
                tracing::warn!(
                    receiver = self.origin(),
                    wait_s = wait.as_secs(),
                    "a receiver asked for a wait: nothing is sent to it before"
                );
            }
            self.limits.be_quiet(now + wait);
        }
        store_now
    }

    async fn exchange(
        &self,
        method: &'static str,
        address: &WebAddress,
        request: &Request<'_>,
        departure: &Departure,
        reuse: bool,
    ) -> Seen {
        let (_place, turn) = self.limits.enter(&self.rules).await;
        if turn > Duration::ZERO {
            tokio::time::sleep(turn).await;
        }
        // Before leave is asked: between leave and the first byte nothing is waited for.
        let secrets = match self.secrets.current(clock::boottime()).await {
            Ok(secrets) => secrets,
            Err(error) => return Seen::Unsent(Unsent::Unsigned(error.to_string())),
        };
        let mut connection = match self.depart(address, request, departure, reuse).await {
            Ok(connection) => connection,
            Err(unsent) => return Seen::Unsent(unsent),
        };
        let outgoing = match outgoing(method, address, request, &secrets, reuse) {
            Ok(outgoing) => outgoing,
            Err(unsent) => return Seen::Unsent(unsent),
        };
        let seen = connection.exchange(outgoing, self.rules.timeout).await;
        if reuse && matches!(seen, Seen::Answer(_)) && connection.is_usable() {
            self.keep(connection);
        }
        seen
    }

    /// A connection that is up, with leave to write on it.
    async fn depart(
        &self,
        address: &WebAddress,
        request: &Request<'_>,
        departure: &Departure,
        reuse: bool,
    ) -> Result<Connection, Unsent> {
        let tls = match self.tls.as_ref().filter(|_| address.is_secure()) {
            Some(tls) => Some(tls.connector(clock::boottime()).await),
            None => None,
        };
        if let Some(wait) = self.quiet_for() {
            return Err(Unsent::NotYet(wait));
        }
        for _ in 0..CONNECTS_MOST {
            let kept = if reuse { self.kept() } else { None };
            let mut connection = match kept {
                Some(connection) => connection,
                None => connect(address, tls.as_ref(), self.rules.timeout).await?,
            };
            // Also what was taken before the receiver asked for it, and waited for its turn.
            if let Some(wait) = self.quiet_for() {
                return Err(Unsent::NotYet(wait));
            }
            departure.depart().await.map_err(|_| Unsent::NoLeave)?;
            if request.not_after.is_some_and(|last| clock::boottime() >= last) {
                return Err(Unsent::TooLate);
            }
            if connection.is_usable() {
                return Ok(connection);
            }
        }
        Err(Unsent::NotConnected("the connection was closed before it was used, several times".to_owned()))
    }

    fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::boottime();
        while let Some((mut connection, since)) = idle.pop() {
            if now.since(since) < IDLE_MOST && connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::boottime();
        idle.retain(|(_, since)| now.since(*since) < IDLE_MOST);
        // No more than can be on the wire at once, since each was.
        idle.push((connection, now));
    }
}

fn outgoing(
    method: &'static str,
    address: &WebAddress,
    request: &Request<'_>,
    secrets: &[SigningKey],
    reuse: bool,
) -> Result<Outgoing, Unsent> {
    let signed = Signed {
        method,
        time: request.store_time.at(clock::boottime()).timestamp(),
        key: request.key,
        term: request.fence.term,
        scope: &request.fence.scope,
        body: request.body,
    };
    let mut outgoing = hyper::Request::builder()
        .method(method)
        .uri(address.target())
        .header(HOST, address.authority())
        .header(USER_AGENT, concat!("bursar/", env!("CARGO_PKG_VERSION")))
        .header(ACCEPT, "application/json")
        .header(ACCEPT_ENCODING, "identity")
        .header("idempotency-key", request.key)
        .header("fencing-token", request.fence.term.get())
        .header("fencing-scope", &request.fence.scope);
    if let Some(signature) = signed.header(secrets) {
        outgoing = outgoing.header(signature::HEADER, signature);
    }
    if !reuse {
        outgoing = outgoing.header(CONNECTION, "close");
    }
    if method == "POST" {
        outgoing = outgoing.header(CONTENT_TYPE, "application/json");
    }
    let body = Full::new(Bytes::copy_from_slice(request.body));
    outgoing.body(body).map_err(|error| Unsent::Unfit(format!("no request can be made of it: {error}")))
}

/// The receivers of a process: one for each definition, so that all runs of a job share its connections; and for each origin the
/// limits that all definitions of it share.
#[derive(Default)]
pub struct Receivers(Mutex<Known>);

#[derive(Default)]
struct Known {
    receivers: HashMap<String, Arc<Receiver>>,
    limits: HashMap<String, Arc<Limits>>,
}

/// Beyond so many definitions, those that nobody uses are let go.
const MOST_RECEIVERS: usize = 512;

impl Receivers {
    /// The receiver of a definition; the same one for the same definition.
    ///
    /// # Errors
    /// [`ReceiverError`] where it cannot be set up.
    pub fn of(&self, definition: &ReceiverDefinition) -> Result<Arc<Receiver>, ReceiverError> {
        let name = fingerprint(definition);
        let limits = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(receiver) = known.receivers.get(&name) {
                return Ok(Arc::clone(receiver));
            }
            if known.receivers.len() >= MOST_RECEIVERS {
                known.receivers.retain(|_, receiver| Arc::strong_count(receiver) > 1);
                known.limits.retain(|_, limits| Arc::strong_count(limits) > 1);
            }
            let origin = WebAddress::new(&definition.url)?.origin();
            Arc::clone(known.limits.entry(origin).or_default())
        };
        // It reads files, for which the others need not wait. Of two that make the same, the first counts.
        let made = Arc::new(Receiver::within(definition.clone(), limits)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(known.receivers.entry(name).or_insert(made)))
    }
}
