//! `bursar completions`: a script for a shell, made from the command line's own definition.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use super::Cli;
use super::context::Context;
use super::error::{CommandError, Exit};

/// Print what a shell needs to complete commands and options.
///
/// For bash: `bursar completions bash > /etc/bash_completion.d/bursar`; for zsh into a folder of `$fpath`, as `_bursar`; for
/// fish: `~/.config/fish/completions/bursar.fish`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "bursar", &mut script);
        context.output().line(String::from_utf8_lossy(&script).trim_end())?;
        Ok(Exit::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_is_shown_can_be_completed_in_every_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            generate(shell, &mut Cli::command(), "bursar", &mut script);
            let script = String::from_utf8(script).expect("text");
            for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
                assert!(script.contains(command.get_name()), "{shell}: {}", command.get_name());
            }
        }
    }
}
