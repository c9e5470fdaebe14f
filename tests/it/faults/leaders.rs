//! What the samples say of leadership: never two at a time but where a hand was in etcd, and how long nobody led.

use std::time::Duration;

use bursar::domain::Moment;

use super::ground::{TTL, TWO_LEADERS};
use super::nemesis::Fault;
use super::watch::Starved;
use crate::support::cluster::ELECTION;
use crate::support::sampler::{History, Violation};

/// Two violations closer than this are one stretch.
const STRETCH_GAP: Duration = Duration::from_millis(300);
/// With servers up, this machine at hand and most replicas left alone, somebody leads within this.
const LED_WITHIN: Duration = Duration::from_mins(1);

/// A time in which nobody was seen to lead.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// From the last answer of the one.
    pub from: Moment,
    /// To the first of the next.
    pub until: Moment,
    /// Whether no fault of a server was there meanwhile.
    pub servers_up: bool,
    /// How long this process did not get to run meanwhile.
    pub starved: Duration,
}

impl Gap {
    /// How long.
    pub fn time(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Leaders {
    /// Times without a leader, between two of different terms.
    pub gaps: Vec<Gap>,
    /// Samples.
    pub samples: usize,
    /// Stretches in which two led, tolerated ones too, with how long.
    pub double: Vec<(Moment, Duration)>,
    /// What is not as it must be.
    pub findings: Vec<String>,
}

/// Judges the samples.
pub fn judge(history: &History, faults: &[Fault], starved: &[Starved]) -> Leaders {
    let mut leaders = Leaders { samples: history.answers().len(), ..Leaders::default() };
    two_at_a_time(&history.violations(), faults, starved, &mut leaders);
    leaderless(history, faults, starved, &mut leaders);
    leaders
}

fn overlaps(fault: &Fault, from: Moment, until: Moment, aftermath: Duration) -> bool {
    fault.from <= until && fault.until.is_none_or(|end| end + aftermath >= from)
}

/// How long this process did not get to run between two moments.
fn starvation(starved: &[Starved], from: Moment, until: Moment) -> Duration {
    starved.iter().map(|one| one.until.min(until).since(one.from.max(from))).sum()
}

fn two_at_a_time(violations: &[Violation], faults: &[Fault], starved: &[Starved], leaders: &mut Leaders) {
    let mut stretches: Vec<Vec<&Violation>> = Vec::new();
    for violation in violations {
        match stretches.last_mut() {
            Some(stretch) if stretch.last().is_some_and(|last| violation.at.since(last.at) <= STRETCH_GAP) => {
                stretch.push(violation);
            }
            _ => stretches.push(vec![violation]),
        }
    }
    for stretch in stretches {
        let (Some(first), Some(last)) = (stretch.first(), stretch.last()) else { continue };
        let time = last.at.since(first.at);
        leaders.double.push((first.at, time));
        let around = |fault: &&Fault| overlaps(fault, first.at, last.at, TTL * 2);
        let tampered = faults.iter().filter(around).any(|fault| fault.kind.tampers());
        let deaf = faults.iter().filter(around).any(|fault| {
            fault.kind.deafens() && fault.replica.is_some_and(|replica| first.replicas.contains(&replica))
        });
        let bound = if deaf { TTL + TWO_LEADERS } else { TWO_LEADERS } + starvation(starved, first.at, last.at);
        if !tampered || time > bound {
            leaders.findings.push(format!(
                "leaders: r{} (term {}) and r{} (term {}) led at a time for {time:?}, tampered with: {tampered}, deaf: {deaf}",
                first.replicas[0], first.terms[0], first.replicas[1], first.terms[1],
            ));
        }
    }
}

fn leaderless(history: &History, faults: &[Fault], starved: &[Starved], leaders: &mut Leaders) {
    let mut last: Option<(Moment, u64)> = None;
    for answer in history.answers() {
        let Some(term) = answer.term(ELECTION) else { continue };
        if let Some((from, before)) = last {
            if term < before {
                // Of one that does not know yet that it is over; that two lead is judged apart.
                continue;
            }
            if term > before {
                let until = answer.received;
                let up = !faults
                    .iter()
                    .any(|fault| fault.kind.is_of_a_server() && overlaps(fault, from, until, Duration::ZERO));
                let starved = starvation(starved, from, until);
                let gap = Gap { from, until, servers_up: up, starved };
                if up && gap.time().saturating_sub(starved) > LED_WITHIN {
                    leaders.findings.push(format!("leaders: nobody led for {:?} with all servers up", gap.time()));
                }
                leaders.gaps.push(gap);
            }
        }
        last = Some((answer.sent.max(last.map_or(Moment::BOOT, |(at, _)| at)), term));
    }
}

/// The median, the 99th of a hundred, and the longest.
pub fn quantiles(mut times: Vec<Duration>) -> Option<[Duration; 3]> {
    times.sort();
    let at = |part: usize| times.get((times.len() * part).div_ceil(100).saturating_sub(1)).copied();
    Some([at(50)?, at(99)?, *times.last()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::kind::Kind;

    fn at(millis: u64) -> Moment {
        Moment::after_boot(Duration::from_secs(1000) + Duration::from_millis(millis))
    }

    fn two(times: &[u64]) -> Vec<Violation> {
        let two = |millis: &u64| Violation {
            at: at(*millis),
            election: ELECTION.to_owned(),
            replicas: [0, 1],
            terms: [3, 4],
        };
        times.iter().map(two).collect()
    }

    fn findings(times: &[u64], faults: &[Fault]) -> usize {
        let mut leaders = Leaders::default();
        two_at_a_time(&two(times), faults, &[], &mut leaders);
        leaders.findings.len()
    }

    #[test]
    fn two_leaders_are_a_finding_but_behind_a_hand_in_etcd_and_then_for_a_moment_only() {
        let fault = |kind, replica| Fault { kind, replica, from: at(0), until: Some(at(500)) };
        assert_eq!(findings(&[100, 150], &[]), 1);
        assert_eq!(findings(&[100, 150], &[fault(Kind::Kill, Some(0))]), 1);
        assert_eq!(findings(&[100, 150], &[fault(Kind::DeleteKey, None)]), 0);
        let long: Vec<u64> = (0..40).map(|n| n * 100).collect();
        assert_eq!(findings(&long, &[fault(Kind::DeleteKey, None)]), 1);
        assert_eq!(findings(&long, &[fault(Kind::DeleteKeyUnheard, Some(0))]), 0, "it could not know");
        assert_eq!(findings(&long, &[fault(Kind::DeleteKeyUnheard, Some(3))]), 1, "another one could not");
        assert_eq!(findings(&[100, 60_000], &[fault(Kind::DeleteKey, None)]), 1, "a minute behind it");
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(quantiles(times), Some([100, 198, 200].map(Duration::from_millis)));
        assert_eq!(quantiles(Vec::new()), None);
    }
}
