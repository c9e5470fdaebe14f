//! How the database is reached: the configuration's `[database]`, as plain values.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::secret::{Secret, SecretSource};

/// How to reach the database, and who asks. What the store's settings hold; kept apart, because the coordinator knows no store.
#[derive(Clone, Default)]
pub struct PgCoordinatorSettings {
    /// `postgres://…`; may hold a password.
    pub url: SecretSource,
    /// The password, where the URL has none.
    pub password: Option<SecretSource>,
    /// libpq's `sslmode`; `None`: as the URL says.
    pub tls_mode: Option<String>,
    /// The authorities' certificates, PEM.
    pub tls_ca: Option<PathBuf>,
    /// One's own certificate and key, PEM.
    pub tls_identity: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for PgCoordinatorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgCoordinatorSettings").finish_non_exhaustive()
    }
}

impl PgCoordinatorSettings {
    /// How to connect now: the files of secrets are read anew.
    pub(super) async fn current(&self) -> Result<PgConnectOptions, sqlx::Error> {
        let password = match &self.password {
            Some(password) => Some(password.current().await),
            None => None,
        };
        self.options(&self.url.current().await, password)
    }

    fn options(&self, url: &Secret, password: Option<Secret>) -> Result<PgConnectOptions, sqlx::Error> {
        let mut options = PgConnectOptions::from_str(url.expose())?;
        if let Some(password) = password {
            options = options.password(password.expose());
        }
        if let Some(mode) = &self.tls_mode {
            options = options.ssl_mode(PgSslMode::from_str(mode)?);
        }
        if let Some(authorities) = &self.tls_ca {
            options = options.ssl_root_cert(authorities);
        }
        if let Some((certificate, key)) = &self.tls_identity {
            options = options.ssl_client_cert(certificate).ssl_client_key(key);
        }
        Ok(options.extra_float_digits(None).application_name("bursar coordinator"))
    }

    /// Where it is, for errors: never with a password.
    pub(super) fn endpoint(&self) -> String {
        self.options(&self.url.known(), None)
            .map_or_else(|_| "database.url".to_owned(), |o| format!("{}:{}", o.get_host(), o.get_port()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn settings_are_read_and_never_shown() {
        let url = "postgres://bursar:secret@db:5433/payments".into();
        let settings = PgCoordinatorSettings { url, ..PgCoordinatorSettings::default() };
        assert!(settings.current().await.is_ok());
        assert_eq!(settings.endpoint(), "db:5433");
        assert!(!format!("{settings:?}").contains("secret"));
        let wrong = PgCoordinatorSettings { tls_mode: Some("perhaps".to_owned()), ..settings };
        assert!(wrong.current().await.is_err());
    }
}
