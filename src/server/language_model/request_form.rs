//! How a request to a language model is written. Servers differ in what they accept: what one refuses is left out. Pure.

use super::prompt::{AnswerShape, Prompt};
use serde_json::{Value, json};

/// The form of answers that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// JSON of a given schema.
    JsonSchema,
    /// JSON of a given schema, as the server of llama-cpp-python wants it.
    SchemaObject,
    /// Any JSON object.
    JsonObject,
    /// Text, in which JSON is looked for.
    Plain,
}

/// How requests to a server are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestForm {
    pub answer: AnswerForm,
    /// Whether the limit of the answer has its newer name.
    has_newer_limit: bool,
    has_temperature: bool,
}

impl RequestForm {
    pub fn new(answer: AnswerForm) -> Self {
        Self { answer, has_newer_limit: false, has_temperature: true }
    }

    /// Returns another form that the server may accept after it has refused this one; `None` if there is none.
    pub fn after_refusal(self, words: &str, shape: &AnswerShape) -> Option<Self> {
        let is_about = |name: &str| words.contains(name);
        if is_about("max_completion_tokens") && !self.has_newer_limit {
            return Some(Self { has_newer_limit: true, ..self });
        }
        if is_about("temperature") && self.has_temperature {
            return Some(Self { has_temperature: false, ..self });
        }
        let answer = match (self.answer, shape) {
            (_, AnswerShape::Text) | (AnswerForm::Plain, _) => return None,
            (AnswerForm::JsonSchema, _) => AnswerForm::SchemaObject,
            (AnswerForm::SchemaObject, _) => AnswerForm::JsonObject,
            // LM Studio refuses this form, and takes schemas.
            (AnswerForm::JsonObject, _) => AnswerForm::Plain,
        };
        Some(Self { answer, ..self })
    }

    /// Returns the body of a request. `remark` says what was wrong with the answer before.
    pub fn body(self, model: &str, prompt: &Prompt, remark: Option<&str>, answer_tokens: usize) -> Value {
        let remark = remark.map(|why| {
            format!("\n\n(Your last answer could not be used: {why}. Answer again, exactly as you were told to.)")
        });
        let text = format!("{}{}", prompt.text, remark.unwrap_or_default());
        let messages = json!([
            { "role": "system", "content": prompt.system() },
            { "role": "user", "content": text },
        ]);
        let mut body = json!({ "model": model, "messages": messages, "stream": false });
        body[if self.has_newer_limit { "max_completion_tokens" } else { "max_tokens" }] = answer_tokens.into();
        if self.has_temperature {
            body["temperature"] = 0.into();
        }
        match (self.answer, &prompt.shape) {
            (_, AnswerShape::Text) | (AnswerForm::Plain, _) => {}
            (AnswerForm::JsonObject, _) => body["response_format"] = json!({ "type": "json_object" }),
            (AnswerForm::SchemaObject, AnswerShape::Json { schema, .. }) => {
                body["response_format"] = json!({ "type": "json_object", "schema": schema });
            }
            (AnswerForm::JsonSchema, AnswerShape::Json { name, schema }) => {
                let schema = json!({ "name": name, "strict": true, "schema": schema });
                body["response_format"] = json!({ "type": "json_schema", "json_schema": schema });
            }
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(shape: AnswerShape) -> Prompt {
        Prompt { instructions: "Sum up.".to_owned(), text: "Hello.".to_owned(), shape }
    }

    #[test]
    fn what_is_refused_is_left_out_until_nothing_is_left() {
        let shape = AnswerShape::object("summary", json!({ "summary": { "type": "string" } }));
        let form = RequestForm::new(AnswerForm::JsonSchema);
        let body = |form: RequestForm| form.body("m", &prompt(shape.clone()), None, 99);
        assert_eq!(body(form)["response_format"]["json_schema"]["name"], "summary");
        let form = form.after_refusal("400: use 'max_completion_tokens' instead", &shape).unwrap();
        assert_eq!((&body(form)["max_completion_tokens"], &body(form)["max_tokens"]), (&json!(99), &Value::Null));
        let form = form.after_refusal("400: temperature does not support 0", &shape).unwrap();
        assert_eq!(body(form)["temperature"], Value::Null);
        let form = form.after_refusal("400: response_format is unavailable", &shape).unwrap();
        assert_eq!(body(form)["response_format"]["type"], "json_object");
        assert_eq!(body(form)["response_format"]["schema"]["required"], json!(["summary"]));
        let form = form.after_refusal("400: unknown field", &shape).unwrap();
        assert_eq!(body(form)["response_format"], json!({ "type": "json_object" }));
        let form = form.after_refusal("400: 'response_format.type' must be 'json_schema' or 'text'", &shape).unwrap();
        assert_eq!(body(form)["response_format"], Value::Null);
        assert_eq!(form.after_refusal("400: temperature", &shape), None);
        assert!(body(form)["messages"][0]["content"].as_str().unwrap().contains("JSON"), "some servers want the word");
    }

    #[test]
    fn a_text_has_no_form_and_a_remark_follows_the_text() {
        let form = RequestForm::new(AnswerForm::JsonSchema);
        let body = form.body("m", &prompt(AnswerShape::Text), Some("it was empty"), 9);
        assert_eq!(body["response_format"], Value::Null);
        assert!(body["messages"][1]["content"].as_str().unwrap().starts_with("Hello.\n\n(Your last answer"));
        assert_eq!(form.after_refusal("400: no", &AnswerShape::Text), None);
    }
}
