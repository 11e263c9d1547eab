//! `name_as`: what the files written for a job are called.

use super::text::{PARSE_FIX, always_fails, environment, explain, names_of};
use super::variables::{NAME_ROOTS, TemplateScope, TemplateUser, Vars, or_undefined, to_value};
use crate::config::load::toml_reader::{ValueError, refusal};
use crate::domain::format::Format;
use minijinja::{Environment, Error, context};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// How the files written for a job are named.
#[derive(Clone)]
pub struct NameTemplate(Arc<Environment<'static>>);

/// What an output's name is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NameVars<'a> {
    /// The language of the output; `None` or empty where unknown.
    pub lang: Option<&'a str>,
    /// The kind of output; its extension is `ext`.
    pub format: Format,
    /// What else there is to say of its job.
    pub job: &'a Vars,
}

/// Why a name cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    /// The template does not render.
    #[error("cannot render name_as: {0}")]
    Render(String),
    /// It is empty, `.` or `..`, or has a `/` or a NUL.
    #[error("name_as results in {0:?}, which is not a valid file name")]
    NoName(String),
}

/// The name that `name_as` makes where it is not given.
pub const DEFAULT_NAME: &str = "{{ stem }}{% if lang %}.{{ lang }}{% endif %}.{{ ext }}";

const NAME: &str = "name_as";

impl NameTemplate {
    /// Compiles a template and tries it on each format, for a job of this source.
    ///
    /// # Errors
    /// It does not parse, cannot render, needs a language, or gives two formats one name.
    pub(crate) fn build(text: &str, scope: &TemplateScope, user: &TemplateUser) -> Result<Self, ValueError> {
        let mut env = environment();
        env.add_template_owned(NAME, text.to_owned())
            .map_err(|error| refusal(format!("cannot be parsed: {}", explain(&error)), PARSE_FIX))?;
        let names = names_of(&env, NAME);
        if names.iter().any(|name| name.split('.').next() == Some("media")) {
            let fix = "the file may be gone when scribed names its outputs; use custom_metadata instead";
            return Err(refusal("must not use `media`", fix));
        }
        scope.unknown(&names, &NAME_ROOTS, &env).map_or(Ok(()), Err)?;
        let template = Self(Arc::new(env));
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

    /// What is left to say of a template that no sample fits.
    fn holds_ext(&self) -> Result<(), ValueError> {
        if names_of(&self.0, NAME).contains("ext") { Ok(()) } else { Err(one_name()) }
    }

    /// The names of one file's outputs of every kind.
    fn samples(&self, lang: Option<&str>, job: &Vars) -> Result<Vec<String>, Error> {
        Format::ALL.into_iter().map(|format| self.print(&NameVars { lang, format, job })).collect()
    }

    fn print(&self, vars: &NameVars<'_>) -> Result<String, Error> {
        let NameVars { lang, format, job } = *vars;
        let Vars { path, name, stem, source, folder, date, .. } = job;
        let (capture, row, env) = (to_value(&job.capture), to_value(&job.row), to_value(&job.env));
        let (lang, ext) = (or_undefined(lang.filter(|lang| !lang.is_empty())), format.ext());
        let context = context! { path, name, stem, source, folder, dir => folder, date, capture, row, env, lang, ext };
        self.0.get_template(NAME)?.render(context)
    }

    /// The file name for an output.
    ///
    /// # Errors
    /// See [`NameProblem`].
    pub fn render(&self, vars: &NameVars<'_>) -> Result<String, NameProblem> {
        let printed = self.print(vars).map_err(|error| NameProblem::Render(explain(&error)))?;
        file_name(&printed)?;
        Ok(printed)
    }
}

/// However long it is: what a file system does not take is shortened where it is placed.
fn file_name(name: &str) -> Result<(), NameProblem> {
    match name {
        "" | "." | ".." => Err(NameProblem::NoName(name.to_owned())),
        _ if name.contains(['/', '\0']) => Err(NameProblem::NoName(name.to_owned())),
        _ => Ok(()),
    }
}

/// Whether these are file names, each another.
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
    refusal(
        "must contain {{ ext }}: otherwise all formats would get the same name",
        format!("the default is \"{DEFAULT_NAME}\""),
    )
}

impl fmt::Debug for NameTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.get_template(NAME).map(|template| template.source().to_owned());
        f.debug_tuple("NameTemplate").field(&text.unwrap_or_default()).finish()
    }
}
