//! The story of a term, in plain words: one fact to a line, from candidacy to what was refused afterwards.
//!
//! Pure: from what the store keeps to text. What is not on record is said so, not guessed.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::store::{ActView, Refused, TermBefore, TermStory, TermWork};

/// The width of the first column.
const LABEL: usize = 12;

/// The lines of a story.
pub(super) fn tell(story: &TermStory) -> Vec<String> {
    let term = &story.term;
    let mut lines = vec![format!(
        "{}, term {}: {} on {}, version {}",
        term.election, term.term, term.replica, term.host, term.version
    )];
    let mut say = |label: &str, text: String| lines.push(format!("  {label:<LABEL$}{text}"));
    say("before it", before(story));
    say("won", won(story));
    say("accepted", accepted(story));
    say("first work", first_work(story));
    say("took over", taken_over(story));
    for line in work(&story.work) {
        say("did", line);
    }
    for act in &story.acts {
        say("operator", deed(act));
    }
    say("ended", ended(story));
    say("refused", refused(&story.refused));
    lines
}

/// A moment to the millisecond, UTC.
fn moment(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// From one moment to another, in the unit that a person would use; `None` where clocks say that it went backwards.
fn span(from: DateTime<Utc>, to: DateTime<Utc>) -> Option<String> {
    (to - from).to_std().ok().map(length)
}

fn length(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{} ms", time.as_millis()),
        seconds @ 10..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn before(story: &TermStory) -> String {
    let Some(TermBefore { term, replica, ended_at, end_reason }) = &story.before else {
        return "nobody had led".to_owned();
    };
    match (ended_at, end_reason) {
        (Some(at), Some(reason)) => format!("term {term} of {replica} ended at {}: {}", moment(*at), why(reason)),
        (_, _) => format!("term {term} of {replica}, whose end is not on record: it was killed, stopped or cut off"),
    }
}

fn won(story: &TermStory) -> String {
    let Some(won_at) = story.won_at else { return "when and how is not on record".to_owned() };
    let how = match (story.handed_over, story.stood_at.and_then(|stood| span(stood, won_at))) {
        (Some(true), _) => "handed over, without an election".to_owned(),
        (_, Some(vacant)) => format!("in an election, {vacant} after it had seen the place free"),
        (_, None) => "in an election".to_owned(),
    };
    let since = since_the_end(story, won_at);
    format!("at {}, {how}{since}", moment(won_at))
}

/// How long after the end of the term before, where that is on record.
fn since_the_end(story: &TermStory, at: DateTime<Utc>) -> String {
    let ended = story.before.as_ref().and_then(|before| Some((before.term, before.ended_at?)));
    match ended.and_then(|(term, ended)| Some((term, span(ended, at)?))) {
        Some((term, time)) => format!("; {time} after the end of term {term}"),
        None => String::new(),
    }
}

fn accepted(story: &TermStory) -> String {
    let at = moment(story.term.accepted_at);
    match &story.before {
        Some(before) => format!(
            "at {at}: the fence went from {} to {}; nothing lower commits from then on",
            before.term, story.term.term
        ),
        None => format!("at {at}: the fence stands at {}", story.term.term),
    }
}

fn first_work(story: &TermStory) -> String {
    match story.term.worked_at {
        Some(at) => format!("at {}{}", moment(at), since_the_end(story, at)),
        None => "not on record: it ended before, or the election was halted".to_owned(),
    }
}

fn taken_over(story: &TermStory) -> String {
    let Some(found) = story.taken_over else { return "not on record".to_owned() };
    if (found.runs, found.unknown) == (0, 0) {
        return "nothing was left unfinished".to_owned();
    }
    let mut parts = vec![count(found.runs, "open run", "open runs")];
    if found.set_aside > 0 {
        parts.push(format!("{} set aside, for too many leaders had ended over them", found.set_aside));
    }
    if found.unknown > 0 {
        parts.push(count(
            found.unknown,
            "request on the wire, whose outcome is unknown",
            "requests on the wire, whose outcome is unknown",
        ));
    }
    parts.join("; ")
}

fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn work(work: &TermWork) -> Vec<String> {
    let mut lines = Vec::new();
    if work.runs_opened + work.ticks_without_run > 0 {
        let opened = count(work.runs_opened, "run opened", "runs opened");
        lines.push(match work.ticks_without_run {
            0 => opened,
            others => format!(
                "{opened}; {}",
                count(others, "tick skipped, coalesced or missed", "ticks skipped, coalesced or missed")
            ),
        });
    }
    if work.batches > 0 {
        let mut ends = vec![count(work.settled, "unit settled", "units settled")];
        for (number, how) in [(work.carried, "carried"), (work.empty, "empty"), (work.set_aside, "set aside")] {
            if number > 0 {
                ends.push(format!("{number} {how}"));
            }
        }
        lines.push(format!("{} in {}", ends.join(", "), count(work.batches, "transaction", "transactions")));
    }
    if work.instructions > 0 || !work.payouts.is_empty() {
        let written = count(work.instructions, "payout written", "payouts written");
        lines.push(format!("{written}{}", ends(&work.payouts)));
    }
    if lines.is_empty() {
        lines.push("nothing that is on record".to_owned());
    }
    lines
}

fn ends(payouts: &BTreeMap<String, u64>) -> String {
    let counted: Vec<String> = payouts.iter().map(|(how, number)| format!(", {number} {how}")).collect();
    counted.concat()
}

/// What an operator did, from where, under which role, and why.
fn deed(act: &ActView) -> String {
    let why = act.reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{} {} {} by {} (role {}){why}", moment(act.at), act.action, act.target, act.by, act.role)
}

fn ended(story: &TermStory) -> String {
    let term = &story.term;
    match (term.ended_at, term.end_reason.as_deref()) {
        (Some(at), Some(reason)) => {
            let lasted = span(term.accepted_at, at).map_or_else(String::new, |lasted| format!(", after {lasted}"));
            format!("at {}{lasted}: {}", moment(at), why(reason))
        }
        (_, _) if story.in_force => "not yet, as far as is on record: no later term was accepted".to_owned(),
        (_, _) => "when is not on record: the process was killed, stopped or cut off, and a later term was accepted"
            .to_owned(),
    }
}

/// Why a term ended, in words; a reason of another release as it is.
fn why(reason: &str) -> String {
    match reason {
        "drain" => "its replica was asked to stop".to_owned(),
        "cordoned" => "an operator took its replica out of leading".to_owned(),
        "transfer" => "an operator had it handed over".to_owned(),
        "session_lost" => "its lease could not be renewed in time".to_owned(),
        "lease_gone" => "the coordinator said that its lease was gone".to_owned(),
        "leader_key_gone" => "its leader key was gone".to_owned(),
        "leader_key_taken" => "its leader key was another's".to_owned(),
        "ineligible" => "it could not lead any more: the store was away, read-only or of another schema".to_owned(),
        "promotion_failed" => "a step of its promotion failed".to_owned(),
        "fenced" => "the store refused it: another term was in force".to_owned(),
        "fault" => "it failed by itself; its log says why".to_owned(),
        other => other.replace('_', " "),
    }
}

fn refused(refused: &[Refused]) -> String {
    let Some(last) = refused.iter().map(|refused| refused.last_at).max() else {
        return "nothing: no write of it came too late".to_owned();
    };
    let all = refused.iter().map(|refused| format!("{} ({})", refused.operation, refused.count));
    let total: u64 = refused.iter().map(|refused| refused.count).sum();
    let writes = count(total, "write came too late and was", "writes came too late and were");
    format!("{writes} not let in: {}; the last at {}", all.collect::<Vec<_>>().join(", "), moment(last))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;
    use crate::domain::ElectionName;
    use crate::leadership::EndReason;
    use crate::store::{TakenOver, TermView};

    fn at(ms: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(ms)
    }

    fn story() -> TermStory {
        TermStory {
            term: TermView {
                election: ElectionName::new("settlement").expect("a name"),
                term: 8,
                tenure_id: Uuid::nil(),
                replica: "r2".to_owned(),
                host: "host-b".to_owned(),
                version: "0.1.0".to_owned(),
                accepted_at: at(5_020),
                worked_at: Some(at(5_034)),
                ended_at: Some(at(65_020)),
                end_reason: Some("transfer".to_owned()),
            },
            in_force: false,
            before: Some(TermBefore {
                term: 7,
                replica: "r1".to_owned(),
                ended_at: Some(at(500)),
                end_reason: Some("session_lost".to_owned()),
            }),
            stood_at: Some(at(4_900)),
            won_at: Some(at(5_000)),
            handed_over: Some(false),
            taken_over: Some(TakenOver { runs: 2, set_aside: 0, unknown: 1 }),
            work: TermWork {
                runs_opened: 12,
                ticks_without_run: 1,
                batches: 31,
                settled: 422,
                carried: 3,
                instructions: 400,
                payouts: BTreeMap::from([("paid".to_owned(), 380), ("rejected".to_owned(), 2)]),
                ..TermWork::default()
            },
            refused: vec![
                Refused { operation: "settle".to_owned(), count: 2, last_at: at(70_000) },
                Refused { operation: "pulse".to_owned(), count: 1, last_at: at(71_000) },
            ],
            acts: vec![ActView {
                at: at(60_000),
                action: "transfer".to_owned(),
                target: "any replica".to_owned(),
                reason: Some("a drill".to_owned()),
                by: "ada@desk".to_owned(),
                role: "bursar_run".to_owned(),
                term: Some(8),
            }],
        }
    }

    #[test]
    fn a_term_is_told_from_candidacy_to_what_was_refused_afterwards() {
        let told = tell(&story());
        let wanted = [
            "settlement, term 8: r2 on host-b, version 0.1.0",
            "  before it   term 7 of r1 ended at 1970-01-01T00:00:00.500Z: its lease could not be renewed in time",
            "  won         at 1970-01-01T00:00:05.000Z, in an election, 100 ms after it had seen the place free; 4500 ms after the end of term 7",
            "  accepted    at 1970-01-01T00:00:05.020Z: the fence went from 7 to 8; nothing lower commits from then on",
            "  first work  at 1970-01-01T00:00:05.034Z; 4534 ms after the end of term 7",
            "  took over   2 open runs; 1 request on the wire, whose outcome is unknown",
            "  did         12 runs opened; 1 tick skipped, coalesced or missed",
            "  did         422 units settled, 3 carried in 31 transactions",
            "  did         400 payouts written, 380 paid, 2 rejected",
            "  operator    1970-01-01T00:01:00.000Z transfer any replica by ada@desk (role bursar_run): a drill",
            "  ended       at 1970-01-01T00:01:05.020Z, after 60 s: an operator had it handed over",
            "  refused     3 writes came too late and were not let in: settle (2), pulse (1); the last at 1970-01-01T00:01:11.000Z",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn what_is_not_on_record_is_said_so() {
        let bare = TermStory {
            before: None,
            stood_at: None,
            won_at: None,
            handed_over: None,
            taken_over: None,
            work: TermWork::default(),
            refused: Vec::new(),
            acts: Vec::new(),
            term: TermView { worked_at: None, ended_at: None, end_reason: None, ..story().term },
            ..story()
        };
        let told = tell(&bare).join("\n");
        for said in [
            "nobody had led",
            "when and how is not on record",
            "took over   not on record",
            "a later term was accepted",
        ] {
            assert!(told.contains(said), "{said}: {told}");
        }
        let led = tell(&TermStory { in_force: true, ..bare }).join("\n");
        assert!(led.contains("not yet") && led.contains("nothing: no write of it came too late"), "{led}");
    }

    #[test]
    fn every_reason_for_an_end_has_words_of_its_own() {
        for reason in EndReason::ALL {
            assert!(why(reason.as_str()).contains(' '), "{reason}");
            assert_ne!(why(reason.as_str()), reason.as_str().replace('_', " "), "{reason}");
        }
    }
}
