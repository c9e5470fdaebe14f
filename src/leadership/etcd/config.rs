//! What the adapter is told: the configuration's `[coordinator]`, as far as it is etcd's.

use std::path::PathBuf;

use crate::secret::SecretSource;

/// How to reach etcd.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// The members' client URLs, `http://` or `https://`; at least one. They are tried in this order.
    pub endpoints: Vec<String>,
    /// The deployment's prefix, without a slash at its end.
    pub prefix: String,
    /// For `https://` endpoints; without it, the system's roots and no client certificate.
    pub tls: Option<EtcdTls>,
    /// Where etcd asks for users.
    pub auth: Option<EtcdAuth>,
}

/// TLS material. The files are read anew for each connection, so that rotated ones are taken without a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EtcdTls {
    /// Certificate authorities, PEM. Without it the system's roots count.
    pub ca: Option<PathBuf>,
    /// The client's certificate chain, PEM; with `key`.
    pub cert: Option<PathBuf>,
    /// The client's key, PEM; with `cert`.
    pub key: Option<PathBuf>,
    /// The name that the server's certificate must bear, where it is not the endpoint's host.
    pub server_name: Option<String>,
}

/// A user of etcd.
#[derive(Debug, Clone)]
pub struct EtcdAuth {
    /// The name.
    pub user: String,
    /// The password, never shown; its file is read anew for each connection.
    pub password: SecretSource,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let auth = EtcdAuth { user: "bursar".into(), password: "hunter2".into() };
        assert!(!format!("{auth:?}").contains("hunter2"));
    }
}
