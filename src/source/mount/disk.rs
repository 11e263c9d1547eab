//! Which file properties can be relied on, by the kind of file system.

use crate::clock::Moment;
use crate::domain::job::Stamp;
use crate::domain::names::Timestamp;
use rustix::fs::Stat;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The default of `settle` on local disks.
pub const SETTLE: Duration = Duration::from_secs(10);

/// The default of `settle` on network mounts, where sizes and times are updated late and copies stall longer.
pub const NETWORK_SETTLE: Duration = Duration::from_secs(60);

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// ext2, ext3, ext4, xfs and btrfs: programs cannot set the ctime, and the block count is exact.
    Honest,
    /// Another local file system.
    Local,
    /// A local file system whose inode numbers differ from mount to mount: FAT, exFAT, NTFS.
    Numberless,
    /// NFS: the ctime is the server's, inode numbers are not relied on, and writes of other machines bring no event.
    Nfs,
    /// SMB, FUSE, 9p and other network file systems: only size and mtime can be relied on, and there are no events.
    Remote,
}

impl Disk {
    /// Returns the kind of file system that a folder is on.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn detect(folder: &Path) -> io::Result<Self> {
        Ok(Self::of_magic(rustix::fs::statfs(folder)?.f_type))
    }

    /// Returns the kind for a file system's name in the mount table, without access to a file system that may hang.
    fn named(kind: &str) -> Self {
        match kind {
            "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" => Self::Honest,
            "msdos" | "vfat" | "exfat" | "ntfs" | "ntfs3" => Self::Numberless,
            "nfs" | "nfs4" => Self::Nfs,
            "cifs" | "smb3" | "smbfs" | "9p" | "ceph" | "afs" | "coda" | "lustre" | "gfs2" | "ocfs2" | "virtiofs"
            | "vboxsf" | "vmhgfs" | "prl_fs" => Self::Remote,
            kind if kind.starts_with("fuse") => Self::Remote,
            _ => Self::Local,
        }
    }

    fn of_magic(magic: i64) -> Self {
        match magic {
            0xEF53 | 0x5846_5342 | 0x9123_683E => Self::Honest,
            // FAT, exFAT, NTFS (both drivers).
            0x4D44 | 0x2011_BAB0 | 0x5346_544E | 0x7366_746E => Self::Numberless,
            0x6969 => Self::Nfs,
            // SMB, CIFS, SMB2, FUSE, 9p, Ceph, AFS, Coda, Lustre, GFS2, OCFS2, and the folders that
            // VirtualBox, VMware and Parallels share.
            0x517B | 0xFF53_4D42 | 0xFE53_4D42 | 0x6573_5546 | 0x0102_1997 | 0x00C3_6400 | 0x5346_414F
            | 0x7375_7245 | 0x0BD0_0BD0 | 0x0116_1970 | 0x7461_636F | 0x786F_4256 | 0xBACB_ACBC | 0x7C7C_6673 => {
                Self::Remote
            }
            _ => Self::Local,
        }
    }

    /// Whether other machines may write to it, so that not every change brings an event.
    pub fn is_network(self) -> bool {
        matches!(self, Self::Nfs | Self::Remote)
    }

    /// Returns the default of `settle`.
    pub fn settle(self) -> Duration {
        if self.is_network() { NETWORK_SETTLE } else { SETTLE }
    }

    /// Returns a file's stamp. Properties that cannot be relied on are 0, so that stamps can be compared as a whole.
    pub fn stamp(self, meta: &Metadata) -> Stamp {
        self.without_unreliable_parts(Stamp {
            size: meta.len(),
            mtime_ns: nanos(meta.mtime(), meta.mtime_nsec()),
            ctime_ns: nanos(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        })
    }

    /// Like [`Disk::stamp`], for a file that was looked up by its name in an open folder.
    pub fn stamp_of(self, stat: &Stat) -> Stamp {
        let part = |part| i64::try_from(part).unwrap_or(0); // below a thousand million
        self.without_unreliable_parts(Stamp {
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime_ns: nanos(stat.st_mtime, part(stat.st_mtime_nsec)),
            ctime_ns: nanos(stat.st_ctime, part(stat.st_ctime_nsec)),
            inode: stat.st_ino,
        })
    }

    fn without_unreliable_parts(self, stamp: Stamp) -> Stamp {
        Stamp {
            ctime_ns: if self == Self::Remote { 0 } else { stamp.ctime_ns },
            inode: if matches!(self, Self::Honest | Self::Local) { stamp.inode } else { 0 },
            ..stamp
        }
    }

    /// Returns when a file will have been unchanged for `settle`, by its ctime and in scribed's own time; `None` if the
    /// ctime cannot be relied on or is in the future.
    pub fn quiet_at(self, stamp: &Stamp, at: Moment, settle: Duration) -> Option<Timestamp> {
        let changed = at.of_past(Timestamp(stamp.ctime_ns.div_euclid(1_000_000))).filter(|_| self == Self::Honest)?;
        // One millisecond more, because the ctime was rounded down to milliseconds.
        Some(changed.saturating_add(settle).saturating_add(Duration::from_millis(1)))
    }

    /// Whether more than half of a file consists of holes: it is preallocated by a copy or download in progress, or
    /// sparse. Known only if the block count is exact.
    pub fn mostly_holes(self, meta: &Metadata) -> bool {
        /// Fewer bytes are ignored: a small file may be stored in its inode.
        const MANY: u64 = 1 << 20;
        let holes = meta.len().saturating_sub(meta.blocks().saturating_mul(512));
        self == Self::Honest && holes >= MANY && holes > meta.len() / 2
    }
}

/// The kinds of the file systems at and below a source's folder: a share that is mounted inside a local tree is treated
/// as a share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disks {
    root: Disk,
    /// Mount points relative to the folder, sorted: deeper ones come later.
    below: Vec<(PathBuf, Disk)>,
}

impl Disks {
    /// `below`: the mounts below the folder, from the mount table ([`crate::source::mount::table::below`]).
    pub fn new(root: Disk, below: &[(PathBuf, String)]) -> Self {
        let mut below: Vec<_> = below.iter().map(|(at, kind)| (at.clone(), Disk::named(kind))).collect();
        below.sort_by(|(one, _), (other, _)| one.cmp(other)); // one on top of another stays behind it
        Self { root, below }
    }

    /// The file system of the folder itself.
    pub fn root(&self) -> Disk {
        self.root
    }

    /// Returns the kind of file system for a path relative to the folder.
    pub fn disk_of(&self, path: &Path) -> Disk {
        let nearest = self.below.iter().rev().find(|(at, _)| path.starts_with(at));
        nearest.map_or(self.root, |(_, disk)| *disk)
    }

    /// Returns the network mounts inside a local folder: they bring no events.
    pub fn shares(&self) -> Vec<PathBuf> {
        let network_mounts = self.below.iter().filter(|(_, disk)| disk.is_network() && !self.root.is_network());
        network_mounts.map(|(at, _)| at.clone()).collect()
    }
}

impl From<Disk> for Disks {
    fn from(root: Disk) -> Self {
        Self { root, below: Vec::new() }
    }
}

fn nanos(seconds: i64, nanos: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_mounts_are_known_by_their_magic() {
        let network = [0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x6573_5546, 0x0102_1997];
        assert!(network.iter().all(|magic| Disk::of_magic(*magic).is_network()));
        let local = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0x4D44];
        assert!(local.iter().all(|magic| !Disk::of_magic(*magic).is_network()));
        assert_eq!(Disk::of_magic(0x6969).settle(), NETWORK_SETTLE);
    }

    #[test]
    fn what_cannot_be_relied_on_is_not_compared() {
        let meta = std::fs::metadata("Cargo.toml").unwrap();
        assert!(Disk::Honest.stamp(&meta).inode != 0 && Disk::Honest.stamp(&meta).ctime_ns != 0);
        assert!(Disk::Nfs.stamp(&meta).inode == 0 && Disk::Nfs.stamp(&meta).ctime_ns != 0);
        assert!(Disk::Numberless.stamp(&meta).inode == 0);
        assert!(Disk::Remote.stamp(&meta).inode == 0 && Disk::Remote.stamp(&meta).ctime_ns == 0);
        let stat = rustix::fs::stat("Cargo.toml").unwrap();
        for disk in [Disk::Honest, Disk::Local, Disk::Numberless, Disk::Nfs, Disk::Remote] {
            assert_eq!(disk.stamp_of(&stat), disk.stamp(&meta), "a file has one stamp, however it is looked at");
        }
    }

    #[test]
    fn only_an_honest_ctime_that_is_past_tells_when_a_file_is_quiet() {
        let stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 5_000_900_000, inode: 1 };
        let at = |now, wall| Moment { now: Timestamp(now), wall: Timestamp(wall) };
        let quiet = |disk: Disk, now| disk.quiet_at(&stamp, at(now, now), Duration::from_secs(1));
        assert_eq!(quiet(Disk::Honest, 5_500), Some(Timestamp(6_001)));
        assert_eq!(quiet(Disk::Honest, 4_999), None);
        assert_eq!(quiet(Disk::Local, 5_500), None);
        // The wall was set back by two hours, and our own dates go on.
        let set_back = Disk::Honest.quiet_at(&stamp, at(7_205_500, 5_500), Duration::from_secs(1));
        assert_eq!(set_back, Some(Timestamp(7_206_001)));
    }

    #[test]
    fn a_path_lies_on_the_nearest_mount_above_it() {
        let below = [("a/b", "ext4"), ("a", "nfs4"), ("usb", "vfat"), ("top", "xfs"), ("top", "fuse.sshfs")];
        let disks = Disks::new(Disk::Honest, &below.map(|(at, kind)| (PathBuf::from(at), kind.to_owned())));
        let of = |path: &str| disks.disk_of(Path::new(path));
        assert_eq!(
            [of("x.wav"), of("a/x.wav"), of("a/b/x.wav"), of("ab/x.wav")],
            [Disk::Honest, Disk::Nfs, Disk::Honest, Disk::Honest]
        );
        assert_eq!([of("usb/x"), of("top/x")], [Disk::Numberless, Disk::Remote], "the last one lies on top");
        assert_eq!(disks.shares(), ["a", "top"].map(PathBuf::from));
    }
}
