//! `scribed add`: adds files, whatever the patterns of their source say, and addresses that the service can fetch.

use crate::cli::args::AddArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{parse_media_address, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::media_address::{is_object_address, is_url};
use crate::control::transport::protocol::{AddUrlRequest, Added, CommandRefusal, ControlAnswer, ControlRequest};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use crate::manifests::format::cells;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Adds each path and address in `args`.
///
/// # Errors
/// See [`CommandError`]. A refused path or address is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &AddArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let urls = args.paths.iter().filter(|typed| is_address(typed)).count();
    if urls == 0 && (args.source.is_some() || args.outputs.is_some() || args.duration.is_some()) {
        let words = "--source, --outputs and --duration are for URLs; a file belongs to the source of its folder";
        return Err(CommandError::Usage(words.to_owned()));
    }
    if urls > 1 && args.duration.is_some() {
        return Err(CommandError::Usage("--duration is for one URL: add each URL with its own command".to_owned()));
    }
    let queue = context.queue(&config).await?;
    let mut batch = BatchResult::default();
    for typed in &args.paths {
        let shown = if is_address(typed) { without_secrets(typed) } else { typed.clone() };
        let answer = match request(&config, args, typed)? {
            Ok(request) => queue.try_request(request).await?,
            Err(why) => Err(CommandRefusal::Usage(format!("{}: {why}", shown.display()))),
        };
        match answer {
            Ok(ControlAnswer::Added(added)) => {
                batch.done += 1;
                print_added(context, &added)?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, &shown, refusal)?,
        }
    }
    Ok(batch.exit_code())
}

/// Returns the request for one path or address. The inner error says why an address is not valid.
fn request(config: &Config, args: &AddArgs, typed: &Path) -> Result<Result<ControlRequest, String>, CommandError> {
    if !is_address(typed) {
        return Ok(Ok(ControlRequest::Add { path: parse_media_address(typed)? }));
    }
    let source = args.source.as_deref().map(|name| source(config, name)).transpose()?;
    let outputs = args.outputs.as_deref().map(parse_media_address).transpose()?;
    if let Some(place) = outputs.as_ref().filter(|place| !place.path().is_absolute()) {
        return Err(CommandError::Usage(format!(
            "{place} is not a folder on this machine, so it cannot be used for outputs"
        )));
    }
    let billed = args.duration.map(|millis| millis.saturating_mul(args.channels));
    let url = cells::url(typed.as_os_str().as_bytes());
    Ok(url.map(|url| ControlRequest::AddUrl(AddUrlRequest { url, source, outputs, billed })))
}

/// Whether the argument has the form of an address (`scheme://…`). The address of an object (`s3://…`) counts as a
/// path.
fn is_address(typed: &Path) -> bool {
    let has_scheme = |text: &str| {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()))
    };
    is_url(typed) || (!is_object_address(typed) && typed.to_str().is_some_and(has_scheme))
}

/// Returns an address without query, fragment, user and password, so that messages show no secrets. It may be one
/// that cannot be parsed as an address.
fn without_secrets(typed: &Path) -> PathBuf {
    let text = typed.to_string_lossy();
    let shown = text.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = shown.split_once("://").unwrap_or(("", shown));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or_default();
    PathBuf::from(format!("{scheme}://{host}{path}"))
}

fn print_added(context: &Context, added: &Added) -> io::Result<()> {
    let job = &added.job;
    let mut object = row(job);
    object["known"] = added.known.into();
    context.print_json(&object)?;
    let (id, source, path, kind) = (job.id, &job.key.source, &job.key.path, job.stage.kind());
    let is_elsewhere = job.row.as_deref().is_some_and(ManifestRow::is_remote);
    if !added.known && is_elsewhere {
        return context
            .print_line(&format!("job {id}: {path} was added to the source {source}; the service will fetch it"));
    }
    if !added.known {
        return context.print_line(&format!("job {id}: {} was added; scribed sends it when it has settled", job.key));
    }
    let name = if is_elsewhere { path.to_string() } else { job.key.to_string() };
    let fix = match kind {
        StageKind::Failed | StageKind::Cancelled => format!("; `scribed retry {id}` continues it"),
        _ => String::new(),
    };
    context.print_line(&format!("job {id}: {name} was added before and is {}: {}{fix}", kind.name(), reason(job)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths_and_their_secrets_are_not_shown() {
        let is = |text: &str| is_address(Path::new(text));
        assert!(is("https://h/a.mp3") && is("HTTP://h") && is("ftp://h/a"));
        assert!(!is("inbox/a.mp3") && !is("s3://media/a.mp3") && !is("://x") && !is("a b://x"));
        let shown = |text: &str| without_secrets(Path::new(text)).to_string_lossy().into_owned();
        assert_eq!(shown("https://user:word@h/a.mp3?sig=x#y"), "https://h/a.mp3");
        assert_eq!(shown("https://h"), "https://h");
    }
}
