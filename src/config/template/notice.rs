//! The arguments of a program that is notified: `run = ["notify-send", "scribed", "{{ path }}: {{ reason }}"]`.

use super::text::{PARSE_FIX, environment, explain, is_dynamic, names_of};
use crate::config::load::toml_reader::{ValueError, refusal};
use crate::domain::did_you_mean::nearest;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// What the arguments may contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NoticeVars {
    /// The name of the event.
    pub event: &'static str,
    /// The id of the message, the same at each attempt.
    pub id: String,
    /// One line about what happened.
    pub title: String,
    /// What happened, in a few lines.
    pub text: String,
    /// How many jobs, or other things, the message is about.
    pub count: u64,
    /// The path of the recording below its source's folder, and how many others there are.
    pub path: String,
    pub source: String,
    /// The number of the job; empty if the message is about no job or several.
    pub job: String,
    /// Why it happened.
    pub reason: String,
    /// When the message was made, in UTC.
    pub time: String,
}

const NAMES: [&str; 10] = ["event", "id", "title", "text", "count", "path", "source", "job", "reason", "time"];

/// A program and its arguments, which may contain [`NoticeVars`].
#[derive(Clone)]
pub struct ProgramArguments {
    program: String,
    env: Arc<Environment<'static>>,
    arguments: usize,
}

impl fmt::Debug for ProgramArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgramArguments").field(&self.program).field(&self.arguments).finish()
    }
}

impl ProgramArguments {
    /// Compiles a list. Returns the position of what is wrong with the reason.
    ///
    /// # Errors
    /// An argument cannot be parsed, or uses a variable that does not exist; the program is none, or is not fixed.
    pub(crate) fn build(list: &[&str]) -> Result<Self, (usize, ValueError)> {
        let Some((program, arguments)) = list.split_first() else {
            return Err((0, refusal("must name a program", "write run = [\"notify-send\", \"{{ text }}\"]")));
        };
        if is_dynamic(program) {
            let fix = "write the program itself; only its arguments may contain variables";
            return Err((0, refusal("must begin with a program, not with a variable", fix)));
        }
        let mut env = environment();
        for (number, text) in arguments.iter().enumerate() {
            let name = number.to_string();
            env.add_template_owned(name.clone(), (*text).to_owned())
                .map_err(|error| (number + 1, refusal(format!("cannot be parsed: {}", explain(&error)), PARSE_FIX)))?;
            unknown(&env, &name).map_or(Ok(()), |wrong| Err((number + 1, wrong)))?;
        }
        let built = Self { program: (*program).to_owned(), env: Arc::new(env), arguments: arguments.len() };
        match built.render(&NoticeVars::default()) {
            Ok(_) => Ok(built),
            Err((number, why)) => Err((number, refusal(format!("cannot be rendered: {why}"), PARSE_FIX))),
        }
    }

    pub fn program(&self) -> &str {
        &self.program
    }

    /// Fills the arguments in.
    ///
    /// # Errors
    /// The position of the argument that does not render, and why.
    pub fn render(&self, vars: &NoticeVars) -> Result<Vec<String>, (usize, String)> {
        let argument = |number: usize| {
            let rendered = self.env.get_template(&number.to_string()).and_then(|template| template.render(Serde(vars)));
            // No argument of a program can contain a NUL.
            rendered.map(|text| text.replace('\0', "")).map_err(|error| (number + 1, explain(&error)))
        };
        (0..self.arguments).map(argument).collect()
    }
}

fn unknown(env: &Environment<'_>, name: &str) -> Option<ValueError> {
    let mut names: Vec<String> = names_of(env, name).into_iter().collect();
    names.sort();
    let is_global = |root: &str| env.globals().any(|(global, _)| global == root);
    let root = |name: &String| name.split('.').next().unwrap_or_default().to_owned();
    let unknown = names.iter().map(root).find(|root| !NAMES.contains(&root.as_str()) && !is_global(root))?;
    let fix = match nearest(&unknown, NAMES) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the variables are {}", NAMES.join(", ")),
    };
    Some(refusal(format!("uses `{unknown}`, which does not exist"), fix))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_filled_in_one_by_one_and_never_split() {
        let list = ProgramArguments::build(&["notify-send", "scribed", "{{ path }}: {{ reason }}"]).unwrap();
        let vars =
            NoticeVars { path: "a b; rm -rf ~\0".into(), reason: "no \"audio\"".into(), ..NoticeVars::default() };
        assert_eq!(list.render(&vars).unwrap(), ["scribed", "a b; rm -rf ~: no \"audio\""]);
    }

    #[test]
    fn what_cannot_be_filled_in_is_found_at_once() {
        let wrong = |list: &[&str]| ProgramArguments::build(list).map(drop).unwrap_err();
        assert_eq!(
            wrong(&["p", "ok", "{{ pth }}"]),
            (2, refusal("uses `pth`, which does not exist", "did you mean `path`?"))
        );
        assert_eq!(wrong(&["{{ path }}"]).0, 0);
        assert_eq!(wrong(&[]).0, 0);
        assert_eq!(wrong(&["p", "{{ path"]).0, 1);
        assert_eq!(wrong(&["p", "{{ path | nope }}"]).0, 1);
    }
}
