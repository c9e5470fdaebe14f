//! The command line: one file per command, each of which reads the configuration, does one thing, and says what it did.
//!
//! Invariants:
//! - Exit codes are an interface: 0 done, 1 refused or found, 64 usage, 70 defect, 74 standard output, 75 something is away
//!   or taken, 78 configuration, 130 a demo that was ended before it was done.
//! - Every command knows `--json`; both forms are written from the same values, money as text.
//! - Commands act through the store and the coordinator with the configuration's own credentials, never through the port of
//!   a replica; what only a leader may do is a request that the leader executes.
//!
//! Deliberately absent: prompts. A command asks nothing, so that it can be scripted.

mod approve;
mod audit;
mod backfill;
mod check;
mod check_carries;
mod check_queries;
mod check_ways;
mod coming;
mod completions;
mod context;
mod cordon;
mod demo;
mod dry_run;
mod error;
mod halt;
mod history;
mod import;
mod imports;
mod merchant;
mod migrate;
mod operator;
mod output;
mod pause;
mod payouts;
mod plan;
mod receivers;
mod reconcile;
mod report;
mod request;
mod requests;
mod resume;
mod run;
mod runs;
mod status;
mod story;
mod supervise;
mod transfer;
mod trigger;
mod unit_history;
mod units;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub use error::{CommandError, Exit};

use context::Context;

const LONG_ABOUT: &str = "\
bursar settles imported entries at fixed times, exactly once, on machines that fail.

Every replica runs `bursar run`. They elect a leader; only the leader runs the schedule and settles; whoever led before is \
fenced off by the database. All other commands look at or act on the same store.";

const AFTER_HELP: &str = "\
Configuration: the file of --config; else the one that the environment variable BURSAR_CONFIG names; else bursar.toml in \
the working directory, where there is one. Variables such as BURSAR__COORDINATOR__LEASE_TTL override single keys.

Exit codes: 0 done; 1 refused, or something was found; 64 wrong usage; 70 a defect, or a damaged store; 74 standard \
output could not be written (an act that is in the store stays, and standard error says so); 75 the store, the coordinator or a \
leader is away, or a port or file descriptors are taken: try again; 78 wrong configuration or set-up.

Examples:
  bursar check                               what is wrong with configuration and schedule, and what runs next
  bursar migrate && bursar run               prepare the store, then start a replica
  bursar import entries.csv --source adyen   bring entries in
  bursar status                              who leads, what runs, what is next
  bursar halt --reason 'wrong fees'          stop settling, at once, everywhere";

/// A settlement job runner: elected, fenced, exactly once in its effects.
#[derive(Debug, Parser)]
#[command(name = "bursar", version, long_about = LONG_ABOUT, after_long_help = AFTER_HELP)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Cli {
    /// The configuration file [default: `$BURSAR_CONFIG`, else bursar.toml where there is one].
    #[arg(long, short, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Answer in JSON, with money as text.
    #[arg(long, global = true)]
    json: bool,

    /// Who acts, where the system does not know [default: `$BURSAR_OPERATOR`]; recorded as said, beside the system's user.
    #[arg(long = "as", global = true, value_name = "NAME", value_parser = operator::name)]
    operator: Option<String>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArgs),
    Demo(demo::DemoArgs),
    Check(check::CheckArgs),
    Plan(plan::PlanArgs),
    Migrate(migrate::MigrateArgs),
    Import(import::ImportArgs),
    /// Imports: list, show, revert.
    #[command(subcommand)]
    Imports(imports::ImportsCommand),
    Status(status::StatusArgs),
    /// Runs: list, show.
    #[command(subcommand)]
    Runs(runs::RunsCommand),
    Report(report::ReportArgs),
    Reconcile(reconcile::ReconcileArgs),
    /// Units: list, show, retry, resolve.
    #[command(subcommand)]
    Units(units::UnitsCommand),
    /// Payouts: list, show, release, resolve.
    #[command(subcommand)]
    Payouts(payouts::PayoutsCommand),
    /// Receivers that are stopped, and why: list, resume.
    #[command(subcommand)]
    Receivers(receivers::ReceiversCommand),
    /// Merchants: hold, release, list. A held one gets no unit, and nothing pending of it is sent.
    #[command(subcommand)]
    Merchant(merchant::MerchantCommand),
    Approve(approve::ApproveArgs),
    Trigger(trigger::TriggerArgs),
    /// Requests that wait for a leader: list, withdraw.
    #[command(subcommand)]
    Requests(requests::RequestsCommand),
    Transfer(transfer::TransferArgs),
    Cordon(cordon::CordonArgs),
    Uncordon(cordon::UncordonArgs),
    Backfill(backfill::BackfillArgs),
    Pause(pause::PauseArgs),
    Unpause(pause::UnpauseArgs),
    Halt(halt::HaltArgs),
    Resume(resume::ResumeArgs),
    History(history::HistoryArgs),
    Audit(audit::AuditArgs),
    Completions(completions::CompletionsArgs),
    /// Started by a replica for the handler `command`.
    #[command(hide = true)]
    Supervise(supervise::SuperviseArgs),
}

/// Reads the command line, runs one command, and answers how it ended. Messages of failure go to standard error.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(usage) => {
            // Help and version are answers; standard output may be closed, which is nobody's failure.
            let _closed = usage.print();
            return if usage.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    match cli.execute() {
        Ok(exit) => exit,
        Err(error) => {
            let exit = error.exit();
            if exit != Exit::Done {
                // The exit code says it too, to whoever has closed standard error.
                output::complain(&error.to_string());
            }
            exit
        }
    }
}

impl Cli {
    fn execute(self) -> Result<Exit, CommandError> {
        operator::said(self.operator)?;
        let context = Context::new(self.config, self.json);
        match self.command {
            Command::Run(args) => args.execute(&context),
            Command::Demo(args) => Context::block_on(args.execute(&context)),
            Command::Check(args) => args.execute(&context),
            Command::Plan(args) => args.execute(&context),
            Command::Migrate(args) => Context::block_on(args.execute(&context)),
            Command::Import(args) => args.execute(&context),
            Command::Imports(command) => Context::block_on(command.execute(&context)),
            Command::Status(args) => Context::block_on(args.execute(&context)),
            Command::Runs(command) => Context::block_on(command.execute(&context)),
            Command::Report(args) => Context::block_on(args.execute(&context)),
            Command::Reconcile(args) => args.execute(&context),
            Command::Approve(args) => Context::block_on(args.execute(&context)),
            Command::Units(command) => Context::block_on(command.execute(&context)),
            Command::Payouts(command) => Context::block_on(command.execute(&context)),
            Command::Receivers(command) => Context::block_on(command.execute(&context)),
            Command::Merchant(command) => Context::block_on(command.execute(&context)),
            Command::Trigger(args) => Context::block_on(args.execute(&context)),
            Command::Requests(command) => Context::block_on(command.execute(&context)),
            Command::Transfer(args) => Context::block_on(args.execute(&context)),
            Command::Cordon(args) => Context::block_on(args.execute(&context)),
            Command::Uncordon(args) => Context::block_on(args.execute(&context)),
            Command::Backfill(args) => Context::block_on(args.execute(&context)),
            Command::Pause(args) => Context::block_on(args.execute(&context)),
            Command::Unpause(args) => Context::block_on(args.execute(&context)),
            Command::Halt(args) => Context::block_on(args.execute(&context)),
            Command::Resume(args) => Context::block_on(args.execute(&context)),
            Command::History(args) => Context::block_on(args.execute(&context)),
            Command::Audit(args) => Context::block_on(args.execute(&context)),
            Command::Completions(args) => args.execute(&context),
            Command::Supervise(args) => args.execute(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_stand_anywhere() {
        for line in ["bursar --json -c x.toml audit", "bursar audit --json --config x.toml"] {
            let cli = Cli::try_parse_from(line.split(' ')).expect(line);
            assert!(cli.json && cli.config == Some("x.toml".into()), "{line}");
        }
    }

    #[test]
    fn wrong_usage_is_told_from_help() {
        let code = |line: &str| main(line.split(' ').map(OsString::from));
        for wrong in ["bursar nonsense", "bursar halt", "bursar audit --no-such", "bursar import x.csv", "bursar"] {
            assert_eq!(code(wrong), Exit::Usage, "{wrong}");
        }
        for right in ["bursar --help", "bursar --version", "bursar halt --help"] {
            assert_eq!(code(right), Exit::Done, "{right}");
        }
    }
}
