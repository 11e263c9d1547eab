//! How a source stands among the others: `lane`, `order`, `priority`.

use super::values::or;
use super::written::{Refusal, Section, refusal, text, wrong_type};
use crate::domain::standing::{Lane, Order, Standing};
use toml::de::DeValue;

/// A priority as high, or as low, as one may be.
const HIGHEST: i16 = 1000;

pub(super) fn standing(section: &Section<'_>) -> Standing {
    Standing {
        lane: or(section.get("lane", lane), Lane::default()),
        order: or(section.get("order", order), Order::default()),
        priority: or(section.get("priority", priority), 0),
    }
}

fn lane(value: &DeValue<'_>) -> Result<Lane, Refusal> {
    match text(value)?.as_str() {
        "live" => Ok(Lane::Live),
        "backlog" => Ok(Lane::Backlog),
        _ => {
            Err(refusal("must be \"live\" or \"backlog\"", "the default is \"live\"; \"backlog\" lets others go first"))
        }
    }
}

fn order(value: &DeValue<'_>) -> Result<Order, Refusal> {
    match text(value)?.as_str() {
        "oldest" => Ok(Order::Oldest),
        "newest" => Ok(Order::Newest),
        "shortest" => Ok(Order::Shortest),
        "longest" => Ok(Order::Longest),
        _ => Err(refusal("must be one of: oldest, newest, shortest, longest", "the default is \"oldest\"")),
    }
}

/// Higher ones come first.
pub(super) fn priority(value: &DeValue<'_>) -> Result<i16, Refusal> {
    let Some(digits) = value.as_integer() else {
        return Err(wrong_type("a whole number", value, "write it without quotes and without a point"));
    };
    let number = i16::from_str_radix(&digits.as_str().replace('_', ""), digits.radix()).ok();
    number.filter(|number| (-HIGHEST..=HIGHEST).contains(number)).ok_or_else(|| {
        refusal(
            format!("must be a whole number from -{HIGHEST} to {HIGHEST}"),
            "the default is 0; higher ones come first",
        )
    })
}
