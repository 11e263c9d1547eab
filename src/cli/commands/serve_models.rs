//! `scribed serve models`: which model files of whisper.cpp there are, and whether they can be used.

use crate::cli::args::ModelsArgs;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::config::load::read::load_to_serve_without_secrets;
use crate::config::model::{RecogniserConfig, ServeConfig, WhisperConfig};
use crate::daemon::{model_location, whisper_folders};
use crate::domain::escape;
use crate::server::recognition::whisper::library::{LIBRARY, WhisperLibrary, loaded_from};
use crate::server::recognition::whisper::model_file::{ModelFileError, WhisperModel, check};
use crate::server::recognition::whisper::model_folders::model_files;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const HOW_TO_GET_ONE: &str = "\
To get one: fetch a file such as ggml-base.bin from https://huggingface.co/ggerganov/whisper.cpp, or convert one with
whisper.cpp's models/convert-pt-to-ggml.py, and put it into one of these folders. To use it, in jobs.toml:
  [serve.recognisers.house]
  kind = \"whisper\"
  model = \"base\"";

/// Shows what there is, or checks the files of the command. Returns 1 if something that was named, on the command line or
/// in the configuration, cannot be used.
pub fn run(context: &Context, args: &ModelsArgs) -> Result<u8, CommandError> {
    if !args.files.is_empty() {
        return check_files(context, &args.files);
    }
    let config = &context.common.config;
    let serve = if config.exists() { Some(load_to_serve_without_secrets(config)?) } else { None };
    let recognisers = serve.as_ref().map(whisper_recognisers).unwrap_or_default();
    let libraries = libraries(&recognisers);
    let beside = std::path::absolute(config)?.parent().unwrap_or(Path::new("/")).join("models");
    let folders: Vec<ModelFolder> = whisper_folders(&beside).into_iter().map(ModelFolder::read).collect();
    let uses: Vec<ModelUse> = recognisers.iter().map(|(name, config)| ModelUse::of(name, config)).collect();
    context.print_json(&json!({
        "libraries": libraries.iter().map(FoundLibrary::json).collect::<Vec<_>>(),
        "folders": folders.iter().map(ModelFolder::json).collect::<Vec<_>>(),
        "recognisers": uses.iter().map(ModelUse::json).collect::<Vec<_>>(),
    }))?;
    libraries.iter().try_for_each(|library| context.print_line(&library.line()))?;
    context.print_line("model files are looked for in these folders, in this order:")?;
    folders.iter().flat_map(ModelFolder::lines).try_for_each(|line| context.print_line(&line))?;
    uses.iter().try_for_each(|one| context.print_line(&one.line()))?;
    HOW_TO_GET_ONE.lines().try_for_each(|line| context.print_line(line))?;
    // Without a recogniser that needs it, nothing is wrong with a machine that has no library.
    let is_well = recognisers.is_empty()
        || uses.iter().all(|one| one.checked.is_ok()) && libraries.iter().all(|library| library.found.is_ok());
    Ok(if is_well { 0 } else { UNFINISHED })
}

fn check_files(context: &Context, files: &[PathBuf]) -> Result<u8, CommandError> {
    let checked: Vec<CheckedFile> = files.iter().map(|path| CheckedFile::of(path.clone())).collect();
    for file in &checked {
        context.print_json(&file.json())?;
        context.print_line(&file.line())?;
    }
    Ok(if checked.iter().all(|file| file.found.is_ok()) { 0 } else { UNFINISHED })
}

fn whisper_recognisers<'s>(serve: &'s ServeConfig) -> Vec<(&'s str, &'s WhisperConfig)> {
    let whisper = |(name, config): (&'s String, &'s RecogniserConfig)| match config {
        RecogniserConfig::Whisper(config) => Some((name.as_str(), config)),
        RecogniserConfig::Http(_) => None,
    };
    serve.recognisers.iter().filter_map(whisper).collect()
}

/// A library that recognisers use, or would use.
struct FoundLibrary {
    name: PathBuf,
    /// Its version, and its file.
    found: Result<(String, Option<PathBuf>), String>,
}

fn libraries(recognisers: &[(&str, &WhisperConfig)]) -> Vec<FoundLibrary> {
    let mut named: BTreeSet<Option<&Path>> = recognisers.iter().map(|(_, one)| one.library.as_deref()).collect();
    if named.is_empty() {
        named.insert(None);
    }
    let load = |path: Option<&Path>| FoundLibrary {
        name: path.unwrap_or(Path::new(LIBRARY)).to_owned(),
        found: WhisperLibrary::load(path)
            .map(|library| (library.version().to_owned(), loaded_from(&library)))
            .map_err(|error| error.to_string()),
    };
    named.into_iter().map(load).collect()
}

impl FoundLibrary {
    fn line(&self) -> String {
        match &self.found {
            Ok((version, file)) => {
                let file = file.as_deref().unwrap_or(&self.name);
                escape::line(&format!("library: whisper.cpp {version}, {}", file.display())).into_owned()
            }
            Err(reason) => escape::line(&format!("library: {reason}")).into_owned(),
        }
    }

    fn json(&self) -> Value {
        match &self.found {
            Ok((version, file)) => json!({"library": self.name, "version": version, "file": file}),
            Err(reason) => json!({"library": self.name, "error": reason}),
        }
    }
}

/// A file, and what it is.
struct CheckedFile {
    path: PathBuf,
    found: Result<WhisperModel, ModelFileError>,
}

impl CheckedFile {
    fn of(path: PathBuf) -> Self {
        Self { found: check(&path), path }
    }

    fn line(&self) -> String {
        let path = self.path.display();
        let line = match &self.found {
            Ok(model) => format!("{path}: {}", description(model)),
            Err(error) => format!("{path}: cannot be used: {error}"),
        };
        escape::line(&line).into_owned()
    }

    fn json(&self) -> Value {
        match &self.found {
            Ok(model) => json!({
                "file": self.path, "size": model.size, "multilingual": model.is_multilingual,
                "numbers": model.numbers, "bytes": model.bytes,
            }),
            Err(error) => json!({"file": self.path, "error": error.to_string()}),
        }
    }
}

fn description(model: &WhisperModel) -> String {
    let size = model.size.unwrap_or("of a size of its own");
    let languages = if model.is_multilingual { "many languages" } else { "English only" };
    format!("{size}, {languages}, {}, {} MB", model.numbers, model.bytes.div_ceil(1_000_000))
}

/// A folder in which files are looked for.
struct ModelFolder {
    path: PathBuf,
    is_there: bool,
    files: Vec<CheckedFile>,
}

impl ModelFolder {
    fn read(path: PathBuf) -> Self {
        let files = model_files(&path).into_iter().map(CheckedFile::of).collect();
        Self { is_there: path.is_dir(), files, path }
    }

    fn lines(&self) -> Vec<String> {
        let state = match (self.is_there, self.files.is_empty()) {
            (false, _) => " (is not there)",
            (true, true) => " (no model files)",
            (true, false) => "",
        };
        let own = escape::line(&format!("  {}{state}", self.path.display())).into_owned();
        let files = self.files.iter().map(|file| format!("    {}", file.line()));
        std::iter::once(own).chain(files).collect()
    }

    fn json(&self) -> Value {
        let files: Vec<Value> = self.files.iter().map(CheckedFile::json).collect();
        json!({"folder": self.path, "is_there": self.is_there, "files": files})
    }
}

/// A configured recogniser, and its file.
struct ModelUse {
    name: String,
    checked: Result<CheckedFile, String>,
}

impl ModelUse {
    fn of(name: &str, config: &WhisperConfig) -> Self {
        let checked = model_location(config).find().map(CheckedFile::of).and_then(|file| match file.found {
            Ok(_) => Ok(file),
            Err(error) => Err(format!("{}: {error}", file.path.display())),
        });
        Self { name: name.to_owned(), checked }
    }

    fn line(&self) -> String {
        let line = match &self.checked {
            Ok(file) => format!("recogniser {}: {}", self.name, file.line()),
            Err(reason) => format!("recogniser {}: cannot be used: {reason}", self.name),
        };
        escape::line(&line).into_owned()
    }

    fn json(&self) -> Value {
        match &self.checked {
            Ok(file) => json!({"name": self.name, "file": file.path}),
            Err(reason) => json!({"name": self.name, "error": reason}),
        }
    }
}
