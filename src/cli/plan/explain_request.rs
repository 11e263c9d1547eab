//! `scribed plan --explain`: the request that would be sent for one recording, and where each part of it is set.

use crate::blocking::blocking;
use crate::cli::commands::plan::KnownFiles;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::parse_media_address;
use crate::cli::unsupported::{UnsupportedCheck, left_out, refusal, without_effect};
use crate::clock::{Clock, SystemClock};
use crate::config::model::{Config, Source};
use crate::config::template::overlay::Overlay;
use crate::control::transport::protocol::KnownName;
use crate::daemon;
use crate::domain::job::{Job, JobKey};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::JobId;
use crate::domain::path::RelPath;
use crate::domain::stage::Stage;
use crate::manifests::format::record::join_errors;
use crate::manifests::passes::keys::candidates;
use crate::manifests::passes::keys::is_job_of;
use crate::manifests::passes::rows::look_for_file;
use crate::manifests::passes::rows_naming::{NamedRecording, NamingRow, rows_naming};
use crate::pipeline::request::{BesideSettings, BuiltRequest, RequestLayers, build};
use crate::server::recognition::unsupported::UnsupportedParts;
use crate::source::filter::rules::{EntryKind, FilterResult, filter_path_with_ignore_files};
use crate::source::metadata::file_look::{FileLook, stat};
use crate::source::mount::disk::Disk;
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::resolve_below;
use crate::store::params::ParamFiles;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Prints the request for one recording: for the source whose folder it is in, and for each row of a manifest that
/// names it. Submits nothing and changes nothing. Returns the exit code.
///
/// # Errors
/// [`CommandError::Usage`] if no row names the path and it is in no source's folder, or is not a regular file; see also
/// [`CommandError`].
pub async fn run(context: &Context, config: &Config, typed: &Path) -> Result<u8, CommandError> {
    let rows = rows_that_name(config, parse_media_address(typed)?.path()).await;
    let mut exit_code = 0;
    for (mount, naming) in &rows {
        exit_code = exit_code.max(explain_row(context, config, mount, naming).await?);
    }
    // The error about the path itself matters only if no row was explained.
    let unless_rows = |failure| if rows.is_empty() { Err(failure) } else { Ok(exit_code) };
    let (source, key) = match locate(config, typed) {
        Ok(located) if rows.is_empty() || located.0.scans_recordings() => located,
        Ok(_) => return Ok(exit_code),
        Err(failure) => return unless_rows(failure),
    };
    match file_job(config, source, &key).await {
        Ok(job) => {
            let passed_over = filter_message(source, &key);
            let shown = json!({ "source": key.source, "path": key.path.lossy(), "passed_over": passed_over });
            lay_out(context, config, source, &job, shown).await.map(|file_code| file_code.max(exit_code))
        }
        Err(failure) => unless_rows(failure),
    }
}

async fn lay_out(
    context: &Context,
    config: &Config,
    source: &Source,
    job: &Job,
    mut shown: Value,
) -> Result<u8, CommandError> {
    let beside = BesideSettings::read(source, job);
    let code = match build(source, job, &beside, SystemClock.now()).await {
        Ok(built) => {
            show_request(&mut shown, config, &built);
            show_unsupported(&mut shown, config, source, &built)
        }
        Err(fault) => {
            shown["problem"] = json!(fault.words);
            UNFINISHED
        }
    };
    shown["kept"] = sent_request(config, job).unwrap_or_default();
    context.print_json(&shown)?;
    print_text(context, &shown)?;
    Ok(code)
}

/// Reads the manifests of all available sources, and returns the rows that name `path`.
async fn rows_that_name(config: &Config, path: &Path) -> Vec<(Arc<Mount>, NamingRow)> {
    let mut naming_rows = Vec::new();
    for mount in daemon::mounts_of(config).into_values().filter(|mount| mount.source().reads_manifests()) {
        if mount.check_now().await.is_ok() {
            let (shared_mount, path) = (Arc::clone(&mount), path.to_owned());
            let found = blocking(move || rows_naming(&shared_mount, &NamedRecording::from_path(&path))).await;
            naming_rows.extend(found.into_iter().map(|naming| (Arc::clone(&mount), naming)));
        }
    }
    naming_rows
}

async fn explain_row(
    context: &Context,
    config: &Config,
    mount: &Arc<Mount>,
    naming: &NamingRow,
) -> Result<u8, CommandError> {
    let NamingRow { manifest, number, row: order, receipt } = naming;
    let source = mount.source();
    let mut shown = json!({
        "source": source.name, "manifest": manifest.lossy(), "row": number, "passed_over": null,
        "receipt": receipt.as_ref().map(|receipt| receipt.to_string_lossy()),
    });
    let row = match order {
        Ok(row) => row,
        Err(wrong) => {
            shown["problem"] = json!(join_errors(wrong));
            context.print_json(&shown)?;
            print_text(context, &shown)?;
            return Ok(UNFINISHED);
        }
    };
    let (job, awaited) = row_job(config, mount, row).await?;
    shown["path"] = json!(candidates(&source.name, row)[0].path.lossy());
    shown["awaited"] = json!(awaited);
    lay_out(context, config, source, &job, shown).await
}

/// Returns the job of a row, with the stamp of its file as it is now, and why the row waits for its file, if it does. A
/// row without a job gets one as if it was just found.
async fn row_job(
    config: &Config,
    mount: &Arc<Mount>,
    row: &ManifestRow,
) -> Result<(Job, Option<String>), CommandError> {
    let (shared_mount, owned_row) = (Arc::clone(mount), row.clone());
    let file_look = blocking(move || look_for_file(&shared_mount, &owned_row)).await;
    let denied = file_look.as_ref().err().map(|denied| format!("the row {}", denied.describe(mount.source())));
    let file_look = file_look.ok().flatten();
    let awaited = match &file_look {
        None if denied.is_some() => denied,
        Some(Ok(FileLook::Nothing)) => {
            Some("its file does not exist yet; the job continues when it appears".to_owned())
        }
        Some(Ok(FileLook::Other)) => Some("the path is not a regular file".to_owned()),
        Some(Err(error)) => Some(format!("cannot access its file: {error}")),
        Some(Ok(FileLook::File(_))) | None => None,
    };
    let (keys, now) = (candidates(&mount.source().name, row), SystemClock.now());
    let known = KnownFiles::find(config).await?.look_up(keys.to_vec(), Vec::new()).await?;
    let known_job = known.into_iter().filter_map(|known| known.job).find(|job| is_job_of(job, row));
    let [own_key, ..] = keys;
    let stamp = match file_look {
        Some(Ok(FileLook::File(stamp))) => stamp,
        _ => known_job.as_ref().map(|job| job.seen).unwrap_or_default(),
    };
    let job = known_job.unwrap_or_else(|| Job::found(JobId(0), own_key, stamp, now, now));
    Ok((Job { seen: stamp, row: Some(Box::new(row.clone())), ..job }, awaited))
}

/// Returns the source whose folder a path is in, and the key of its job. The folder and the parent folder of the path
/// also match by their real paths.
fn locate<'c>(config: &'c Config, typed: &Path) -> Result<(&'c Source, JobKey), CommandError> {
    let address = parse_media_address(typed)?;
    let path = address.path();
    let real_path = path.parent().and_then(|parent| parent.canonicalize().ok()).zip(path.file_name());
    let real_path = real_path.map(|(parent, name)| parent.join(name));
    let below = |source: &Source| {
        let folders = [Some(source.folder.clone()), source.folder.canonicalize().ok()];
        let paths = [Some(path.to_owned()), real_path.clone()];
        let all_pairs =
            folders.iter().flatten().flat_map(|folder| paths.iter().flatten().map(move |path| (folder, path)));
        all_pairs.filter_map(|(folder, path)| path.strip_prefix(folder).ok().map(Path::to_owned)).next()
    };
    let located = config.sources.iter().find_map(|source| Some((source, below(source)?)));
    let (source, path) = located
        .ok_or_else(|| CommandError::Usage(format!("{} is not below the folder of a source", path.display())))?;
    Ok((source, JobKey { source: source.name.clone(), path: RelPath::new(path.as_os_str().as_bytes()) }))
}

/// Returns the job of a file, with the stamp of the file as it is now. A file without a job gets one as if it was just
/// found.
async fn file_job(config: &Config, source: &Source, key: &JobKey) -> Result<Job, CommandError> {
    let path = resolve_below(&source.folder, &key.path);
    let disk = Disk::detect(&source.folder).unwrap_or(Disk::Remote);
    let stamp = match stat(&path, disk)? {
        FileLook::File(stamp) => stamp,
        FileLook::Nothing => return Err(CommandError::Usage(format!("{} does not exist", path.full().display()))),
        FileLook::Other => return Err(CommandError::Usage(format!("{} is not a regular file", path.full().display()))),
    };
    let known = KnownFiles::find(config).await?.look_up(vec![key.clone()], vec![stamp.size]).await?;
    let now = SystemClock.now();
    Ok(match known.into_iter().next() {
        Some(KnownName { job: Some(job), .. }) => Job { seen: stamp, ..job },
        _ => Job::found(JobId(0), key.clone(), stamp, now, now),
    })
}

fn filter_message(source: &Source, key: &JobKey) -> Option<String> {
    let path = Path::new(std::ffi::OsStr::from_bytes(key.path.as_bytes()));
    match filter_path_with_ignore_files(source, path, EntryKind::File) {
        FilterResult::Taken => None,
        FilterResult::PassedOver(rule) => Some(rule.to_string()),
    }
}

fn show_request(shown: &mut Value, config: &Config, built: &BuiltRequest) {
    let params = serde_json::to_value(&built.rendered.params).unwrap_or_default();
    let request = request_json(params, &built.rendered.metadata);
    let file = config.file.file_name().unwrap_or_default().to_string_lossy();
    let mut leaves = BTreeMap::new();
    collect_leaves("", &request, &mut leaves);
    let origins: BTreeMap<&String, String> =
        leaves.keys().map(|key| (key, origin(key, &built.layers, &file))).collect();
    let set_by = |sets: fn(&Overlay) -> bool| {
        let overlay = built.layers.overlays.iter().rev().find(|overlay| sets(overlay));
        overlay.map_or_else(|| file.to_string(), |overlay| overlay.from.clone())
    };
    shown["sound"] = json!(built.rendered.track_selection);
    shown["sound_from"] = json!({
        "track": set_by(|overlay| overlay.track.is_some()), "channels": set_by(|overlay| overlay.channels.is_some()),
    });
    shown["template"] = json!(built.record.template);
    shown["outputs"] = json!(built.record.outputs);
    shown["outputs_from"] = json!(set_by(|overlay| overlay.outputs.is_some()));
    shown["from"] = json!(origins);
    shown["request"] = request;
}

/// Adds the parts of the request that the embedded service does not support. Returns the exit code.
fn show_unsupported(shown: &mut Value, config: &Config, source: &Source, built: &BuiltRequest) -> u8 {
    let unsupported_parts = UnsupportedCheck::new(config).check_request(source, &built.rendered.params);
    shown["missing"] = json!(left_out(&unsupported_parts));
    shown["refused"] = json!(refusal(&unsupported_parts));
    shown["without_effect"] = json!(without_effect(&unsupported_parts));
    let UnsupportedParts { refused, missing, .. } = &unsupported_parts;
    if refused.is_empty() && missing.is_empty() { 0 } else { UNFINISHED }
}

/// Returns the request without the fields that are set for each job when it is sent.
fn request_json(params: Value, metadata: &Map<String, Value>) -> Value {
    let mut request = params;
    if !metadata.is_empty() {
        request["custom_metadata"] = Value::Object(metadata.clone());
    }
    request
}

fn collect_leaves(path: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    let join = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(key, inner)| collect_leaves(&join(key), inner, leaves));
        }
        Value::Array(list) if !list.is_empty() => {
            let numbered = list.iter().enumerate();
            numbered.for_each(|(number, inner)| collect_leaves(&join(&number.to_string()), inner, leaves));
        }
        leaf => drop(leaves.insert(path.to_owned(), leaf.clone())),
    }
}

/// Returns where a parameter is set: in the overlay nearest to the recording, else in the template.
fn origin(key: &str, layers: &RequestLayers, file: &str) -> String {
    let above = || std::iter::successors(Some(key), |key| key.rsplit_once('.').map(|(table, _)| table));
    let pointer = format!("/{}", key.replace('.', "/"));
    for overlay in layers.overlays.iter().rev() {
        if let Some(line) = above().find_map(|key| overlay.lines.get(key)) {
            return format!("{}, line {line}", overlay.from);
        }
        if Value::Object(overlay.parameters.clone()).pointer(&pointer).is_some() {
            return overlay.from.clone();
        }
    }
    match above().find_map(|key| layers.template.origin(key)) {
        Some((line, names)) if names.is_empty() => format!("{file}, line {line}"),
        Some((line, names)) => format!("{file}, line {line}: {}", names.join(", ")),
        None => format!("{file}: `language` of the source"),
    }
}

/// Returns the request that was already sent for the job, if one was: `scribed retry` sends it again.
fn sent_request(config: &Config, job: &Job) -> Option<Value> {
    let request_record = job.request_record.as_ref().filter(|request_record| request_record.is_sent)?;
    let hash = match &job.stage {
        Stage::Probed { params, .. } => *params,
        stage => stage.purchase_key()?.params,
    };
    let (params, track_selection) = ParamFiles::new(config.state.join("params")).order(&hash).ok()?;
    let request = request_json(Value::Object(params), &request_record.metadata);
    Some(
        json!({ "template": request_record.template, "outputs": request_record.outputs, "request": request, "sound": track_selection }),
    )
}

fn print_text(context: &Context, shown: &Value) -> std::io::Result<()> {
    let text = |key: &str| shown[key].as_str().unwrap_or_default();
    let path = RelPath::new(text("path")).escaped();
    match shown["row"].as_u64() {
        None => context.print_line(&format!("{}/{path}", text("source")))?,
        Some(row) => context.print_line(&format!("{}/{path}, row {row} of {}", text("source"), text("manifest")))?,
    }
    if let Some(awaited) = shown["awaited"].as_str() {
        context.print_line(&format!("  {awaited}"))?;
    }
    if let Some(receipt) = shown["receipt"].as_str() {
        context.print_line(&format!("  receipt   {receipt}"))?;
    }
    if let Some(rule) = shown["passed_over"].as_str() {
        context.print_line(&format!("  {rule}"))?;
    }
    if let Some(problem) = shown["problem"].as_str() {
        return context.print_line(&format!("  it cannot be created: {problem}"));
    }
    let outputs: Vec<&str> = shown["outputs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let template = Some(text("template")).filter(|name| !name.is_empty());
    context.print_line(&format!("  template  {}", template.unwrap_or("none: the service's defaults")))?;
    context.print_line(&format!("  outputs   {}  ({})", outputs.join(", "), text("outputs_from")))?;
    if let Some(missing) = shown["missing"].as_str() {
        context.print_line(&format!("  without   {missing}  (the embedded service does not support it)"))?;
    }
    if let Some(idle) = shown["without_effect"].as_str() {
        context.print_line(&format!("  warning   no or little effect in the embedded service: {idle}"))?;
    }
    if let Some(refused) = shown["refused"].as_str() {
        context.print_line(&format!(
            "  refused   {refused}  (the embedded service rejects the request, and the job would fail)"
        ))?;
    }
    for part in ["track", "channels"].into_iter().filter(|part| !shown["sound"][part].is_null()) {
        let (said, from) = (&shown["sound"][part], shown["sound_from"][part].as_str().unwrap_or_default());
        context.print_line(&format!("  {part:<9} {said}  ({from})"))?;
    }
    let mut leaves = BTreeMap::new();
    collect_leaves("", &shown["request"], &mut leaves);
    leaves.remove("");
    context.print_line("  request   (scribed adds audio_url, the callback and its own token when it sends it)")?;
    for (key, value) in &leaves {
        context.print_line(&format!("    {key} = {value}  ({})", shown["from"][key].as_str().unwrap_or_default()))?;
    }
    if shown["kept"].is_null() {
        return Ok(());
    }
    if ["request", "outputs", "sound"].iter().all(|part| shown["kept"][part] == shown[part]) {
        return context.print_line("  the job was created with the same request");
    }
    context.print_line(
        "  the job was created with another request, which `scribed retry` keeps; `scribed retry --fresh` sends \
         this one:",
    )?;
    context.print_line(&format!("    {}", shown["kept"]["request"]))
}
