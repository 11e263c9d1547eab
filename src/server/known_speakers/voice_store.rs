//! The folder of known voices: a file for each, which only the service's user can read.
//!
//! Each command and each transcription reads the folder again, so that a deleted voice is in no later result. The name of a
//! file is the hash of the person's name: a name may have characters that file names must not have.

pub use super::stored_voice::StoredVoice;
use crate::domain::speaker_names::SpeakerName;
use crate::durable_file::{self, Durability};
use crate::server::storage::files;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A larger file is no voice: one has some 4 kB.
const LARGEST: u64 = 64 << 10;

/// How file names of voices end.
const EXTENSION: &str = "voice";

/// A folder of known voices.
#[derive(Debug, Clone)]
pub struct VoiceStore {
    folder: PathBuf,
}

/// What the folder has.
#[derive(Debug, Default)]
pub struct KnownVoices {
    /// Sorted by name.
    pub voices: Vec<StoredVoice>,
    pub broken: Vec<BrokenVoice>,
}

/// A file that is no voice. The others count all the same.
#[derive(Debug, PartialEq, Eq)]
pub struct BrokenVoice {
    pub path: PathBuf,
    pub reason: String,
}

impl VoiceStore {
    /// The folder need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Reads all voices. Blocks.
    ///
    /// # Errors
    /// The folder cannot be read. One that does not exist has no voices.
    pub fn read(&self) -> io::Result<KnownVoices> {
        let mut found = KnownVoices::default();
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            match self.read_file(&path) {
                Ok(Some(voice)) => found.voices.push(voice),
                // Deleted meanwhile.
                Ok(None) => {}
                Err(reason) => found.broken.push(BrokenVoice { path, reason }),
            }
        }
        found.voices.sort_by(|one, other| one.name.cmp(&other.name));
        found.broken.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    fn read_file(&self, path: &Path) -> Result<Option<StoredVoice>, String> {
        let bytes = match read_bounded(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|error| error.to_string())?,
        };
        let voice = StoredVoice::from_json(&bytes)?;
        match self.path_of(&voice.name) == path {
            true => Ok(Some(voice)),
            false => Err("its name is not that of the voice in it".to_owned()),
        }
    }

    /// Stores a voice durably, in place of the one with the same name. Returns whether there was one. Blocks.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, voice: &StoredVoice) -> io::Result<bool> {
        files::make_folder(&self.folder)?;
        let path = self.path_of(&voice.name);
        let is_there = path.try_exists()?;
        durable_file::replace(&path, &voice.to_json()?, Durability::Synced)?;
        Ok(is_there)
    }

    /// Deletes a voice, also one whose file is broken. Returns whether there was one. Blocks.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn delete(&self, name: &SpeakerName) -> io::Result<bool> {
        match fs::remove_file(self.path_of(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            removed => removed?,
        }
        durable_file::sync(&self.folder)?;
        Ok(true)
    }

    fn path_of(&self, name: &SpeakerName) -> PathBuf {
        let hash = blake3::hash(name.as_str().as_bytes()).to_hex();
        self.folder.join(format!("{}.{EXTENSION}", &hash[..32]))
    }
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it has more than {LARGEST} bytes, which no voice has")));
    }
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::names::{Hash, Timestamp};
    use crate::voice::voice_model::tests::voice;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    fn stored(name: &str, kind: f32) -> StoredVoice {
        let enrolled = Timestamp(1_700_000_000_000);
        let recordings = vec![Hash::of(name.as_bytes())];
        StoredVoice { name: SpeakerName::parse(name).unwrap(), enrolled, recordings, model: voice(1, 400, kind) }
    }

    fn names(store: &VoiceStore) -> Vec<String> {
        store.read().unwrap().voices.iter().map(|voice| voice.name.to_string()).collect()
    }

    #[test]
    fn voices_are_kept_until_they_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = VoiceStore::new(folder.path().join("voices"));
        assert!(names(&store).is_empty());
        let hostile = stored("../../x/\u{1f600}", 1.0);
        assert!(!store.save(&stored("Ann", 0.0)).unwrap() && !store.save(&hostile).unwrap());
        assert_eq!(store.read().unwrap().voices, [hostile.clone(), stored("Ann", 0.0)]);
        assert!(store.save(&stored("Ann", 2.0)).unwrap());
        assert_eq!(store.read().unwrap().voices[1], stored("Ann", 2.0));
        let in_folder: Vec<_> = fs::read_dir(folder.path().join("voices")).unwrap().map(Result::unwrap).collect();
        assert_eq!(in_folder.len(), 2);
        for entry in &in_folder {
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::metadata(folder.path().join("voices")).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(store.delete(&hostile.name).unwrap() && !store.delete(&hostile.name).unwrap());
        assert_eq!(names(&store), ["Ann"]);
        assert_eq!(fs::read_dir(folder.path().join("voices")).unwrap().count(), 1);
    }

    #[test]
    fn a_broken_file_costs_one_voice_and_can_be_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let store = VoiceStore::new(folder.path().to_owned());
        for name in ["Ann", "Bob", "Eve"] {
            store.save(&stored(name, 0.0)).unwrap();
        }
        let bob = SpeakerName::parse("Bob").unwrap();
        fs::write(store.path_of(&bob), "{\"version\": 1, \"name\"").unwrap();
        let eve = store.path_of(&SpeakerName::parse("Eve").unwrap());
        fs::write(&eve, fs::read_to_string(&eve).unwrap().replace("\"version\":1", "\"version\":2")).unwrap();
        fs::copy(store.path_of(&SpeakerName::parse("Ann").unwrap()), folder.path().join("copy.voice")).unwrap();
        fs::write(folder.path().join("large.voice"), vec![b' '; 70_000]).unwrap();
        fs::write(folder.path().join("notes.txt"), "of no concern").unwrap();
        let read = store.read().unwrap();
        let reasons: Vec<&str> = read.broken.iter().map(|one| one.reason.as_str()).collect();
        assert_eq!((names(&store), reasons.len()), (vec!["Ann".to_owned()], 4), "{reasons:?}");
        assert!(reasons.iter().any(|reason| reason.contains("version 2")), "{reasons:?}");
        assert!(read.broken.iter().any(|one| one.path == store.path_of(&bob)));
        assert!(store.delete(&bob).unwrap());
        assert_eq!(store.read().unwrap().broken.len(), 3);
    }

    proptest! {
        #[test]
        fn whatever_a_file_has_is_a_voice_or_an_error(bytes in any::<Vec<u8>>(), text in "[\\[\\]{}:,\"a-z0-9.e-]{0,60}") {
            prop_assert!(StoredVoice::from_json(&bytes).is_err());
            prop_assert!(StoredVoice::from_json(text.as_bytes()).is_err());
        }
    }
}
