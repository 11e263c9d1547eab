//! The command line of `scribed search`.

use clap::Args;

#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Words that must all occur in a passage; '"a phrase"' with its quotation marks, -word excludes, begin* finds beginnings
    #[arg(value_name = "QUERY", required_unless_present = "rebuild")]
    pub query: Vec<String>,
    /// Only recordings of this source
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
    /// Only recordings of this day or later
    #[arg(long, visible_alias = "after", value_name = "DATE")]
    pub since: Option<String>,
    /// Only recordings before this day
    #[arg(long, value_name = "DATE")]
    pub before: Option<String>,
    /// Only what this speaker says, by name or as "Speaker 1"
    #[arg(long, value_name = "NAME")]
    pub speaker: Option<String>,
    /// Only what is said in this language, as `en`
    #[arg(long, value_name = "CODE")]
    pub language: Option<String>,
    /// The newest recordings first, not the best hits
    #[arg(long)]
    pub newest: bool,
    /// At most this many hits, up to 1000
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// Leave out this many hits, for the next page
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub offset: u32,
    /// Build the index again from the kept results first, and show how far it is
    #[arg(long)]
    pub rebuild: bool,
}
