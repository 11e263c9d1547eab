//! The addresses that a service calls when a transcription has ended.

use crate::domain::callback_seal::AddressSeal;
use crate::domain::job::Job;
use crate::wire::params::{CallbackConfig, CallbackMethod};
use reqwest::Url;

/// Path of the receiver for callbacks. The result of [`AddressSeal::callback`] follows it.
pub const CALLBACK_PATH: &str = "callback";

/// Path of the receiver for the webhook. The result of [`AddressSeal::webhook`] follows it.
pub const WEBHOOK_PATH: &str = "webhook";

/// The addresses at which a service reaches scribed.
#[derive(Debug, Clone)]
pub struct CallbackAddresses {
    seals: AddressSeal,
    base: Url,
    method: CallbackMethod,
}

impl CallbackAddresses {
    /// Creates the addresses below `base`. A path in `base` stays in front.
    pub fn new(seals: AddressSeal, base: Url, method: CallbackMethod) -> Self {
        Self { seals, base, method }
    }

    /// Returns the callback for the create of this job's round. It is a secret.
    pub fn of(&self, job: &Job) -> CallbackConfig {
        let url = self.address(CALLBACK_PATH, &self.seals.callback(job.id, job.round));
        CallbackConfig { url, method: Some(self.method) }
    }

    /// Returns the address that a person enters at the service. It is a secret.
    pub fn webhook(&self) -> String {
        self.address(WEBHOOK_PATH, &self.seals.webhook())
    }

    fn address(&self, path: &str, last: &str) -> String {
        format!("{}/{path}/{last}", self.base.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_the_public_address_stays_in_front() {
        for (base, begins) in [
            ("https://hook.example.org", "https://hook.example.org/webhook/"),
            ("https://hook.example.org/", "https://hook.example.org/webhook/"),
            ("http://a:81/scribed/in/", "http://a:81/scribed/in/webhook/"),
        ] {
            let callbacks =
                CallbackAddresses::new(AddressSeal::new("key"), Url::parse(base).unwrap(), CallbackMethod::Put);
            assert!(callbacks.webhook().starts_with(begins), "{}", callbacks.webhook());
        }
    }
}
