//! Routing: which service each job belongs to.

use super::job::Job;
use super::names::{ServiceName, SourceName};
use std::collections::{BTreeMap, BTreeSet};

/// What decides about a job's service: jobs with the same key progress, or wait, together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The source of the jobs.
    pub source: SourceName,
    /// The service that something was sent to for the jobs; `None` before that, and after everything sent has turned
    /// out worthless.
    pub bound: Option<ServiceName>,
}

impl Job {
    pub fn route_key(&self) -> RouteKey {
        RouteKey {
            source: self.key.source.clone(),
            bound: self.stage.purchase_key().map(|order| order.service.clone()),
        }
    }
}

/// The service of every source, from the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRouting {
    by_source: BTreeMap<SourceName, ServiceName>,
    /// The service of jobs whose source is no longer in the configuration.
    fallback: ServiceName,
    services: BTreeSet<ServiceName>,
    embedded: BTreeSet<ServiceName>,
}

impl ServiceRouting {
    /// `services`: all services of the configuration; those that a source names may be missing.
    pub fn new(
        by_source: BTreeMap<SourceName, ServiceName>,
        fallback: ServiceName,
        services: impl IntoIterator<Item = ServiceName>,
    ) -> Self {
        let mut known: BTreeSet<ServiceName> = services.into_iter().collect();
        known.insert(fallback.clone());
        known.extend(by_source.values().cloned());
        Self { by_source, fallback, services: known, embedded: BTreeSet::new() }
    }

    /// Names the services that are embedded.
    #[must_use]
    pub fn with_embedded(self, embedded: impl IntoIterator<Item = ServiceName>) -> Self {
        Self { embedded: embedded.into_iter().collect(), ..self }
    }

    /// Whether the service is embedded.
    pub fn is_embedded(&self, service: &ServiceName) -> bool {
        self.embedded.contains(service)
    }

    /// Returns every service of the configuration.
    pub fn services(&self) -> &BTreeSet<ServiceName> {
        &self.services
    }

    /// Returns the service of a key: the one that it is bound to, otherwise its source's. That service may no longer be
    /// in the configuration ([`ServiceRouting::has_service_of`]); then nothing handles the job.
    pub fn service_of<'h>(&'h self, key: &'h RouteKey) -> &'h ServiceName {
        key.bound.as_ref().or_else(|| self.by_source.get(&key.source)).unwrap_or(&self.fallback)
    }

    /// Whether the configuration still has the service of this job.
    pub fn has_service_of(&self, job: &Job) -> bool {
        self.services.contains(self.service_of(&job.route_key()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> ServiceName {
        ServiceName::new(text)
    }

    fn group(source: &str, bound: Option<&str>) -> RouteKey {
        RouteKey { source: SourceName::new(source), bound: bound.map(name) }
    }

    #[test]
    fn what_was_sent_somewhere_stays_there_and_the_rest_goes_by_its_source() {
        let by_source = BTreeMap::from([(SourceName::new("secret"), name("site"))]);
        let routing = ServiceRouting::new(by_source, name("default"), [name("spare")]);
        assert_eq!(routing.service_of(&group("secret", None)), &name("site"));
        assert_eq!(routing.service_of(&group("secret", Some("default"))), &name("default"), "it was sent before");
        assert_eq!(routing.service_of(&group("removed", None)), &name("default"));
        assert_eq!(routing.service_of(&group("removed", Some("sold"))), &name("sold"));
        let all: Vec<&str> = routing.services().iter().map(ServiceName::as_str).collect();
        assert_eq!(all, ["default", "site", "spare"]);
    }
}
