//! The form of each value in `jobs.toml`, for editors. What exactly is allowed is decided when the value is read.

use crate::captions::Profile;
use crate::domain::format::Format;
use crate::domain::review::ReviewCheck;
use serde_json::{Value, json};

/// The form of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number, this or more.
    Whole(u32),
    /// A whole number from the first to the second.
    Between(i32, i32),
    /// A number of 0 or more.
    Number,
    /// A number of 0 or more, or a table of such numbers by language code, with `default` for the other languages.
    NumberByLanguage,
    /// A duration: "90s", "1h 30m".
    Span,
    /// A number of bytes: "1GB", "512MiB".
    Size,
    /// An http or https address.
    Url,
    /// The location of a secret, never the secret itself.
    Secret,
    /// An IP address and a port.
    Address,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The number of a sound track, or a language code.
    Track,
    /// A table of secrets by the name of a header.
    Headers,
    /// Keys of a service: a list, names with one or a list each, or a folder.
    Keys,
    /// A list with at least this many elements of a form.
    List(usize, &'static Shape),
}

/// Returns the form of the value with this dotted path; paths of [services.NAME] begin with `service`, those of
/// [serve.recognisers.NAME] with `serve.recogniser`, those of [web.users.NAME] with `web.user`, those of a target of
/// [notify] with `notify.target`. `None` for a path that is no value of `jobs.toml`.
pub fn shape(path: &str) -> Option<Shape> {
    use Shape as S;
    Some(match path {
        "timezone" | "state.store" | "service.key_header" | "budget.timezone" | "serve.data" | "serve.voices" => {
            S::Text
        }
        "state.spool" | "search.memory" | "service.limits.size" | "serve.upload_limit" | "serve.disk" => S::Size,
        "service.url" | "callback.public_url" | "telemetry.otlp" | "serve.webhook.url" | "serve.public_url" => S::Url,
        "service.key" | "serve.webhook.secret" => S::Secret,
        "service.limits.uploads" | "service.limits.running" | "service.limits.requests_per_second" => S::Whole(1),
        "service.limits.duration"
        | "service.poll.min"
        | "service.poll.max"
        | "service.poll.give_up"
        | "service.lag"
        | "service.retention"
        | "state.keep_history"
        | "state.keep_results" => S::Span,
        "service.walk_limit" | "retry.attempts" | "serve.running" | "serve.queue" => S::Whole(1),
        "service.upload" => S::Choice(&["original", "audio"]),
        "service.price_per_hour" => S::Number,
        "callback.listen" | "serve.listen" | "web.listen" => S::Address,
        "web.tls.cert" | "web.tls.key" | "web.trust.header" => S::Text,
        "web.hosts" | "web.local_users" | "web.trust.proxies" => S::List(0, &S::Text),
        "web.user.role" => S::Choice(&["viewer", "editor", "operator"]),
        "web.user.token" | "web.user.password" => S::Secret,
        "notify.digest_at" | "notify.quiet.from" | "notify.quiet.timezone" => S::Text,
        "notify.window" | "notify.quiet.for" | "notify.outage_after" | "notify.ping_every" => S::Span,
        "notify.hourly" => S::Whole(1),
        "notify.ping" | "notify.target.post" | "notify.target.ntfy" | "notify.target.matrix.homeserver" => S::Url,
        "notify.mail.server" | "notify.mail.user" | "notify.mail.from" | "notify.mail.ca" => S::Text,
        "notify.mail.port" => S::Between(1, 65_535),
        "notify.mail.tls" => S::Choice(&["starttls", "tls", "none"]),
        "notify.mail.password" | "notify.target.slack" | "notify.target.discord" => S::Secret,
        "notify.target.secret" | "notify.target.token" | "notify.target.matrix.token" => S::Secret,
        "notify.target.run" | "notify.target.mail" => S::List(1, &S::Text),
        "notify.target.matrix.room" => S::Text,
        "notify.target.allow_http" => S::Flag,
        "callback.method" => S::Choice(&["POST", "PUT"]),
        "callback.webhook" | "search.enabled" | "serve.fetch_private" | "source.local_only" => S::Flag,
        "source.sdh" | "source.also_plain" | "source.portable_names" | "source.provenance" | "source.speaker_names" => {
            S::Flag
        }
        "budget.day" | "budget.month" | "budget.run" | "budget.total" => S::Span,
        "retry.first" | "retry.max" | "serve.retention" | "serve.uploads" | "serve.length_limit" => S::Span,
        "serve.keys" => S::Keys,
        "telemetry.headers" => S::Headers,
        "telemetry.ca" => S::Text,
        "serve.cors" => S::List(0, &S::Url),
        "service.ca" | "serve.ca" | "serve.tls.cert" | "serve.tls.key" | "callback.tls.cert" | "callback.tls.key" => {
            S::Text
        }
        "serve.key_header" | "serve.trusted_proxies" => S::List(0, &S::Text),
        "serve.recogniser" | "serve.recogniser.model" | "serve.recogniser.ca" | "serve.recogniser.library" => S::Text,
        "serve.recogniser.kind" => S::Choice(&["openai", "whisper.cpp", "whisper"]),
        "serve.recogniser.url" => S::Url,
        "serve.recogniser.key" => S::Secret,
        "serve.recogniser.local" => S::Flag,
        "serve.recogniser.allow_http" | "serve.recogniser.allow_http_proxy" => S::Flag,
        "serve.recogniser.languages" => S::List(0, &S::Text),
        "serve.recogniser.concurrency" | "serve.recogniser.threads" => S::Whole(1),
        "serve.recogniser.chunk" | "serve.recogniser.timeout" => S::Span,
        "serve.recogniser.timeout_factor" => S::Number,
        "serve.language_model.url" => S::Url,
        "serve.language_model.model" | "serve.language_model.ca" => S::Text,
        "serve.language_model.key" => S::Secret,
        "serve.language_model.structured" => S::Choice(&["json_schema", "json_object", "none"]),
        "serve.language_model.context" => S::Between(1_024, 2_000_000),
        "serve.language_model.concurrency" => S::Whole(1),
        "serve.language_model.timeout" => S::Span,
        "serve.language_model.local" => S::Flag,
        "serve.language_model.allow_http" | "serve.language_model.allow_http_proxy" => S::Flag,
        "serve.shapes" => S::Choice(&["interface", "current"]),
        "source.manifest" => S::Text,
        "source.name" | "source.folder" | "source.scan" | "source.service" | "source.template" => S::Text,
        "source.name_as" | "source.owner" | "source.group" | "source.mode" | "source.capture" | "source.language"
        | "source.place" => S::Text,
        "source.track" => S::Track,
        "source.channels" => S::List(1, &S::Between(1, 64)),
        "source.scan.at" | "source.scan.timezone" | "source.submit.from" | "source.submit.timezone" => S::Text,
        "source.submit.for" => S::Span,
        "source.missed" => S::Choice(&["once", "skip"]),
        "source.lane" => S::Choice(&["live", "backlog"]),
        "source.order" => S::Choice(&["oldest", "newest", "shortest", "longest"]),
        "source.priority" => S::Between(-1000, 1000),
        "env.allow" => S::List(0, &S::Text),
        "source.reach" => S::Choice(&["stream", "url"]),
        "source.bucket" | "source.s3.region" => S::Text,
        "source.s3.endpoint" => S::Url,
        "source.s3.key_id" | "source.s3.secret" | "source.s3.token" => S::Secret,
        "source.s3.anonymous" | "source.s3.path_style" => S::Flag,
        "source.s3.allow_http" | "source.s3.allow_http_proxy" => S::Flag,
        "service.allow_http" | "service.allow_http_proxy" => S::Flag,
        "source.include" | "source.roots" => S::List(1, &S::Text),
        "source.exclude" => S::List(0, &S::Text),
        "source.existing" => S::Choice(&["skip", "transcribe"]),
        "source.rerender" => S::Choice(&["manual", "auto"]),
        "source.settle" | "source.hold" => S::Span,
        "source.outputs" => S::List(1, &S::Choice(&Format::NAMES)),
        "captions.profile" | "source.captions.profile" => S::Choice(&Profile::NAMES),
        "captions.characters_per_line" | "source.captions.characters_per_line" => S::Whole(1),
        "captions.lines" | "source.captions.lines" => S::Whole(1),
        "captions.minimum_duration" | "source.captions.minimum_duration" => S::Span,
        "captions.maximum_duration" | "source.captions.maximum_duration" => S::Span,
        "captions.minimum_duration_per_word" | "source.captions.minimum_duration_per_word" => S::Span,
        "captions.minimum_gap" | "source.captions.minimum_gap" => S::Span,
        "captions.open_gap" | "source.captions.open_gap" => S::Span,
        "captions.reading_speed" | "source.captions.reading_speed" => S::NumberByLanguage,
        "review.audio" | "source.review.audio" => S::Flag,
        "review.checks" | "source.review.checks" => S::List(0, &S::Choice(&ReviewCheck::NAMES)),
        "review.speech_without_words" | "source.review.speech_without_words" => S::Span,
        "review.words_without_speech" | "source.review.words_without_speech" => S::Span,
        "review.repeated_phrase" | "source.review.repeated_phrase" => S::Whole(2),
        "review.repeated_words" | "source.review.repeated_words" => S::Whole(1),
        "review.fastest_words" | "source.review.fastest_words" => S::Number,
        "review.fastest_characters" | "source.review.fastest_characters" => S::Number,
        "review.slowest_words" | "source.review.slowest_words" => S::Number,
        "review.slowest_characters" | "source.review.slowest_characters" => S::Number,
        "review.unexpected_letters" | "source.review.unexpected_letters" => S::Whole(1),
        "review.low_confidence" | "source.review.low_confidence" => S::Number,
        "review.low_confidence_words" | "source.review.low_confidence_words" => S::Whole(1),
        "review.early_end" | "source.review.early_end" => S::Span,
        "review.early_end_without_audio" | "source.review.early_end_without_audio" => S::Span,
        "source.budget.day" | "source.budget.month" | "source.budget.total" => S::Span,
        _ => return None,
    })
}

impl Shape {
    /// Returns the form as a JSON Schema.
    pub fn schema(self) -> Value {
        let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
        match self {
            Self::Text => json!({ "type": "string", "minLength": 1 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::Whole(least) => json!({ "type": "integer", "minimum": least, "maximum": u32::MAX }),
            Self::Between(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Self::Number => json!({ "type": "number", "minimum": 0 }),
            Self::NumberByLanguage => {
                let number = Self::Number.schema();
                let names = json!({ "pattern": "^([A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*|default)$" });
                let table = json!({
                    "type": "object", "propertyNames": names, "additionalProperties": number, "minProperties": 1,
                });
                json!({ "anyOf": [number, table] })
            }
            Self::Span => text(r"^\s*([0-9]+\s*[a-zA-Zµ]+\s*)+$"),
            Self::Size => text(r"^\s*[0-9][0-9_.]*\s*([kKmMgGtTpPeE][iI]?)?[bB]?\s*$"),
            Self::Url => text("^[hH][tT][tT][pP][sS]?://[^/]"),
            Self::Secret => text("^(env|file):."),
            Self::Address => text(r"^(\[[0-9a-fA-F:.]+\]|[0-9.]+):[0-9]+$"),
            Self::Track => {
                json!({ "anyOf": [Self::Whole(1).schema(), { "type": "string", "pattern": "^[A-Za-z]{2,3}([-_].*)?$" }] })
            }
            Self::Headers => {
                let names = json!({ "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" });
                json!({ "type": "object", "propertyNames": names, "additionalProperties": Self::Secret.schema() })
            }
            Self::Keys => {
                let list = Self::List(0, &Self::Secret).schema();
                let one = json!({ "anyOf": [Self::Secret.schema(), list] });
                let names = json!({ "pattern": "^[A-Za-z0-9_.@-]{1,64}$" });
                let named = json!({ "type": "object", "propertyNames": names, "additionalProperties": one });
                json!({ "anyOf": [list, text("^folder:."), named] })
            }
            Self::Choice(words) => json!({ "type": "string", "enum": words }),
            Self::List(least, of) => json!({ "type": "array", "minItems": least, "items": of.schema() }),
        }
    }
}
