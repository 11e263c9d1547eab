//! `name_as`: the names of a job's outputs.

use super::player::{PLAYER_NAME, Player};
use super::text::{PARSE_FIX, always_fails, environment, explain, names_of};
use super::variables::{NAME_ROOTS, TemplateScope, TemplateUser, Vars, or_undefined, to_value};
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
    /// The template does not render.
    #[error("cannot render name_as: {0}")]
    Render(String),
    /// The result is empty, `.` or `..`, or contains a `/` or a NUL.
    #[error("name_as results in {0:?}, which is not a valid file name")]
    NoName(String),
}

/// The default of `name_as`.
pub const DEFAULT_NAME: &str = "{{ stem }}{% if lang %}.{{ lang }}{% endif %}.{{ ext }}";

const NAME: &str = "name_as";

impl NameTemplate {
    /// Whether recordings of different stems have outputs of different names, as far as the template's text shows.
    pub fn names_the_stem(&self) -> bool {
        let source = self.env.get_template(NAME).map(|template| template.source().to_owned()).unwrap_or_default();
        self.player.is_some() || source.contains("stem") || source.contains("name")
    }

    /// Returns the variables that the names are made of.
    pub fn variables(&self) -> HashSet<String> {
        names_of(&self.env, NAME)
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
        let template = Self { env: Arc::new(env), player, sdh };
        let job = scope.sample(Some(user));
        match (&template.samples(Some("en"), &job), template.samples(None, &job)) {
            (Err(error), _) => {
                scope.lacking(&names, user).or_else(|| always_fails(error)).map_or(Ok(()), Err)?;
                template.holds_ext()?;
            }
            (Ok(_), Err(_)) => {
                let fix = format!("the language may be unknown; the default is \"{DEFAULT_NAME}\"");
                return Err(refusal("uses `lang` without {% if lang %}", fix));
            }
            (Ok(with), Ok(without)) => [with, &without].into_iter().try_for_each(|names| distinct(names))?,
        }
        Ok(template)
    }

    /// Checks a template that no sample renders: it must at least use `ext`.
    fn holds_ext(&self) -> Result<(), ValueError> {
        if self.variables().contains("ext") { Ok(()) } else { Err(one_name()) }
    }

    /// Returns the names of a sample's outputs in all formats.
    fn samples(&self, lang: Option<&str>, job: &Vars) -> Result<Vec<String>, Error> {
        Format::ALL.into_iter().map(|format| self.print(&NameVars { lang, format, job })).collect()
    }

    fn print(&self, vars: &NameVars<'_>) -> Result<String, Error> {
        let NameVars { lang, format, job } = *vars;
        let Vars { path, name, stem, source, folder, date, .. } = job;
        let (capture, row, env) = (to_value(&job.capture), to_value(&job.row), to_value(&job.env));
        let lang = lang.filter(|lang| !lang.is_empty());
        let lang = lang.map(|lang| self.player.map_or_else(|| lang.to_owned(), |player| player.language(lang)));
        let (lang, sdh, ext) = (or_undefined(lang.as_deref()), self.sdh && format.is_subtitles(), format.ext());
        let context =
            context! { path, name, stem, source, folder, dir => folder, date, capture, row, env, lang, sdh, ext };
        self.env.get_template(NAME)?.render(context)
    }

    /// Returns the file name for an output.
    ///
    /// # Errors
    /// See [`NameProblem`].
    pub fn render(&self, vars: &NameVars<'_>) -> Result<String, NameProblem> {
        let printed = self.print(vars).map_err(|error| NameProblem::Render(explain(&error)))?;
        file_name(&printed)?;
        Ok(printed)
    }
}

/// Checks a file name. Its length is not limited here: too long names are shortened when they are published.
fn file_name(name: &str) -> Result<(), NameProblem> {
    match name {
        "" | "." | ".." => Err(NameProblem::NoName(name.to_owned())),
        _ if name.contains(['/', '\0']) => Err(NameProblem::NoName(name.to_owned())),
        _ => Ok(()),
    }
}

/// Checks that the names are valid and different.
fn distinct(names: &[String]) -> Result<(), ValueError> {
    for name in names {
        let fix = format!("the default is \"{DEFAULT_NAME}\"");
        file_name(name).map_err(|problem| refusal(format!("cannot be used: {problem}"), fix))?;
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
