//! Authenticates requests by the key in a header (interface, "Authentication").

use crate::domain::names::Hash;
use crate::durable_file;
use crate::permission_errors::explain_state_at;
use crate::server::http::error::ServiceError;
use crate::server::storage::files;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

/// A service key, and optionally the name of its holder. Its `Debug` output does not contain the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    secret: String,
    name: Option<Arc<str>>,
}

impl ApiKey {
    /// Creates a key without a name. The text is used unchanged.
    pub fn new(text: impl Into<String>) -> Self {
        Self { secret: text.into(), name: None }
    }

    /// Returns the key with the name of its holder.
    #[must_use]
    pub fn with_name(self, name: impl Into<Arc<str>>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the secret itself, for the one header that carries it.
    pub fn reveal(&self) -> &str {
        &self.secret
    }

    /// Returns the owner of records that are created with this key, if it has no name: a hash, so that the key itself
    /// is stored nowhere.
    pub fn owner(&self) -> Hash {
        owner(self.secret.as_bytes())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "Key({name}: …)"),
            None => f.write_str("Key(…)"),
        }
    }
}

/// Returns the key of the embedded service. It is created once and kept in the data directory, readable by its owner
/// only.
///
/// # Errors
/// The directory or the system's random numbers cannot be used.
pub fn own_key(data: &Path) -> io::Result<ApiKey> {
    files::make_folder(data)?;
    let path = data.join("key");
    if let Some(key) = read_key(&path)? {
        return Ok(key);
    }
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    let key = Hash(bytes).to_string();
    // Two processes may start at once: both use the key that was written first.
    if durable_file::create_new(&path, key.as_bytes()).map_err(explain_state_at(data))? {
        return Ok(ApiKey::new(key));
    }
    read_key(&path)?
        .ok_or_else(|| io::Error::other("the file `key` is empty; delete it, then the service creates a new key"))
}

fn read_key(path: &Path) -> io::Result<Option<ApiKey>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim()).filter(|text| !text.is_empty()).map(ApiKey::new)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(explain_state_at(path)(error)),
    }
}

/// The accepted keys, and the headers that may carry them.
#[derive(Debug)]
pub struct KeyCheck {
    keys: RwLock<Arc<[AcceptedKey]>>,
    headers: Vec<String>,
}

#[derive(Debug, Clone)]
struct AcceptedKey {
    hash: Hash,
    /// The owner of records that are created with the key.
    owner: Hash,
    name: Option<Arc<str>>,
}

/// An accepted key, without the key itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential {
    key: Hash,
    /// The owner of the records that are created with the key.
    pub owner: Hash,
}

impl KeyCheck {
    /// Accepts these keys, each with the owner at the same position. `headers` are searched in their order.
    pub fn new(keys: &[ApiKey], owners: &[Hash], headers: Vec<String>) -> Self {
        Self { keys: RwLock::new(accepted_keys(keys, owners)), headers }
    }

    /// Accepts exactly these keys from now on.
    pub fn replace_keys(&self, keys: &[ApiKey], owners: &[Hash]) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = accepted_keys(keys, owners);
    }

    /// Of the accepted keys, keeps only those in `keys`. A key whose name has changed is not kept: it would continue
    /// with the records of the old name.
    pub fn retain_keys(&self, keys: &[ApiKey]) {
        let wanted: BTreeSet<(Hash, Option<&str>)> = keys.iter().map(|key| (key.owner(), key.name())).collect();
        let is_kept = |known: &&AcceptedKey| wanted.contains(&(known.hash, known.name.as_deref()));
        let kept = self.keys().iter().filter(is_kept).cloned().collect();
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = kept;
    }

    /// Returns the name of the key that has this owner, if it has one.
    pub fn name_of(&self, owner: &Hash) -> Option<Arc<str>> {
        self.keys().iter().find(|known| known.owner == *owner)?.name.clone()
    }

    fn keys(&self) -> Arc<[AcceptedKey]> {
        Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the headers that may carry a key.
    pub fn headers(&self) -> &[String] {
        &self.headers
    }

    /// Returns the owner of the key that a request carries.
    ///
    /// # Errors
    /// 401 without a key, or with an unknown one.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Hash, ServiceError> {
        let sent = self.headers.iter().find_map(|name| headers.get(name.as_str()));
        self.check_key(sent.map(HeaderValue::as_bytes))
    }

    /// As [`KeyCheck::authenticate`], for OpenAI's interface, whose clients send the key as `Authorization: Bearer KEY`
    /// (RFC 6750).
    ///
    /// # Errors
    /// As [`KeyCheck::authenticate`].
    pub fn authenticate_bearer(&self, headers: &HeaderMap) -> Result<Hash, ServiceError> {
        match headers.get(header::AUTHORIZATION).and_then(bearer_key) {
            Some(key) => self.check_key(Some(key)),
            None => self.authenticate(headers),
        }
    }

    /// Returns the owner of the key that a request for the status page carries. A browser cannot send a key's header,
    /// so here the key may also be the password of HTTP Basic (RFC 7617), with any user name. The other endpoints and
    /// pages do not accept it: browsers send such a password with requests of any page.
    ///
    /// # Errors
    /// As [`KeyCheck::authenticate`].
    pub fn authenticate_browser(&self, headers: &HeaderMap) -> Result<Hash, ServiceError> {
        match headers.get(header::AUTHORIZATION).and_then(password) {
            Some(password) => self.check_key(Some(&password)),
            None => self.authenticate(headers),
        }
    }

    /// Whether the request carries a key or password, right or wrong.
    pub fn has_credentials(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(header::AUTHORIZATION) || self.headers.iter().any(|name| headers.contains_key(name))
    }

    /// Returns the owners of all accepted keys, each once.
    pub fn owners(&self) -> Vec<Hash> {
        let owners: BTreeSet<Hash> = self.keys().iter().map(|known| known.owner).collect();
        owners.into_iter().collect()
    }

    /// Returns the credential of a key; `None` if the key is not accepted.
    pub fn credential(&self, key: &[u8]) -> Option<Credential> {
        let key = owner(key);
        self.find(key).map(|owner| Credential { key, owner })
    }

    /// Whether the key of a credential is still accepted, with the same owner.
    pub fn accepts(&self, credential: &Credential) -> bool {
        self.find(credential.key) == Some(credential.owner)
    }

    fn check_key(&self, sent: Option<&[u8]>) -> Result<Hash, ServiceError> {
        let refuse = |message| ServiceError::new(StatusCode::UNAUTHORIZED, message);
        let sent = sent.ok_or_else(|| refuse("no service key provided"))?;
        self.find(owner(sent)).ok_or_else(|| refuse("service key not found"))
    }

    /// Compares every key, whichever matches, so that the time taken reveals nothing.
    fn find(&self, sent: Hash) -> Option<Hash> {
        let mut is_found = Choice::from(0);
        let mut owner = [0_u8; 32];
        for known in &*self.keys() {
            let same = known.hash.0.ct_eq(&sent.0);
            for (byte, of_known) in owner.iter_mut().zip(known.owner.0) {
                byte.conditional_assign(&of_known, same);
            }
            is_found |= same;
        }
        bool::from(is_found).then_some(Hash(owner))
    }
}

fn accepted_keys(keys: &[ApiKey], owners: &[Hash]) -> Arc<[AcceptedKey]> {
    let known =
        |(key, owner): (&ApiKey, &Hash)| AcceptedKey { hash: key.owner(), owner: *owner, name: key.name.clone() };
    keys.iter().zip(owners).map(known).collect()
}

/// Returns the password of `Basic …`; `None` for anything else.
fn password(sent: &HeaderValue) -> Option<Vec<u8>> {
    let (scheme, encoded) = sent.to_str().ok()?.split_once(' ')?;
    let pair = scheme.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(encoded.trim()).ok())??;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

/// Returns the key of `Bearer …`; `None` for anything else. A key may be any bytes.
fn bearer_key(sent: &HeaderValue) -> Option<&[u8]> {
    let (scheme, key) = sent.as_bytes().split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then(|| key.trim_ascii())
}

const BEARER: &[u8] = b"bearer ";

fn owner(key: &[u8]) -> Hash {
    Hash(blake3::derive_key("scribed 2026-11-20 owner of a transcription", key))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_has_another_name_is_not_kept_with_the_records_of_the_old_one() {
        let keys = [ApiKey::new("one").with_name("alice"), ApiKey::new("two").with_name("bob"), ApiKey::new("three")];
        let owners = keys.each_ref().map(ApiKey::owner);
        let key_check = KeyCheck::new(&keys, &owners, vec!["x-service-key".to_owned()]);
        key_check.retain_keys(&[
            ApiKey::new("one").with_name("aaron"),
            ApiKey::new("two").with_name("bob"),
            ApiKey::new("three"),
        ]);
        let admitted = |key: &str| {
            let headers = HeaderMap::from_iter([(
                header::HeaderName::from_static("x-service-key"),
                HeaderValue::from_str(key).unwrap(),
            )]);
            key_check.authenticate(&headers).ok()
        };
        assert_eq!(["one", "two", "three"].map(admitted), [None, Some(owners[1]), Some(owners[2])]);
    }

    #[test]
    fn a_bearer_is_a_key_of_openai_s_interface_only() {
        let key = ApiKey::new("a key");
        let key_check = KeyCheck::new(std::slice::from_ref(&key), &[key.owner()], vec!["x-service-key".to_owned()]);
        let sent = |name: &'static str, value: &'static str| {
            HeaderMap::from_iter([(
                header::HeaderName::from_static(name),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )])
        };
        let owner = Ok(key.owner());
        for right in ["Bearer a key", "bearer  a key ", "BEARER a key"] {
            assert_eq!(key_check.authenticate_bearer(&sent("authorization", right)), owner, "{right}");
            assert!(key_check.authenticate(&sent("authorization", right)).is_err(), "{right}");
        }
        for wrong in ["Bearer", "Bearer ", "Bearer a", "Bearer a key x", "Basic a key", "a key", "Bearera key", "é"] {
            let refused = key_check.authenticate_bearer(&sent("authorization", wrong)).unwrap_err();
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED, "{wrong}");
        }
        assert_eq!(key_check.authenticate_bearer(&sent("x-service-key", "a key")), owner);
        let mut both = sent("authorization", "Bearer wrong");
        both.extend(sent("x-service-key", "a key"));
        assert!(key_check.authenticate_bearer(&both).is_err(), "the key that the client sends counts");
    }
}
