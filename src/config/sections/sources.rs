//! Reads `[[source]]`.

use super::budget::allowance;
use super::captions::caption_rules;
use super::manifests::{set_earlier_lists, share_manifests};
use super::output_files::output_files;
use super::patterns::{digest, globs, inside, media_glob, set};
use super::review::review_rules;
use super::scheduling::scheduling_policy;
use super::timing;
use super::track_selection::{channels, track};
use crate::captions::CaptionRules;
use crate::config::load::diagnostics::{Problem, nearest};
use crate::config::load::quantities::quoted;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, Spot, ValueError, duration_in, refusal, text};
use crate::config::load::values::{boolean, or, values};
use crate::config::model::{Existing, Rerender, ServiceConfig, Source, SourceDefaults, SourceKind};
use crate::config::paths::checks::{check_own_folder, file_for_folder, pattern_for_folder};
use crate::config::paths::folders;
use crate::config::paths::places::{ConfiguredPlaces, SourceFolder};
use crate::config::template::capture::Capture;
use crate::config::template::name_as::{DEFAULT_NAME, NameTemplate};
use crate::config::template::parameters::line_number;
use crate::config::template::read_scope::user_of;
use crate::config::template::text;
use crate::config::template::text::Template;
use crate::config::template::variables::TemplateScope;
use crate::domain::format::Format;
use crate::domain::names::{ServiceName, SourceName};
use crate::review::ReviewRules;
use crate::wire::languages::LANGUAGES;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use toml::de::DeValue;

/// What the settings of a source refer to.
pub(crate) struct SourceContext<'k> {
    pub(crate) shared: &'k Arc<SourceDefaults>,
    pub(crate) scope: &'k TemplateScope,
    pub(crate) services: &'k BTreeMap<ServiceName, ServiceConfig>,
    /// `[captions]` of the file.
    pub(crate) captions: &'k CaptionRules,
    /// `[review]` of the file.
    pub(crate) review: ReviewRules,
    pub(crate) own_folders: &'k [&'k Path],
    /// All of scribed's own: these folders, the configuration and the key files.
    pub(crate) private: &'k [PathBuf],
}

/// A source before it is compared with the others.
struct Draft {
    source: Source,
    name_span: Range<usize>,
    folder_span: Range<usize>,
    place_span: Option<Range<usize>>,
}

impl Reader<'_> {
    pub(crate) fn sources(&self, file: &Section<'_>, known: &SourceContext<'_>) -> Vec<Source> {
        let sections = file.sections("source");
        let written = file.table().and_then(|table| table.get("source")).map(toml::Spanned::get_ref);
        // `keys` reports a value of another form than [[source]].
        let is_none = written.is_none_or(|written| written.as_array().is_some_and(|list| list.is_empty()));
        if is_none && self.options.sources {
            file.report(Problem::of_file("there is no source").fix("add [[source]] and below it folder = \"inbox\""));
        }
        let mut drafts: Vec<Draft> = sections.iter().filter_map(|section| self.source(section, known)).collect();
        let folders: Vec<&Path> = drafts.iter().map(|draft| &*draft.source.folder).collect();
        // A single source overlaps no other.
        let places = if folders.len() > 1 { folders::resolved(&folders) } else { Vec::new() };
        let placed: Vec<(&Draft, &Path)> = drafts.iter().zip(places.iter().map(PathBuf::as_path)).collect();
        for (number, later) in placed.iter().enumerate() {
            placed[..number].iter().for_each(|earlier| compare(file, *earlier, *later));
        }
        check_output_folders(file, &drafts, known.own_folders);
        warn_of_places_of_rows(file, &drafts);
        set_earlier_lists(drafts.iter_mut().map(|draft| &mut draft.source), &places);
        let all: Vec<PathBuf> = drafts.iter().filter_map(|draft| draft.source.output_folder.clone()).collect();
        drafts.into_iter().map(|draft| without_outputs(draft.source, &all)).collect()
    }

    /// Reads `folder`; refuses a file and a pattern.
    fn folder(&self, section: &Section<'_>) -> Option<Spot<String>> {
        section.get("folder", |value| {
            let written = self.path_text(value)?;
            let folder = self.path(&written);
            let wrong = file_for_folder(&folder, &written).or_else(|| pattern_for_folder(&folder, &written));
            wrong.map_or_else(|| Ok(written), Err)
        })
    }

    /// Reads the path of a folder in which scribed writes.
    pub(crate) fn own_folder(&self, value: &DeValue<'_>) -> Result<String, ValueError> {
        let written = self.path_text(value)?;
        check_own_folder(&self.path(&written)).map_or_else(|| Ok(written), Err)
    }

    fn source(&self, section: &Section<'_>, known: &SourceContext<'_>) -> Option<Draft> {
        let SourceContext { shared, own_folders: own, .. } = *known;
        let table = section.table()?;
        let (written, manifests) = match self.lists(section, table.contains_key("folder")) {
            Some(lists) => (Some(Spot { value: lists.value.0, span: lists.span }), Some(lists.value.1)),
            None => (self.folder(section), None),
        };
        let name = section.get("name", source_name);
        let folder = written.as_ref().filter(|_| manifests.is_none()).map(|written| self.path(&written.value));
        let include = globs(section, "include", &[media_glob()], folder.as_deref());
        let exclude = globs(section, "exclude", &[], folder.as_deref());
        let existing = or(section.get("existing", existing), Existing::Skip);
        let rerender = or(section.get("rerender", rerender), Rerender::Manual);
        let settle = section.get("settle", duration_in("s")).map(|settle| settle.value);
        let hold = or(section.get("hold", duration_in("h")), Duration::from_secs(24 * 3600));
        let template = section.get("template", |value| text::find(&shared.templates, &text(value)?));
        let (service, local_only) = service_of(section, known.services);
        let outputs = outputs(section);
        let capture = section.get("capture", |value| Capture::build(&text(value)?)).map(|spot| spot.value);
        let language = section.get("language", language).map(|spot| spot.value);
        let (track, channels) = (section.get("track", track).map(|spot| spot.value), channels(section));
        let name_as = name_as(section, known.scope, self.text)?;
        let bucket = self.bucket(section);
        let outputs_to = section.get("place", |value| self.own_folder(value)).filter(|place| place.value != BESIDE);
        if !["folder", "bucket", "manifest"].iter().any(|key| table.contains_key(*key)) {
            let problem = Problem::at(section.span.clone(), "this source has no `folder` and no `manifest`");
            section.report(problem.fix("folder = \"inbox\"; or bucket = \"s3://name/prefix\""));
        }
        let (folder, place, kind) = match (written, bucket) {
            (Some(_), Some(bucket)) => {
                let why = "is given beside a `folder`: a source has either a folder or a bucket";
                section.report_value("bucket", bucket.span.clone(), refusal(why, "make two sources of them"));
                return None;
            }
            (Some(written), None) => {
                let kind = manifests.map_or(SourceKind::Folder, SourceKind::Manifests);
                (self.path(&written.value), written.span, kind)
            }
            (None, Some(Spot { value, span })) => (value.folder(), span, SourceKind::Bucket(Box::new(value))),
            (None, None) => return None,
        };
        if own.iter().any(|own| folder.starts_with(own)) {
            let why = "is in the folder of the state or of the service's data";
            section.report_value(kind.key(), place.clone(), refusal(why, "choose a folder with recordings"));
        }
        let name = match name {
            Some(name) => name,
            None => default_name(section, &folder, &place)?,
        };
        let roots = self.roots(section, known.private);
        let selection_hash = digest(&include, &exclude);
        let exclude = set(exclude.into_iter().chain(own.iter().filter_map(|path| inside(&folder, path))));
        let scan = timing::scan(section, shared.default_zone);
        let missed = timing::missed(section, &scan, matches!(kind, SourceKind::Manifests(_)));
        let own = known.private.iter().filter_map(|path| path.strip_prefix(&folder).ok()).map(Path::to_owned).collect();
        let source = Source {
            name: SourceName::new(name.value),
            service,
            local_only,
            folder,
            kind,
            include: set(include),
            exclude,
            selection_hash,
            own_folders: own,
            // Set by `set_configured_places`, when all sources are known.
            roots: roots.unwrap_or_default(),
            places: Arc::default(),
            existing,
            settle,
            hold,
            scan,
            missed,
            submit: timing::submit(section, shared.default_zone),
            scheduling: scheduling_policy(section),
            budget: allowance(&section.section("budget")),
            capture,
            language,
            track,
            channels,
            template: template.map_or_else(Template::empty, |spot| spot.value),
            outputs,
            captions: caption_rules(&section.section("captions"), known.captions),
            review: review_rules(&section.section("review"), known.review),
            name_as,
            rerender,
            output_files: output_files(section),
            output_folder: outputs_to.as_ref().map(|place| self.path(&place.value)),
            shared: Arc::clone(shared),
        };
        let place_span = outputs_to.map(|place| place.span);
        Some(Draft { source, name_span: name.span, folder_span: place, place_span })
    }
}

/// Reads the service of a source, and whether the source is `local_only`.
fn service_of(section: &Section<'_>, services: &BTreeMap<ServiceName, ServiceConfig>) -> (ServiceName, bool) {
    let named = section.get("service", |value| {
        let name = ServiceName::new(text(value)?);
        if services.contains_key(&name) {
            return Ok(name);
        }
        let fix = match nearest(name.as_str(), services.keys().map(ServiceName::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("add [services.{name}], or remove this key to use the service `default`"),
        };
        Err(refusal("names a service that jobs.toml does not have", fix))
    });
    let service = or(named, ServiceName::new(ServiceName::DEFAULT));
    let local_only = section.get("local_only", boolean);
    let (Some(only), Some(ServiceConfig::Hosted(hosted))) = (&local_only, services.get(&service)) else {
        return (service, or(local_only, false));
    };
    if only.value {
        let why =
            format!("allows only the embedded service, but its service `{service}` is not embedded: {}", hosted.url);
        let fix = "give it service = \"site\" and add [services.site] without a `url`, which is embedded";
        section.report_value("local_only", only.span.clone(), refusal(why, fix));
    }
    (service, only.value)
}

fn rerender(value: &DeValue<'_>) -> Result<Rerender, ValueError> {
    match text(value)?.as_str() {
        "manual" => Ok(Rerender::Manual),
        "auto" => Ok(Rerender::Auto),
        _ => Err(refusal(
            "must be \"manual\" or \"auto\"",
            "the default is \"manual\": `scribed render` applies changes",
        )),
    }
}

fn existing(value: &DeValue<'_>) -> Result<Existing, ValueError> {
    match text(value)?.as_str() {
        "skip" => Ok(Existing::Skip),
        "transcribe" => Ok(Existing::Transcribe),
        _ => Err(refusal("must be \"skip\" or \"transcribe\"", "the default is \"skip\", which never costs anything")),
    }
}

fn source_name(value: &DeValue<'_>) -> Result<String, ValueError> {
    let name = text(value)?;
    if name.chars().any(char::is_control) || name.len() > 100 {
        return Err(refusal(
            "must be at most 100 bytes without control characters",
            "choose a short name: it identifies the source's jobs",
        ));
    }
    Ok(name)
}

/// Returns the folder's last component as the source's name.
fn default_name(section: &Section<'_>, folder: &Path, span: &Range<usize>) -> Option<Spot<String>> {
    let last = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = last.filter(|name| source_name(&DeValue::String(name.as_str().into())).is_ok());
    if name.is_none() {
        section.report_value(
            "folder",
            span.clone(),
            refusal("does not result in a name for the source", "add name = \"…\""),
        );
    }
    name.map(|value| Spot { value, span: span.clone() })
}

fn outputs(section: &Section<'_>) -> Vec<Format> {
    let Some(list) = section.list("outputs", format) else { return Format::DEFAULT.to_vec() };
    if list.value.is_empty() {
        section.report_value(
            "outputs",
            list.span,
            refusal("must name at least one", "the default is [\"txt\", \"srt\", \"vtt\", \"json\"]"),
        );
    }
    let asked = values(list.value);
    Format::ALL.into_iter().filter(|format| asked.contains(format)).collect()
}

pub(crate) fn format(value: &DeValue<'_>) -> Result<Format, ValueError> {
    let written = text(value)?;
    let meant = match written.trim_start_matches(['.', '*']).to_ascii_lowercase().as_str() {
        "text" | "plain" => "txt".to_owned(),
        "subrip" => "srt".to_owned(),
        "webvtt" => "vtt".to_owned(),
        "markdown" => "md".to_owned(),
        "ssa" => "ass".to_owned(),
        "imsc" | "dfxp" => "ttml".to_owned(),
        "summary" | "chapters" | "sentences" | "moderation" | "names" => format!("{written}.txt"),
        "words" | "utterances" | "entities" | "sentiment" => format!("{written}.csv"),
        "provenance" | "data" => format!("{written}.json"),
        other => other.to_owned(),
    };
    Format::parse(&written).ok_or_else(|| {
        let fix = match Format::parse(&meant).map(Format::ext).or_else(|| nearest(&meant, Format::NAMES)) {
            Some(name) => format!("write \"{name}\""),
            None => "write one of these names, or remove it".to_owned(),
        };
        refusal(format!("must be one of: {}, found {}", Format::NAMES.join(", "), quoted(&written)), fix)
    })
}

fn name_as(section: &Section<'_>, scope: &TemplateScope, file_text: &str) -> Option<NameTemplate> {
    let user = user_of(section);
    let sdh = or(section.get("sdh", boolean), false);
    let given = section.get("name_as", |value| NameTemplate::build(&text(value)?, sdh, scope, &user));
    let given = given.map(|spot| spot.value.at_line(line_number(file_text, spot.span.start)));
    given.or_else(|| NameTemplate::build(DEFAULT_NAME, sdh, scope, &user).ok())
}

/// Reads the code of a language that the service supports.
pub(crate) fn language(value: &DeValue<'_>) -> Result<String, ValueError> {
    let code = text(value)?;
    if LANGUAGES.contains(&code.as_str()) {
        return Ok(code);
    }
    let short = code.split(['-', '_']).next().unwrap_or_default().to_lowercase();
    let fix = match LANGUAGES.contains(&short.as_str()) {
        true => format!("write \"{short}\""),
        false => format!("write one of: {}", LANGUAGES.join(", ")),
    };
    Err(refusal(format!("must be a language code such as \"en\", found {}", quoted(&code)), fix))
}

/// Reports two sources that conflict.
fn compare(file: &Section<'_>, (earlier, first): (&Draft, &Path), (later, second): (&Draft, &Path)) {
    if earlier.source.name == later.source.name {
        let what = format!("two sources are named `{}`", later.source.name);
        let problem = Problem::at(later.name_span.clone(), what).also(earlier.name_span.clone(), "the first");
        file.report(problem.fix("give one of them another name = \"…\""));
    }
    if earlier.source.reads_manifests() || later.source.reads_manifests() {
        // A row may name any file, also one that a folder source takes.
        if share_manifests((&earlier.source, first), (&later.source, second)) {
            let problem = Problem::at(later.folder_span.clone(), "two sources use the same manifests");
            let problem = problem.also(earlier.folder_span.clone(), "the first");
            file.report(problem.fix("a manifest has one receipt: choose separate manifests, or use one source"));
        }
    } else if earlier.source.shares_paths_with(&later.source)
        && (first.starts_with(second) || second.starts_with(first))
    {
        let problem = Problem::at(later.folder_span.clone(), "one source is inside another")
            .also(earlier.folder_span.clone(), "the first");
        file.report(problem.fix(
            "each file belongs to one source: choose separate folders, or one source with `include`; to order a \
             file twice, name it in manifests (`manifest`)",
        ));
    }
}

/// Sets for each source the locations of all sources, and its roots.
pub(crate) fn set_configured_places(
    sources: &mut [Source],
    private: Vec<PathBuf>,
    services: &BTreeMap<ServiceName, ServiceConfig>,
) {
    let is_hosted = |(name, service): (&ServiceName, &ServiceConfig)| {
        matches!(service, ServiceConfig::Hosted(_)).then(|| name.clone())
    };
    let on_this_machine = sources.iter().filter(|source| source.is_local());
    let folders = on_this_machine.map(|source| SourceFolder {
        source: source.name.clone(),
        folder: source.folder.clone(),
        place: source.output_folder.clone(),
        local_only: source.local_only,
        include: source.include.clone(),
    });
    let folders: Vec<SourceFolder> = folders.collect();
    let roots: Vec<PathBuf> = sources.iter().flat_map(|source| source.roots.clone()).collect();
    let places =
        Arc::new(ConfiguredPlaces::new(private, folders, services.iter().filter_map(is_hosted).collect(), &roots));
    for source in sources {
        if source.scans_recordings() {
            source.roots = vec![source.folder.clone()];
        } else if source.roots.is_empty() {
            source.roots = places.default_roots(&source.folder);
        }
        source.places = Arc::clone(&places);
    }
}

/// The value of `place` for outputs beside the recordings.
const BESIDE: &str = "beside";

/// Excludes output folders inside a source's folder from its recordings.
fn without_outputs(mut source: Source, places: &[PathBuf]) -> Source {
    let inside = places.iter().filter_map(|place| place.strip_prefix(&source.folder).ok());
    source.own_folders.extend(inside.map(Path::to_owned));
    source
}

/// Warns of an output folder for recordings of manifests: rows name their folders themselves.
fn warn_of_places_of_rows(file: &Section<'_>, drafts: &[Draft]) {
    for draft in drafts.iter().filter(|draft| !draft.source.scans_recordings()) {
        let Some(span) = draft.place_span.as_ref().filter(|_| draft.source.output_folder.is_some()) else { continue };
        let what = "`source.place` has no effect on rows of manifests, except that they may name this folder";
        let fix = "name the folder in the column `output` of the rows; without it outputs go beside the recordings";
        file.report(Problem::at(span.clone(), what).fix(fix).warning());
    }
}

/// Reports output folders that conflict with other folders.
fn check_output_folders(file: &Section<'_>, drafts: &[Draft], own: &[&Path]) {
    let placed: Vec<(&Path, &Range<usize>)> = drafts
        .iter()
        .filter_map(|draft| Some((draft.source.output_folder.as_deref()?, draft.place_span.as_ref()?)))
        .collect();
    for (number, (place, span)) in placed.iter().enumerate() {
        let report = |why: String, fix: &str| {
            let what = format!("`source.place` {why}");
            file.report(Problem::at((*span).clone(), what).fix(fix));
        };
        if own.iter().any(|own| place.starts_with(own) || own.starts_with(place)) {
            report("overlaps the folder of the state or of the service's data".to_owned(), "choose a separate folder");
        }
        if let Some(draft) = drafts.iter().find(|draft| draft.source.folder.starts_with(place)) {
            let why = format!("contains the recordings of the source {}", draft.source.name);
            report(why, "choose a separate folder, or \"beside\" for outputs beside the recordings");
        }
        if placed[..number].iter().any(|(other, _)| other.starts_with(place) || place.starts_with(other)) {
            let fix = "give each source a separate folder: otherwise recordings with the same name would have the \
                       same output names";
            report("is inside that of another source, or contains it".to_owned(), fix);
        }
    }
}
