//! A metric with its series, and the text of all.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;

/// Whether a value only grows while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gauge,
    Counter,
}

/// A metric: its name without the unit and `_total`, which the encoder adds.
#[derive(Debug)]
pub struct MetricFamily {
    pub name: &'static str,
    pub help: &'static str,
    pub unit: Option<Unit>,
    pub kind: Kind,
    pub series: Vec<Series>,
}

/// The labels of a series and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub labels: Vec<(&'static str, String)>,
    pub value: f64,
}

/// Returns the text of metrics. One without series has no line.
///
/// # Errors
/// Never in practice: a text takes what is written to it.
pub fn encode(families: Vec<MetricFamily>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut written = String::new();
    text::encode(&mut written, &registry)?;
    Ok(written)
}

#[derive(Debug)]
struct Families(Vec<MetricFamily>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in self.0.iter().filter(|family| !family.series.is_empty()) {
            let kind = match family.kind {
                Kind::Gauge => MetricType::Gauge,
                Kind::Counter => MetricType::Counter,
            };
            let mut metric = encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), kind)?;
            for Series { labels, value } in &family.series {
                match labels.is_empty() {
                    true => encode_value(&mut metric, family.kind, *value)?,
                    false => encode_value(&mut metric.encode_family(labels)?, family.kind, *value)?,
                }
            }
        }
        Ok(())
    }
}

fn encode_value(metric: &mut MetricEncoder<'_>, kind: Kind, value: f64) -> fmt::Result {
    match kind {
        Kind::Gauge => metric.encode_gauge(&value),
        Kind::Counter => metric.encode_counter::<NoLabelSet, _, f64>(&value, None),
    }
}
