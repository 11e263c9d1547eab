//! Reads the place of a source among the others: `lane`, `order`, `priority`.

use crate::config::load::toml_reader::{Section, ValueError, refusal, text, wrong_type};
use crate::config::load::values::or;
use crate::domain::scheduling::{JobOrder, Lane, SchedulingPolicy};
use toml::de::DeValue;

/// The limit of priorities, positive and negative.
const HIGHEST: i16 = 1000;

pub(crate) fn scheduling_policy(section: &Section<'_>) -> SchedulingPolicy {
    SchedulingPolicy {
        lane: or(section.get("lane", lane), Lane::default()),
        order: or(section.get("order", order), JobOrder::default()),
        priority: or(section.get("priority", priority), 0),
    }
}

fn lane(value: &DeValue<'_>) -> Result<Lane, ValueError> {
    match text(value)?.as_str() {
        "live" => Ok(Lane::Live),
        "backlog" => Ok(Lane::Backlog),
        _ => Err(refusal(
            "must be \"live\" or \"backlog\"",
            "the default is \"live\"; \"backlog\" comes after all live sources",
        )),
    }
}

fn order(value: &DeValue<'_>) -> Result<JobOrder, ValueError> {
    match text(value)?.as_str() {
        "oldest" => Ok(JobOrder::Oldest),
        "newest" => Ok(JobOrder::Newest),
        "shortest" => Ok(JobOrder::Shortest),
        "longest" => Ok(JobOrder::Longest),
        _ => Err(refusal("must be one of: oldest, newest, shortest, longest", "the default is \"oldest\"")),
    }
}

/// Reads a priority: higher ones go first.
pub(crate) fn priority(value: &DeValue<'_>) -> Result<i16, ValueError> {
    let Some(digits) = value.as_integer() else {
        return Err(wrong_type("a whole number", value, "write it without quotes and without a decimal point"));
    };
    let number = i16::from_str_radix(&digits.as_str().replace('_', ""), digits.radix()).ok();
    number.filter(|number| (-HIGHEST..=HIGHEST).contains(number)).ok_or_else(|| {
        refusal(
            format!("must be a whole number from -{HIGHEST} to {HIGHEST}"),
            "the default is 0; higher numbers come first",
        )
    })
}
