//! Tokens and passwords. Only their hashes are stored: of a token, which is random, a plain one; of a password one that is
//! slow to try (Argon2id, RFC 9106).

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use std::io;
use subtle::ConstantTimeEq as _;

/// How the hash of a token begins.
pub const TOKEN_HASH: &str = "sha256:";

/// How tokens begin, so that one that was published by mistake is recognised.
pub const TOKEN: &str = "scribed_";

/// The longest password, in bytes: hashing takes time.
pub const LONGEST_PASSWORD: usize = 1_024;

/// The least characters of a password that is made into a hash.
pub const SHORTEST_PASSWORD: usize = 12;

/// Returns a new token and its hash.
///
/// # Errors
/// The system has no random numbers.
pub fn new_token() -> io::Result<(String, String)> {
    let token = format!("{TOKEN}{}", URL_SAFE_NO_PAD.encode(random::<32>()?));
    let hash = token_hash(&token);
    Ok((token, hash))
}

/// Returns the hash of a token, as `jobs.toml` names it.
pub fn token_hash(token: &str) -> String {
    let hash: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{TOKEN_HASH}{hash}")
}

/// Whether a token has this hash. Takes the same time wherever they differ.
pub fn is_token(token: &str, hash: &str) -> bool {
    token_hash(token).as_bytes().ct_eq(hash.as_bytes()).into()
}

/// Returns the hash of a password.
///
/// # Errors
/// The system has no random numbers, or the password cannot be hashed.
pub fn password_hash(password: &str) -> io::Result<String> {
    let failed = |error: argon2::password_hash::Error| io::Error::other(error.to_string());
    let salt = SaltString::encode_b64(&random::<16>()?).map_err(failed)?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt).map_err(failed)?;
    Ok(hash.to_string())
}

/// Whether a password has this hash. Takes some 20 ms of a processor and 19 MiB.
pub fn is_password(password: &str, hash: &str) -> bool {
    let parsed = PasswordHash::new(hash);
    parsed.is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
}

fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_and_a_password_are_known_by_their_hashes_alone() {
        let (token, hash) = new_token().unwrap();
        assert!(token.starts_with(TOKEN) && token.len() > 40 && !hash.contains(&token));
        assert!(is_token(&token, &hash) && !is_token("scribed_", &hash) && !is_token(&token, ""));
        assert_ne!(new_token().unwrap().0, token);
        let hash = password_hash("correct horse battery").unwrap();
        assert!(hash.starts_with("$argon2id$") && !hash.contains("horse"));
        assert!(is_password("correct horse battery", &hash) && !is_password("correct horse", &hash));
        assert!(!is_password("", "") && !is_password("x", "$argon2id$nonsense"));
    }
}
