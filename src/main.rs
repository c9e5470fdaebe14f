//! The binary: arguments, telemetry, one command, exit code.

fn main() {}
