//! How the database is reached: plain values from the configuration, so that nobody else needs the driver's types.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};

use super::error::at;
use super::places::PgShares;
use crate::secret::{Secret, SecretSource};
use crate::store::StoreError;

/// How to reach the database, and who asks.
#[derive(Clone, Default)]
pub struct PgSettings {
    /// `postgres://…`; may hold a password.
    pub url: SecretSource,
    /// The password, where the URL has none.
    pub password: Option<SecretSource>,
    /// libpq's `sslmode`: `disable`, `prefer`, `require`, `verify-ca`, `verify-full`; `None`: as the URL says.
    pub tls_mode: Option<String>,
    /// The authorities' certificates, PEM.
    pub tls_ca: Option<PathBuf>,
    /// One's own certificate and key, PEM.
    pub tls_identity: Option<(PathBuf, PathBuf)>,
    /// How the sessions of all tenures together are bounded; `None`: each by its own limit alone.
    pub shares: Option<PgShares>,
    /// The replica's id; shown in `application_name` and kept with refusals. For a command, its name.
    pub replica: String,
}

impl fmt::Debug for PgSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgSettings").field("replica", &self.replica).finish_non_exhaustive()
    }
}

impl PgSettings {
    /// How to connect, with secrets as they were read last: whether the settings can be read at all.
    pub(super) fn known(&self) -> Result<PgConnectOptions, StoreError> {
        self.options(&self.url.known(), self.password.as_ref().map(SecretSource::known))
    }

    /// How to connect now: the files of secrets are read anew.
    pub(super) async fn current(&self) -> Result<PgConnectOptions, StoreError> {
        let password = match &self.password {
            Some(password) => Some(password.current().await),
            None => None,
        };
        self.options(&self.url.current().await, password)
    }

    fn options(&self, url: &Secret, password: Option<Secret>) -> Result<PgConnectOptions, StoreError> {
        let unfit = |what: &str, error: sqlx::Error| StoreError::Unfit { detail: format!("{what}: {error}") };
        let mut options = PgConnectOptions::from_str(url.expose()).map_err(|error| unfit("database.url", error))?;
        if let Some(password) = password {
            options = options.password(password.expose());
        }
        if let Some(mode) = &self.tls_mode {
            options = options.ssl_mode(PgSslMode::from_str(mode).map_err(|error| unfit("database.tls_mode", error))?);
        }
        if let Some(authorities) = &self.tls_ca {
            options = options.ssl_root_cert(authorities);
        }
        if let Some((certificate, key)) = &self.tls_identity {
            options = options.ssl_client_cert(certificate).ssl_client_key(key);
        }
        // There are no floats here, and a pooler refuses the parameter before it could be told apart.
        Ok(options.extra_float_digits(None))
    }
}

/// The way to the database for one kind of session: under which name, and with the secrets of the moment.
#[derive(Debug, Clone)]
pub(super) struct Way {
    settings: Arc<PgSettings>,
    application_name: String,
}

impl Way {
    pub(super) fn new(settings: Arc<PgSettings>, application_name: String) -> Self {
        Self { settings, application_name }
    }

    /// Opens a connection. The caller bounds the time.
    pub(super) async fn connect(&self, operation: &'static str) -> Result<PgConnection, StoreError> {
        let options = self.settings.current().await?.application_name(&self.application_name);
        options.connect().await.map_err(at(operation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_never_shown() {
        let mut settings = PgSettings { url: "postgres://bursar:secret@db/payments".into(), ..PgSettings::default() };
        assert!(settings.known().is_ok());
        assert!(!format!("{settings:?}").contains("secret"));
        settings.tls_mode = Some("perhaps".to_owned());
        let error = settings.known().expect_err("no such mode").to_string();
        assert!(error.contains("database.tls_mode"), "{error}");
    }
}
