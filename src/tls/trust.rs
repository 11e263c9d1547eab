//! Trusted certificate authorities in addition to those of the machine, and messages for certificates that are not
//! accepted.

use super::pair::{PairError, certificates, read};
use reqwest::{Certificate, ClientBuilder};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use tokio_rustls::rustls::{CertificateError, Error as TlsError};

/// The certificates of authorities from one PEM file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authorities {
    ders: Vec<Vec<u8>>,
}

impl Authorities {
    /// Reads a PEM file with one or more certificates. Blocks on the disk.
    ///
    /// # Errors
    /// [`PairError`] if the file or one of its certificates cannot be read.
    pub fn read(path: &Path) -> Result<Self, PairError> {
        let wrong = |why| PairError::Wrong { path: PathBuf::from(path), why };
        let ders = certificates(&read(path)?).map_err(wrong)?.iter().map(|der| der.to_vec()).collect::<Vec<_>>();
        let parsed = ders.iter().map(|der| Certificate::from_der(der));
        match parsed.collect::<Result<Vec<_>, _>>() {
            Ok(_) => Ok(Self { ders }),
            Err(_) => Err(wrong("holds a certificate that cannot be read".to_owned())),
        }
    }

    /// Returns the certificates in DER, for clients of other protocols than HTTP.
    pub fn ders(&self) -> &[Vec<u8>] {
        &self.ders
    }

    pub fn is_empty(&self) -> bool {
        self.ders.is_empty()
    }

    /// Makes a client trust these authorities in addition to those of the machine.
    fn beside(&self, builder: ClientBuilder) -> ClientBuilder {
        if self.is_empty() { builder } else { builder.tls_certs_merge(self.certificates()) }
    }

    /// Makes a client trust only these authorities.
    fn alone(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.tls_certs_only(self.certificates())
    }

    /// Builds a client that trusts these authorities in addition to those of the machine. A machine without any is
    /// enough for plain http, and where these are given: then the client trusts only these, after `on_missing` was told
    /// why. [`super::http_client`] builds usual clients.
    ///
    /// # Errors
    /// The client cannot be built, as where https has no authority at all.
    pub fn build(
        &self,
        is_https: bool,
        builder: impl Fn() -> ClientBuilder,
        on_missing: impl FnOnce(&reqwest::Error),
    ) -> reqwest::Result<reqwest::Client> {
        match self.beside(builder()).build() {
            Err(error) if !is_https || !self.is_empty() => {
                on_missing(&error);
                self.alone(builder()).build()
            }
            built => built,
        }
    }

    fn certificates(&self) -> Vec<Certificate> {
        // Every certificate was parsed in `read` already.
        self.ders.iter().filter_map(|der| Certificate::from_der(der).ok()).collect()
    }
}

/// Explains to people why a certificate was not accepted; `None` if the error is about something else.
pub fn refused(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<TlsError>() {
            return describe(error);
        }
        // `source` skips the error that an io::Error wraps, and that may be an io::Error again.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped));
    }
    None
}

fn describe(error: &TlsError) -> Option<String> {
    use CertificateError as Bad;
    let TlsError::InvalidCertificate(bad) = error else {
        return matches!(error, TlsError::InvalidMessage(_)).then(|| {
            "it does not speak TLS there: the address may have to begin with http://, or the port is another".to_owned()
        });
    };
    let why = match bad {
        Bad::UnknownIssuer => {
            "no authority that this machine trusts has signed it; name the file of the authority that did (PEM) as `ca`"
        }
        Bad::Expired | Bad::ExpiredContext { .. } => "it has expired (or this machine's clock is wrong)",
        Bad::NotValidYet | Bad::NotValidYetContext { .. } => "it is not valid yet (or this machine's clock is wrong)",
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            "it is for other names than the one in the address; its subjectAltName has to have that one"
        }
        Bad::Revoked => "it has been revoked",
        bad if format!("{bad:?}").contains("CaUsedAsEndEntity") => {
            "it is that of an authority, which no server may use; make a self-signed one with \
             -addext basicConstraints=critical,CA:FALSE"
        }
        _ => return Some(format!("its certificate was not accepted: {error}")),
    };
    Some(format!("its certificate was not accepted: {why}"))
}
