//! The fence before every operation: whoever is not the claim in force is refused everything, is told what was found, is on
//! record, and has changed nothing. A halted election begins nothing and still records.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bursar::domain::{Claim, ElectionName, JobName};
use bursar::store::{
    CallFate, CallRecord, Entered, Execution, Fenced, Heard, JobRow, OpenRun, PayoutRecords, PayoutTake, PlanSource,
    ReceiverAsk, Recovery, RequestKind, StoreError, TenureStore, TickFate, TicksRecord,
};
use chrono::TimeDelta;
use uuid::Uuid;

use super::bench::{
    Admits, BOUND, Bench, actor, call_record, calling, change, charge, claim, claim_of, definition, effect, election,
    everything, fresh, holder, keys, mark, mine, probe, tick,
};
use super::payouts::{BANK, of, order, paid, records, terms};
use bursar::domain::job::{HandlerDefinition, LedgerDefinition};

/// The kind of a fenced operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Begin,
    Record,
}

/// One operation, not yet asked for.
struct Operation<'a> {
    name: &'static str,
    kind: Kind,
    answer: Pin<Box<dyn Future<Output = Fenced<String>> + Send + 'a>>,
}

fn shown<T: Debug>(answer: Fenced<T>) -> Fenced<String> {
    answer.map(|entered| entered.map(|done| format!("{done:?}")))
}

macro_rules! operation {
    ($name:literal, $kind:ident, $call:expr) => {
        Operation { name: $name, kind: Kind::$kind, answer: Box::pin(async move { shown($call.await) }) }
    };
}

/// A store in which every operation has something to do.
struct Scene {
    leads: Arc<dyn TenureStore>,
    job: JobRow,
    planning: OpenRun,
    given_up: OpenRun,
    open: OpenRun,
    ledger: OpenRun,
    calling: OpenRun,
    over: OpenRun,
    tried: i64,
    on_the_wire: CallRecord,
    take: PayoutTake,
    paid: PayoutRecords,
    ask: ReceiverAsk,
    heard: Heard,
    request: Uuid,
    /// A job, and the election that it may be taken over from.
    moving: (JobName, ElectionName),
}

impl Scene {
    async fn set(bench: &Bench) -> Self {
        let leads = bench.lead(1).await;
        let tenure = leads.as_ref();
        let job = bench.job(tenure, probe("job")).await;
        let planning = bench.opened(tenure, probe("planning")).await;
        let given_up = bench.opened(tenure, probe("given-up")).await;
        mine(tenure.plan_page(&given_up, &PlanSource::Query("nothing".to_owned()), None, 10).await);
        let open = bench.planned(tenure, probe("open"), &["a", "b"]).await;
        let over = bench.planned(tenure, probe("over"), &["a"]).await;
        mine(tenure.settle(&over, fresh(10), &mark()).await);
        bench.import("psp", vec![super::bench::capture("e1", "acme", "EUR", "1.00")]).await;
        let ledger = bench.job(tenure, definition("ledger", HandlerDefinition::Ledger(everything()))).await;
        let ledger = bench.netted(tenure, &ledger).await;
        let calling = bench.planned(tenure, calling("calling", true), &["a", "b", "c"]).await;
        let call = mine(tenure.take_calls(&calling, 2).await).remove(0);
        let (take, paid) = Self::payouts(bench, tenure).await;
        let ask =
            ReceiverAsk { origin: take.origin.clone(), probe_waits: take.probe_waits, probe_now: false, tries: true };
        let mut heard = Heard::nothing(take.origin.clone(), 20, take.probe_waits.0);
        heard.refusal();
        mine(tenure.begin_work(open.id).await);
        let tried = bench.unit(open.id, "b").await.id;
        let kind = RequestKind::Trigger { job: JobName::new("job").expect("a name"), tick: None, cutoff: None };
        let request = bench.store.request(&kind, &actor(), None).await.expect("filed");
        let on_the_wire = call_record(call.instruction, call.attempt, CallFate::Done);
        let other = ElectionName::new("other").expect("a name");
        bench.job(bench.lead_of(&claim_of(other.clone(), 1)).await.as_ref(), probe("moving")).await;
        let moving = (probe("moving").name, other);
        Self {
            leads,
            job,
            planning,
            given_up,
            open,
            ledger,
            calling,
            over,
            tried,
            on_the_wire,
            take,
            paid,
            ask,
            heard,
            request,
            moving,
        }
    }

    /// Two payouts on the wire, of which one is paid by that record, and a third that is due for that take.
    async fn payouts(bench: &Bench, tenure: &dyn TenureStore) -> (PayoutTake, PayoutRecords) {
        let ledger = LedgerDefinition { sources: ["bank".to_owned()].into(), ..everything() };
        let paying = bench.job(tenure, definition("paying", HandlerDefinition::Ledger(ledger))).await;
        let entry = |n| super::bench::capture(&format!("p{n}"), &format!("payee-{n}"), "EUR", "2.00");
        bench.import("bank", (0..3).map(entry).collect()).await;
        bench.settled(tenure, &paying).await;
        let take = order(terms(&paying, false));
        let sent = mine(tenure.take_payouts(&PayoutTake { limit: 2, ..take.clone() }).await).payouts;
        (take, records(vec![of(&sent[0], paid())]))
    }

    /// Every operation of the fenced half, in an order in which each could have its effect.
    fn operations<'a>(&'a self, bench: &'a Bench, tenure: &'a dyn TenureStore) -> Vec<Operation<'a>> {
        let ticks =
            TicksRecord { job: self.job.clone(), evaluated_until: self.job.evaluated_until, ticks: vec![bench.tick()] };
        let an_hour_before = tick(bench.tick().tick - TimeDelta::hours(1), TickFate::Skipped("overlap".to_owned()));
        let together = TicksRecord { ticks: vec![an_hour_before], ..ticks.clone() };
        let mut edit = change(&self.job);
        edit.definition.as_mut().expect("a definition").batch.size = 7;
        let open = Execution::Open { job: Box::new(self.job.clone()), tick: bench.tick() };
        vec![
            operation!("pulse", Begin, tenure.pulse()),
            operation!("jobs", Begin, tenure.jobs()),
            operation!("open_runs", Begin, tenure.open_runs()),
            operation!("requests", Begin, tenure.requests()),
            operation!("record_ticks", Begin, tenure.record_many(std::slice::from_ref(&together))),
            operation!("record_ticks", Begin, tenure.record_ticks(ticks)),
            operation!("execute", Begin, tenure.execute(self.request, open)),
            operation!("change_job", Begin, tenure.change_job(edit)),
            operation!("take_over_job", Begin, tenure.take_over_job(&self.moving.0, &self.moving.1)),
            operation!("begin_work", Begin, tenure.begin_work(self.planning.id)),
            operation!("plan_page", Begin, tenure.plan_page(&self.planning, &keys(&["x", "y"]), None, 10)),
            operation!("give_up", Begin, tenure.give_up(self.given_up.id, 0, 10)),
            operation!("settle", Begin, tenure.settle(&self.open, fresh(1), &mark())),
            operation!("settle", Begin, tenure.settle(&self.ledger, fresh(10), &effect(&self.ledger))),
            operation!("take_calls", Begin, tenure.take_calls(&self.calling, 10)),
            operation!("finish_run", Begin, tenure.finish_run(self.over.id)),
            operation!("receiver_way", Begin, tenure.receiver_way(&self.ask)),
            operation!("payout_jobs", Begin, tenure.payout_jobs()),
            operation!("take_payouts", Begin, tenure.take_payouts(&self.take)),
            operation!("charge", Record, tenure.charge(self.open.id, &[charge(self.tried, 0, None)])),
            operation!(
                "record_calls",
                Record,
                tenure.record_calls(self.calling.id, std::slice::from_ref(&self.on_the_wire))
            ),
            operation!("put_back", Record, tenure.put_back(self.calling.id, &[])),
            operation!("record_payouts", Record, tenure.record_payouts(&self.paid)),
            operation!("heard", Record, tenure.heard(&self.heard)),
            operation!("put_back_payouts", Record, tenure.put_back_payouts(BANK, &[])),
            operation!("lineage", Record, tenure.lineage()),
            operation!("release", Record, tenure.release()),
            operation!("recover", Record, tenure.recover()),
        ]
    }

    /// Asks for everything under a claim that is not in force, and sees it refused.
    async fn is_refused(&self, bench: &Bench, tenure: &dyn TenureStore, found: &Claim, noted: usize) -> usize {
        let before = bench.picture().await;
        let mut names = Vec::new();
        for operation in self.operations(bench, tenure) {
            let answer = operation.answer.await;
            assert_eq!(answer, Ok(Entered::Fenced(Some(holder(found)))), "{}", operation.name);
            names.push(operation.name);
        }
        assert_eq!(bench.picture().await, before, "nothing changed");
        let all = noted + names.len();
        let refusals = bench.refusals(all).await.split_off(noted);
        let mut operations: Vec<_> = refusals.iter().map(|refusal| refusal.operation.as_str()).collect();
        operations.sort_unstable();
        names.sort_unstable();
        assert_eq!(operations, names, "each is on record");
        for refusal in &refusals {
            assert_eq!((&refusal.presented, refusal.found), (tenure.claim(), Some(holder(found))));
        }
        all
    }

    /// Asks for everything under the claim in force: what is refused elsewhere would have had its effect.
    async fn is_done(&self, bench: &Bench, tenure: &dyn TenureStore) {
        let unseen = [
            "pulse",
            "jobs",
            "open_runs",
            "requests",
            "receiver_way",
            "payout_jobs",
            "heard",
            "begin_work",
            "lineage",
            "release",
            "recover",
        ];
        for operation in self.operations(bench, tenure) {
            let before = bench.picture().await;
            let answer = operation.answer.await;
            assert!(matches!(answer, Ok(Entered::Mine(_))), "{}: {answer:?}", operation.name);
            let changed = bench.picture().await != before;
            assert_eq!(changed, !unseen.contains(&operation.name), "{}: {answer:?}", operation.name);
        }
    }
}

pub async fn an_old_term_is_refused_everything_and_changes_nothing(bench: &Bench) {
    let scene = Scene::set(bench).await;
    let next = claim(2);
    let new = bench.lead_of(&next).await;
    let found = mine(new.recover().await);
    assert_eq!(found, Recovery { calls_unknown: 4, runs_set_aside: Vec::new(), runs_taken_over: 1 });
    mine(new.begin_work(scene.open.id).await);
    scene.is_refused(bench, scene.leads.as_ref(), &next, 0).await;
    // Neither did the old term note that it works on a run, nor give up what the new one works on.
    let third = bench.lead(3).await;
    assert_eq!(mine(third.recover().await).runs_taken_over, 1);
    assert_eq!(bench.run_state(scene.planning.id).await.1, 0);
}

pub async fn the_same_term_of_another_tenure_is_refused_everything_and_changes_nothing(bench: &Bench) {
    let scene = Scene::set(bench).await;
    let twin = bench.tenure(&claim(1)).await;
    scene.is_refused(bench, twin.as_ref(), scene.leads.claim(), 0).await;
    scene.is_done(bench, scene.leads.as_ref()).await;
}

pub async fn another_term_of_the_same_tenure_is_refused_everything_and_changes_nothing(bench: &Bench) {
    let scene = Scene::set(bench).await;
    let mut noted = 0;
    for term in [0, 2] {
        let strange = Claim { term: claim(term).term, ..scene.leads.claim().clone() };
        let strange = bench.tenure(&strange).await;
        noted = scene.is_refused(bench, strange.as_ref(), scene.leads.claim(), noted).await;
    }
}

pub async fn a_higher_term_that_was_not_accepted_is_refused_everything_and_changes_nothing(bench: &Bench) {
    let scene = Scene::set(bench).await;
    let early = bench.tenure(&claim(9)).await;
    scene.is_refused(bench, early.as_ref(), scene.leads.claim(), 0).await;
    mine(scene.leads.pulse().await);
}

pub async fn a_claim_on_an_election_that_nobody_led_is_refused_and_finds_nobody(bench: &Bench) {
    let nobody = bench.tenure(&claim(1)).await;
    assert_eq!(nobody.pulse().await, Ok(Entered::Fenced(None)));
    assert_eq!(nobody.recover().await, Ok(Entered::Fenced(None)));
    let refusals = bench.refusals(2).await;
    assert!(refusals.iter().all(|refusal| refusal.found.is_none() && refusal.presented == *nobody.claim()));
    // Whoever leads an election knows those of all: the one that was refused may lead nowhere.
    let other = ElectionName::new("other").expect("a name");
    bench.lead_of(&claim_of(other.clone(), 1)).await;
    for election in [&other, &election()] {
        assert_eq!(bench.store.figures(election).await.expect("an answer").fencing_rejects, 2, "{election}");
    }
}

pub async fn a_halted_election_begins_nothing_and_still_records(bench: &Bench) {
    let scene = Scene::set(bench).await;
    bench.store.halt(&election(), "drill", &actor()).await.expect("halted");
    let halt = bench.store.fence(&election()).await.expect("an answer").expect("a fence").halt.expect("halted");
    assert_eq!((halt.reason.as_str(), halt.by.as_str()), ("drill", "tester@bench"));
    let before = bench.picture().await;
    let (begin, record): (Vec<_>, Vec<_>) =
        scene.operations(bench, scene.leads.as_ref()).into_iter().partition(|operation| operation.kind == Kind::Begin);
    for operation in begin {
        let answer = operation.answer.await;
        assert_eq!(answer, Ok(Entered::Halted(halt.clone())), "{}", operation.name);
    }
    assert_eq!(bench.picture().await, before, "nothing changed");
    for operation in record {
        let before = bench.picture().await;
        let answer = operation.answer.await;
        assert!(matches!(answer, Ok(Entered::Mine(_))), "{}: {answer:?}", operation.name);
        let changed = bench.picture().await != before;
        let seen = ["charge", "record_calls", "put_back", "record_payouts", "put_back_payouts"];
        assert_eq!(changed, seen.contains(&operation.name), "{}", operation.name);
    }
    // Who is not in force is told that, and not of the halt.
    let twin = bench.tenure(&claim(1)).await;
    assert_eq!(twin.pulse().await, Ok(Entered::Fenced(Some(holder(scene.leads.claim())))));
    bench.store.resume(&election(), "over", &actor()).await.expect("resumed");
    mine(scene.leads.pulse().await);
}

pub async fn a_tenure_that_has_ended_does_nothing_any_more(bench: &Bench) {
    let scene = Scene::set(bench).await;
    let before = bench.picture().await;
    for _ in 0..2 {
        assert!(scene.leads.end(Duration::from_secs(5)).await.confirmed);
    }
    for operation in scene.operations(bench, scene.leads.as_ref()) {
        let answer = operation.answer.await;
        assert!(matches!(answer, Err(StoreError::Ended { .. })), "{}: {answer:?}", operation.name);
    }
    assert_eq!(bench.picture().await, before, "nothing changed");
    // The claim is still the one in force: only this way to the store is closed.
    let again = bench.store.advance(scene.leads.claim(), &super::bench::leader(), BOUND).await;
    assert!(matches!(again, Ok(bursar::store::AdvanceOutcome::Accepted { .. })), "{again:?}");
    bench.tenure(scene.leads.claim()).await.end(Duration::from_secs(5)).await;
}

pub async fn nothing_begins_where_it_is_not_admitted_and_outcomes_are_recorded(bench: &Bench) {
    let scene = Scene::set(bench).await;
    let suspect = bench.tenure_where(scene.leads.claim(), Admits(false)).await;
    let (begin, record): (Vec<_>, Vec<_>) =
        scene.operations(bench, suspect.as_ref()).into_iter().partition(|operation| operation.kind == Kind::Begin);
    let before = bench.picture().await;
    for operation in begin {
        let answer = operation.answer.await;
        assert!(matches!(answer, Err(StoreError::Ended { .. })), "{}: {answer:?}", operation.name);
    }
    assert_eq!(bench.picture().await, before, "nothing changed");
    for operation in record {
        let answer = operation.answer.await;
        assert!(matches!(answer, Ok(Entered::Mine(_))), "{}: {answer:?}", operation.name);
    }
    suspect.end(Duration::from_secs(5)).await;
}
