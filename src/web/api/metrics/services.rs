//! The metrics of services: whether they work, their limits, requests to them, and faults.

use super::families::{counter, gauge, labelled};
use super::metric_family::MetricFamily;
use crate::control::transport::protocol::ServiceStatus;
use crate::domain::names::ServiceName;
use crate::domain::request_counts::RequestTotal;

/// What was sent to a service since the start of the process, and what went wrong.
pub struct ServiceTraffic {
    pub service: ServiceName,
    pub requests: Vec<RequestTotal>,
    /// The number of faults by the names of their kinds.
    pub faults: Vec<(&'static str, u64)>,
}

pub(super) fn services(services: &[ServiceStatus]) -> Vec<MetricFamily> {
    let name = |service: &ServiceStatus| ("service", service.service.to_string());
    let up = |service: &ServiceStatus| labelled(vec![name(service)], f64::from(u8::from(service.trouble.is_none())));
    let jobs = |service: &ServiceStatus| {
        let of = |state: &str, jobs: u64| labelled(vec![name(service), ("state", state.to_owned())], jobs as f64);
        let waiting = service.open.saturating_sub(service.on_their_way);
        [of("waiting", waiting), of("in_progress", service.on_their_way), of("transcribing", service.running)]
    };
    let limits = |service: &ServiceStatus| {
        let of = |what: &str, kind: &str, value: f64| {
            labelled(vec![name(service), ("limit", what.to_owned()), ("kind", kind.to_owned())], value)
        };
        let pair = |what: &str, (agreed, found): (usize, usize)| {
            [of(what, "configured", agreed as f64), of(what, "learned", found as f64)]
        };
        let learned = service.learned_limits.as_ref();
        let pairs = learned.map(|limits| [pair("uploads", limits.uploads), pair("running", limits.running)].concat());
        pairs.unwrap_or_default()
    };
    let rates = |service: &ServiceStatus| {
        let of = |kind: &str, rate: f64| labelled(vec![name(service), ("kind", kind.to_owned())], rate);
        let rate = service.learned_limits.as_ref().and_then(|limits| limits.requests_per_second);
        rate.map(|(agreed, found)| [of("configured", agreed), of("learned", found)]).into_iter().flatten()
    };
    vec![
        gauge(
            "scribed_service_up",
            "Whether the service accepts new work (1) or not (0)",
            None,
            services.iter().map(up).collect(),
        ),
        gauge(
            "scribed_service_jobs",
            "Jobs of the service that have not ended",
            None,
            services.iter().flat_map(jobs).collect(),
        ),
        gauge(
            "scribed_service_limit",
            "Limits of concurrent work: as configured, and as learned from the service",
            None,
            services.iter().flat_map(limits).collect(),
        ),
        gauge(
            "scribed_service_request_limit",
            "Limits of requests a second: as configured, and as learned from the service",
            None,
            services.iter().flat_map(rates).collect(),
        ),
    ]
}

pub(super) fn traffic(services: &[ServiceTraffic]) -> [MetricFamily; 2] {
    let requests = services.iter().flat_map(|ServiceTraffic { service, requests, .. }| {
        requests.iter().map(move |total| {
            let [operation, outcome] = [total.operation.name(), total.outcome.name()].map(str::to_owned);
            let labels = vec![("service", service.to_string()), ("operation", operation), ("outcome", outcome)];
            labelled(labels, total.requests as f64)
        })
    });
    let faults = services.iter().flat_map(|ServiceTraffic { service, faults, .. }| {
        faults.iter().map(move |(kind, faults)| {
            labelled(vec![("service", service.to_string()), ("kind", (*kind).to_owned())], *faults as f64)
        })
    });
    [
        counter(
            "scribed_service_requests",
            "Requests that were sent to the service, repeated ones included",
            None,
            requests.collect(),
        ),
        counter(
            "scribed_faults",
            "What went wrong with jobs of the service, or kept them waiting",
            None,
            faults.collect(),
        ),
    ]
}
