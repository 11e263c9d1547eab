//! Where jobs belong: which service's business each of them is.

use super::job::Job;
use super::names::{ServiceName, SourceName};
use std::collections::{BTreeMap, BTreeSet};

/// Jobs that may move, or have to rest, together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteKey {
    /// The source they were found under.
    pub source: SourceName,
    /// The service that something was sent to for them; `None` before that, and after all of it turned
    /// out worthless.
    pub bound: Option<ServiceName>,
}

impl Job {
    /// The group of this job.
    pub fn route_key(&self) -> RouteKey {
        RouteKey {
            source: self.key.source.clone(),
            bound: self.stage.purchase_key().map(|order| order.service.clone()),
        }
    }
}

/// The service of every source, as the configuration has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRouting {
    by_source: BTreeMap<SourceName, ServiceName>,
    /// Whose the jobs are of sources that are not in the configuration any more.
    keeper: ServiceName,
    services: BTreeSet<ServiceName>,
}

impl ServiceRouting {
    /// `services`: all there are, besides those that a source names.
    pub fn new(
        by_source: BTreeMap<SourceName, ServiceName>,
        keeper: ServiceName,
        services: impl IntoIterator<Item = ServiceName>,
    ) -> Self {
        let mut all: BTreeSet<ServiceName> = services.into_iter().collect();
        all.insert(keeper.clone());
        all.extend(by_source.values().cloned());
        Self { by_source, keeper, services: all }
    }

    /// One service for everything.
    pub fn single(service: ServiceName) -> Self {
        Self::new(BTreeMap::new(), service, [])
    }

    /// Every service there is.
    pub fn services(&self) -> &BTreeSet<ServiceName> {
        &self.services
    }

    /// The service whose business this group is: the one that it is bound to, else its source's. It need
    /// not be in the configuration any more ([`ServiceRouting::has_service_of`]): then nobody moves it.
    pub fn service_of<'h>(&'h self, group: &'h RouteKey) -> &'h ServiceName {
        group.bound.as_ref().or_else(|| self.by_source.get(&group.source)).unwrap_or(&self.keeper)
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
