//! What commands on other machines get of the configuration: they show times in its zone, and know its sources, budgets
//! and prices.

use crate::control::transport::protocol::SharedConfiguration;
use std::path::Path;

/// The sections that only concern the machine of the daemon: who may use its API, where its notifications and traces go,
/// and what its own service is.
const OF_THE_MACHINE: [&str; 5] = ["callback", "notify", "serve", "telemetry", "web"];

/// Returns what is shared of a configuration that was read before. Secrets are in no configuration.
pub fn shared_configuration(file: &Path, text: &str) -> SharedConfiguration {
    let mut table: toml::Table = toml::from_str(text).unwrap_or_default();
    table.retain(|name, _| !OF_THE_MACHINE.contains(&name));
    SharedConfiguration { file: file.to_owned(), text: toml::to_string(&table).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_the_machine_are_not_shared() {
        let text = "timezone = \"UTC\"\n[web]\nlisten = \"127.0.0.1:1\"\n[web.users.otto]\nrole = \"viewer\"\n\
                    [serve]\nlisten = \"127.0.0.1:2\"\n[notify]\nx = 1\n[telemetry]\nz = 3\n[callback]\ny = 2\n[budget]\nday = \"1h\"\n\
                    [[source]]\nname = \"a\"\nfolder = \"a\"\n";
        let shared = shared_configuration(Path::new("/etc/scribed/jobs.toml"), text);
        let wanted = "timezone = \"UTC\"\n\n[budget]\nday = \"1h\"\n\n[[source]]\nfolder = \"a\"\nname = \"a\"\n";
        assert_eq!(shared.text, wanted);
    }
}
