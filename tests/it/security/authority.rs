//! Authorities, certificates, and lists of revoked ones, made for a test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
    date_time_ymd,
};

use crate::support::replica::replace;
use crate::support::scratch;

/// The lifetime of a certificate that outlives the test.
pub const LONG: Duration = Duration::from_hours(24);

/// One that signs.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

/// A certificate and its key, in files.
#[derive(Debug, Clone)]
pub struct Pair {
    pub cert: PathBuf,
    pub key: PathBuf,
    serial: u64,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate");
        let authority = Self { issuer, folder: scratch::folder("authority") };
        fs::write(authority.file(), authority.pem()).expect("the folder is new");
        authority
    }

    pub fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// Its certificate's file.
    pub fn file(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    /// A certificate for these names and addresses, for servers and clients alike.
    pub fn sign(&self, serial: u64, names: &[&str], lifetime: Duration) -> Pair {
        self.sign_as(&format!("number {serial}"), serial, names, lifetime)
    }

    /// The same with a common name, which servers take for a user's.
    pub fn sign_as(&self, common_name: &str, serial: u64, names: &[&str], lifetime: Duration) -> Pair {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names and addresses");
        params.serial_number = Some(SerialNumber::from(serial));
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // etcd's own gateway is a client of its server, with the server's certificate.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let since_1970 = u64::try_from(bursar::clock::wall().timestamp()).expect("after 1970");
        params.not_after = date_time_ymd(1970, 1, 1) + Duration::from_secs(since_1970) + lifetime;
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        let pair = Pair {
            cert: self.folder.join(format!("{serial}.pem")),
            key: self.folder.join(format!("{serial}.key")),
            serial,
        };
        fs::write(&pair.cert, certificate.pem()).expect("the folder is ours");
        fs::write(&pair.key, key.serialize_pem()).expect("the folder is ours");
        pair
    }

    /// Writes the list of those that are revoked.
    pub fn revoke(&self, list: &Path, revoked: &[&Pair]) {
        let one = |pair: &&Pair| RevokedCertParams {
            serial_number: SerialNumber::from(pair.serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: revoked.iter().map(one).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let signed = params.signed_by(&self.issuer).expect("a list").pem().expect("PEM");
        replace(list, &signed);
    }
}

impl Pair {
    /// Copies it to where a program looks, each file in one step.
    pub fn put(&self, to: &Pair) {
        for (from, to) in [(&self.cert, &to.cert), (&self.key, &to.key)] {
            replace(to, &fs::read_to_string(from).expect("it was written"));
        }
    }

    /// Places for a certificate and its key, with nothing in them yet.
    pub fn places(name: &str) -> Self {
        let folder = scratch::folder(name);
        Self { cert: folder.join("tls.pem"), key: folder.join("tls.key"), serial: 0 }
    }

    /// For a server that refuses a key that others may read.
    pub fn only_for_its_owner(&self) {
        fs::set_permissions(&self.key, fs::Permissions::from_mode(0o600)).expect("the file is ours");
    }
}
