//! The binary: arguments, telemetry, one command, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    bursar::cli::main(std::env::args_os()).into()
}
