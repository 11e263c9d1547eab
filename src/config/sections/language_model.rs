//! Reads `[serve.language_model]`: what the embedded service makes enrichments of transcripts with.

use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, integer_from, refusal, some_time_in, text};
use crate::config::load::values::{base_url, boolean, or, plain_http};
use crate::config::model::{LanguageModelConfig, StructuredOutput};
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::de::DeValue;

/// A smaller context has no room for the instructions and an answer; a larger one is a mistake.
const CONTEXTS: RangeInclusive<u32> = 1_024..=2_000_000;

/// The default context: the smallest that a common server starts a model with.
const CONTEXT: u32 = 4_096;

impl Reader<'_> {
    /// Reads the language model; `None` if there is none.
    pub(crate) fn language_model(&self, section: &Section<'_>) -> Option<LanguageModelConfig> {
        let table = section.table()?;
        for (key, example) in
            [("url", "url = \"http://localhost:11434/v1\", the address of its API"), ("model", "model = \"qwen3:8b\"")]
        {
            if !table.contains_key(key) {
                let what = format!("`{}` is missing: a language model needs both", section.name(key));
                section.report(Problem::at(section.span.clone(), what).fix(example));
            }
        }
        let url = section.get("url", |value| base_url(value, "http://localhost:11434/v1", "write the key into `key`"));
        let plain_http = plain_http(section, "url", url.as_ref());
        let key = section.get("key", |value| self.secret(value)).map(|key| key.value);
        let model = section.get("model", name);
        Some(LanguageModelConfig {
            key,
            plain_http,
            authorities: self.authorities(section),
            is_local: or(section.get("local", boolean), false),
            structured: or(section.get("structured", structured), StructuredOutput::JsonSchema),
            context: or(section.get("context", context), CONTEXT) as usize,
            concurrency: section.get("concurrency", integer_from(1)).map_or(1, |spot| spot.value as usize),
            timeout: or(section.get("timeout", some_time_in("m")), Duration::from_secs(300)),
            url: url?.value,
            model: model?.value,
        })
    }
}

fn name(value: &DeValue<'_>) -> Result<String, ValueError> {
    let name = text(value)?;
    match name.trim().is_empty() {
        true => Err(refusal("must not be empty", "write the name under which the server has the model")),
        false => Ok(name),
    }
}

fn structured(value: &DeValue<'_>) -> Result<StructuredOutput, ValueError> {
    match text(value)?.as_str() {
        "json_schema" => Ok(StructuredOutput::JsonSchema),
        "json_object" => Ok(StructuredOutput::JsonObject),
        "none" => Ok(StructuredOutput::None),
        _ => {
            let fix = "the default is \"json_schema\"; what the server refuses is not asked for again";
            Err(refusal("must be \"json_schema\", \"json_object\" or \"none\"", fix))
        }
    }
}

fn context(value: &DeValue<'_>) -> Result<u32, ValueError> {
    let tokens = integer_from(*CONTEXTS.start())(value)?;
    match CONTEXTS.contains(&tokens) {
        true => Ok(tokens),
        false => {
            let why = format!("must be a number of tokens from {} to {}", CONTEXTS.start(), CONTEXTS.end());
            Err(refusal(why, "write the context with which the server runs the model, such as 8192"))
        }
    }
}
