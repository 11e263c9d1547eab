//! Makes enrichments of a transcript with a language model behind a chat interface (`POST …/chat/completions`).
//! `enrichments/` has for each of them what is asked and how its answers are read, both pure; `lines` numbers what was
//! said and cuts it into parts, `prompt` measures what fits into a request, `completion` and `found_json` read answers,
//! `request_form` is how requests are written, all pure too; `client` sends, `ask` repeats and joins, `enrich` decides
//! what is asked for a transcription. Start reading at `enrich.rs`.

mod ask;
pub(crate) mod client;
mod completion;
pub(crate) mod enrich;
mod enrichments;
mod found_json;
pub(crate) mod lines;
mod model_error;
pub(crate) mod prompt;
pub(crate) mod request_form;

pub(crate) use enrichments::sentiments::sentiment_item;
