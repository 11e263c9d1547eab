//! Reads `[serve]`: the embedded transcription service.

use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{
    Section, ValueError, duration_in, integer_from, refusal, size, some_time_in, text,
};
use crate::config::load::values::{address, base_url, boolean, header, network, or, reject_user, values, web_url};
use crate::config::model::{ServeConfig, Source, WebhookConfig};
use crate::domain::zone::Zone;
use crate::wire::address::is_loopback;
use crate::wire::enrichment::Shapes;
use reqwest::Url;
use reqwest::header::HeaderName;
use std::net::SocketAddr;
use std::time::Duration;
use toml::de::DeValue;

impl Reader<'_> {
    pub(crate) fn serve(&self, section: &Section<'_>) -> ServeConfig {
        let upload_limit = section.get("upload_limit", size);
        let disk = section.get("disk", size);
        let spans = [&upload_limit, &disk].map(|spot| spot.as_ref().map(|spot| spot.span.clone()));
        let (upload_limit, disk) = (or(upload_limit, 1_000_000_000), or(disk, 20_000_000_000));
        if let Some(span) = spans.into_iter().flatten().next().filter(|_| disk < upload_limit) {
            let what = "`serve.disk` must be at least `serve.upload_limit`";
            section.report(
                Problem::at(span, what).fix("the disk limit must have room for one upload of the largest size"),
            );
        }
        let headers = section.list("key_header", header).map(|list| values(list.value));
        let (recogniser, recognisers) = self.recognisers(section);
        ServeConfig {
            display_zone: Zone::UTC,
            listen: or(section.get("listen", address), SocketAddr::from(([127, 0, 0, 1], 8472))),
            tls: self.tls(section),
            authorities: self.authorities(section),
            keys: self.service_keys(section),
            key_header: headers
                .filter(|list| !list.is_empty())
                .unwrap_or_else(|| vec![HeaderName::from_static("x-service-key")]),
            data: self.path(&or(section.get("data", |value| self.own_folder(value)), "service".to_owned())),
            recogniser,
            recognisers,
            language_model: self.language_model(&section.section("language_model")),
            voices: section.get("voices", |value| self.own_folder(value)).map(|spot| self.path(&spot.value)),
            upload_limit,
            length_limit: or(section.get("length_limit", some_time_in("h")), Duration::from_secs(24 * 3600)),
            disk,
            shapes: or(section.get("shapes", shapes), Shapes::Interface),
            running: section.get("running", integer_from(1)).map_or(25, |spot| spot.value as usize),
            queue: section.get("queue", integer_from(1)).map_or(300, |spot| spot.value as usize),
            retention: or(section.get("retention", some_time_in("d")), Duration::from_secs(365 * 24 * 3600)),
            uploads: section.get("uploads", duration_in("d")).map(|spot| spot.value),
            fetch_private: or(section.get("fetch_private", boolean), false),
            webhook: self.webhook(&section.section("webhook")),
            cors: section.list("cors", origin).map_or(Vec::new(), |list| values(list.value)),
            public_url: section.get("public_url", public_url).map(|spot| spot.value),
            trusted_proxies: section.list("trusted_proxies", network).map_or(Vec::new(), |list| values(list.value)),
        }
    }

    fn webhook(&self, section: &Section<'_>) -> Option<WebhookConfig> {
        let table = section.table()?;
        let url = section.get("url", webhook_url);
        let secret = section.get("secret", |value| self.secret(value));
        for (key, example) in [("url", "\"https://hook.example.org/scribed\""), ("secret", "\"env:NAME\"")] {
            if !table.contains_key(key) {
                let what = format!("`{}` is missing: a webhook needs both", section.name(key));
                section.report(Problem::at(section.span.clone(), what).fix(format!("{key} = {example}")));
            }
        }
        Some(WebhookConfig { url: url?.value, secret: secret?.value })
    }
}

/// Reports a remote webhook if a source is `local_only`: the embedded service sends every transcription with its text
/// to the webhook.
pub(crate) fn warn_webhook_for_local_sources(file: &Section<'_>, sources: &[Source], serve: &ServeConfig) {
    let (Some(kept), Some(webhook)) = (sources.iter().find(|source| source.local_only), &serve.webhook) else { return };
    if !is_loopback(webhook.url.host_str().unwrap_or_default()) {
        let section = file.section("serve").section("webhook");
        let why = format!(
            "would receive transcriptions of the source {}, which allows only the embedded service (`local_only`)",
            kept.name
        );
        section.report_value("url", section.span.clone(), refusal(why, "use an address of this machine, or remove it"));
    }
}

fn webhook_url(value: &DeValue<'_>) -> Result<Url, ValueError> {
    let url = web_url(value, "write it like \"https://hook.example.org/scribed\"")?;
    reject_user(url, "receivers verify the calls with this signature key")
}

fn public_url(value: &DeValue<'_>) -> Result<Url, ValueError> {
    base_url(value, "https://stt.example.org", "clients send their key in the header that `key_header` names")
}

/// Reads an origin and writes it as browsers do: without the default port, the host in lower case.
fn origin(value: &DeValue<'_>) -> Result<String, ValueError> {
    let fix = "write it like \"https://app.example.org\"";
    let written = text(value)?;
    if written == "*" {
        return Err(refusal("must be an origin: with a star, every web page could send requests", fix));
    }
    let url = reject_user(web_url(value, fix)?, "an origin has none")?;
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(refusal("must be an origin, without a path, a query and a fragment", fix));
    }
    Ok(url.origin().ascii_serialization())
}

fn shapes(value: &DeValue<'_>) -> Result<Shapes, ValueError> {
    match text(value)?.as_str() {
        "interface" => Ok(Shapes::Interface),
        "current" => Ok(Shapes::Current),
        _ => Err(refusal("must be \"interface\" or \"current\"", "the default is \"interface\"")),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::load::read::parse;
    use std::path::Path;

    #[test]
    fn origins_are_kept_as_browsers_write_them() {
        let read = |cors: &str| {
            let text = format!("[serve]\ncors = {cors}\n[[source]]\nfolder = \"a\"\n");
            parse(Path::new("/x/jobs.toml"), &text, &|_| None).map(|config| config.serve.cors)
        };
        let kept = read("[\"https://App.example.org:443/\", \"http://localhost:3000\"]").expect("origins");
        assert_eq!(kept, ["https://app.example.org", "http://localhost:3000"]);
        for wrong in
            ["*", "null", "app.example.org", "https://a.example/path", "https://u:p@a.example", "ftp://a.example"]
        {
            assert!(read(&format!("[\"{wrong}\"]")).is_err(), "{wrong}");
        }
    }
}
