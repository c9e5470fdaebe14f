//! Who acts: whom the system takes the operator for, and the name that was said.
//!
//! None of it is a proof, and the store adds its own role. What the kernel keeps goes before what a shell may set: the user that
//! logged in stays the same through `su` and `sudo`. In a container, or behind a shared account, the system knows of nobody in
//! particular: there the name is said, and is recorded as said, beside the system's.

use std::sync::OnceLock;

use super::error::CommandError;
use crate::app;
use crate::config::OPERATOR_VARIABLE;
use crate::store::Actor;

/// The longest name, in characters.
const MOST_NAME: usize = 64;
/// How the kernel says that nobody logged in: a service, a container.
const NOBODY: u32 = u32::MAX;

/// The name that was said to this process. Whoever runs a command is one, whatever the command does.
static SAID: OnceLock<String> = OnceLock::new();

/// A name as it may be said: without what would make a record read otherwise than it is.
pub(super) fn name(text: &str) -> Result<String, String> {
    let fits = |text: &str| (1..=MOST_NAME).contains(&text.chars().count()) && text.trim() == text;
    let sound = |letter: char| !letter.is_control() && !matches!(letter, '(' | ')');
    if fits(text) && text.chars().all(sound) {
        Ok(text.to_owned())
    } else {
        Err(format!("expected 1 to {MOST_NAME} characters, no brackets, and no blank at either end"))
    }
}

/// Takes the name of the option, else of the environment.
///
/// # Errors
/// The variable holds no name.
pub(super) fn said(option: Option<String>) -> Result<(), CommandError> {
    let said = match option {
        Some(name) => Some(name),
        None => match std::env::var_os(OPERATOR_VARIABLE).filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(name(&text.to_string_lossy()).map_err(|wrong| {
                CommandError::Unfit(format!("environment variable {OPERATOR_VARIABLE}: {wrong}; without one, unset it"))
            })?),
        },
    };
    if let Some(said) = said {
        // A process has one command line, so nothing was said before.
        let _first = SAID.set(said);
    }
    Ok(())
}

/// Who runs this command.
pub(super) fn actor() -> Actor {
    let system = Known::now().user(|uid| name_in(&std::fs::read_to_string("/etc/passwd").ok()?, uid));
    let user = SAID.get().map_or_else(|| system.clone(), |said| format!("{said} (said by {system})"));
    Actor { user, host: app::host_name() }
}

/// What the system knows of whoever runs this process.
#[derive(Debug)]
struct Known {
    /// The user that logged in, which no user can change.
    login: Option<u32>,
    /// The user that the process runs as.
    uid: u32,
    /// Whom `sudo` says that root stands for.
    sudo: Option<String>,
    /// What the shell calls the user.
    named: Option<String>,
}

impl Known {
    fn now() -> Self {
        let login = std::fs::read_to_string("/proc/self/loginuid").ok();
        let variable = |variable: &str| std::env::var(variable).ok().and_then(|text| name(&text).ok());
        Self {
            login: login.and_then(|text| text.trim().parse().ok()).filter(|uid| *uid != NOBODY),
            uid: rustix::process::getuid().as_raw(),
            sudo: variable("SUDO_USER"),
            named: variable("USER").or_else(|| variable("LOGNAME")),
        }
    }

    /// The user: by whom the kernel knows, with the name of the users' file; where that has none, the shell's word beside the number.
    fn user(self, name_of: impl Fn(u32) -> Option<String>) -> String {
        let uid = self.login.unwrap_or(self.uid);
        match (self.sudo, name_of(uid), self.named) {
            (Some(sudo), _, _) if self.login.is_none() && self.uid == 0 => format!("{sudo} (sudo)"),
            (_, Some(name), _) => name,
            (_, None, Some(named)) => format!("{named} (uid {uid})"),
            (_, None, None) => format!("uid {uid}"),
        }
    }
}

/// A user's name in the text of `/etc/passwd`.
fn name_in(users: &str, uid: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nada:x:1000:1000::/home/ada:/bin/sh\nbursar:x:10001:10001::/:/sbin/nologin\n";

    fn user(known: Known) -> String {
        known.user(|uid| name_in(USERS, uid))
    }

    fn known(login: Option<u32>, uid: u32, sudo: Option<&str>, named: Option<&str>) -> Known {
        Known { login, uid, sudo: sudo.map(str::to_owned), named: named.map(str::to_owned) }
    }

    #[test]
    fn the_kernels_word_goes_before_the_shells() {
        let mallory = Some("mallory");
        assert_eq!(user(known(None, 1000, mallory, mallory)), "ada");
        assert_eq!(user(known(Some(1000), 0, mallory, mallory)), "ada", "through sudo");
        assert_eq!(user(known(Some(0), 0, mallory, mallory)), "root");
    }

    #[test]
    fn root_of_a_container_or_of_a_service_stands_for_whom_sudo_names() {
        assert_eq!(user(known(None, 0, Some("ada"), Some("root"))), "ada (sudo)");
        assert_eq!(user(known(None, 0, None, Some("root"))), "root");
        assert_eq!(user(known(None, 10001, Some("ada"), None)), "bursar", "it is not root");
    }

    #[test]
    fn a_number_without_a_name_is_told_with_what_the_shell_says() {
        assert_eq!(user(known(None, 2000, None, Some("grace"))), "grace (uid 2000)");
        assert_eq!(user(known(None, 2000, None, None)), "uid 2000");
    }

    #[test]
    fn a_name_is_one_that_cannot_be_read_as_something_else() {
        for good in ["ada", "Ada Lovelace", "ada@example.com", "Žofie"] {
            assert_eq!(name(good), Ok(good.to_owned()));
        }
        for bad in ["", " ada", "ada\n", "ada (said by root)", &"a".repeat(65)] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}
