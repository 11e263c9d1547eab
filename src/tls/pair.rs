//! Reads a certificate and its private key from PEM files, and checks that they belong together.

use super::validity::{self, Validity};
use crate::domain::names::Hash;
use crate::permission_errors::describe_error;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{Error as TlsError, InconsistentKeys, ServerConfig};

/// The files of a listener's certificate and private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairFiles {
    /// The certificate, followed by those of intermediate authorities.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A certificate with its private key, ready for handshakes.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The configuration: TLS 1.2 and 1.3, HTTP/1.1.
    pub config: Arc<ServerConfig>,
    /// When the certificate is valid; `None` if its dates cannot be parsed.
    pub validity: Option<Validity>,
    /// A hash of the content of both files.
    pub content: Hash,
}

/// Why the pair cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// A file is missing, or this user may not read it.
    #[error("cannot read {}: {}", path.display(), describe_error(error, path))]
    Unreadable { path: PathBuf, error: io::Error },
    /// A file is not a certificate or a private key.
    #[error("{} {why}", path.display())]
    Wrong {
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Both files are valid, but do not belong together.
    #[error("the private key in {} does not belong to the certificate in {}", key.display(), cert.display())]
    Mismatch { cert: PathBuf, key: PathBuf },
}

/// The longest file in bytes: a longer one is not a certificate or key.
const LONGEST: u64 = 1 << 20;

impl PairFiles {
    /// Reads both files, and checks that they belong together. Blocks on the disk.
    ///
    /// # Errors
    /// [`PairError`], which never contains a part of the key.
    pub fn read(&self) -> Result<Pair, PairError> {
        let (cert, key) = (read(&self.cert)?, read(&self.key)?);
        let content = content(&cert, &key);
        let chain = certificates(&cert).map_err(|why| wrong(&self.cert, why))?;
        let validity = chain.first().and_then(|leaf| validity::of(leaf));
        let config = server_config(chain, self.private_key(&key)?).map_err(|error| match error {
            TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                PairError::Mismatch { cert: self.cert.clone(), key: self.key.clone() }
            }
            TlsError::InvalidCertificate(_) => wrong(&self.cert, format!("cannot be used as a certificate: {error}")),
            error => wrong(&self.key, format!("cannot be used as a private key: {error}")),
        })?;
        Ok(Pair { config: Arc::new(config), validity, content })
    }

    /// Returns a hash of the current content of both files; `None` if one cannot be read. Blocks on the disk.
    pub fn content(&self) -> Option<Hash> {
        Some(content(&read(&self.cert).ok()?, &read(&self.key).ok()?))
    }

    /// Whether every user of this machine may read the key.
    pub fn is_key_open(&self) -> bool {
        std::fs::metadata(&self.key).is_ok_and(|metadata| metadata.mode() & 0o004 != 0)
    }

    fn private_key(&self, pem: &[u8]) -> Result<PrivateKeyDer<'static>, PairError> {
        PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
            let is_encrypted = memchr::memmem::find(pem, b"ENCRYPTED").is_some();
            let why = match error {
                PemError::NoItemsFound if is_encrypted => {
                    "is encrypted with a password, which nobody is here to enter: write it without one \
                     (openssl pkey -in FILE -out NEW)"
                        .to_owned()
                }
                PemError::NoItemsFound => "holds no private key in PEM (-----BEGIN PRIVATE KEY-----)".to_owned(),
                // The library's message may contain a line of the file.
                _ => "is not valid PEM".to_owned(),
            };
            wrong(&self.key, why)
        })
    }
}

/// Parses the certificates of a PEM file; at least one.
///
/// # Errors
/// What is wrong with the file, as text.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, PemError> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err("holds no certificate in PEM (-----BEGIN CERTIFICATE-----)".to_owned()),
        Ok(chain) => Ok(chain),
        Err(_) => Err("is not valid PEM".to_owned()),
    }
}

/// Reads a file of at most [`LONGEST`] bytes.
///
/// # Errors
/// [`PairError`] if the file cannot be read or is longer.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, PairError> {
    let failed = |error| PairError::Unreadable { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        return Err(wrong(path, format!("is longer than {LONGEST} bytes: it is no certificate and no key")));
    }
    Ok(bytes)
}

fn wrong(path: &Path, why: String) -> PairError {
    PairError::Wrong { path: path.to_owned(), why }
}

fn content(cert: &[u8], key: &[u8]) -> Hash {
    let (cert, key) = (Hash::of(cert), Hash::of(key));
    Hash::of(&[cert.0, key.0].concat())
}

fn server_config(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12])?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
