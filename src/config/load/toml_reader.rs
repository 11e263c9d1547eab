//! Reads values from TOML tables, each with its place in the file.

use super::diagnostics::Problem;
use super::keys::article;
use super::quantities::{no_duration, no_size, parse_duration, parse_size};
use super::shape::{Shape, shape};
use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place in the file.
#[derive(Debug, Clone)]
pub struct Spot<T> {
    pub value: T,
    /// Its bytes in the file.
    pub span: Range<usize>,
}

/// Why a value is refused, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// "must be …", or another sentence without its subject.
    pub why: String,
    /// What to write instead.
    pub fix: String,
}

pub fn refusal(why: impl Into<String>, fix: impl Into<String>) -> ValueError {
    ValueError { why: why.into(), fix: fix.into() }
}

/// The problems found so far, shared by all sections.
pub type ProblemList = RefCell<Vec<Problem>>;

/// A table of the file, present or absent, from which values are read one by one. A wrong value is added to the
/// problems and counts as absent, so that one pass finds all problems.
#[derive(Clone)]
pub struct Section<'a> {
    /// The path for messages: `service.poll`.
    pub path: String,
    /// The place of its header or braces; the file's start if it is absent.
    pub span: Range<usize>,
    table: Option<&'a DeTable<'a>>,
    found: &'a ProblemList,
}

impl<'a> Section<'a> {
    pub fn of_file(top: &'a DeTable<'a>, found: &'a ProblemList) -> Self {
        Self { path: String::new(), span: 0..0, table: Some(top), found }
    }

    /// Whether the table is in the file.
    pub fn exists(&self) -> bool {
        self.table.is_some()
    }

    /// The TOML table; `None` if it is absent.
    pub fn table(&self) -> Option<&'a DeTable<'a>> {
        self.table
    }

    /// Returns a table below this one. A value of another type counts as absent; `keys` reports it.
    pub fn section(&self, key: &str) -> Section<'a> {
        let written = self.raw(key);
        let table = written.and_then(|written| written.get_ref().as_table());
        let span = written.filter(|_| table.is_some()).map_or(0..0, Spanned::span);
        Section { path: self.name(key), span, table, found: self.found }
    }

    /// Returns the tables of `[[key]]`, in the file's order.
    pub fn sections(&self, key: &str) -> Vec<Section<'a>> {
        let list = self.raw(key).and_then(|written| written.get_ref().as_array());
        let elements = list.into_iter().flat_map(|list| list.iter());
        let section = |element: &'a Spanned<DeValue<'a>>| {
            let table = element.get_ref().as_table()?;
            Some(Section { path: key.to_owned(), span: element.span(), table: Some(table), found: self.found })
        };
        elements.filter_map(section).collect()
    }

    /// Returns the tables of `key = { … }` or `key = [{ … }, { … }]`. Elements of another type count as absent; `keys`
    /// reports them.
    pub fn tables(&self, key: &str) -> Vec<Section<'a>> {
        let single = self.section(key);
        if single.exists() {
            return vec![single];
        }
        let list = self.raw(key).and_then(|written| written.get_ref().as_array());
        let elements = list.into_iter().flat_map(|list| list.iter());
        let section = |element: &'a Spanned<DeValue<'a>>| {
            let table = element.get_ref().as_table()?;
            Some(Section { path: self.name(key), span: element.span(), table: Some(table), found: self.found })
        };
        elements.filter_map(section).collect()
    }

    /// Returns the tables of `[key.NAME]` with their names.
    pub fn named(&self, key: &str) -> Vec<(Spot<String>, Section<'a>)> {
        let parent = self.section(key);
        let names = parent.table.into_iter().flat_map(|table| table.keys());
        let named = |name: &'a Spanned<std::borrow::Cow<'a, str>>| {
            let section = parent.section(name.get_ref());
            section.exists().then(|| (Spot { value: name.get_ref().to_string(), span: name.span() }, section))
        };
        names.filter_map(named).collect()
    }

    /// Reads a value by `read`. Returns `None` if it is absent or refused.
    pub fn get<T>(&self, key: &str, read: impl Fn(&DeValue<'a>) -> Result<T, ValueError>) -> Option<Spot<T>> {
        let written = self.raw(key)?;
        match read(written.get_ref()) {
            Ok(value) => Some(Spot { value, span: written.span() }),
            Err(refusal) => {
                self.report_value(key, written.span(), refusal);
                None
            }
        }
    }

    /// Reads an array whose elements are read by `read`. Returns `None` if it is absent or an element is refused.
    pub fn list<T>(
        &self,
        key: &str,
        read: impl Fn(&DeValue<'a>) -> Result<T, ValueError>,
    ) -> Option<Spot<Vec<Spot<T>>>> {
        let written = self.raw(key)?;
        let Some(list) = written.get_ref().as_array() else {
            let found = article(written.get_ref());
            // A value that may be a secret is not repeated.
            let word = written.get_ref().as_str().filter(|word| is_plain_word(word));
            let numbers = matches!(shape(&self.name(key)), Some(Shape::List(_, Shape::Between(..))));
            let fix = match written.get_ref() {
                DeValue::Integer(number) => format!("write {key} = [{}]", number.as_str()),
                _ => {
                    word.map_or("write [ … ]".to_owned(), |word| format!("write {key} = [{}]", listed(word, numbers)))
                }
            };
            self.report_value(key, written.span(), refusal(format!("must be an array, found {found}"), fix));
            return None;
        };
        let mut values = Vec::new();
        for element in list {
            match read(element.get_ref()) {
                Ok(value) => values.push(Spot { value, span: element.span() }),
                Err(refusal) => self.report_value(key, element.span(), refusal),
            }
        }
        (values.len() == list.len()).then(|| Spot { value: values, span: written.span() })
    }

    /// Reports a problem of a key's value.
    pub fn report_value(&self, key: &str, span: Range<usize>, refusal: ValueError) {
        let what = format!("`{}` {}", self.name(key), refusal.why);
        self.report(Problem::at(span, what).fix(refusal.fix));
    }

    /// Reports a missing required key, with an example as the fix.
    pub fn report_missing(&self, example: &str) {
        let key = example.split(' ').next().unwrap_or_default();
        self.report(Problem::at(self.span.clone(), format!("`{}` is missing", self.name(key))).fix(example));
    }

    /// Whether no problem of this key was reported.
    pub fn has_no_problem(&self, key: &str) -> bool {
        let begins = [format!("`{}`", self.name(key)), format!("`{}.", self.name(key))];
        !self.found.borrow().iter().any(|problem| begins.iter().any(|name| problem.what.starts_with(name)))
    }

    pub fn report(&self, problem: Problem) {
        self.found.borrow_mut().push(problem);
    }

    /// Returns the dotted path of a key.
    pub fn name(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn raw(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.and_then(|table| table.get(key))
    }
}

/// Splits a text into the elements of a list: `srt, vtt` is two.
fn listed(word: &str, numbers: bool) -> String {
    // In braces a comma belongs to the pattern.
    let apart: &[char] = if word.contains('{') { &[] } else { &[',', ';'] };
    let elements = word.split(apart).map(str::trim).filter(|element| !element.is_empty());
    let quoted = |element: &str| if numbers { element.to_owned() } else { format!("\"{element}\"") };
    elements.map(quoted).collect::<Vec<_>>().join(", ")
}

/// Whether a text may be repeated in a message: it cannot be a key or an address with a password.
fn is_plain_word(text: &str) -> bool {
    const MOST: usize = 40;
    let is_secret = text.contains("://") || text.contains('@');
    !is_secret && text.len() <= MOST && text.chars().all(|c| c.is_ascii_alphanumeric() || "*.,;/{}[]?_- ".contains(c))
}

/// Reads a string that is not empty.
///
/// # Errors
/// Another type, or an empty string.
pub fn text(value: &DeValue<'_>) -> Result<String, ValueError> {
    match value.as_str() {
        Some("") => Err(refusal("must not be empty", "write a value, or remove the key to use its default")),
        Some(text) => Ok(text.to_owned()),
        None => Err(wrong_type("a string", value, "write it in quotes")),
    }
}

/// Reads a whole number, `least` or more.
///
/// # Errors
/// Another type, less, or more than 4,294,967,295.
pub fn integer_from(least: u32) -> impl Fn(&DeValue<'_>) -> Result<u32, ValueError> {
    move |value| {
        let Some(digits) = value.as_integer() else {
            let digits = value.as_str().map(str::trim).filter(|text| text.parse::<u32>().is_ok());
            let fix = digits.map(|digits| format!("write {digits}, without quotes"));
            let fix = fix.unwrap_or_else(|| "write it without quotes and without a decimal point".to_owned());
            return Err(wrong_type("a whole number", value, &fix));
        };
        let number = i128::from_str_radix(&digits.as_str().replace('_', ""), digits.radix()).ok();
        let number = number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number >= least);
        number.ok_or_else(|| {
            let found = digits.as_str();
            let why = format!("must be a whole number from {least} to {}, found {found}", u32::MAX);
            refusal(why, format!("write {least} or more"))
        })
    }
}

/// Reads a duration such as `"90s"`, `"15m"`, `"1h 30m"`.
///
/// # Errors
/// Another type, or no duration.
pub fn duration(value: &DeValue<'_>) -> Result<Duration, ValueError> {
    duration_in("m")(value)
}

/// Like [`duration`]; `unit`, the usual one of the setting, is advised for a number without a unit.
pub fn duration_in(unit: &'static str) -> impl Fn(&DeValue<'_>) -> Result<Duration, ValueError> {
    move |value| match value.as_str() {
        Some(text) => parse_duration(text, unit),
        None => Err(no_duration(value, unit)),
    }
}

/// Like [`duration_in`], and refuses zero.
pub fn some_time_in(unit: &'static str) -> impl Fn(&DeValue<'_>) -> Result<Duration, ValueError> {
    move |value| match duration_in(unit)(value)? {
        Duration::ZERO => Err(refusal("must be more than zero", format!("write \"1{unit}\" or more"))),
        time => Ok(time),
    }
}

/// Reads a number of bytes such as `"1GB"` (decimal) or `"512MiB"` (binary), 1 or more.
///
/// # Errors
/// Another type, no such number, zero, or more than 2^63.
pub fn size(value: &DeValue<'_>) -> Result<u64, ValueError> {
    match value.as_str() {
        Some(text) => parse_size(text),
        None => Err(no_size(value)),
    }
}

/// Reads a number with or without a decimal point.
pub fn number_in(value: &DeValue<'_>, bounds: &RangeInclusive<f64>, fix: &str) -> Result<f64, ValueError> {
    let written = match value {
        DeValue::Float(number) => number.as_str().replace('_', ""),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
        other => return Err(wrong_type("a number", other, fix)),
    };
    let number = written.parse::<f64>().ok().filter(|number| bounds.contains(number));
    let why = || format!("must be a number from {} to {}", bounds.start(), bounds.end());
    number.ok_or_else(|| refusal(why(), fix))
}

/// "must be …, found …".
pub fn wrong_type(wanted: &str, found: &DeValue<'_>, fix: &str) -> ValueError {
    refusal(format!("must be {wanted}, found {}", article(found)), fix)
}
