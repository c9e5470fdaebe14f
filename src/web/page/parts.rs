//! The page's sections.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use maud::{Markup, html};

use super::data::{Details, ElectionLine, Page};
use crate::domain::ElectionName;
use crate::store::{
    ActView, Cordon, ElectionStatus, FenceReject, JobStatus, PayoutView, RunSummary, TermView, UnitView,
};
use crate::web::told::{class_of, reason_of, why_of};

/// Rows of each list; more are one command away.
const ROWS: usize = 12;

/// The columns of the elections. The store and the coordinator are asked apart, and either may be out of reach.
const ELECTIONS: [&str; 6] =
    ["election", "leader accepted by the store", "since", "leader by the coordinator", "halted", "this replica"];

/// A figure's age in words.
fn age(of: Duration) -> Markup {
    html! { span.age { " (as of " (words(of)) " ago)" } }
}

pub(super) fn words(time: Duration) -> String {
    match time.as_secs() {
        0 => "less than 1 s".to_owned(),
        seconds @ 1..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn span(from: DateTime<Utc>, to: DateTime<Utc>) -> String {
    words((to - from).to_std().unwrap_or(Duration::ZERO))
}

pub(super) fn time(at: DateTime<Utc>) -> Markup {
    let text = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    html! { time datetime=(text) { (text) } }
}

fn time_or_dash(at: Option<DateTime<Utc>>) -> Markup {
    at.map_or_else(|| html! { "–" }, time)
}

/// A table that scrolls by itself on a narrow screen, and by the keyboard.
fn table(label: &str, columns: &[&str], rows: &[Markup]) -> Markup {
    html! {
        div.table tabindex="0" role="region" aria-label=(label) {
            table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { @for row in rows { tr { (row) } } }
            }
        }
    }
}

/// What a list leaves out, and the command that lists all.
fn more(known: usize, command: &str) -> Markup {
    html! { @if known > ROWS { p.quiet { "The first " (ROWS) " are shown; all of them: " code { (command) } } } }
}

fn not_read() -> Markup {
    html! { p.warn { "The store was not read yet." } }
}

pub(super) fn readiness(page: &Page) -> Markup {
    html! {
        @if page.not_ready.is_empty() {
            p role="status" { span.good { "Ready: " } "this replica leads, or could." }
        } @else {
            p role="status" { span.bad { "Not ready: " } (page.not_ready.join("; ")) }
        }
        @if let Some(why) = &page.schedule_refused {
            p.bad { "The schedule file is refused, and the one before goes on: " (why) }
        }
    }
}

pub(super) fn elections(page: &Page) -> Markup {
    let rows: Vec<Markup> = page
        .elections
        .iter()
        .map(|line| {
            let stored = page.status.as_ref().and_then(|status| {
                status.value.elections.iter().find(|election| election.election.as_str() == line.election)
            });
            html! {
                th scope="row" { (line.election) }
                td { (accepted(stored)) }
                td { (time_or_dash(stored.and_then(|stored| stored.accepted_at))) }
                td { (leads_by_the_coordinator(line)) }
                td.words[stored.is_some_and(|stored| stored.fence.halt.is_some())] { (halted(stored)) }
                td {
                    @match line.leads_for {
                        Some(left) => { span.good { "leads" } ", lease " (format!("{:.1}", left.as_secs_f64())) " s" }
                        None => { (line.phase.replace('_', " ")) }
                    }
                }
            }
        })
        .collect();
    html! {
        h2 { "Elections" @if let Some(status) = &page.status { (age(status.age)) } }
        (table("Elections", &ELECTIONS, &rows))
        @if let (Some(details), Some(status)) = (&page.details, &page.status) {
            h2 { "Terms, newest first" (age(details.age)) }
            ol.strip {
                @for term in details.value.history.terms.iter().take(ROWS) { (term_card(term, status.value.now)) }
            }
        }
    }
}

/// Whom the store accepted last.
fn accepted(stored: Option<&ElectionStatus>) -> Markup {
    let Some(stored) = stored else { return html! { "–" } };
    html! {
        @match &stored.leader {
            Some(leader) => { code { (leader) } ", term " (stored.fence.holder.term) }
            None => { "nobody yet" }
        }
        @if let Some(reason) = &stored.ended { ", " span.warn { "ended" } ": " (reason.replace('_', " ")) }
    }
}

/// Who leads by the coordinator, with an age of its own: a replica that is cut off from it knows of nobody since.
fn leads_by_the_coordinator(line: &ElectionLine) -> Markup {
    let Some(seen) = &line.leader else { return html! { span.warn { "not asked yet" } } };
    html! {
        @match &seen.value {
            Some((leader, term)) => { code { (leader) } ", term " (term) }
            None => { span.bad { "nobody" } }
        }
        (age(seen.age))
    }
}

fn halted(stored: Option<&ElectionStatus>) -> Markup {
    let Some(halt) = stored.and_then(|stored| stored.fence.halt.as_ref()) else { return html! { "no" } };
    html! { span.bad { "halted" } " since " (time(halt.since)) " by " (halt.by) ": " (halt.reason) }
}

fn term_card(term: &TermView, now: DateTime<Utc>) -> Markup {
    let lasted = span(term.accepted_at, term.ended_at.unwrap_or(now));
    html! {
        li.ended[term.ended_at.is_some()] {
            strong { (term.election) " " (term.term) } br;
            code { (term.replica) } br;
            @match (&term.end_reason, term.ended_at) {
                (Some(reason), Some(_)) => { (lasted) ", ended: " (reason.replace('_', " ")) }
                (_, _) => { "for " (lasted) @if term.worked_at.is_none() { ", no work yet" } }
            }
        }
    }
}

pub(super) fn replicas(page: &Page) -> Markup {
    let Some(seen) = &page.replicas else {
        return html! { h2 { "Replicas" } p.warn { "The coordinator was not asked yet." } };
    };
    // As the list has it, where it is listed: what is in force here may be newer than the whole list.
    let own = seen.value.iter().find(|replica| replica.replica_id.as_str() == page.replica);
    let own = own.map_or(&page.fingerprint, |own| &own.schedule_fingerprint);
    let rows: Vec<Markup> = seen
        .value
        .iter()
        .map(|replica| {
            let may: Vec<&str> = replica.eligible.iter().map(ElectionName::as_str).collect();
            let differs = replica.schedule_fingerprint != *own;
            html! {
                th scope="row" { code { (replica.replica_id) } }
                td { (replica.address) }
                td { (replica.version) }
                td {
                    @if let Some(cordon) = cordon_of(page, replica.replica_id.as_str()) {
                        span.warn { "nothing: cordoned" } @if let Some(reason) = &cordon.reason { ": " (reason) }
                    } @else if may.is_empty() {
                        span.warn { "nothing now" }
                    } @else {
                        (may.join(", "))
                    }
                }
                td {
                    code { (replica.schedule_fingerprint.chars().take(12).collect::<String>()) }
                    @if differs { " " span.warn { "differs" } }
                }
            }
        })
        .collect();
    html! {
        h2 { "Replicas" (age(seen.age)) }
        (table("Replicas", &["replica", "address", "version", "may lead", "schedule"], &rows))
    }
}

/// What an operator has put on a replica, as the store says.
fn cordon_of<'a>(page: &'a Page, replica: &str) -> Option<&'a Cordon> {
    page.status.as_ref()?.value.cordons.iter().find(|cordon| cordon.replica == replica)
}

pub(super) fn jobs(page: &Page) -> Markup {
    let Some(status) = &page.status else { return html! { h2 { "Jobs" } (not_read()) } };
    let row = |job: &JobStatus| {
        let next = page.next.iter().find(|next| next.job == job.job.as_str()).and_then(|next| next.at);
        html! {
            th scope="row" { (job.job) }
            td { (job.election) }
            td { (job.handler) }
            td {
                (time_or_dash(job.last_tick))
                @if let Some(state) = job.last_state { ", " (state.as_str().replace('_', " ")) }
            }
            td {
                @match &job.paused {
                    Some(reason) => { span.warn { "paused" } ": " (reason) }
                    None => { (time_or_dash(next)) }
                }
            }
        }
    };
    let rows: Vec<Markup> = status.value.jobs.iter().map(row).collect();
    html! {
        h2 { "Jobs" (age(status.age)) }
        @if rows.is_empty() { p { "None yet: a leader brings in those of its schedule." } }
        @else { (table("Jobs", &["job", "election", "handler", "last tick", "next tick"], &rows)) }
    }
}

pub(super) fn runs(page: &Page) -> Markup {
    let Some(status) = &page.status else { return html! {} };
    let rows: Vec<Markup> = status.value.runs.iter().take(2 * ROWS).map(run).collect();
    html! {
        h2 { "Runs" (age(status.age)) }
        @if rows.is_empty() { p { "None yet." } }
        @else { (table("Runs", &["run", "tick", "state", "units", "set aside", "opened late by"], &rows)) }
    }
}

fn run(run: &RunSummary) -> Markup {
    let ended = run.units.total - run.units.pending;
    html! {
        th scope="row" { (run.job) " " (run.id) }
        td { (time(run.tick)) }
        td {
            (run.state.as_str().replace('_', " "))
            @if run.overdue { " " span.bad { "overdue" } }
            @if let Some(why) = why_of(run) { ": " (why) }
        }
        td {
            @if run.units.total > 0 {
                progress max=(run.units.total) value=(ended) aria-label={ "units ended in run " (run.id) } {}
                " " (ended) " of " (run.units.total)
            } @else { "–" }
        }
        td { @if run.units.set_aside > 0 { span.bad { (run.units.set_aside) } } @else { "0" } }
        td { (words(Duration::from_millis(u64::try_from(run.lateness_ms).unwrap_or(0)))) }
    }
}

/// What wants a person.
pub(super) fn trouble(page: &Page) -> Markup {
    let Some(details) = &page.details else { return not_read() };
    let Details { history, set_aside, in_doubt, receivers } = &details.value;
    // Imports come all day, and would leave no place for what is rare.
    let acts: Vec<&ActView> = history.acts.iter().filter(|act| act.action != "import").take(ROWS).collect();
    let aside: Vec<Markup> = set_aside.iter().take(ROWS).map(unit).collect();
    let doubt: Vec<Markup> = in_doubt.iter().take(ROWS).map(payout).collect();
    let stopped: Vec<Markup> = receivers
        .iter()
        .filter(|receiver| receiver.stopped_at.is_some())
        .map(|receiver| {
            html! {
                th scope="row" { (receiver.origin) }
                td { (time_or_dash(receiver.stopped_at)) }
                td.words { (receiver.reason.as_deref().unwrap_or("–")) }
                td { @if receiver.needs_resume { "by receivers resume" } @else { "by itself" } }
            }
        })
        .collect();
    html! {
        h2 { "Units set aside, oldest first" (age(details.age)) }
        @if aside.is_empty() { p { "None." } }
        @else {
            (table("Units set aside", &["unit", "attempts", "error"], &aside))
            p.quiet { "What each error says: " code { "bursar units list --state set_aside" } }
        }
        (more(set_aside.len(), "bursar units list --state set_aside"))
        h2 { "Payouts in doubt or held" (age(details.age)) }
        @if doubt.is_empty() { p { "None." } }
        @else { (table("Payouts in doubt or held", &["key", "state", "tries", "written"], &doubt)) }
        (more(in_doubt.len(), "bursar payouts list"))
        h2 { "Receivers that are stopped" (age(details.age)) }
        @if stopped.is_empty() { p { "None." } }
        @else { (table("Receivers that are stopped", &["receiver", "since", "why", "ends"], &stopped)) }
        h2 { "The last fencing rejects" (age(details.age)) }
        @if history.rejects.is_empty() { p { "None: no write of an older term was tried." } }
        @else { ul { @for reject in history.rejects.iter().take(ROWS) { li { (refusal(reject)) } } } }
        h2 { "The last acts of operators" (age(details.age)) }
        @if acts.is_empty() { p { "None of late but imports." } }
        @else { ul { @for act in acts { li { (deed(act)) } } } }
    }
}

fn unit(unit: &UnitView) -> Markup {
    html! {
        th scope="row" { "run " (unit.run) ", unit " (unit.id) }
        td { (unit.attempts) }
        td.words { (unit.last_error.as_deref().map_or_else(|| "–".to_owned(), class_of)) }
    }
}

fn payout(payout: &PayoutView) -> Markup {
    html! {
        th scope="row" { code { (payout.key) } }
        td {
            (payout.state.as_str())
            @if let Some(reason) = &payout.reason { ": " (reason.replace('_', " ")) }
        }
        td { (payout.attempts) }
        td { (time(payout.created_at)) }
    }
}

/// One refusal, in a sentence.
fn refusal(reject: &FenceReject) -> Markup {
    html! {
        (time(reject.at)) ": " code { (reject.replica) } " presented term " (reject.presented.term) " of "
        (reject.presented.election) " for " code { (reject.operation) } "; "
        @match &reject.found {
            Some(found) if found.term == reject.presented.term => { "the store had accepted that term from another tenure" }
            Some(found) => { "term " (found.term) " was in force" }
            None => { "nobody's term was in force" }
        }
        ". The store refused it, and nothing was written."
    }
}

/// What an operator did. Of acts on merchants not on which, and of acts on money not why: that is not for this port.
fn deed(act: &ActView) -> Markup {
    let shows_target = !act.action.starts_with("merchant") && !act.action.starts_with("import");
    html! {
        (time(act.at)) ": " (act.by) ", " strong { (act.action) }
        @if shows_target { " " (act.target) }
        @if let Some(reason) = reason_of(act) { ": " (reason) }
    }
}
