//! The pages of `docs/reference` that are generated: every setting, from the keys, their forms and the comments of
//! `jobs.example.toml`, and every command, from the parser. After a change of any of these:
//! `UPDATE_DOCS=1 cargo test --test it generated_pages`.

use clap::{Arg, Command, CommandFactory};
use scribed::testing::cli::args::Arguments;
use scribed::testing::config::load::keys::{ConfigKey, FILE, Holds, described_path};
use scribed::testing::config::load::schema::{MANUAL, Manual};
use scribed::testing::config::load::shape::{Shape, shape};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What is said of settings beyond their line.
const DETAILS: &str = "docs/reference/settings.details.toml";

fn note(from: &str) -> String {
    format!(
        "<!-- Generated from {from}. Do not edit this page: change those, then run\n     \
         UPDATE_DOCS=1 cargo test --test it generated_pages -->\n"
    )
}

fn in_repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Fails unless the page is this text; with `UPDATE_DOCS` it is written.
fn assert_current(page: &str, wanted: &str) {
    let path = in_repository(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(path, wanted).unwrap();
    }
    let there = fs::read_to_string(path).unwrap_or_default();
    let differing = wanted.lines().zip(there.lines()).find(|(wanted, there)| wanted != there);
    assert!(
        there == wanted,
        "{page} is not current: run `UPDATE_DOCS=1 cargo test --test it generated_pages` and read what changes. The \
         first difference (new, old): {differing:#?}"
    );
}

#[test]
fn the_page_of_settings_is_current() {
    assert_current("docs/reference/settings.md", &Settings::new().page());
}

#[test]
fn the_page_of_commands_is_current() {
    assert_current("docs/reference/commands.md", &commands());
}

#[test]
fn every_detail_is_of_something_that_is_there() {
    let settings = Settings::new();
    let mut known = ["variables", "sidecars", TARGET].map(str::to_owned).to_vec();
    paths(FILE, "", &mut known);
    let strange: Vec<&String> = settings.details.keys().filter(|path| !known.contains(path)).collect();
    assert_eq!(strange, [""; 0], "{DETAILS} has details of settings that there are not");
}

fn paths(keys: &[ConfigKey], path: &str, found: &mut Vec<String>) {
    for key in keys {
        let path = join(path, key.name);
        found.push(path.clone());
        match &key.holds {
            Holds::Table(keys) | Holds::Tables(keys) | Holds::TableOrTables(keys) | Holds::ValueOrTable(keys) => {
                paths(keys, &path, found);
            }
            // Those of [services.NAME] are those of [service].
            Holds::NamedTables(keys) if path != "services" => paths(keys, path.trim_end_matches('s'), found),
            Holds::Value | Holds::NotYet | Holds::Named | Holds::NamedTables(_) => {}
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { described_path(&format!("{path}.{name}")) }
}

/// What the page of settings is made of.
struct Settings {
    manual: Manual,
    details: toml::Table,
}

/// A table of `jobs.toml`.
struct Section {
    header: String,
    path: String,
    /// What the paths of its settings begin with.
    of: String,
    keys: &'static [ConfigKey],
}

impl Settings {
    fn new() -> Self {
        let details = fs::read_to_string(in_repository(DETAILS)).unwrap().parse().unwrap();
        Self { manual: Manual::read(MANUAL), details }
    }

    fn detail(&self, path: &str) -> Option<&str> {
        self.details.get(path).and_then(toml::Value::as_str)
    }

    fn page(&self) -> String {
        let sources = format!("src/config/load/keys.rs, src/config/load/shape.rs, jobs.example.toml and {DETAILS}");
        let mut page = note(&sources);
        page.push_str(
            "# Settings\n\nEvery setting of `jobs.toml`. `scribed init --full` writes all of them with their defaults. A setting that is \
             not here is\nan error with its line; no setting is ignored silently. `scribed schema` prints the JSON Schema for \
             editors.\n\n\
             | type | written as |\n|---|---|\n\
             | duration | `\"500ms\"`, `\"10s\"`, `\"15m\"`, `\"6h\"`, `\"30d\"`, `\"1h 30m\"` |\n\
             | size | `\"500MB\"`, `\"1GB\"` (decimal), `\"512MiB\"` (binary) |\n\
             | secret | `\"env:NAME\"` or `\"file:PATH\"`, never the secret itself |\n\
             | path | relative to the folder of `jobs.toml`, or absolute; `~` is not expanded |\n",
        );
        for section in sections() {
            self.section(&mut page, &section);
        }
        for (title, path) in [("Variables in templates", "variables"), ("Sidecars", "sidecars")] {
            let text = self.detail(path).unwrap().trim();
            write!(page, "\n## {title}\n\n{text}\n").unwrap();
        }
        page
    }

    fn section(&self, page: &mut String, section: &Section) {
        write!(page, "\n## {}\n", section.header).unwrap();
        let words = self.manual.0.get(&section.path).map(|remark| remark.words.as_str());
        for text in [words, self.detail(&section.path)].into_iter().flatten() {
            write!(page, "\n{}\n", text.trim()).unwrap();
        }
        let rows: Vec<String> = section.keys.iter().flat_map(|key| self.rows(&section.of, key)).collect();
        if !rows.is_empty() {
            write!(page, "\n| setting | type | default | meaning |\n|---|---|---|---|\n{}", rows.concat()).unwrap();
        }
        for key in section.keys.iter().filter(|key| is_value(key)) {
            let path = join(&section.of, key.name);
            if let Some(text) = self.detail(&path) {
                write!(page, "\n### `{path}`\n\n{}\n", text.trim()).unwrap();
            }
        }
    }

    /// A setting, and those of the table that may stand in its place.
    fn rows(&self, table: &str, key: &ConfigKey) -> Vec<String> {
        if !is_value(key) {
            return Vec::new();
        }
        let path = join(table, key.name);
        let form = form(shape(&path).unwrap());
        let Holds::ValueOrTable(keys) = &key.holds else { return vec![self.row(&path, table, form)] };
        let inner = keys.iter().map(|inner| join(&path, inner.name));
        let inner = inner.map(|path| self.row(&path, table, self::form(shape(&path).unwrap())));
        std::iter::once(self.row(&path, table, format!("{form}, or a table"))).chain(inner).collect()
    }

    fn row(&self, path: &str, table: &str, form: String) -> String {
        let remark = self.manual.0.get(path);
        let is_linked = remark.is_some() && self.detail(path).is_some();
        let words = remark.map_or_else(|| self.detail(path).unwrap(), |remark| remark.words.as_str());
        let (words, default) = meaning(words, remark.and_then(|remark| remark.default.as_ref()));
        let name = path.strip_prefix(table).unwrap().trim_start_matches('.');
        let name = match is_linked {
            true => format!("[`{name}`](#{})", path.replace('.', "")),
            false => format!("`{name}`"),
        };
        let cells = [name, form, default, words].map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.join(" | "))
    }
}

fn is_value(key: &ConfigKey) -> bool {
    matches!(key.holds, Holds::Value | Holds::ValueOrTable(_))
}

/// The line of a setting without what it says of its default, and that.
fn meaning(words: &str, default: Option<&Value>) -> (String, String) {
    let (words, said) = match (words.split_once("Default: "), words.split_once("Required")) {
        (Some((words, default)), _) => (words, default.to_owned()),
        (None, Some((words, rest))) => (words, format!("required{rest}")),
        (None, None) => (words, "–".to_owned()),
    };
    let said = default.map_or_else(|| said.trim_end_matches('.').to_owned(), |default| format!("`{default}`"));
    (words.trim().to_owned(), said)
}

/// The path of what the targets of all events have.
const TARGET: &str = "notify.target";

const LAST_EVENT: &str = "notify.on_digest";

/// The tables in the order of the file.
fn sections() -> Vec<Section> {
    let mut found =
        vec![Section { header: "Top level".to_owned(), path: String::new(), of: String::new(), keys: FILE }];
    tables(FILE, "", &mut found);
    found
}

fn tables(keys: &'static [ConfigKey], path: &str, found: &mut Vec<Section>) {
    for key in keys {
        let path = join(path, key.name);
        let (header, inner): (String, &[ConfigKey]) = match &key.holds {
            Holds::Table(inner) => (format!("`[{path}]`"), inner),
            Holds::Tables(inner) => (format!("`[[{path}]]`"), inner),
            // The targets of all events have the same settings.
            Holds::TableOrTables(inner) if path.starts_with("notify.on_") => {
                found.push(Section {
                    header: format!("`[[{path}]]`"),
                    path: path.clone(),
                    of: path.clone(),
                    keys: &[],
                });
                if path == LAST_EVENT {
                    let (header, path) = ("A target of `[notify]`".to_owned(), TARGET.to_owned());
                    found.push(Section { header, path: path.clone(), of: path, keys: inner });
                    tables(inner, TARGET, found);
                }
                continue;
            }
            Holds::TableOrTables(inner) => (format!("`[{path}]` or `[[{path}]]`"), inner),
            Holds::NamedTables(inner) if path != "services" => {
                let of = path.trim_end_matches('s').to_owned();
                found.push(Section { header: format!("`[{path}.NAME]`"), path, of, keys: inner });
                continue;
            }
            Holds::NamedTables(_) | Holds::Named => (format!("`[{path}.NAME]`"), &[]),
            Holds::Value | Holds::ValueOrTable(_) | Holds::NotYet => continue,
        };
        found.push(Section { header, path: path.clone(), of: path.clone(), keys: inner });
        tables(inner, &path, found);
    }
}

fn form(shape: Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Flag => "`true` or `false`".to_owned(),
        Shape::Whole(least) => format!("whole number from {least}"),
        Shape::Between(least, most) => format!("whole number from {least} to {most}"),
        Shape::Number => "number from 0".to_owned(),
        Shape::NumberByLanguage => "number from 0, or table of these by language code".to_owned(),
        Shape::Span => "duration".to_owned(),
        Shape::Size => "size".to_owned(),
        Shape::Url => "http or https address".to_owned(),
        Shape::Secret => "secret".to_owned(),
        Shape::Address => "IP address and port".to_owned(),
        Shape::Choice(words) => words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
        Shape::Track => "number, or language code".to_owned(),
        Shape::Headers => "table of secrets by the name of the header".to_owned(),
        Shape::Keys => "list of secrets, table of names, or `\"folder:PATH\"`".to_owned(),
        Shape::List(_, of) => format!("list of {}", form(*of)),
    }
}

/// The page of commands.
fn commands() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut page = note("src/cli/args.rs");
    page.push_str(
        "# Commands\n\nEvery command with its arguments and options; `scribed COMMAND --help` prints the same.\n",
    );
    page.push_str("\n| command | what it does |\n|---|---|\n");
    let mut all = Vec::new();
    under(&root, &mut all);
    for command in &all {
        let name = full_name(command);
        writeln!(page, "| [`{name}`](#{}) | {} |", name.replace(' ', "-"), cell(&about(command))).unwrap();
    }
    page.push_str("\n## Options of every command\n");
    options(&mut page, &root, Arg::is_global_set);
    for command in all {
        self::command(&mut page, command);
    }
    page
}

fn under<'a>(command: &'a Command, found: &mut Vec<&'a Command>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help" && !inner.is_hide_set()) {
        found.push(inner);
        under(inner, found);
    }
}

fn command(page: &mut String, command: &Command) {
    let synopsis = command.clone().render_usage().to_string();
    let synopsis = synopsis.trim_start_matches("Usage: ").lines().map(str::trim).collect::<Vec<_>>().join("\n");
    write!(page, "\n## {}\n\n{}\n\n```text\n{synopsis}\n```\n", full_name(command), about(command)).unwrap();
    arguments(page, command);
    options(page, command, |arg| !arg.is_global_set());
}

fn full_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).to_owned()
}

fn about(command: &Command) -> String {
    let about = command.get_long_about().or(command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

fn arguments(page: &mut String, command: &Command) {
    let rows: Vec<String> =
        command.get_positionals().map(|arg| format!("| `{}` | {} |\n", cell(&value(arg)), cell(&help(arg)))).collect();
    if !rows.is_empty() {
        write!(page, "\n| argument | meaning |\n|---|---|\n{}", rows.concat()).unwrap();
    }
}

fn options(page: &mut String, command: &Command, is_wanted: impl Fn(&Arg) -> bool) {
    let known = |arg: &&Arg| !["help", "version"].contains(&arg.get_id().as_str()) && !arg.is_hide_set();
    let rows: Vec<String> =
        command.get_opts().chain(flags(command)).filter(known).filter(|arg| is_wanted(arg)).map(option).collect();
    if !rows.is_empty() {
        write!(page, "\n| option | default | meaning |\n|---|---|---|\n{}", rows.concat()).unwrap();
    }
}

/// Options without a value: clap has no list of them.
fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_positional() && !arg.get_action().takes_values())
}

fn option(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let aliases = arg.get_visible_aliases().unwrap_or_default().into_iter().map(|alias| format!("--{alias}"));
    let mut names: Vec<String> = short.into_iter().chain(long).chain(aliases).collect();
    if let (true, Some(last)) = (arg.get_action().takes_values(), names.last_mut()) {
        last.push_str(&format!(" <{}>", value(arg)));
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{}`", cell(name))).collect();
    let is_flag = !arg.get_action().takes_values();
    let defaults: Vec<String> =
        arg.get_default_values().iter().filter(|_| !is_flag).map(|one| format!("`{}`", one.display())).collect();
    let default = if defaults.is_empty() { "–".to_owned() } else { defaults.join(", ") };
    format!("| {} | {default} | {} |\n", names.join(", "), cell(&help(arg)))
}

fn value(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let name = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    if arg.is_positional() && arg.get_num_args().is_some_and(|range| range.max_values() > 1) {
        return format!("{name}…");
    }
    name
}

/// What is said of an argument, with the words that it takes and the variable of the environment that sets it.
fn help(arg: &Arg) -> String {
    let mut text = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        write!(text, ". One of: {}", values.join(", ")).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(text, ". Environment: `{}`", variable.display()).unwrap();
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
