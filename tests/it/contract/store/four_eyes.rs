//! Two pairs of eyes, on stores that have roles: what waits, who may approve it, and that nothing else lets it happen.

use std::sync::Arc;

use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{LedgerDefinition, Release};
use bursar::domain::unit::UnitState;
use bursar::store::{
    ActDone, ApprovalState, ApprovalView, CallFate, CallWord, DecideOutcome, Decision, FourEyesOutcome, ReleaseOutcome,
    Resolution, ResolveOutcome, RevertOutcome, Store,
};

use super::bench::{Bench, SOON, actor, call_record, calling, capture, everything, mine};
use super::payouts::{Till, merchants, unknown};

/// The same store, as two roles have it.
pub struct Pair<'a> {
    pub bench: &'a Bench,
    pub other: Arc<dyn Store>,
}

impl Pair<'_> {
    fn ours(&self) -> &dyn Store {
        self.bench.store.as_ref()
    }

    async fn on(&self) {
        let turned = self.ours().set_four_eyes(true, "two of us", &actor()).await;
        assert_eq!(turned, Ok(FourEyesOutcome::On));
    }

    async fn request(&self, id: i64) -> ApprovalView {
        self.ours().approvals(Some(id), true, 10).await.expect("an answer").remove(0)
    }

    async fn waiting(&self) -> Vec<i64> {
        let waiting = self.other.approvals(None, false, 10).await.expect("an answer");
        waiting.into_iter().map(|request| request.id).collect()
    }

    async fn decide(&self, store: &dyn Store, id: i64, decision: Decision) -> DecideOutcome {
        store.decide(id, decision, Some("seen"), &actor()).await.expect("an answer")
    }

    async fn approve(&self, id: i64) -> DecideOutcome {
        self.decide(self.other.as_ref(), id, Decision::Approve).await
    }
}

async fn resolve(till: &Till<'_>, key: &str) -> ResolveOutcome {
    let word = Resolution::Paid("R-2".to_owned());
    till.bench.store.resolve_payout(key, &word, "the bank's letter", &actor()).await.expect("an answer")
}

fn waits(outcome: &ResolveOutcome) -> i64 {
    let ResolveOutcome::Waits { request } = outcome else { panic!("it waits: {outcome:?}") };
    *request
}

/// A payout that is held because its outcome is unknown.
async fn held(till: &Till<'_>) -> String {
    let payout = till.take_one(till.terms(false)).await;
    assert_eq!(till.record(&payout, unknown(None)).await, Some(InstructionState::Held));
    payout.idempotency_key
}

pub async fn a_word_waits_for_another_role_and_is_carried_out_once(pair: &Pair<'_>) {
    let till = Till::open(pair.bench, 1).await;
    let key = held(&till).await;
    pair.on().await;
    let request = waits(&resolve(&till, &key).await);
    assert_eq!(waits(&resolve(&till, &key).await), request, "the same asked again is the same request");
    assert_eq!(till.view(&key).await.state, InstructionState::Held, "nothing is done yet");
    let asked = pair.request(request).await;
    assert_eq!(
        (asked.state, asked.reason.as_str(), asked.by.as_str()),
        (ApprovalState::Waiting, "the bank's letter", "tester@bench")
    );
    assert!(asked.found.contains("held (unknown)"), "{}", asked.found);
    // Whoever asked is not the second.
    let same = pair.decide(pair.ours(), request, Decision::Approve).await;
    assert_eq!(same, DecideOutcome::SameRole { asked: asked.role.clone(), approves: asked.role.clone() });
    assert_eq!(till.view(&key).await.state, InstructionState::Held);
    let outcome = pair.approve(request).await;
    let did = ActDone::Resolved { was: InstructionState::Held, now: InstructionState::Paid };
    assert_eq!(outcome, DecideOutcome::Approved { asks: asked.asks, did });
    let view = till.view(&key).await;
    assert_eq!((view.state, view.reference.as_deref()), (InstructionState::Paid, Some("R-2")));
    assert_eq!(pair.approve(request).await, DecideOutcome::Closed { state: ApprovalState::Approved });
    let decided = pair.request(request).await.decided.expect("it is decided");
    assert!(decided.role != asked.role && decided.reason.as_deref() == Some("seen"), "{decided:?}");
    let acts = till.bench.store.history(10).await.expect("an answer").acts;
    for action in ["ask: payouts resolve", "approve", "payouts resolve"] {
        assert!(acts.iter().any(|act| act.action == action), "{action}: {acts:#?}");
    }
    assert_eq!(till.open_money().await, "0.00");
}

pub async fn what_is_tried_on_while_its_word_waits_is_still_as_it_was_asked(pair: &Pair<'_>) {
    let till = Till::open(pair.bench, 1).await;
    let payout = till.doubt_one(till.terms(true)).await;
    pair.on().await;
    let request = waits(&resolve(&till, &payout.idempotency_key).await);
    let again = till.take_again(&till.terms(true)).await;
    assert_eq!(till.record(&again, unknown(SOON)).await, Some(InstructionState::Unknown));
    let DecideOutcome::Approved { did, .. } = pair.approve(request).await else { panic!("it is as it was") };
    assert_eq!(did, ActDone::Resolved { was: InstructionState::Unknown, now: InstructionState::Paid });
}

pub async fn what_is_tried_again_after_somebody_found_it_undone_is_not_what_was_found(pair: &Pair<'_>) {
    let till = Till::open(pair.bench, 1).await;
    let payout = till.doubt_one(till.terms(true)).await;
    pair.on().await;
    let word = Resolution::NotPaid { bank_confirmed: Some("W".to_owned()) };
    let asked = till.bench.store.resolve_payout(&payout.idempotency_key, &word, "the bank's letter", &actor()).await;
    let request = waits(&asked.expect("an answer"));
    let again = till.take_again(&till.terms(true)).await;
    assert_eq!(till.record(&again, unknown(SOON)).await, Some(InstructionState::Unknown));
    let moved = pair.approve(request).await;
    let DecideOutcome::Moved { asked, found } = moved else { panic!("the later try may have paid: {moved:?}") };
    assert!(asked.contains("1 tries") && found.contains("2 tries"), "{asked}; {found}");
    assert_eq!(till.view(&payout.idempotency_key).await.state, InstructionState::Unknown);
}

pub async fn what_is_not_as_it_was_asked_is_refused_and_both_are_shown(pair: &Pair<'_>) {
    let till = Till::open(pair.bench, 2).await;
    pair.on().await;
    let pending = till.payouts().await.remove(0).key;
    let first = waits(&resolve(&till, &pending).await);
    for payout in till.take(till.terms(false)).await.payouts {
        till.record(&payout, unknown(None)).await;
    }
    let before = till.picture().await;
    let moved = pair.approve(first).await;
    let DecideOutcome::Moved { asked, found } = moved else { panic!("it moved: {moved:?}") };
    assert!(asked.starts_with("pending") && found.starts_with("held (unknown)"), "{asked}; {found}");
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(pair.waiting().await, [first]);
    assert_eq!(pair.decide(pair.ours(), first, Decision::Reject).await, DecideOutcome::Withdrawn);
    // As things are now, it can be asked again; another role may say no.
    let second = waits(&resolve(&till, &pending).await);
    assert_eq!(pair.decide(pair.other.as_ref(), second, Decision::Reject).await, DecideOutcome::Rejected);
    assert_eq!(pair.waiting().await, Vec::<i64>::new());
    assert_eq!(pair.approve(second).await, DecideOutcome::Closed { state: ApprovalState::Rejected });
    assert_eq!(pair.approve(i64::MAX).await, DecideOutcome::NotFound);
    assert_eq!(till.view(&pending).await.state, InstructionState::Held);
}

pub async fn a_release_lets_go_what_was_asked_and_nothing_that_came_since(pair: &Pair<'_>) {
    let manual = LedgerDefinition { release: Release::Manual, ..everything() };
    let till = Till::of(pair.bench, manual, merchants(3)).await;
    pair.on().await;
    let keys: Vec<String> = till.payouts().await.into_iter().map(|payout| payout.key).collect();
    let release = async |keys: &[String]| {
        let outcome = pair.ours().release_payouts(till.run.id, keys, "agreed", &actor()).await.expect("an answer");
        let ReleaseOutcome::Waits { request } = outcome else { panic!("it waits: {outcome:?}") };
        request
    };
    let (all, one) = (release(&[]).await, release(&keys[..1]).await);
    assert!(till.take(till.terms(true)).await.payouts.is_empty(), "nothing leaves yet");
    let DecideOutcome::Approved { did, .. } = pair.approve(one).await else { panic!("it is approved") };
    assert_eq!(did, ActDone::Released { payouts: 1 });
    // Of the three that were asked for, two are left.
    assert!(matches!(pair.approve(all).await, DecideOutcome::Moved { .. }));
    let rest = release(&[]).await;
    assert_ne!(rest, all, "what was asked first can be approved no more");
    assert_eq!(release(&[]).await, rest, "the same, of what is as it was then");
    assert_eq!(pair.decide(pair.ours(), all, Decision::Reject).await, DecideOutcome::Withdrawn);
    let DecideOutcome::Approved { did, .. } = pair.approve(rest).await else { panic!("it is approved") };
    assert_eq!(did, ActDone::Released { payouts: 2 });
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 3);
    let none = pair.ours().release_payouts(till.run.id, &[], "agreed", &actor()).await;
    assert_eq!(none, Ok(ReleaseOutcome::Released { payouts: 0 }), "nobody is asked for nothing");
}

pub async fn an_import_is_taken_back_by_two_and_only_as_it_was_seen(pair: &Pair<'_>) {
    let till = Till::open(pair.bench, 1).await;
    pair.on().await;
    let import = till.bench.import("stripe", vec![capture("s1", "acme", "EUR", "5.00")]).await;
    let revert = async || {
        let outcome = pair.ours().revert_import(import.id, "a wrong file", &actor()).await.expect("an answer");
        let RevertOutcome::Waits { request } = outcome else { panic!("it waits: {outcome:?}") };
        request
    };
    let open = revert().await;
    till.bench.settled(till.leads.as_ref(), &till.job).await;
    let moved = pair.approve(open).await;
    let DecideOutcome::Moved { asked, found } = moved else { panic!("it was settled meanwhile: {moved:?}") };
    assert_eq!((asked.as_str(), found.as_str()), ("1 entries open, 0 settled", "0 entries open, 1 settled"));
    assert_eq!(pair.decide(pair.ours(), open, Decision::Reject).await, DecideOutcome::Withdrawn);
    let settled = revert().await;
    let DecideOutcome::Approved { did, .. } = pair.approve(settled).await else { panic!("it is approved") };
    assert_eq!(did, ActDone::Reverted { withdrawn: 0, adjusted: 1 });
    let again = pair.ours().revert_import(import.id, "a wrong file", &actor()).await;
    assert!(matches!(again, Ok(RevertOutcome::Already { .. })), "{again:?}");
}

pub async fn their_end_waits_for_two_and_no_client_leaves_them_out(pair: &Pair<'_>) {
    let till = Till::open(pair.bench, 1).await;
    let key = held(&till).await;
    let set =
        async |store: &dyn Store, on| store.set_four_eyes(on, "the configuration", &actor()).await.expect("an answer");
    assert_eq!(set(pair.ours(), false).await, FourEyesOutcome::Off);
    pair.on().await;
    assert_eq!(set(pair.other.as_ref(), true).await, FourEyesOutcome::WasOn);
    let FourEyesOutcome::Waits { request } = set(pair.ours(), false).await else { panic!("its end waits") };
    waits(&resolve(&till, &key).await);
    assert!(matches!(pair.decide(pair.ours(), request, Decision::Approve).await, DecideOutcome::SameRole { .. }));
    let DecideOutcome::Approved { did, .. } = pair.approve(request).await else { panic!("it is approved") };
    assert_eq!(did, ActDone::FourEyesEnded);
    let outcome = resolve(&till, &key).await;
    assert_eq!(outcome, ResolveOutcome::Resolved { was: InstructionState::Held, now: InstructionState::Paid });
}

pub async fn a_word_on_a_call_waits_for_another_role_too(pair: &Pair<'_>) {
    let leads = pair.bench.lead(1).await;
    let run = pair.bench.planned(leads.as_ref(), calling("calls", false), &["a"]).await;
    let call = mine(leads.take_calls(&run, 1).await).remove(0);
    let fate = CallFate::Unknown { error: "no answer".to_owned(), again_in: None };
    mine(leads.record_calls(run.id, &[call_record(call.instruction, call.attempt, fate)]).await);
    pair.on().await;
    let word = CallWord::Done("R-7".to_owned());
    let asked = pair.ours().resolve_call(run.id, "a", &word, "asked them", &actor()).await.expect("an answer");
    let request = waits(&asked);
    let view = pair.request(request).await;
    let found = format!("unit set_aside, call {} held (unknown), 1 tries, in doubt", call.idempotency_key);
    assert_eq!((view.found.as_str(), view.asks.target()), (found.as_str(), call.idempotency_key));
    assert_eq!(pair.bench.unit(run.id, "a").await.state, UnitState::SetAside, "nothing is done yet");
    let DecideOutcome::Approved { did, .. } = pair.approve(request).await else { panic!("it is approved") };
    assert_eq!(did, ActDone::Resolved { was: InstructionState::Held, now: InstructionState::Paid });
    assert_eq!(pair.bench.unit(run.id, "a").await.state, UnitState::Settled);
}
