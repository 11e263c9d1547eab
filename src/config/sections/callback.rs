//! Reads `[callback]`: the receiver of callbacks.

use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, refusal, text};
use crate::config::load::values::{base_url, boolean, listener_advice, or};
use crate::config::model::Callback;
use crate::wire::params::CallbackMethod;
use reqwest::Url;
use std::net::SocketAddr;
use toml::de::DeValue;

pub(crate) fn callback(reader: &Reader<'_>, section: &Section<'_>) -> Option<Callback> {
    let table = section.table()?;
    let tls = reader.tls(section);
    let public_url = section.get("public_url", public_url);
    if !table.contains_key("public_url") {
        let what = "`callback.public_url` is missing: it is the address that services send callbacks to";
        let fix = "public_url = \"https://hook.example.org\", the address at which the service reaches this \
                   machine; or remove [callback]";
        section.report(Problem::at(section.span.clone(), what).fix(fix));
    }
    if let Some(url) = public_url.as_ref().filter(|url| tls.is_some() && url.value.scheme() == "http") {
        let why = "begins with http://, but `callback.tls` allows only https";
        section.report_value("public_url", url.span.clone(), refusal(why, "write https://, or remove `tls`"));
    }
    Some(Callback {
        tls,
        listen: or(section.get("listen", listen), SocketAddr::from(([127, 0, 0, 1], 8471))),
        method: or(section.get("method", method), CallbackMethod::Post),
        webhook: or(section.get("webhook", boolean), false),
        public_url: public_url?.value,
    })
}

fn public_url(value: &DeValue<'_>) -> Result<Url, ValueError> {
    base_url(value, "https://hook.example.org", "scribed adds a secret path of its own for each callback")
}

/// Reads an address with a fixed port: not 0, since services have to know it.
fn listen(value: &DeValue<'_>) -> Result<SocketAddr, ValueError> {
    let fix = "write it like \"127.0.0.1:8471\" or \"[::1]:8471\"";
    let written = text(value)?;
    let address = written.parse::<SocketAddr>();
    let address = address.map_err(|_| refusal("must be an IP address and a port", listener_advice(&written, 8471)))?;
    if address.port() == 0 { Err(refusal("must name a port", fix)) } else { Ok(address) }
}

fn method(value: &DeValue<'_>) -> Result<CallbackMethod, ValueError> {
    match text(value)?.as_str() {
        "POST" => Ok(CallbackMethod::Post),
        "PUT" => Ok(CallbackMethod::Put),
        _ => Err(refusal("must be \"POST\" or \"PUT\"", "the default is \"POST\"")),
    }
}
