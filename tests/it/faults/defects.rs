//! Whether this harness notices what it is there for: the same run with a defect in every replica has to find it, and by the
//! comparison that it is to be found by.
//!
//! Deliberately absent: `payouts.doubt-forgotten`, which costs nothing before a receiver refuses a key that it has paid, and
//! the reference receiver does not; and `fence.read-without-its-lock`: a COMMIT has to fall into the moments of an advance,
//! which three minutes of deleted keys beside slow lines did not bring about. Tests that hold a moment still show them.

use std::time::Duration;

use super::ground::TTL;
use super::kind::Kind;
use super::{Form, Plan, folder, report, run};
use crate::support::measured;

/// A defect, the faults behind which it shows, and words of a finding that it has to cause.
struct Defect {
    mutant: &'static str,
    kinds: &'static [Kind],
    finding: &'static str,
}

const DEFECTS: [Defect; 2] = [
    Defect {
        mutant: "recovery.sending-left-as-it-is",
        kinds: &[Kind::Kill, Kind::LateRequests, Kind::Misbehave],
        finding: "instructions are not final, nor held",
    },
    Defect {
        mutant: "ticks.mark-moved-first",
        kinds: &[Kind::ResetAfterCommit, Kind::RestartStore, Kind::Kill],
        finding: "has no outcome",
    },
];

/// The faults behind one defect, and whether it was found.
async fn is_found(defect: &Defect) -> bool {
    let plan = Plan {
        seed: 7,
        time: Duration::from_mins(3),
        replicas: 3,
        kinds: defect.kinds.to_vec(),
        at_a_time: 2,
        quiet: TTL * 18,
        mutant: Some(defect.mutant),
        form: Form::Short,
        folder: folder(defect.mutant),
    };
    let shown = run(plan).await;
    std::fs::write(shown.folder.join("report.txt"), report::report(&shown)).ok();
    let found = shown.findings.iter().find(|finding| finding.contains(defect.finding));
    let told = found.map_or_else(|| format!("not found; instead: {:#?}", shown.findings), Clone::clone);
    measured(&format!("{}: {told}", defect.mutant));
    found.is_some()
}

#[tokio::test]
#[ignore = "long: ten minutes; shows that the faults find defects of the product"]
async fn a_defect_of_every_replica_is_found() {
    let only = std::env::var("BURSAR_FAULTS_DEFECT").ok().filter(|only| !only.is_empty());
    let mut missed = Vec::new();
    for defect in DEFECTS.iter().filter(|defect| only.as_deref().is_none_or(|only| only == defect.mutant)) {
        if !is_found(defect).await {
            missed.push(defect.mutant);
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
