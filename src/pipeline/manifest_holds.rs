//! The sources whose manifests have a text that was not read yet: nothing new of them is uploaded or submitted.

use crate::clock::Clock;
use crate::domain::names::SourceName;
use crate::source::mount::source_mount::Mount;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// An engine looks again after this time where only the end of a search ends a hold; normally it is told.
const RECHECK: Duration = Duration::from_secs(5);

/// Returns the sources that are held now, with the time until it is worth looking again.
pub fn held(mounts: &BTreeMap<SourceName, Arc<Mount>>, clock: &dyn Clock) -> BTreeMap<SourceName, Duration> {
    let now = clock.now();
    let held = |(name, mount): (&SourceName, &Arc<Mount>)| {
        let end = mount.manifest_hold().end_after(now)?;
        Some((name.clone(), end.map_or(RECHECK, |end| end.duration_since(now))))
    };
    mounts.iter().filter_map(held).collect()
}
