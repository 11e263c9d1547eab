//! `name_as`: the names of a job's outputs.

use super::player::{PLAYER_NAME, Player};
use super::text::{PARSE_FIX, always_fails, environment, explain, names_of};
use super::variables::{NAME_ROOTS, TemplateScope, TemplateUser, Vars, to_value};
use crate::config::load::toml_reader::{ValueError, refusal};
use crate::domain::format::Format;
use minijinja::{Environment, Error, context};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

/// The template for the names of a job's outputs.
#[derive(Clone)]
pub struct NameTemplate {
    env: Arc<Environment<'static>>,
    /// The player whose forms of languages are used.
    player: Option<Player>,
    /// Whether subtitles describe more than the words: the variable `sdh`.
    sdh: bool,
    /// The line in the configuration file, from 1; 0 for the default.
    line: usize,
}

/// The variables of an output's name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NameVars<'a> {
    /// The language of the output; `None` or empty if unknown.
    pub lang: Option<&'a str>,
    /// The output format; its extension is the variable `ext`.
    pub format: Format,
    /// The other variables of the job.
    pub job: &'a Vars,
}

/// Why a name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// The template does not render. `place` is its line in the configuration file, in brackets; empty if it is not there.
    #[error("cannot render name_as{place}: {words}")]
    Render { place: String, words: String },
    /// The result is empty, `.` or `..`, or contains a `/` or a NUL. Has the columns that it is made of.
    #[error("name_as results in {0:?}, which is not a valid file name{1}")]
    NoName(String, String),
}

/// The default of `name_as`.
pub const DEFAULT_NAME: &str = "{{ stem }}{% if lang %}.{{ lang }}{% endif %}.{{ ext }}";

const NAME: &str = "name_as";

fn place(line: usize) -> String {
    if line == 0 { String::new() } else { format!(" (line {line} of the configuration)") }
}

impl NameTemplate {
    /// Returns it with its line in the configuration file.
    #[must_use]
    pub(crate) fn at_line(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// Whether recordings of different stems have outputs of different names, as far as the template's text shows.
    pub fn names_the_stem(&self) -> bool {
        let source = self.env.get_template(NAME).map(|template| template.source().to_owned()).unwrap_or_default();
        self.player.is_some() || source.contains("stem") || source.contains("name")
    }

    /// Returns the variables that the names are made of.
    pub fn variables(&self) -> HashSet<String> {
        names_of(&self.env, NAME)
    }

    /// Says which columns of a row the names are made of; empty if none.
    fn columns(&self) -> String {
        let mut columns: Vec<String> = self.variables().into_iter().filter(|name| name.starts_with("row.")).collect();
        columns.sort();
        let columns: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
        if columns.is_empty() { String::new() } else { format!(" (it is made of {})", columns.join(", ")) }
    }

    /// Returns a text that is equal for templates that give the same names.
    pub fn identity(&self) -> String {
        let source = self.env.get_template(NAME).map(|template| template.source().to_owned()).unwrap_or_default();
        format!("{source}|{:?}|{}", self.player, self.sdh)
    }

    /// Compiles a template, or that of the player with this name, and renders it for each format with a sample job of
    /// this source. `sdh` says whether subtitles are for the deaf and hard of hearing.
    ///
    /// # Errors
    /// The template does not parse, cannot render, needs a language, or gives two formats the same name.
    pub(crate) fn build(text: &str, sdh: bool, scope: &TemplateScope, user: &TemplateUser) -> Result<Self, ValueError> {
        let mut env = environment();
        let player = Player::parse(text);
        let text = if player.is_some() { PLAYER_NAME } else { text };
        env.add_template_owned(NAME, text.to_owned())
            .map_err(|error| refusal(format!("cannot be parsed: {}", explain(&error)), PARSE_FIX))?;
        let names = names_of(&env, NAME);
        if names.iter().any(|name| name.split('.').next() == Some("media")) {
            let fix = "the file may be gone when scribed names its outputs; use custom_metadata instead";
            return Err(refusal("must not use `media`", fix));
        }
        scope.unknown(&names, &NAME_ROOTS, &env).map_or(Ok(()), Err)?;
        let template = Self { env: Arc::new(env), player, sdh, line: 0 };
        let job = scope.sample(Some(user));
        let is_rendered = template.check(&job)?;
        if let Some(error) = is_rendered.err() {
            scope.lacking(&names, user).or_else(|| always_fails(&error)).map_or(Ok(()), Err)?;
        }
        // A row may have every column that the names are made of, or none of them.
        let is_filled = template.check(&with_columns(&names, job))?;
        if is_filled.is_err() {
            template.holds_ext()?;
        }
        Ok(template)
    }

    /// Checks the names of a sample's outputs, with a language and without. Returns the error if none can be rendered.
    fn check(&self, job: &Vars) -> Result<Result<(), Error>, ValueError> {
        match (self.samples(Some("en"), job), self.samples(None, job)) {
            (Err(error), _) => Ok(Err(error)),
            (Ok(_), Err(_)) => {
                let fix = format!("the language may be unknown; the default is \"{DEFAULT_NAME}\"");
                Err(refusal("uses `lang` without {% if lang %}", fix))
            }
            (Ok(with), Ok(without)) => [&with, &without].into_iter().try_for_each(|names| distinct(names)).map(Ok),
        }
    }

    /// Checks a template that no sample renders: it must at least use `ext`.
    fn holds_ext(&self) -> Result<(), ValueError> {
        if self.variables().contains("ext") { Ok(()) } else { Err(one_name()) }
    }

    /// Returns the names of a sample's outputs in all formats.
    fn samples(&self, lang: Option<&str>, job: &Vars) -> Result<Vec<String>, Error> {
        Format::ALL.into_iter().map(|format| self.print(&NameVars { lang, format, job })).collect()
    }

    /// Returns a language code as it is in a name: `hin` for the players that read `hi` as "hearing impaired".
    pub fn language(&self, code: &str) -> String {
        self.player.map_or_else(|| code.to_owned(), |player| player.language(code))
    }

    fn print(&self, vars: &NameVars<'_>) -> Result<String, Error> {
        let NameVars { lang, format, job } = *vars;
        let Vars { path, name, stem, source, folder, date, .. } = job;
        let (capture, row, env) = (to_value(&job.capture), to_value(&job.row), to_value(&job.env));
        let lang = lang.filter(|lang| !lang.is_empty());
        let lang = lang.map(|lang| self.language(lang));
        let (sdh, ext) = (self.sdh && format.is_subtitles(), format.ext());
        let context = context! { path, name, stem, source, folder, dir => folder, date, capture, row, env, sdh, ext };
        // The engine names a variable that is absent, and not one that is there and undefined.
        let lang = lang.map_or_else(|| context! {}, |lang| context! { lang });
        self.env.get_template(NAME)?.render(context! { ..context, ..lang })
    }

    /// Returns the file name for an output.
    pub fn render(&self, vars: &NameVars<'_>) -> Result<String, NameProblem> {
        let printed = self
            .print(vars)
            .map_err(|error| NameProblem::Render { place: place(self.line), words: explain(&error) })?;
        match is_file_name(&printed) {
            true => Ok(printed),
            false => Err(NameProblem::NoName(printed, self.columns())),
        }
    }
}

/// Whether this is a file name. Its length is not limited here: too long names are shortened when they are published.
fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// Returns a sample job whose row has the columns of these variables: `row.title`.
fn with_columns(names: &HashSet<String>, job: Vars) -> Vars {
    let columns = names.iter().filter_map(|name| name.strip_prefix("row.")?.split('.').next());
    let row = columns.map(|column| (column.to_owned(), "1".into())).collect();
    Vars { row, ..job }
}

/// Checks that the names are valid and different.
fn distinct(names: &[String]) -> Result<(), ValueError> {
    for name in names {
        if !is_file_name(name) {
            let problem = NameProblem::NoName(name.clone(), String::new());
            return Err(refusal(format!("cannot be used: {problem}"), format!("the default is \"{DEFAULT_NAME}\"")));
        }
    }
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(one_name());
    }
    Ok(())
}

fn one_name() -> ValueError {
    let players = Player::ALL.map(|player| format!("\"{}\"", player.name())).join(", ");
    refusal(
        "must contain {{ ext }}: otherwise all formats would get the same name",
        format!("the default is \"{DEFAULT_NAME}\"; for media players write one of {players}"),
    )
}

impl fmt::Debug for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.env.get_template(NAME).map(|template| template.source().to_owned());
        f.debug_tuple("NameTemplate").field(&text.unwrap_or_default()).finish()
    }
}
