//! Bar charts as SVG, drawn by the server. A template draws what is computed here; each chart has a sentence and a table
//! that say the same. Pure.

/// The size of a chart in the units of its view box.
pub const WIDTH: f64 = 480.0;
pub const HEIGHT: f64 = 120.0;

/// Where the bars stand: below the heading of the axis, and above the labels.
const TOP: f64 = 14.0;
const BOTTOM: f64 = 18.0;
const LEFT: f64 = 2.0;

/// The width of a bar, if there are few.
const WIDEST: f64 = 48.0;

/// Half the width of the labels that stand at the ends.
const LABEL: f64 = 24.0;

/// The width of a letter of the labels where they are largest: in a narrow window, which makes the chart smaller.
const LETTER: f64 = 9.0;

/// A value with its names.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// Below the bar; empty for most.
    pub label: String,
    /// What the table and the tool tip say of the bar.
    pub name: String,
    pub shown: String,
    pub value: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
    pub label: String,
    pub name: String,
    pub shown: String,
    pub middle: f64,
}

/// A chart, ready to be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    pub title: &'static str,
    /// The figures in one sentence.
    pub summary: String,
    /// What the top of the chart stands for.
    pub top: String,
    pub bars: Vec<Bar>,
    /// The height of the line that values should not reach, and what it is.
    pub limit: Option<(f64, String)>,
    pub columns: (&'static str, &'static str),
}

impl Chart {
    pub const LABELS_AT: f64 = HEIGHT - 4.0;

    /// Lays out a chart. `limit` is a value that is drawn as a line, with its name; `top` formats the largest value.
    pub fn new(
        (title, summary): (&'static str, String),
        columns: (&'static str, &'static str),
        values: Vec<Value>,
        limit: Option<(f64, String)>,
        top: impl Fn(f64) -> String,
    ) -> Self {
        let values_most = values.iter().map(|value| value.value).fold(0.0, f64::max);
        let most = limit.as_ref().map_or(values_most, |(limit, _)| values_most.max(*limit));
        let room = HEIGHT - TOP - BOTTOM;
        let of = |value: f64| if most > 0.0 { round(value / most * room) } else { 0.0 };
        let step = (WIDTH - 2.0 * LEFT) / (values.len().max(1) as f64);
        let labels = values.iter().filter(|value| !value.label.is_empty()).count();
        let letters = (WIDTH / labels.max(1) as f64 / LETTER) as usize;
        let bars = values.into_iter().enumerate().map(|(at, value)| {
            // Something is never shown as nothing.
            let height = if value.value > 0.0 { of(value.value).max(1.0) } else { 0.0 };
            let x = round(LEFT + at as f64 * step + step * 0.1);
            Bar {
                x,
                y: round(TOP + room - height),
                width: round(step * 0.8).min(WIDEST),
                height,
                middle: round(x + (step * 0.4).min(WIDEST / 2.0)).clamp(LABEL, WIDTH - LABEL),
                label: shortened(value.label, letters),
                name: value.name,
                shown: value.shown,
            }
        });
        let bars = bars.collect();
        let limit = limit.map(|(limit, name)| (round(TOP + room - of(limit)), name));
        Self { title, summary, top: if most > 0.0 { top(most) } else { String::new() }, bars, limit, columns }
    }

    /// Returns the height of the line on which the bars stand.
    pub fn ground(&self) -> f64 {
        HEIGHT - BOTTOM
    }
}

/// Shortens a label to so many letters; the table has the whole name.
fn shortened(label: String, letters: usize) -> String {
    match label.char_indices().nth(letters) {
        None => label,
        Some(_) => label.chars().take(letters.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(value: f64) -> Value {
        Value { label: String::new(), name: String::new(), shown: String::new(), value }
    }

    #[test]
    fn labels_fit_below_their_bars() {
        let named = |name: &str| Value { label: name.to_owned(), ..value(1.0) };
        let labels = |values: Vec<Value>| {
            let chart = Chart::new(("", String::new()), ("", ""), values, None, |_| String::new());
            chart.bars.into_iter().map(|bar| bar.label).collect::<Vec<_>>()
        };
        assert_eq!(labels(vec![named("no transcript"), named("refused")]), ["no transcript", "refused"]);
        let many = ["no transcript", "refused"].repeat(4).into_iter().map(named).collect();
        assert_eq!(labels(many)[..2], ["no tr…", "refus…"]);
    }

    #[test]
    fn the_largest_bar_fills_the_chart_and_something_is_never_nothing() {
        let values = vec![value(0.0), value(0.001), value(50.0), value(100.0)];
        let chart = Chart::new(("", String::new()), ("", ""), values, None, |top| format!("{top}"));
        assert_eq!(chart.bars.iter().map(|bar| bar.height).collect::<Vec<_>>(), [0.0, 1.0, 44.0, 88.0]);
        assert_eq!(chart.top, "100");
        let inside =
            |bar: &Bar| bar.x >= 0.0 && bar.x + bar.width <= WIDTH && bar.y >= TOP && bar.y + bar.height <= HEIGHT;
        assert!(chart.bars.iter().all(inside));
        let limit = Some((200.0, "budget".to_owned()));
        let chart = Chart::new(("", String::new()), ("", ""), vec![value(100.0)], limit, |_| String::new());
        assert_eq!((chart.bars[0].height, chart.limit.unwrap().0), (44.0, TOP));
        let empty = Chart::new(("", String::new()), ("", ""), vec![value(0.0)], None, |_| "x".to_owned());
        assert_eq!((empty.top.as_str(), empty.bars[0].height), ("", 0.0));
    }
}
