//! What a plain run does a few times and `scripts/test --long` as often as the claim says; what was left out is written
//! down, so that the script can tell.

use std::fs::OpenOptions;
use std::io::Write as _;

/// Whether this is a long run (`BURSAR_TEST_LONG` is set and not empty).
pub fn long() -> bool {
    std::env::var_os("BURSAR_TEST_LONG").is_some_and(|value| !value.is_empty())
}

/// How often to repeat: `all` in a long run, else `few`, which is noted in the file that `BURSAR_TEST_LEFT` names.
///
/// # Panics
/// When that file cannot be written.
pub fn repetitions(what: &str, few: usize, all: usize) -> usize {
    if long() {
        return all;
    }
    if few < all
        && let Some(path) = std::env::var_os("BURSAR_TEST_LEFT")
    {
        let mut file = OpenOptions::new().append(true).create(true).open(path).expect("the script made the file");
        // One write, so that lines of tests that run beside each other do not mix.
        file.write_all(format!("{what}: {few} of {all} repetitions\n").as_bytes()).expect("the file takes it");
    }
    few
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_does_not_ask_for_all() {
        assert_eq!(repetitions("itself", 3, 3), 3);
        assert_eq!(repetitions("nothing that a script would list", 4, 3), if long() { 3 } else { 4 });
    }
}
