//! The queue of a daemon on another machine (`--server`): its configuration in the place of a file, and its HTTP API in the
//! place of a socket.

use crate::cli::args::RemoteArgs;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::protocol_mismatch;
use crate::config::load::read::parse_without_secrets;
use crate::config::model::Config;
use crate::config::secret::Secret;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, SharedConfiguration};
use crate::control::transport::remote_client::{RemoteClient, RemoteError};
use crate::tls::trust::Authorities;
use reqwest::Url;
use std::path::Path;

/// The environment variable of the token, if no other place is given.
const TOKEN: &str = "SCRIBED_TOKEN";

/// A daemon that answered, and the configuration that it uses.
pub struct RemoteQueue {
    pub client: RemoteClient,
    pub config: Config,
}

impl RemoteQueue {
    /// Asks the daemon for its configuration.
    ///
    /// # Errors
    /// [`CommandError::Usage`] for arguments that cannot be used; [`CommandError::Service`] if the daemon does not answer,
    /// or refuses.
    pub async fn connect(url: &Url, args: &RemoteArgs) -> Result<Self, CommandError> {
        let authorities = args.server_ca.as_deref().map(Authorities::read).transpose();
        let authorities = authorities.map_err(|error| CommandError::Usage(format!("--server-ca: {error}")))?;
        let client = RemoteClient::new(url.clone(), token(args)?, &authorities.unwrap_or_default())?;
        match client.ask(&ControlRequest::Configuration).await?? {
            ControlAnswer::Configuration(SharedConfiguration { file, text }) => {
                Ok(Self { client, config: parse_without_secrets(&file, &text)? })
            }
            _ => Err(protocol_mismatch()),
        }
    }
}

fn token(args: &RemoteArgs) -> Result<Option<Secret>, CommandError> {
    let place = match &args.token {
        Some(place) => place.clone(),
        None if std::env::var_os(TOKEN).is_some_and(|value| !value.is_empty()) => format!("env:{TOKEN}"),
        None => return Ok(None),
    };
    let read = Secret::fetch(&place, Path::new("."), &|name| std::env::var_os(name));
    read.map(Some).map_err(|(problem, fix)| CommandError::Usage(format!("--token {problem}: {fix}")))
}

/// Parses the address of a daemon.
///
/// # Errors
/// What is wrong with it.
pub fn parse_server(typed: &str) -> Result<Url, String> {
    let url = Url::parse(typed).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or("it must be an address as `https://archive.example.org:8473`")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must have no name and password; --token names the place of a token".to_owned());
    }
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err("it must end after the port".to_owned());
    }
    Ok(url)
}

impl From<RemoteError> for CommandError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Unencrypted { .. } => Self::Usage(error.to_string()),
            _ => Self::Service(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_scheme_and_a_host_and_no_more() {
        for right in ["https://archive.example.org:8473", "http://127.0.0.1:8473/", "http://[::1]:1"] {
            assert!(parse_server(right).is_ok(), "{right}");
        }
        for wrong in
            ["archive:8473", "ftp://a", "https://", "https://a:b@c", "https://a/b", "https://a?b", "", "https://a#b"]
        {
            assert!(parse_server(wrong).is_err(), "{wrong}");
        }
    }
}
