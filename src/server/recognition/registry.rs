//! The recognisers of a service, by the names under which requests select them.

use crate::server::recognition::lazy::LazyRecogniser;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the recogniser that is built in.
pub const BUILT_IN: &str = "pocketsphinx";

/// The names of models of the public service begin with this. Clients of that service send them, and mean no recogniser
/// of this one.
const PUBLIC_MODELS: &str = "solaria";

/// A recogniser, and what is known of it without opening it.
#[derive(Clone)]
pub struct NamedRecogniser {
    pub name: String,
    pub recogniser: Arc<LazyRecogniser>,
    /// Whether recordings that must not leave the site may be sent to it.
    pub is_local: bool,
}

/// All recognisers of a service.
pub struct Recognisers {
    default: NamedRecogniser,
    /// Those that requests can name, by their names; the default one is among them.
    all: BTreeMap<String, NamedRecogniser>,
}

/// Why a request gets no recogniser.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRecogniser {
    #[error(
        "model must be the name of a recogniser of this service, or absent; found `{name}`, and there are: {known}"
    )]
    Unknown {
        /// The start of the name.
        name: String,
        known: String,
    },
    #[error(
        "model must select a recogniser that is local: the recording must not leave this site (`local_only`), and the \
         recogniser `{name}` is not `local`{by_default}"
    )]
    NotLocal {
        name: String,
        /// Says so if the request names no model.
        by_default: &'static str,
    },
}

/// What a request says about its recogniser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecogniserWish<'r> {
    pub model: Option<&'r str>,
    /// Whether the recording must not leave the site.
    pub is_local_only: bool,
}

impl From<Arc<LazyRecogniser>> for Recognisers {
    /// The one recogniser of a service without configured ones.
    fn from(recogniser: Arc<LazyRecogniser>) -> Self {
        let only = NamedRecogniser { name: BUILT_IN.to_owned(), recogniser, is_local: true };
        Self { all: BTreeMap::from([(only.name.clone(), only.clone())]), default: only }
    }
}

impl Recognisers {
    /// Makes the recognisers of a service: `default` is for requests that name none.
    pub fn new(default: NamedRecogniser, others: impl IntoIterator<Item = NamedRecogniser>) -> Self {
        let all = others.into_iter().chain([default.clone()]).map(|one| (one.name.clone(), one)).collect();
        Self { default, all }
    }

    /// Returns the recogniser of requests that name none.
    pub fn default_one(&self) -> &NamedRecogniser {
        &self.default
    }

    /// Returns all recognisers, the default one first.
    pub fn iter(&self) -> impl Iterator<Item = &NamedRecogniser> {
        let others = self.all.values().filter(|one| one.name != self.default.name);
        std::iter::once(&self.default).chain(others)
    }

    /// Returns the recogniser of this name.
    pub fn named(&self, name: &str) -> Option<&NamedRecogniser> {
        self.all.get(name)
    }

    /// Returns whether requests have a choice.
    pub fn has_choice(&self) -> bool {
        self.all.keys().any(|name| name != BUILT_IN)
    }

    /// Returns the recogniser of a new request. A service without configured recognisers takes every `model`, as it did
    /// before there was a choice.
    ///
    /// # Errors
    /// See [`NoRecogniser`].
    pub fn choose(&self, wish: RecogniserWish<'_>) -> Result<&NamedRecogniser, NoRecogniser> {
        let chosen = match wish.model {
            Some(name) => match self.all.get(name) {
                Some(one) => one,
                None if !self.has_choice() || name.is_empty() || is_public_model(name) => &self.default,
                None => return Err(self.unknown(name)),
            },
            None => &self.default,
        };
        check_local(chosen, wish)
    }

    /// Returns the recogniser of a stored request: the one that it named when it was accepted ([`Recognisers::stored`]),
    /// also if the default one is another now.
    ///
    /// # Errors
    /// See [`NoRecogniser`].
    pub fn choose_stored(&self, wish: RecogniserWish<'_>) -> Result<&NamedRecogniser, NoRecogniser> {
        let name = wish.model.filter(|name| self.has_choice() && !is_public_model(name)).unwrap_or(BUILT_IN);
        let chosen = self.all.get(name).ok_or_else(|| self.unknown(name))?;
        check_local(chosen, wish)
    }

    /// Returns the `model` to store for a request that gets this recogniser; `None`: that of the request.
    pub fn stored(&self, chosen: &NamedRecogniser) -> Option<String> {
        (chosen.name != BUILT_IN).then(|| chosen.name.clone())
    }

    fn unknown(&self, name: &str) -> NoRecogniser {
        let known: Vec<&str> = self.all.keys().map(String::as_str).collect();
        NoRecogniser::Unknown { name: name.chars().take(100).collect(), known: known.join(", ") }
    }
}

fn is_public_model(name: &str) -> bool {
    name.starts_with(PUBLIC_MODELS)
}

fn check_local<'r>(chosen: &'r NamedRecogniser, wish: RecogniserWish<'_>) -> Result<&'r NamedRecogniser, NoRecogniser> {
    if !wish.is_local_only || chosen.is_local {
        return Ok(chosen);
    }
    let by_default = if wish.model == Some(chosen.name.as_str()) { "" } else { ", which is the default" };
    Err(NoRecogniser::NotLocal { name: chosen.name.clone(), by_default })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::recognition::recogniser::RecogniserError;

    fn named(name: &str, is_local: bool) -> NamedRecogniser {
        let recogniser = Arc::new(LazyRecogniser::new(|| Err(RecogniserError::Cancelled)));
        NamedRecogniser { name: name.to_owned(), recogniser, is_local }
    }

    fn wish(model: Option<&str>, is_local_only: bool) -> RecogniserWish<'_> {
        RecogniserWish { model, is_local_only }
    }

    #[test]
    fn a_request_gets_the_recogniser_that_it_names() {
        let all = Recognisers::new(named("house", true), [named(BUILT_IN, true), named("cloud", false)]);
        let chosen =
            |model| all.choose(wish(model, false)).map(|one| one.name.clone()).map_err(|error| error.to_string());
        assert_eq!(chosen(None).unwrap(), "house");
        assert_eq!(chosen(Some("cloud")).unwrap(), "cloud");
        assert_eq!(chosen(Some("pocketsphinx")).unwrap(), "pocketsphinx");
        assert_eq!(chosen(Some("solaria-1")).unwrap(), "house", "a model of the public service");
        let error = chosen(Some("huose")).unwrap_err();
        assert!(error.contains("found `huose`") && error.contains("cloud, house, pocketsphinx"), "{error}");
        let names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["house", "cloud", "pocketsphinx"]);
    }

    #[test]
    fn a_service_without_a_choice_takes_every_model() {
        let recogniser = Arc::new(LazyRecogniser::new(|| Err(RecogniserError::Cancelled)));
        let one = Recognisers::from(recogniser);
        for model in [None, Some("fast"), Some("solaria-1"), Some("pocketsphinx")] {
            assert_eq!(one.choose(wish(model, true)).unwrap().name, BUILT_IN);
            assert_eq!(one.choose_stored(wish(model, true)).unwrap().name, BUILT_IN);
        }
    }

    #[test]
    fn what_must_not_leave_the_site_goes_to_no_recogniser_elsewhere() {
        let all = Recognisers::new(named("cloud", false), [named(BUILT_IN, true), named("house", true)]);
        let refused = |model| all.choose(wish(model, true)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(refused(None).contains("the recogniser `cloud` is not `local`, which is the default"));
        assert!(refused(Some("cloud")).ends_with("the recogniser `cloud` is not `local`"));
        assert_eq!((refused(Some("house")), refused(Some(BUILT_IN))), (String::new(), String::new()));
        assert!(all.choose_stored(wish(Some("cloud"), true)).is_err());
    }

    #[test]
    fn a_stored_request_keeps_its_recogniser_when_the_default_changes() {
        let all = Recognisers::new(named("cloud", false), [named(BUILT_IN, true)]);
        let stored = |model| all.choose_stored(wish(model, false)).map(|one| one.name.clone());
        assert_eq!(stored(None).unwrap(), BUILT_IN, "it was accepted when that was the default");
        assert_eq!(stored(Some("solaria-1")).unwrap(), BUILT_IN);
        assert_eq!(stored(Some("cloud")).unwrap(), "cloud");
        assert!(stored(Some("removed")).is_err());
        assert_eq!(all.stored(all.choose(wish(Some("solaria-1"), false)).unwrap()).unwrap(), "cloud");
        assert_eq!(all.stored(all.named(BUILT_IN).unwrap()), None);
    }
}
