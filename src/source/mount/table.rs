//! Reads the system's mount table: which file system a folder is on, and whether that has changed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

const TABLE: &str = "/proc/self/mountinfo";

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mounted {
    at: PathBuf,
    kind: String,
    source: String,
}

/// Returns a stable name of the folder's file system: its UUID, or the server and its export. The device number is not
/// used: it changes with every mount. `None` if the table cannot be read.
pub fn identity(folder: &Path) -> Option<String> {
    let table = fs::read(TABLE).ok()?;
    let folder = folder.canonicalize().ok()?;
    identity_in(&table, &folder, &uuid_of)
}

/// Returns the lines of the table for mounts above, at or below a folder, to detect changes. `folder` must have its
/// links resolved; it is not accessed, since it may hang.
pub fn around(folder: &Path) -> Vec<u8> {
    let table = fs::read(TABLE).unwrap_or_default();
    let concerns = |line: &&[u8]| {
        let mounted = parse(line);
        mounted.is_some_and(|mounted| folder.starts_with(&mounted.at) || mounted.at.starts_with(folder))
    };
    table.split(|byte| *byte == b'\n').filter(concerns).flat_map(|line| [line, b"\n"].concat()).collect()
}

/// Returns the mount points below a folder, relative to it, and the kinds of their file systems. `folder` must have its
/// links resolved; it is not accessed.
pub fn below(folder: &Path) -> Vec<(PathBuf, String)> {
    below_in(&fs::read(TABLE).unwrap_or_default(), folder)
}

fn below_in(table: &[u8], folder: &Path) -> Vec<(PathBuf, String)> {
    let mounts = table.split(|byte| *byte == b'\n').filter_map(parse);
    let inside = mounts.filter_map(|mounted| {
        let at = mounted.at.strip_prefix(folder).ok().filter(|at| !at.as_os_str().is_empty())?;
        Some((at.to_owned(), mounted.kind))
    });
    inside.collect()
}

/// Waits for changes of the table. The kernel reports them; nothing is polled.
pub struct Changes(AsyncFd<File>);

impl Changes {
    /// Opens the table for changes from now on.
    ///
    /// # Errors
    /// The error of the system; then changes are not reported.
    #[expect(deprecated, reason = "its successor is unsafe, for descriptors that are not owned; a file owns its own")]
    pub fn open() -> io::Result<Self> {
        Ok(Self(AsyncFd::with_interest(File::open(TABLE)?, Interest::PRIORITY)?))
    }

    /// Returns when something was mounted or unmounted.
    pub async fn next(&self) {
        match self.0.ready(Interest::PRIORITY).await {
            Ok(mut ready) => ready.clear_ready(),
            Err(_) => std::future::pending().await,
        }
    }
}

/// Whether two names from [`identity`] mean the same file system. A process without access to the devices sees no UUID:
/// then the mount points are compared.
pub fn is_same_file_system(one: &str, other: &str) -> bool {
    let has_uuid = |name: &str| name.starts_with("uuid ");
    let place = |name: &str| name.rsplit_once(" at ").map(|(_, place)| place.to_owned());
    one == other || (has_uuid(one) != has_uuid(other) && place(one).is_some() && place(one) == place(other))
}

fn identity_in(table: &[u8], folder: &Path, uuid_of: &dyn Fn(&Path) -> Option<String>) -> Option<String> {
    let lines = table.split(|byte| *byte == b'\n').filter_map(parse);
    let above = lines.filter(|mounted| folder.starts_with(&mounted.at));
    // Of mounts at the same place, the last one is on top.
    let mounted = above.max_by_key(|mounted| mounted.at.as_os_str().len())?;
    if !mounted.source.starts_with("/dev/") {
        return Some(format!("{} {}", mounted.kind, mounted.source));
    }
    let uuid = uuid_of(Path::new(&mounted.source));
    // Without a UUID the device's name is not used: it may differ after a restart.
    let named = uuid.map_or(mounted.kind, |uuid| format!("uuid {uuid}"));
    Some(format!("{named} at {}", mounted.at.display()))
}

/// `36 35 98:0 /root /mount/point options - type source options`
fn parse(line: &[u8]) -> Option<Mounted> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let dash = fields.iter().position(|field| *field == b"-")?;
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    Some(Mounted {
        at: PathBuf::from(OsStr::from_bytes(&unescape(fields.get(4)?))),
        kind: text(fields.get(dash + 1)?),
        source: text(fields.get(dash + 2)?),
    })
}

/// Decodes octal escapes: the table writes a blank as `\040`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    bytes
}

fn uuid_of(device: &Path) -> Option<String> {
    let device = device.canonicalize().ok()?;
    let mut links = fs::read_dir("/dev/disk/by-uuid").ok()?.filter_map(Result::ok);
    let link = links.find(|link| link.path().canonicalize().is_ok_and(|target| target == device))?;
    Some(link.file_name().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n\
        30 22 0:44 / /mnt/my\\040share rw,relatime - nfs4 nas:/export/media rw,vers=4.2\n\
        31 22 7:0 / /mnt/disc ro - iso9660 /dev/sr0 ro\n\
        32 22 8:1 / /mnt/disc/inner ro - ext4 /dev/sdb1 ro\n\
        33 22 0:50 / /tmp rw - tmpfs scratch rw\n";

    fn named(folder: &str) -> String {
        let uuids = |device: &Path| (device == Path::new("/dev/vda1")).then(|| "abcd-1234".to_owned());
        identity_in(TABLE, Path::new(folder), &uuids).unwrap()
    }

    #[test]
    fn the_nearest_mount_above_names_the_file_system() {
        assert_eq!(named("/srv/media"), "uuid abcd-1234 at /");
        assert_eq!(named("/mnt/my share/a"), "nfs4 nas:/export/media");
        assert_eq!(named("/mnt/disc/a"), "iso9660 at /mnt/disc");
        assert_eq!(named("/mnt/disc/inner"), "ext4 at /mnt/disc/inner");
        assert_eq!(named("/mnt/disc2"), "uuid abcd-1234 at /");
        assert_eq!(named("/tmp/x"), "tmpfs scratch");
    }

    #[test]
    fn what_is_mounted_below_is_named() {
        let of = |folder: &str| below_in(TABLE, Path::new(folder));
        let named = |at: &str, kind: &str| (PathBuf::from(at), kind.to_owned());
        assert_eq!(of("/mnt/disc"), [named("inner", "ext4")]);
        assert_eq!(of("/mnt"), [named("my share", "nfs4"), named("disc", "iso9660"), named("disc/inner", "ext4")]);
        assert_eq!(of("/srv"), []);
    }

    #[test]
    fn where_no_uuid_is_seen_the_place_has_to_do() {
        assert!(
            is_same_file_system("uuid a at /mnt", "uuid a at /mnt")
                && is_same_file_system("uuid a at /mnt", "ext4 at /mnt")
        );
        assert!(
            !is_same_file_system("uuid a at /mnt", "uuid b at /mnt")
                && !is_same_file_system("uuid a at /mnt", "ext4 at /")
        );
        assert!(
            !is_same_file_system("nfs4 nas:/a", "nfs4 nas:/b") && !is_same_file_system("nfs4 nas:/a", "uuid a at /")
        );
    }

    #[test]
    fn this_machine_has_one() {
        assert!(identity(Path::new(".")).is_some());
        assert!(!around(Path::new("/")).is_empty());
    }
}
