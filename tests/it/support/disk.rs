//! A small disk in memory, to be filled: for servers that run out of room.
//!
//! Only root may mount one. Dropped it is gone, and where the test process is killed, [`super::scratch`]'s janitor takes it
//! away.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::scratch;

/// What is written at a time.
const BLOCK: usize = 1 << 20;

/// A file system of its own, of a bounded size.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts one of so many megabytes; `None` where we may not.
    ///
    /// # Panics
    /// When `mount` cannot be started.
    pub fn mount(megabytes: u32) -> Option<Self> {
        let folder = scratch::folder("disk");
        let size = format!("size={megabytes}m,mode=755");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).output();
        mounted.expect("mount is there").status.success().then_some(Self { folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Takes all the room that there is.
    ///
    /// # Panics
    /// When it cannot be written to for another reason.
    pub fn fill(&self) {
        let mut file = File::create(self.filler()).expect("the disk is ours");
        let block = vec![1; BLOCK];
        let mut size = BLOCK;
        while size > 0 {
            // A page at a time at the end, so that nothing is left.
            if file.write_all(block.get(..size).unwrap_or_default()).is_err() {
                size = if size == BLOCK { 4096 } else { 0 };
            }
        }
    }

    /// Gives the room back.
    pub fn free(&self) {
        fs::remove_file(self.filler()).ok();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: what still has a file there keeps it until it ends.
        Command::new("umount").arg("-l").arg(&self.folder).output().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_takes_nothing_until_it_is_freed() {
        // Without root there is none, and nothing to see.
        let Some(disk) = SmallDisk::mount(4) else { return };
        let file = disk.folder().join("file");
        disk.fill();
        let error = fs::write(&file, [1; 8192]).expect_err("it is full");
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        disk.free();
        fs::write(&file, [1; 8192]).expect("there is room again");
    }
}
