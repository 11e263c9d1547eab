//! What a request wants redacted, and what of it this service cannot find.

use super::entity::{EntityType, is_preset, kinds_of};

use crate::wire::params::{Params, RedactionMark};
use std::collections::BTreeSet;

/// What to redact, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedactionPlan {
    /// The kinds that are looked for.
    pub sought: BTreeSet<EntityType>,
    /// The requested kinds that are not looked for, since no rule finds them.
    pub not_sought: BTreeSet<EntityType>,
    /// What replaces the text.
    pub mark: RedactionMark,
}

impl RedactionPlan {
    /// Returns the plan of a request; `None` if it wants nothing redacted. Without `entity_types`, or with an empty list,
    /// every kind is requested.
    pub fn of(params: &Params) -> Option<Self> {
        if params.pii_redaction != Some(true) {
            return None;
        }
        let values = named_values(params);
        let all: BTreeSet<EntityType> = match values.is_empty() {
            true => EntityType::ALL.iter().copied().collect(),
            false => values.iter().flat_map(|value| kinds_of(value)).collect(),
        };
        let (sought, not_sought) = all.into_iter().partition(|one| one.is_found());
        let mark = params.pii_redaction_config.as_ref().and_then(|config| config.processed_text_type);
        Some(Self { sought, not_sought, mark: mark.unwrap_or_default() })
    }

    /// Returns why a create is refused: it names single kinds, and none of them can be found. The rest of the request
    /// alone would show what was to be hidden.
    pub fn refusal(params: &Params) -> Option<String> {
        let plan = Self::of(params)?;
        let has_preset = named_values(params).iter().any(|value| is_preset(value));
        (plan.sought.is_empty() && !has_preset).then(|| {
            format!(
                "pii_redaction_config.entity_types must name at least one entity type that this service finds \
                 (requested: {}); it finds none of these",
                join(&plan.not_sought)
            )
        })
    }

    /// Returns what a person must know of what is not looked for in speech of these languages, of which an empty one is
    /// not known; `None` if everything is looked for.
    pub fn shortfall<'l>(&self, languages: impl IntoIterator<Item = &'l str>) -> Option<String> {
        let mut lacks = Vec::new();
        if !self.not_sought.is_empty() {
            lacks.push(format!("this build of the service does not look for {}", join(&self.not_sought)));
        }
        let shown =
            |code: &'l str| if code.is_empty() { "an unknown language".to_owned() } else { format!("`{code}`") };
        let others: Vec<String> = languages.into_iter().filter(|code| *code != "en").map(shown).collect();
        if !others.is_empty() {
            let others = others.join(", ");
            lacks.push(format!(
                "in {others} it finds only what is written in digits or with signs: its words are English"
            ));
        }
        (!lacks.is_empty()).then(|| format!("{}; check the text yourself", lacks.join("; ")))
    }
}

fn named_values(params: &Params) -> &[String] {
    params.pii_redaction_config.as_ref().and_then(|config| config.entity_types.as_deref()).unwrap_or_default()
}

fn join(kinds: &BTreeSet<EntityType>) -> String {
    let mut names: Vec<&str> = kinds.iter().map(|one| one.name()).collect();
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(config: serde_json::Value) -> Params {
        Params::parse_lenient(&json!({ "pii_redaction": true, "pii_redaction_config": config }))
    }

    #[test]
    fn everything_is_requested_by_default_and_what_is_not_found_is_named() {
        assert_eq!(RedactionPlan::of(&Params::default()), None);
        for config in [json!({}), json!({ "entity_types": [] })] {
            let plan = RedactionPlan::of(&params(config)).unwrap();
            assert_eq!(plan.sought.len() + plan.not_sought.len(), EntityType::ALL.len());
            assert!(plan.shortfall(["en"]).unwrap().contains("ORGANIZATION, ORGANIZATION_MEDICAL_FACILITY, PHYSICAL"));
        }
        let one = params(json!({ "entity_types": ["NAME"], "processed_text_type": "MASK" }));
        let plan = RedactionPlan::of(&one).unwrap();
        assert_eq!(plan.sought, BTreeSet::from([EntityType::Name]));
        assert_eq!((plan.mark, plan.shortfall(["en"])), (RedactionMark::Mask, None));
        assert!(plan.shortfall(["", "de"]).unwrap().starts_with("in an unknown language, `de` it finds only"));
    }

    #[test]
    fn only_a_request_that_could_redact_nothing_is_refused() {
        let refusal = |values: &[&str]| RedactionPlan::refusal(&params(json!({ "entity_types": values })));
        assert!(refusal(&["EVENT", "DRUG"]).unwrap().contains("(requested: DRUG, EVENT)"));
        assert_eq!(refusal(&["EVENT", "NAME"]), None);
        assert_eq!(refusal(&["CCI"]), None);
        assert_eq!(refusal(&[]), None);
        let plan = RedactionPlan::of(&params(json!({ "entity_types": ["PCI"] }))).unwrap();
        assert!(plan.sought.contains(&EntityType::CreditCard) && plan.not_sought.is_empty());
    }
}
