//! Loads a changed configuration while everything runs, and says what cannot be changed.

use super::service_clients::build_clients;
use super::source_rename::Renames;
use super::{Daemon, DaemonError, Setup};
use crate::config::model::{Callback, Config, ServeConfig, WebhookConfig};
use crate::control::transport::protocol::RemovedSource;
use crate::domain::count::count;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::routing::RouteKey;
use crate::domain::stage::StageKind;
use crate::server::http::tls::CertificateCheck;
use crate::store::contract::StoreError;
use crate::tls::pair::PairFiles;
use std::sync::Arc;

/// What a reload has changed, one text for each change.
pub type Reloaded = Vec<String>;

/// Why a configuration is not loaded. Everything goes on as it was.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// It changes what cannot change while the daemon runs.
    #[error("{}", .0.join("\n"))]
    Fixed(Vec<String>),
    /// A client, or the embedded service, cannot be opened.
    #[error(transparent)]
    Open(#[from] DaemonError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Daemon {
    /// Works under this configuration from now on. What is under way is finished under the configuration that it
    /// began with; jobs that waited for another configuration are tried again.
    ///
    /// # Errors
    /// See [`ReloadError`]; nothing is changed then.
    pub async fn apply_config(&self, config: &Config) -> Result<Reloaded, ReloadError> {
        // One reload at a time.
        let mut embedded = self.embedded.lock().await;
        let old = self.setup();
        let mut fixed = unchangeable(&old.config, config, embedded.is_some());
        fixed.extend(self.still_needed(&old, config).await?);
        if !fixed.is_empty() {
            return Err(ReloadError::Fixed(fixed));
        }
        let (renames, left) = self.renames_to(config).await?;
        let before = Some((&old.config, &old.ways));
        let ways = build_clients(config, &self.system, self.ground.calls.as_ref(), &mut embedded, before).await?;
        let setup = Arc::new(Setup::new(config, ways, &self.clock, Some(&old)));
        self.claim_new_folders(&setup);
        let engines: Vec<_> = setup.ways.keys().filter_map(|service| self.engine(&setup, service)).collect();
        self.engines.replace(engines);
        // Before the folders are scanned under their new names.
        self.carry_over(&renames).await?;
        self.names_are(&setup, &left);
        self.setup.send_replace(Arc::clone(&setup));
        self.release_removed(&old, &setup).await;
        self.store.configuration_changed(self.clock.now()).await?;
        self.engines.wake();
        let mut words = describe_changes(&old.config, config, &renames);
        let sources = self.store.counts_by_source().await?;
        let is_removed = |name: &SourceName| old.mounts.contains_key(name) && !setup.mounts.contains_key(name);
        let removed = sources.iter().filter(|(name, _)| is_removed(name));
        words.extend(removed.filter_map(|(name, counts)| Some(RemovedSource::of(name.clone(), counts)?.describe())));
        if let Some(receiving) = &self.receiving
            && let Some(CertificateCheck::Refused(why)) = receiving.look(self.clock.now()).await
        {
            words.push(format!("cannot use the new certificate of [callback]; the previous one stays in use: {why}"));
        }
        Ok(words)
    }

    /// Returns the engine of a service. A running engine goes on with new parts: it knows what is under way.
    fn engine(&self, setup: &Setup, service: &ServiceName) -> Option<Arc<crate::pipeline::engine::Engine>> {
        let Some(engine) = self.engines.of(service) else { return self.ground.engine(setup, service) };
        let results = Arc::clone(&engine.parts().results);
        engine.take_up(self.ground.parts(setup, service, results)?);
        Some(engine)
    }

    /// Says which services were removed although jobs are on their way there: nobody would see those jobs to their
    /// end.
    async fn still_needed(&self, old: &Setup, new: &Config) -> Result<Vec<String>, StoreError> {
        let mut words = Vec::new();
        for service in old.config.services.keys().filter(|service| !new.services.contains_key(*service)) {
            let bound = |group: &RouteKey| group.bound.as_ref() == Some(service);
            let counts = self.store.counts_of(&bound).await?;
            let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
            let open = counts.total() - ended;
            if open > 0 {
                words.push(format!(
                    "jobs.toml has no service `{service}` any more, but the queue has {} for it: keep the service \
                     until they have ended (`scribed status` counts them)",
                    count(open, "open job")
                ));
            }
        }
        Ok(words)
    }
}

/// Says what differs and cannot change while the daemon runs.
fn unchangeable(old: &Config, new: &Config, has_embedded: bool) -> Vec<String> {
    let callback = |config: &Config| config.callback.as_ref().map(callback_settings);
    let of_serve = has_embedded && embedded_settings(&old.serve) != embedded_settings(&new.serve);
    let differs = [
        ("[state] store", old.state != new.state),
        ("[state] spool", old.spool != new.spool),
        ("[callback]", callback(old) != callback(new)),
        ("[web]", old.web != new.web),
        ("[telemetry]", old.otlp != new.otlp),
        ("[serve] data", old.serve.data != new.serve.data),
        ("[serve], the settings of the embedded service,", of_serve),
    ];
    let words = |what: &str| format!("{what} cannot change while the daemon runs: stop the daemon and start it again");
    differs.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| words(what)).collect()
}

fn callback_settings(callback: &Callback) -> (String, String, String, bool, Option<PairFiles>) {
    let Callback { listen, tls, public_url, method, webhook } = callback;
    (listen.to_string(), public_url.to_string(), format!("{method:?}"), *webhook, tls.clone())
}

/// Returns all settings that the embedded service was started with. They hold secrets and are only compared.
fn embedded_settings(serve: &ServeConfig) -> impl PartialEq + use<> {
    let webhook = serve.webhook.as_ref().map(|WebhookConfig { url, secret }| (url.clone(), secret.expose().to_owned()));
    let sizes = (serve.upload_limit, serve.disk, serve.running, serve.queue, serve.retention, serve.length_limit);
    // Secrets hide themselves there: a changed key is compared apart.
    let engine_keys = serve.recognisers.values().map(|one| one.key().map(|key| key.expose().to_owned()));
    let model_key = serve.language_model.as_ref().map(|one| one.key.as_ref().map(|key| key.expose().to_owned()));
    let engines = (format!("{:?} {:?}", serve.recogniser, serve.recognisers), engine_keys.collect::<Vec<_>>());
    let engines = (engines, format!("{:?}", serve.language_model), model_key);
    let kinds = (format!("{:?}", serve.shapes), engines, serve.fetch_private, serve.key_header.clone());
    (webhook, sizes, kinds, serve.cors.clone(), serve.authorities.clone())
}

/// Describes what was added, removed and renamed.
fn describe_changes(old: &Config, new: &Config, renames: &Renames) -> Reloaded {
    let sources = |config: &Config| config.sources.iter().map(|source| source.name.to_string()).collect::<Vec<_>>();
    let services = |config: &Config| config.services.keys().map(ToString::to_string).collect::<Vec<_>>();
    let mut words = vec![format!("{} is in effect: {}", new.file.display(), count(new.sources.len() as u64, "source"))];
    let carried = |(old, new): &(SourceName, SourceName)| {
        format!("the source {old} is now called {new}: its jobs keep their state, and nothing is bought again")
    };
    words.extend(renames.iter().map(carried));
    let is_renamed = |name: &String| renames.iter().any(|(old, new)| old.as_str() == name || new.as_str() == name);
    for (what, old, new) in [("source", sources(old), sources(new)), ("service", services(old), services(new))] {
        let of = |all: &[String], others: &[String]| -> Vec<String> {
            let is_told = |name: &String| what == "source" && is_renamed(name);
            all.iter().filter(|name| !others.contains(name) && !is_told(name)).cloned().collect()
        };
        words.extend(of(&new, &old).iter().map(|name| format!("the {what} {name} was added")));
        words.extend(
            of(&old, &new).iter().map(|name| format!("the {what} {name} was removed; its jobs stay on record")),
        );
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load::read::parse;
    use std::path::Path;

    fn config(text: &str) -> Config {
        let text = format!("{text}\n[[source]]\nname = \"a\"\nfolder = \"a\"\n");
        parse(Path::new("/x/jobs.toml"), &text, &|_| Some("k".into())).unwrap()
    }

    #[test]
    fn what_cannot_change_is_told_at_once_and_nothing_else() {
        let old = config("");
        assert_eq!(unchangeable(&old, &config("[budget]\nday = \"1h\"\n[retry]\nattempts = 9"), true), [""; 0]);
        let new = config("[state]\nstore = \"sled:other\"\nspool = \"1GB\"\n[serve]\nrunning = 7\ndata = \"d\"");
        let words = unchangeable(&old, &new, true);
        assert_eq!(words.len(), 4, "{words:?}");
        assert!(words.iter().all(|words| words.contains("cannot change while the daemon runs")), "{words:?}");
        assert_eq!(unchangeable(&old, &config("[serve]\nrunning = 7"), false), [""; 0], "nobody runs by it");
    }

    #[test]
    fn what_came_and_went_is_told_by_name() {
        let new = config("[[source]]\nname = \"b\"\nfolder = \"b\"");
        assert_eq!(describe_changes(&config(""), &new, &Vec::new())[1..], ["the source b was added"]);
        assert!(describe_changes(&new, &config(""), &Vec::new())[1].starts_with("the source b was removed"));
    }
}
