//! Reads `[template.NAME]`: request parameters whose text may contain `{{ … }}`.

use super::text::{PARSE_FIX, TOKEN_ROOM, always_fails, environment, explain, is_dynamic, names_of, take_metadata};
use super::variables::{ROOTS, TemplateScope, TemplateUser};
use crate::config::load::diagnostics::nearest;
use crate::config::load::toml_reader::{ProblemList, Section, ValueError, refusal};
use crate::domain::token::RESERVED_KEY;
use crate::wire::parameter_check::{
    Complaint, FieldError, METADATA, METADATA_LIMIT, PER_REQUEST_FIELDS, Side, inspect, text_length,
};
use minijinja::Environment;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The place of a parameter in the file.
#[derive(Clone)]
struct Place {
    key: Range<usize>,
    value: Range<usize>,
}

/// A template that is being read.
pub(crate) struct PartialTemplate<'s, 'a> {
    places: BTreeMap<String, Place>,
    pub(crate) env: Environment<'static>,
    section: &'s Section<'a>,
    scope: &'s TemplateScope,
    users: Vec<&'s TemplateUser>,
    /// Whether nothing is filled in: template syntax is an error, and required fields may be elsewhere.
    is_plain: bool,
    /// The variables that its texts use, by the dotted paths of the texts.
    pub(crate) names: BTreeMap<String, BTreeSet<String>>,
}

impl<'s, 'a> PartialTemplate<'s, 'a> {
    /// Starts to read the template of this name.
    pub(crate) fn new(section: &'s Section<'a>, scope: &'s TemplateScope, name: &str) -> Self {
        let users = scope.users.iter().filter(|user| user.template.as_deref() == Some(name)).collect();
        Self {
            places: BTreeMap::new(),
            env: environment(),
            section,
            scope,
            users,
            is_plain: false,
            names: BTreeMap::new(),
        }
    }

    /// Returns the line of each parameter in the file, by its dotted path.
    pub(crate) fn lines(&mut self, file_text: &str) -> BTreeMap<String, usize> {
        let places = std::mem::take(&mut self.places).into_iter();
        places.map(|(path, place)| (path, line_number(file_text, place.value.start))).collect()
    }

    pub(crate) fn table(&mut self, path: &str, table: &DeTable<'_>) -> Value {
        let mut map = Map::new();
        for (key, value) in table {
            let (name, inner) = (key.get_ref().to_string(), join(path, key.get_ref()));
            let place = Place { key: key.span(), value: value.span() };
            self.places.insert(inner.clone(), place);
            map.insert(name, self.read_value(&inner, value.get_ref()));
        }
        Value::Object(map)
    }

    fn read_value(&mut self, path: &str, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::String(text) => self.read_text(path, text),
            DeValue::Datetime(date) => Value::String(date.to_string()),
            DeValue::Integer(digits) => match i64::from_str_radix(&digits.as_str().replace('_', ""), digits.radix()) {
                Ok(number) => Value::from(number),
                Err(_) => self.not_a_number(path),
            },
            DeValue::Float(digits) => match digits.as_str().replace('_', "").parse::<f64>() {
                Ok(number) if number.is_finite() => Value::from(number),
                _ => self.not_a_number(path),
            },
            DeValue::Array(list) => list
                .iter()
                .enumerate()
                .map(|(number, element)| {
                    let inner = join(path, &number.to_string());
                    self.places.insert(inner.clone(), Place { key: element.span(), value: element.span() });
                    self.read_value(&inner, element.get_ref())
                })
                .collect(),
            DeValue::Table(table) => self.table(path, table),
        }
    }

    fn not_a_number(&mut self, path: &str) -> Value {
        self.report_value(path, refusal("must be a number that JSON can represent", "write a finite number"));
        Value::Null
    }

    fn read_text(&mut self, path: &str, text: &str) -> Value {
        if is_dynamic(text) && self.is_plain {
            let fix = "write the value itself; `template` selects a [template.NAME] of jobs.toml";
            self.report_value(path, refusal("must not contain template syntax here", fix));
        } else if is_dynamic(text) {
            match self.env.add_template_owned(path.to_owned(), text.to_owned()) {
                Ok(()) => self.try_samples(path),
                Err(error) => {
                    self.report_value(path, refusal(format!("cannot be parsed: {}", explain(&error)), PARSE_FIX));
                }
            }
        }
        Value::String(text.to_owned())
    }

    /// Reports a text that can render for no job. A text that depends on the job, such as a part of its name that the
    /// sample lacks, is left to real jobs.
    fn try_samples(&mut self, path: &str) {
        let names = names_of(&self.env, path);
        if let Some(refusal) = self.unfillable(path, &names) {
            self.report_value(path, refusal);
        }
        self.names.insert(path.to_owned(), names.into_iter().collect());
    }

    fn unfillable(&self, path: &str, names: &HashSet<String>) -> Option<ValueError> {
        self.scope.unknown(names, &ROOTS, &self.env).or_else(|| {
            let fails = |user: Option<&TemplateUser>| {
                let sample = self.scope.sample(user).context();
                self.env.get_template(path).and_then(|template| template.render(sample)).err()
            };
            let lacking = |user: &&TemplateUser| fails(Some(user)).and_then(|_| self.scope.lacking(names, user));
            let own = self.users.iter().find_map(lacking);
            own.or_else(|| fails(None).and_then(|error| always_fails(&error)))
        })
    }

    /// Reports parameters that a template may not set.
    pub(crate) fn check_reserved(&self, value: &Value) {
        for key in PER_REQUEST_FIELDS.iter().filter(|key| value.get(key).is_some()) {
            self.report_key(key, refusal("must not be set here", "remove it; scribed sets it for each job"));
        }
        if value.pointer(&format!("/{METADATA}/{RESERVED_KEY}")).is_some() {
            let key = format!("{METADATA}.{RESERVED_KEY}");
            self.report_key(
                &key,
                refusal("must not be set here", "scribed stores its own token in this key; use another one"),
            );
        }
    }

    /// Reports parameters that the interface refuses, as far as they do not depend on a job.
    pub(crate) fn check_fields(&self, value: &Value) {
        let mut params = value.clone();
        if params.get(METADATA).is_some_and(Value::is_object) {
            let metadata = Value::Object(take_metadata(&mut params));
            let room = METADATA_LIMIT - TOKEN_ROOM;
            if !is_dynamic(&metadata.to_string()) && text_length(&metadata) > room {
                self.report_key(
                    METADATA,
                    refusal(
                        format!("must be at most {room} characters as JSON"),
                        "the service stores no more, including scribed's token",
                    ),
                );
            }
        }
        for complaint in inspect(&params, Side::Client, is_dynamic).complaints {
            let elsewhere = self.is_plain && complaint.kind == FieldError::Missing;
            if !elsewhere && !PER_REQUEST_FIELDS.iter().any(|key| complaint.field.split('.').next() == Some(key)) {
                self.report_complaint(&complaint);
            }
        }
    }

    fn report_complaint(&self, complaint: &Complaint) {
        let last = complaint.field.rsplit('.').next().unwrap_or_default();
        match complaint.kind {
            FieldError::Key => {
                let near = nearest(last, complaint.known.iter().copied());
                let fix = near.map_or("see the create parameters of the interface".to_owned(), |near| {
                    format!("did you mean `{near}`?")
                });
                self.report_key(&complaint.field, refusal("is not a parameter of the interface", fix));
            }
            FieldError::Missing => {
                let parent = complaint.field.rsplit_once('.').map_or("", |(parent, _)| parent);
                self.report_key(
                    parent,
                    refusal(format!("lacks `{last}`: it {}", complaint.requirement), format!("add `{last}`")),
                );
            }
            FieldError::Value => {
                self.report_value(&complaint.field, refusal(shorten_complaint(complaint), self.value_fix(complaint)));
            }
        }
    }

    fn value_fix(&self, complaint: &Complaint) -> String {
        let place = self.places.get(&complaint.field);
        let written = place.and_then(|_| self.written_text(&complaint.field));
        let near = written.and_then(|text| nearest(&text, complaint.known.iter().copied()));
        match near {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if complaint.known.is_empty() => "change it, or remove it to use the service's default".to_owned(),
            None => format!("one of: {}", complaint.known.join(", ")),
        }
    }

    /// Returns the text at this path.
    fn written_text(&self, path: &str) -> Option<String> {
        let mut steps = path.split('.');
        let first = self.section.table()?.get(steps.next()?)?.get_ref();
        let found = steps.try_fold(first, |value, step| match step.parse::<usize>() {
            Ok(number) => value.get(number).map(toml::Spanned::get_ref),
            Err(_) => value.get(step).map(toml::Spanned::get_ref),
        });
        found?.as_str().map(str::to_owned)
    }

    /// Reports a problem of the value at this path.
    fn report_value(&self, path: &str, refusal: ValueError) {
        let span = self.places.get(path).map_or(self.section.span.clone(), |place| place.value.clone());
        self.section.report_value(path, span, refusal);
    }

    /// Reports a problem of the key at this path.
    fn report_key(&self, path: &str, refusal: ValueError) {
        let span = self.places.get(path).map_or(self.section.span.clone(), |place| place.key.clone());
        self.section.report_value(path, span, refusal);
    }
}

/// Request parameters without variables: those of a sidecar.
pub(crate) struct PlainParameters;

impl PlainParameters {
    /// Reads a table, with the line of each parameter, and reports all problems.
    pub(crate) fn read(section: &Section<'_>, file_text: &str) -> (Map<String, Value>, BTreeMap<String, usize>) {
        let scope = TemplateScope::default();
        let mut written = PartialTemplate { is_plain: true, ..PartialTemplate::new(section, &scope, "") };
        let value = section.table().map_or(Value::Null, |table| written.table("", table));
        written.check_reserved(&value);
        written.check_fields(&value);
        let lines = written.lines(file_text);
        (value.as_object().cloned().unwrap_or_default(), lines)
    }

    /// Converts a value without checks.
    pub(crate) fn value(value: &DeValue<'_>) -> Value {
        let (found, scope) = (ProblemList::default(), TemplateScope::default());
        let empty = DeTable::new();
        let section = Section::of_file(&empty, &found);
        PartialTemplate { is_plain: true, ..PartialTemplate::new(&section, &scope, "") }.read_value("", value)
    }
}

/// Describes a complaint in one line, without a list of more than ten values.
pub(crate) fn shorten_complaint(complaint: &Complaint) -> String {
    match complaint.known.len() {
        0..=10 => complaint.requirement.clone(),
        many => format!("must be one of the interface's {many} values"),
    }
}

/// Returns the line of a byte offset, from 1.
pub(crate) fn line_number(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
