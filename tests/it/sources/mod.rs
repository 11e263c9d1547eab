//! Where recordings come from: folders, buckets, manifests and addresses, and what happens to them there.

mod add_url;
mod buckets;
mod folder_claims;
mod hostile_folders;
mod lost_folders;
mod manifest_paths;
mod manifests;
mod mounts;
mod moved_recordings;
mod remote_recordings;
mod renamed_sources;
mod replaced_recordings;
mod sidecars;
mod watch;
mod writing_programs;
