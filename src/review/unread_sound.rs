//! `unread_sound`: bytes of the file may be sound, and no decoder of this machine reads them. A service may have stopped at the
//! same place.

use super::span::TimeSpan;
use super::{Finding, Material};
use crate::domain::count::count;

pub(super) fn find(material: &Material<'_>) -> Vec<Finding> {
    let unread = material.unread;
    if unread.bytes == 0 {
        return Vec::new();
    }
    let mut detail = format!("{} of the file may be sound and cannot be decoded", count(unread.bytes, "byte"));
    if !unread.damage.is_empty() {
        detail = format!("{detail}: {}", unread.damage);
    }
    // Their time is not known: what could be decoded ends here.
    let end = material.end.unwrap_or(0.0);
    vec![Finding { span: TimeSpan::new(end, end), detail }]
}
