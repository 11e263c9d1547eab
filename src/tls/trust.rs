//! Whose certificates are trusted, beside those that the machine trusts, and in words why one is not.

use super::pair::{PairError, certificates, read};
use reqwest::{Certificate, ClientBuilder};
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use tokio_rustls::rustls::{CertificateError, Error as TlsError};

/// Certificates of authorities, of one PEM file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authorities {
    ders: Vec<Vec<u8>>,
}

impl Authorities {
    /// Reads a PEM file of one or more certificates. Blocks on the disk.
    ///
    /// # Errors
    /// [`PairError`].
    pub fn read(path: &Path) -> Result<Self, PairError> {
        let wrong = |why| PairError::Wrong { path: PathBuf::from(path), why };
        let ders = certificates(&read(path)?).map_err(wrong)?.iter().map(|der| der.to_vec()).collect::<Vec<_>>();
        let each = ders.iter().map(|der| Certificate::from_der(der));
        match each.collect::<Result<Vec<_>, _>>() {
            Ok(_) => Ok(Self { ders }),
            Err(_) => Err(wrong("holds a certificate that cannot be read".to_owned())),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ders.is_empty()
    }

    /// Has a client trust them, beside those that the machine trusts.
    pub fn beside(&self, builder: ClientBuilder) -> ClientBuilder {
        if self.is_empty() { builder } else { builder.tls_certs_merge(self.certificates()) }
    }

    /// Has a client trust nobody else.
    pub fn alone(&self, builder: ClientBuilder) -> ClientBuilder {
        builder.tls_certs_only(self.certificates())
    }

    fn certificates(&self) -> Vec<Certificate> {
        // Each was read before.
        self.ders.iter().filter_map(|der| Certificate::from_der(der).ok()).collect()
    }
}

/// Why a certificate was not accepted, for people; `None` where an error is about something else.
pub fn refused(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<TlsError>() {
            return words(error);
        }
        // An io::Error hides what it was made of from `source`, and may be made of another one.
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        cause = inside.map_or_else(|| error.source(), |inside| Some(inside));
    }
    None
}

fn words(error: &TlsError) -> Option<String> {
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
