//! One folder for everything that a test process writes, and the janitor that removes it.
//!
//! Statics are never dropped and a killed process drops nothing, so the folder is not left to destructors: a shell waits on
//! a pipe whose other end only this process holds. When the pipe ends, this process is gone. The janitor then leaves half a
//! second to servers that end in order, kills what still has its working folder in there (children run inside it),
//! unmounts what is mounted there, and removes it. With `BURSAR_TEST_KEEP=1` it leaves the files, for reading logs afterwards.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the janitor does once nobody holds the pipe: `$1` is the folder, `$2` whether to keep the files.
const JANITOR: &str = r#"
while read -r _; do :; done
sleep 0.5
for round in 1 2 3; do
    for process in /proc/[0-9]*; do
        case "$(readlink "$process/cwd" 2>/dev/null)" in
            "$1"|"$1"/*) kill -KILL "${process#/proc/}" 2>/dev/null ;;
        esac
    done
    while read -r _ mounted _; do
        case "$mounted" in "$1"/*) umount -l "$mounted" 2>/dev/null ;; esac
    done </proc/mounts
    [ -n "$2" ] && exit 0
    rm -rf "$1" 2>/dev/null && exit 0
    sleep 0.2
done
"#;

struct Root {
    folder: PathBuf,
    /// Held, never written to: its end of the pipe closes with this process.
    _janitor: Child,
}

/// The folder of this test process.
///
/// # Panics
/// When it cannot be made.
pub fn root() -> &'static Path {
    static ROOT: OnceLock<Root> = OnceLock::new();
    &ROOT
        .get_or_init(|| {
            let folder =
                tempfile::Builder::new().prefix("bursar-it-").tempdir().expect("a temporary folder can be made").keep();
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("the folder is ours");
            let keep = std::env::var("BURSAR_TEST_KEEP").unwrap_or_default();
            let janitor = Command::new("sh")
                .args(["-c", JANITOR, "janitor"])
                .arg(&folder)
                .arg(keep)
                .current_dir("/")
                .process_group(0)
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("sh can be started");
            Root { folder, _janitor: janitor }
        })
        .folder
}

/// A new folder of its own below [`root`], readable by all, named after what it is for.
///
/// # Panics
/// When it cannot be made.
pub fn folder(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let folder = root().join(format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
    fs::create_dir(&folder).expect("the number makes the name new");
    folder
}

/// Copies a folder or file with owners and modes, sparse files staying sparse.
///
/// # Panics
/// When `cp` fails.
pub fn copy(from: &Path, to: &Path) {
    let output = Command::new("cp").arg("-a").arg(from).arg(to).output().expect("cp can be started");
    assert!(
        output.status.success(),
        "cp -a {} {}: {}",
        from.display(),
        to.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Removes a folder with all that is in it; one that is not there is fine.
///
/// # Panics
/// When it cannot be removed.
pub fn remove(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => panic!("{} cannot be removed: {error}", folder.display()),
    }
}
