//! Spans of time and their sets.

/// A span of a recording, in seconds from its start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeSpan {
    pub start: f64,
    pub end: f64,
}

impl TimeSpan {
    pub fn new(start: f64, end: f64) -> Self {
        Self { start, end }
    }

    pub(super) fn seconds(self) -> f64 {
        self.end - self.start
    }

    /// Returns the part of it in another span; empty spans count as none.
    pub(super) fn overlap(self, other: Self) -> Option<Self> {
        let both = Self { start: self.start.max(other.start), end: self.end.min(other.end) };
        (both.start < both.end).then_some(both)
    }

    /// Returns the span with as much before it as behind it.
    pub(super) fn padded(self, by: f64) -> Self {
        Self { start: self.start - by, end: self.end + by }
    }

    /// Returns the smallest span with both.
    pub(super) fn joined(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Returns the union of spans as disjoint ones in order, within the time from 0 to `limit`. Spans that are empty or no
/// numbers count as none.
pub(super) fn union(spans: impl IntoIterator<Item = TimeSpan>, limit: f64) -> Vec<TimeSpan> {
    let within = |span: TimeSpan| {
        let span = TimeSpan { start: span.start.clamp(0.0, limit), end: span.end.clamp(0.0, limit) };
        (span.start < span.end).then_some(span)
    };
    let mut ordered: Vec<TimeSpan> = spans.into_iter().filter_map(within).collect();
    ordered.sort_by(|a, b| a.start.total_cmp(&b.start));
    let mut joined: Vec<TimeSpan> = Vec::new();
    for span in ordered {
        match joined.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

/// Returns what lies between disjoint spans in order, from 0 to `limit`.
pub(super) fn gaps(spans: &[TimeSpan], limit: f64) -> Vec<TimeSpan> {
    let starts = std::iter::once(0.0).chain(spans.iter().map(|span| span.end));
    let ends = spans.iter().map(|span| span.start).chain([limit]);
    starts.zip(ends).filter(|(start, end)| start < end).map(|(start, end)| TimeSpan { start, end }).collect()
}

/// Returns the parts of disjoint spans in order that lie in `window`.
pub(super) fn within(spans: &[TimeSpan], window: TimeSpan) -> Vec<TimeSpan> {
    let first = spans.partition_point(|span| span.end <= window.start);
    let spans = spans[first..].iter().take_while(|span| span.start < window.end);
    spans.filter_map(|span| span.overlap(window)).collect()
}

/// Returns the total length of spans, in seconds.
pub(super) fn total(spans: &[TimeSpan]) -> f64 {
    spans.iter().map(|span| span.seconds()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(all: &[(f64, f64)]) -> Vec<TimeSpan> {
        all.iter().map(|(start, end)| TimeSpan::new(*start, *end)).collect()
    }

    #[test]
    fn a_union_is_disjoint_and_in_order() {
        let all =
            [(5.0, 6.0), (f64::NAN, 3.0), (1.0, 2.0), (-4.0, 0.5), (1.5, 3.0), (3.0, 4.0), (9.0, 99.0), (7.0, 7.0)];
        assert_eq!(union(spans(&all), 10.0), spans(&[(0.0, 0.5), (1.0, 4.0), (5.0, 6.0), (9.0, 10.0)]));
    }

    #[test]
    fn gaps_are_what_a_union_leaves() {
        let all = spans(&[(0.0, 0.5), (1.0, 4.0)]);
        assert_eq!(gaps(&all, 10.0), spans(&[(0.5, 1.0), (4.0, 10.0)]));
        assert_eq!(gaps(&[], 10.0), spans(&[(0.0, 10.0)]));
        assert_eq!(within(&all, TimeSpan::new(0.25, 2.0)), spans(&[(0.25, 0.5), (1.0, 2.0)]));
        assert_eq!(total(&all), 3.5);
    }
}
