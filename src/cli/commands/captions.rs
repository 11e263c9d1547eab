//! `scribed captions`: compares caption files with published rules, and repairs them. It uses no queue and no service.

use crate::captions::{CaptionFile, CaptionFormat, CaptionRules, DecodedText, Violation, check, fix, time};
use crate::cli::args::{CaptionRuleArgs, CaptionsArgs, CaptionsCheckArgs, CaptionsCommand, CaptionsFixArgs};
use crate::cli::render::terminal;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::config::load::read::load_captions;
use crate::domain::count::count;
use crate::durable_file::{Durability, StagedFile, folder_of};
use crate::permission_errors::describe_error;
use crate::wire::languages::LANGUAGES;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Checks or repairs the files. The exit code is 1 if something breaks a rule, or still does.
///
/// # Errors
/// [`CommandError::Usage`] for a file that cannot be read, or not be repaired; errors of the configuration, of stdout
/// and of written files.
pub fn run(context: &Context, args: &CaptionsArgs) -> Result<u8, CommandError> {
    match &args.command {
        CaptionsCommand::Check(args) => check_files(context, args),
        CaptionsCommand::Fix(args) => fix_files(context, args),
    }
}

fn check_files(context: &Context, args: &CaptionsCheckArgs) -> Result<u8, CommandError> {
    let rules = rules(context, &args.rules)?;
    let mut has_violations = false;
    for path in &args.files {
        let file = Input::read(path, &args.rules, &rules)?;
        let violations = file.violations(&file.captions);
        for violation in &violations {
            context.print_line(&file.sentence(violation, &rules))?;
            context.print_json(&file.json(violation, &rules))?;
        }
        has_violations |= violations.iter().any(|violation| !violation.rule.only_warns());
        if violations.is_empty() && !context.common.quiet {
            let cues = count(file.captions.cues.len() as u64, "cue");
            context.print_line(&format!("{}: {cues}, no violation ({})", file.name, rules.profile.name()))?;
        }
    }
    Ok(if has_violations { UNFINISHED } else { 0 })
}

/// Returns the rules: those of `--profile`, else `[captions]` of the configuration file if there is one.
fn rules(context: &Context, args: &CaptionRuleArgs) -> Result<CaptionRules, CommandError> {
    match args.profile {
        Some(profile) => Ok(CaptionRules::of(profile)),
        None if context.common.config.exists() => Ok(load_captions(&context.common.config)?),
        None => Ok(CaptionRules::default()),
    }
}

/// The encoding of the files that are written.
const UTF_8: &str = "UTF-8";

/// A caption file of the command line.
struct Input {
    path: PathBuf,
    name: String,
    bytes: Vec<u8>,
    captions: CaptionFile,
    /// The encoding that the file was read in.
    encoding: &'static str,
    layout: crate::captions::Layout,
}

impl Input {
    fn read(path: &Path, args: &CaptionRuleArgs, rules: &CaptionRules) -> Result<Self, CommandError> {
        /// A caption file of a whole day has less than 10 MB.
        const MOST: u64 = 256 << 20;
        let name = path.display().to_string();
        let refuse = |why: String| CommandError::Usage(format!("cannot read {name}: {why}"));
        let unreadable = |error: io::Error| refuse(describe_error(&error, path));
        let mut bytes = Vec::new();
        // Of a device or a pipe the length is known only when it was read.
        let file = File::open(path).map_err(unreadable)?;
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > MOST {
            return Err(refuse(format!("it has more than {MOST} bytes, which no caption file has")));
        }
        let DecodedText { text, encoding, .. } = DecodedText::of(&bytes);
        let captions = CaptionFile::parse_text(&text, CaptionFormat::of_name(&name));
        let language = args.language.clone().or_else(|| language_of(path)).unwrap_or_default();
        let layout = rules.layout(&language).as_guides_count();
        Ok(Self { path: path.to_owned(), name, bytes, captions, encoding, layout })
    }

    fn violations(&self, captions: &CaptionFile) -> Vec<Violation> {
        check(captions, &self.layout)
    }

    /// Returns what a repair in place changes of the encoding, as the rest of a sentence: "; was windows-1252, is now
    /// UTF-8". Empty for UTF-8.
    fn encoding_change(&self) -> String {
        match self.encoding {
            UTF_8 => String::new(),
            encoding => format!("; was {encoding}, is now {UTF_8}"),
        }
    }

    /// `talk.en.srt: cue 12 at 00:01:03.200: 23.4 characters a second, at most 20 (netflix, reading speed)`.
    fn sentence(&self, violation: &Violation, rules: &CaptionRules) -> String {
        let Violation { cue, line, words, .. } = violation;
        let place = match cue {
            0 => format!("line {line}"),
            cue => format!("cue {cue} at {}", time(Duration::from_millis(violation.at), '.')),
        };
        let warning = if violation.rule.only_warns() { "warning: " } else { "" };
        let rule = violation.rule.name().replace('_', " ");
        format!("{}: {warning}{place}: {words} ({}, {rule})", self.name, rules.profile.name())
    }

    fn json(&self, violation: &Violation, rules: &CaptionRules) -> Value {
        let severity = if violation.rule.only_warns() { "warning" } else { "error" };
        json!({
            "file": self.name,
            "cue": violation.cue,
            "line": violation.line,
            "start_ms": violation.at,
            "profile": rules.profile.name(),
            "rule": violation.rule.name(),
            "severity": severity,
            "measured": violation.measured,
            "limit": violation.limit,
            "message": violation.words,
        })
    }
}

/// Returns the language in a file's name: `en` of `talk.en.srt` and of `talk.en.forced.srt`.
fn language_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    // The first part is the stem, whatever it says.
    let (_, rest) = name.split_once('.')?;
    let mut parts = rest.split('.').rev().skip(1).take(3);
    let is_language = |part: &&str| LANGUAGES.contains(&part.split(['-', '_']).next().unwrap_or_default());
    parts.find(is_language).map(str::to_owned)
}

fn fix_files(context: &Context, args: &CaptionsFixArgs) -> Result<u8, CommandError> {
    let rules = rules(context, &args.rules)?;
    let goes_to_stdout = args.output.is_none() && !args.in_place;
    if args.files.len() > 1 && !args.in_place {
        return Err(CommandError::Usage("repair one file at a time, or several with --in-place".to_owned()));
    }
    if goes_to_stdout && context.common.json {
        return Err(CommandError::Usage(
            "with --json, stdout has the report: add --output FILE or --in-place".to_owned(),
        ));
    }
    let mut has_violations = false;
    for path in &args.files {
        let file = Input::read(path, &args.rules, &rules)?;
        let fixed = repaired(&file)?;
        let format = format_to_write(&file, args.output.as_deref())?;
        let text = fixed.to_text(format).unwrap_or_default();
        let written = write(&file, args, &text)?;
        let remaining = file.violations(&CaptionFile::parse(text.as_bytes(), Some(format)));
        let outcome = FixOutcome {
            written: written.as_deref(),
            in_place: args.in_place,
            is_changed: file.bytes != text.as_bytes(),
        };
        report(context, &file, &rules, &outcome, &remaining)?;
        has_violations |= remaining.iter().any(|violation| !violation.rule.only_warns());
    }
    Ok(if has_violations { UNFINISHED } else { 0 })
}

/// Returns the repaired captions.
fn repaired(file: &Input) -> Result<CaptionFile, CommandError> {
    if let Some(unread) = file.captions.unread.first() {
        return Err(CommandError::Usage(format!(
            "{} is not changed: in line {} {}, and repairing the file would lose its text; correct that line first",
            file.name, unread.line, unread.why
        )));
    }
    Ok(fix(&file.captions, &file.layout))
}

/// Returns the format to write: that of the name of `output`, else the file's own.
fn format_to_write(file: &Input, output: Option<&Path>) -> Result<CaptionFormat, CommandError> {
    let named = output.and_then(|output| CaptionFormat::of_name(&output.to_string_lossy()));
    match named.unwrap_or(file.captions.format) {
        format @ (CaptionFormat::Srt | CaptionFormat::Vtt) => Ok(format),
        format => Err(CommandError::Usage(format!(
            "{} files are checked and not written: add --output with a name that ends in .srt or .vtt",
            format.name()
        ))),
    }
}

/// Writes the text where the arguments say. Returns the file that was written; `None` if there was nothing to change.
fn write(file: &Input, args: &CaptionsFixArgs, text: &str) -> Result<Option<PathBuf>, CommandError> {
    if let Some(output) = &args.output {
        replace(output, &file.path, text).map_err(|error| unwritable(output, &error))?;
        return Ok(Some(output.clone()));
    }
    if !args.in_place {
        terminal::write_raw(text.as_bytes())?;
        return Ok(None);
    }
    if file.bytes == text.as_bytes() {
        return Ok(None);
    }
    // A link to the file is followed, so that it stays a link.
    let path = fs::canonicalize(&file.path).map_err(|error| unwritable(&file.path, &error))?;
    keep_original(&path).map_err(|error| unwritable(&backup_of(&path), &error))?;
    replace(&path, &path, text).map_err(|error| unwritable(&path, &error))?;
    Ok(Some(file.path.clone()))
}

fn unwritable(path: &Path, error: &io::Error) -> CommandError {
    CommandError::Io(io::Error::other(format!("cannot write {}: {}", path.display(), describe_error(error, path))))
}

fn backup_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".bak");
    PathBuf::from(name)
}

/// Keeps a file under the name FILE.bak. A file that has this name stays: it is the original of an earlier repair.
fn keep_original(path: &Path) -> io::Result<()> {
    let backup = backup_of(path);
    match fs::hard_link(path, &backup) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // Some file systems have no links.
        Err(_) => stage(&backup, path, &fs::read(path)?)?.rename_new(&backup)?.sync(),
        Ok(()) => Ok(()),
    }
}

/// Replaces `path`, whole or not at all. The file may be read by those who may read `like`.
fn replace(path: &Path, like: &Path, text: &str) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    stage(&path, like, text.as_bytes())?.rename(&path)?.sync()
}

fn stage(path: &Path, like: &Path, bytes: &[u8]) -> io::Result<crate::durable_file::FinishedFile> {
    let mut staged = StagedFile::create_in(folder_of(path)?)?;
    staged.write_all(bytes)?;
    staged.file().set_permissions(fs::metadata(like)?.permissions())?;
    staged.finish(Durability::Synced)
}

/// What became of a file.
struct FixOutcome<'a> {
    /// The file that was written; `None` if there was nothing to change, or if the text went to stdout.
    written: Option<&'a Path>,
    in_place: bool,
    /// Whether the file that is written differs from the one that was read.
    is_changed: bool,
}

/// Says what was written, and what still breaks a rule. Where the captions go to stdout, it goes to stderr.
fn report(
    context: &Context,
    file: &Input,
    rules: &CaptionRules,
    outcome: &FixOutcome<'_>,
    remaining: &[Violation],
) -> Result<(), CommandError> {
    for violation in remaining {
        context.print_error_line(&file.sentence(violation, rules));
    }
    let list: Vec<Value> = remaining.iter().map(|violation| file.json(violation, rules)).collect();
    let name = outcome.written.map(|path| path.display().to_string());
    context.print_json(&json!({ "file": file.name, "written": name, "remaining": list }))?;
    let done = if outcome.is_changed { "repaired" } else { "nothing to repair" };
    let outcome = match name {
        Some(name) if outcome.in_place => {
            format!("{}: {done}, written to {name}{}", file.name, file.encoding_change())
        }
        Some(name) => format!("{}: {done}, written to {name}", file.name),
        None if outcome.in_place => format!("{}: unchanged", file.name),
        None => format!("{}: {done}", file.name),
    };
    if !context.common.quiet && !context.common.json {
        context.print_error_line(&format!("{outcome}; {} left", violations(remaining.len())));
    }
    Ok(())
}

fn violations(count: usize) -> String {
    match count {
        0 => "no violation is".to_owned(),
        1 => "1 violation is".to_owned(),
        count => format!("{count} violations are"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_in_the_name_behind_the_stem() {
        let of = |name: &str| language_of(Path::new(name));
        assert_eq!(
            ["talk.en.srt", "talk.EN.forced.srt", "ja.ja.vtt"].map(of),
            [Some("en"), Some("en"), Some("ja")].map(|code| code.map(str::to_owned))
        );
        assert_eq!(["ja.vtt", "talk.srt", "en", "talk.new.srt"].map(of), [const { None }; 4]);
    }
}
