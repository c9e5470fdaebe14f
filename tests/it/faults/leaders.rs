//! What the samples say of leadership: never two at a time but where a hand was in etcd, and how long nobody led.

use std::time::Duration;

use bursar::domain::Moment;

use super::ground::{TTL, TWO_LEADERS};
use super::kind::Kind;
use super::nemesis::Fault;
use super::watch::Starved;
use crate::support::cluster::ELECTION;
use crate::support::sampler::{History, Violation};

/// Two violations closer than this are one stretch.
const STRETCH_GAP: Duration = Duration::from_millis(300);
/// A follower leads within two leases and this, once the servers are there: the lease has to lapse, and somebody to stand.
const BESIDE_TWO_TTLS: Duration = Duration::from_secs(3);
/// Where leadership ends in good order nobody waits for a lease: the next one leads within this.
const PLANNED: Duration = Duration::from_secs(4);
/// A fault shows in the samples within this.
const SHOWS: Duration = Duration::from_secs(1);

/// A time in which nobody was seen to lead.
#[derive(Debug, Clone, Copy)]
pub struct Gap {
    /// From the last answer of the one.
    pub from: Moment,
    /// To the first of the next.
    pub until: Moment,
    /// What had ended the one, as far as is known.
    pub cause: Option<Kind>,
    /// Behind the last fault that may keep everybody, or the next one, from leading; that much later than `from` it counts from.
    counts_from: Moment,
    /// How long this process did not get to run from then on.
    starved: Duration,
    /// How long it may be from then on.
    bound: Duration,
}

impl Gap {
    /// How long.
    pub fn time(&self) -> Duration {
        self.until.since(self.from)
    }

    /// How long from the last fault of a server on.
    pub fn counted(&self) -> Duration {
        self.until.since(self.counts_from)
    }

    fn is_too_long(&self) -> bool {
        self.counted() > self.bound + self.starved
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
    let mut last: Option<Led> = None;
    for answer in history.answers() {
        let Some(term) = answer.term(ELECTION) else { continue };
        let mut at = answer.sent;
        if let Some(before) = last {
            if term < before.term {
                // Of one that does not know yet that it is over; that two lead is judged apart.
                continue;
            }
            if term > before.term {
                let next = Led { at: answer.received, term, replica: answer.replica };
                let gap = gap(before, next, faults, starved);
                if gap.is_too_long() {
                    leaders.findings.push(format!(
                        "leaders: nobody led for {:?} between term {} of r{} and term {term} of r{}, {:?} of it with the servers \
                         there, {:?} starved; it ended by {:?}, and may take {:?}",
                        gap.time(),
                        before.term,
                        before.replica,
                        answer.replica,
                        gap.counted(),
                        gap.starved,
                        gap.cause,
                        gap.bound,
                    ));
                }
                leaders.gaps.push(gap);
            }
            at = at.max(before.at);
        }
        last = Some(Led { at, term, replica: answer.replica });
    }
}

/// Who led when.
#[derive(Debug, Clone, Copy)]
struct Led {
    at: Moment,
    term: u64,
    replica: usize,
}

/// Judged is from the end of the last fault of a server on, and of the next leader's own: it may have won before it. One that
/// is starved may lead and not get to say so. A term between the two was won by one that perished before it was seen to lead:
/// each has its lease.
fn gap(before: Led, next: Led, faults: &[Fault], starved: &[Starved]) -> Gap {
    let (from, until) = (before.at, next.at);
    let kept = faults
        .iter()
        .filter(|fault| {
            fault.kind.is_of_a_server()
                || (fault.kind.unseats() && fault.replica == Some(next.replica))
                || (fault.kind == Kind::Starve && fault.replica == Some(before.replica))
        })
        .filter(|fault| overlaps(fault, from, until, Duration::ZERO))
        .map(|fault| fault.until.unwrap_or(until).min(until))
        .max();
    let counts_from = kept.unwrap_or(from).max(from);
    let near = |fault: &&Fault| fault.kind.unseats() && overlaps(fault, from - TTL * 2, until, Duration::ZERO);
    let elected = faults.iter().filter(near).any(|fault| fault.kind.is_of_the_coordinator());
    let ended_it = |fault: &&Fault| {
        fault.kind.unseats()
            && fault.replica.is_none_or(|replica| replica == before.replica)
            && overlaps(fault, from, from + SHOWS, SHOWS)
    };
    let cause = faults.iter().filter(ended_it).max_by_key(|fault| fault.from).map(|fault| fault.kind);
    // Nothing else was near that could make an end in good order another one, or hold up the next leader.
    let theirs = |fault: &&Fault| fault.replica.is_none_or(|replica| [before.replica, next.replica].contains(&replica));
    let alone =
        next.term == before.term + 1
            && faults.iter().filter(near).filter(theirs).all(|fault| {
                Some(fault.kind) == cause && fault.replica.is_none_or(|replica| replica == before.replica)
            });
    let bound = if alone && cause.is_some_and(Kind::is_planned) {
        PLANNED
    } else {
        let terms = u32::try_from(next.term - before.term).unwrap_or(u32::MAX);
        (TTL * 2 + BESIDE_TWO_TTLS).saturating_mul(terms) + if elected { TTL } else { Duration::ZERO }
    };
    Gap { from, until, cause, counts_from, starved: starvation(starved, counts_from, until), bound }
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

    fn at(millis: u64) -> Moment {
        Moment::after_boot(Duration::from_secs(1000) + Duration::from_millis(millis))
    }

    fn fault(kind: Kind, replica: Option<usize>, from: u64, until: u64) -> Fault {
        Fault { kind, replica, from: at(from), until: Some(at(until)), hit: true }
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
        let fault = |kind, replica| fault(kind, replica, 0, 500);
        assert_eq!(findings(&[100, 150], &[]), 1);
        assert_eq!(findings(&[100, 150], &[fault(Kind::Kill, Some(0))]), 1);
        assert_eq!(findings(&[100, 150], &[fault(Kind::DeleteKey, None)]), 0);
        let long: Vec<u64> = (0..40).map(|n| n * 100).collect();
        assert_eq!(findings(&long, &[fault(Kind::DeleteKey, None)]), 1);
        assert_eq!(findings(&long, &[fault(Kind::DeleteKeyUnheard, Some(0))]), 0, "it could not know");
        assert_eq!(findings(&long, &[fault(Kind::DeleteKeyUnheard, Some(3))]), 1, "another one could not");
        assert_eq!(findings(&[100, 60_000], &[fault(Kind::DeleteKey, None)]), 1, "a minute behind it");
    }

    /// A minute in, r0 was last seen to lead term 5, and after that time r1 leads a later one.
    fn followed(millis: u64, term: u64, faults: &[Fault], starved: &[Starved]) -> Gap {
        let before = Led { at: at(60_000), term: 5, replica: 0 };
        gap(before, Led { at: at(60_000 + millis), term, replica: 1 }, faults, starved)
    }

    #[test]
    fn a_follower_has_two_leases_and_three_seconds() {
        let killed = fault(Kind::Kill, Some(0), 60_010, 62_000);
        for (millis, too_long) in [(12_900, false), (13_100, true)] {
            assert_eq!(followed(millis, 6, &[killed], &[]).is_too_long(), too_long, "{millis}");
            assert_eq!(followed(millis, 6, &[], &[]).is_too_long(), too_long, "{millis}, by itself");
        }
        let gap = followed(13_100, 7, &[killed], &[]);
        assert_eq!((gap.cause, gap.is_too_long()), (Some(Kind::Kill), false), "one won in between, and perished");
        let starved = [Starved { from: at(61_000), until: at(61_500) }];
        assert!(!followed(13_100, 6, &[killed], &starved).is_too_long());
        let elsewhere = [killed, fault(Kind::Freeze, Some(2), 60_000, 70_000), fault(Kind::Halt, None, 60_000, 80_000)];
        assert!(followed(13_100, 6, &elsewhere, &[]).is_too_long(), "that keeps nobody from leading");
    }

    #[test]
    fn it_counts_from_the_end_of_what_kept_everybody_or_the_next_one() {
        let killed = fault(Kind::Kill, Some(0), 60_010, 62_000);
        for kept in [
            fault(Kind::KillStore, None, 55_000, 65_000),
            fault(Kind::CutStore, Some(1), 61_000, 65_000),
            fault(Kind::Starve, Some(0), 59_000, 65_000),
        ] {
            let faults = [killed, kept];
            assert!(!followed(17_900, 6, &faults, &[]).is_too_long(), "{faults:?}");
            assert!(followed(18_100, 6, &faults, &[]).is_too_long(), "{faults:?}");
        }
        let quorum = [killed, fault(Kind::LoseQuorum, None, 55_000, 65_000)];
        assert!(!followed(22_900, 6, &quorum, &[]).is_too_long(), "etcd elected, too");
        assert!(followed(23_100, 6, &quorum, &[]).is_too_long());
        let lasts = [Fault { until: None, ..fault(Kind::KillStore, None, 55_000, 0) }];
        assert_eq!(followed(90_000, 6, &lasts, &[]).counted(), Duration::ZERO);
    }

    #[test]
    fn nobody_waits_for_a_lease_where_leadership_ended_in_good_order() {
        for kind in [Kind::Transfer, Kind::Leave, Kind::Cordon, Kind::DeleteKey] {
            let replica = kind.is_of_a_replica().then_some(0);
            let planned = fault(kind, replica, 59_500, 60_200);
            assert!(!followed(3_900, 6, &[planned], &[]).is_too_long(), "{kind:?}");
            assert!(followed(4_100, 6, &[planned], &[]).is_too_long(), "{kind:?}");
            for beside in [fault(Kind::Freeze, Some(1), 59_900, 60_000), fault(Kind::KillMember, None, 51_000, 52_000)]
            {
                assert!(!followed(4_100, 6, &[planned, beside], &[]).is_too_long(), "{kind:?} {beside:?}");
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(quantiles(times), Some([100, 198, 200].map(Duration::from_millis)));
        assert_eq!(quantiles(Vec::new()), None);
    }
}
