//! Reads `bucket` and `s3` of a `[[source]]`.

use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, Spot, ValueError, refusal, text};
use crate::config::load::values::{base_url, boolean, or, plain_http};
use crate::config::model::{BucketAccess, BucketConfig, BucketReach, ServiceConfig, Source, SourceKind};
use crate::config::secret::Secret;
use crate::domain::budget::{Allowance, Budget};
use crate::domain::names::ServiceName;
use reqwest::Url;
use std::collections::BTreeMap;
use std::path::PathBuf;
use toml::de::DeValue;

/// The default region.
const REGION: &str = "us-east-1";

impl Reader<'_> {
    /// Reads the bucket of a source; `None` if it names none.
    pub(crate) fn bucket(&self, section: &Section<'_>) -> Option<Spot<BucketConfig>> {
        let settings = section.section("s3");
        let Some(written) = section.get("bucket", address) else {
            if let Some(reach) = section.get("reach", reach) {
                let why = refusal("is for a bucket, and this source has none", "remove it");
                section.report_value("reach", reach.span, why);
            }
            if settings.exists() && !section.table().is_some_and(|table| table.contains_key("bucket")) {
                let why = refusal("is for a bucket, and this source has none", "add bucket = \"s3://name/prefix\"");
                section.report_value("s3", settings.span.clone(), why);
            }
            return None;
        };
        let (name, prefix) = written.value;
        let endpoint = settings.get("endpoint", endpoint);
        let plain_http = plain_http(&settings, "endpoint", endpoint.as_ref());
        let path_style = settings.get("path_style", boolean).map(|spot| spot.value);
        let bucket = BucketConfig {
            path_style: path_style.unwrap_or(endpoint.is_some()),
            endpoint: endpoint.map(|spot| spot.value),
            region: or(settings.get("region", text), REGION.to_owned()),
            transfer_mode: or(section.get("reach", reach), BucketReach::Stream),
            plain_http,
            access: self.access(&settings, section, written.span.clone()),
            name,
            prefix,
        };
        Some(Spot { value: bucket, span: written.span })
    }

    fn access(&self, settings: &Section<'_>, source: &Section<'_>, at: std::ops::Range<usize>) -> BucketAccess {
        let secret = |key: &str| settings.get(key, |value| self.bucket_secret(value));
        let (id, key, token) = (secret("key_id"), secret("secret"), secret("token"));
        let is_there = |key: &str| settings.table().is_some_and(|table| table.contains_key(key));
        let anonymous = settings.get("anonymous", boolean);
        if let Some(spot) = anonymous.filter(|spot| spot.value) {
            if ["key_id", "secret", "token"].into_iter().any(is_there) {
                let fix = "remove the keys, or `anonymous`";
                settings.report_value("anonymous", spot.span, refusal("is true, but keys are given too", fix));
            }
            return BucketAccess::Nobody;
        }
        for (name, example) in [("key_id", "\"env:S3_KEY_ID\""), ("secret", "\"env:S3_SECRET\"")] {
            if !is_there(name) {
                let span = if settings.exists() { settings.span.clone() } else { at.clone() };
                let what = format!(
                    "`{}` is missing: scribed needs a key to read the bucket",
                    source.name(&format!("s3.{name}"))
                );
                let fix = format!("s3 = {{ {name} = {example}, … }}; or s3 = {{ anonymous = true }} for a public one");
                settings.report(Problem::at(span, what).fix(fix));
            }
        }
        match (id, key) {
            (Some(id), Some(secret)) => {
                BucketAccess::Key { id: id.value, secret: secret.value, token: token.map(|token| token.value) }
            }
            // Reported above: this value is not used.
            _ => BucketAccess::Nobody,
        }
    }

    /// Reads a secret of the bucket. A command that reads no secrets still uses the bucket's key if it is available.
    fn bucket_secret(&self, value: &DeValue<'_>) -> Result<Secret, ValueError> {
        let at_hand = || Secret::fetch(value.as_str()?, &self.base, &|name| std::env::var_os(name)).ok();
        match self.options.env.is_none().then(at_hand).flatten() {
            Some(secret) => Ok(secret),
            None => self.secret(value),
        }
    }
}

impl BucketConfig {
    /// Returns `s3://name/prefix`, the `folder` of the source.
    pub(crate) fn folder(&self) -> PathBuf {
        let (name, prefix) = (&self.name, &self.prefix);
        if prefix.is_empty() { format!("s3://{name}").into() } else { format!("s3://{name}/{prefix}").into() }
    }
}

/// Reads the bucket's name and the prefix, without slashes around it.
fn address(value: &DeValue<'_>) -> Result<(String, String), ValueError> {
    let fix = "write it like \"s3://media\" or \"s3://media/interviews\"";
    let written = text(value)?;
    let Some(rest) = written.strip_prefix("s3://") else {
        return Err(refusal("must begin with s3://", fix));
    };
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    if !(3..=63).contains(&name.len()) || !name.chars().all(is_plain) {
        let why = "must name a bucket: 3 to 63 letters, digits, dots, hyphens and underscores";
        return Err(refusal(why, fix));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(char::is_control);
    if !prefix.is_empty() && prefix.split('/').any(is_odd) {
        return Err(refusal("must have a prefix without empty parts, single dots and control characters", fix));
    }
    Ok((name.to_owned(), prefix.to_owned()))
}

fn reach(value: &DeValue<'_>) -> Result<BucketReach, ValueError> {
    match text(value)?.as_str() {
        "stream" => Ok(BucketReach::Stream),
        "url" => Ok(BucketReach::Url),
        _ => Err(refusal("must be \"stream\" or \"url\"", "\"url\" is for a service that can reach the bucket itself")),
    }
}

/// Makes scribed read the objects itself where it must: the embedded service fetches nothing, under a budget the answer
/// to the upload gives the recording's length, and a selected track or channel is extracted here.
pub(crate) fn force_streaming(
    sources: &mut [Source],
    services: &BTreeMap<ServiceName, ServiceConfig>,
    budget: &Budget,
) {
    let has_wall = |source: &Source| budget.all != Allowance::default() || source.budget != Allowance::default();
    let is_elsewhere = |source: &Source| matches!(services.get(&source.service), Some(ServiceConfig::Hosted(_)));
    for source in sources {
        let through = source.local_only || has_wall(source) || source.has_track_selection() || !is_elsewhere(source);
        if let SourceKind::Bucket(bucket) = &mut source.kind
            && through
        {
            bucket.transfer_mode = BucketReach::Stream;
        }
    }
}

fn endpoint(value: &DeValue<'_>) -> Result<Url, ValueError> {
    base_url(value, "https://s3.example.org", "put the key into `key_id` and `secret`")
}
