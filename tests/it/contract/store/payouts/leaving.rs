//! What is taken, by whom, in what order; and what is put back.

use std::time::Duration;

use bursar::domain::Claim;
use bursar::domain::ElectionName;
use bursar::domain::instruction::InstructionState;
use bursar::domain::job::HandlerDefinition;
use bursar::store::{
    Entered, Errand, PayoutFate, PayoutFilter, PayoutRecord, PayoutTake, PayoutTerms, PayoutsTaken, StoreError,
    TenureStore,
};

use super::super::bench::{
    Admits, Bench, SOON, actor, capture, claim, claim_of, currency, definition, election, everything, fenced, mine,
};
use super::{BANK, Till, back, elsewhere, held, of, order, paid, records, unknown};

pub async fn a_payout_is_taken_once_under_its_first_key_and_bytes(bench: &Bench) {
    let till = Till::open(bench, 5).await;
    assert_eq!(mine(till.leads.payout_jobs().await).iter().map(|job| job.id).collect::<Vec<_>>(), [till.job.id]);
    let terms = till.terms(false);
    let first = till.take_as(PayoutTake { limit: 2, ..order(terms.clone()) }).await;
    assert_eq!((first.payouts.len(), first.full, first.next_in), (2, true, Some(Duration::ZERO)));
    let rest = order(terms);
    let (one, other) = tokio::join!(till.leads.take_payouts(&rest), till.leads.take_payouts(&rest));
    let (one, other) = (mine(one), mine(other));
    assert_eq!(one.payouts.len() + other.payouts.len(), 3, "what is on the wire is not taken again");
    assert_eq!(mine(till.leads.payout_jobs().await), [], "nothing is left to be sent");
    let taken: Vec<_> = first.payouts.into_iter().chain(one.payouts).chain(other.payouts).collect();
    for payout in &taken {
        assert_eq!((payout.job, payout.attempt, payout.in_doubt), (till.job.id, 1, false));
        assert_eq!(payout.errand, Errand::Send);
        assert!(payout.leaves_within > Duration::from_hours(19) && payout.leaves_within < Duration::from_hours(20));
        let view = till.view(&payout.idempotency_key).await;
        assert_eq!((view.id, view.state, view.attempts), (payout.instruction, InstructionState::Sending, 1));
        assert_eq!((view.body.as_bytes(), view.receiver.as_deref()), (payout.body.as_slice(), Some(BANK)));
        let first = view.first_sent_at.expect("it was sent");
        assert!(first <= payout.taken_at && (payout.taken_at - first).num_seconds() < 5, "{view:?}");
        let valid = view.key_valid_until.expect("it counts") - first;
        assert_eq!(valid.num_minutes(), 20 * 60, "from before the first byte");
    }
    till.record(&taken[0], back()).await;
    let again = till.take_one(till.terms(false)).await;
    assert_eq!((&again.idempotency_key, &again.body), (&taken[0].idempotency_key, &taken[0].body));
    assert_eq!((again.attempt, again.in_doubt, again.errand), (2, false, Errand::Send));
}

pub async fn a_take_keeps_to_its_jobs_their_order_and_its_limit(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let tenure = till.leads.as_ref();
    let other = bench.job(tenure, definition("other", HandlerDefinition::Ledger(everything()))).await;
    bench.import("stripe", vec![capture("s1", "m9", "EUR", "1.00"), capture("s2", "m8", "EUR", "1.00")]).await;
    bench.settled(tenure, &other).await;
    let named: Vec<i64> = mine(tenure.payout_jobs().await).iter().map(|job| job.id).collect();
    assert_eq!(named, [till.job.id, other.id]);
    let others = PayoutTerms { job: other.id, ..till.terms(false) };
    let nobodys = PayoutTerms { job: i64::MAX, ..till.terms(false) };
    assert_eq!(till.take(nobodys).await, PayoutsTaken::default());
    let both = PayoutTake { jobs: vec![others, till.terms(false)], limit: 3, ..order(till.terms(false)) };
    let first = till.take_as(both).await;
    let mut jobs: Vec<i64> = first.payouts.iter().map(|payout| payout.job).collect();
    assert!(first.payouts.is_sorted_by_key(|payout| payout.instruction), "in the order of ids");
    jobs.sort_unstable();
    assert_eq!(jobs, [till.job.id, other.id, other.id], "the first job's go first");
    let one = till.take_as(PayoutTake { limit: 1, ..order(till.terms(false)) }).await.payouts.remove(0);
    let left = till.take(till.terms(false)).await;
    assert_eq!((left.payouts.len(), left.full, left.next_in), (1, false, None));
    assert!(one.instruction < left.payouts[0].instruction, "the oldest goes first");
}

pub async fn payouts_that_wait_are_told_and_taken_after_those_that_do_not(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let terms = till.terms(false);
    let one = PayoutTake { limit: 1, ..order(terms.clone()) };
    let first = till.take_as(one.clone()).await.payouts.remove(0);
    let error = Some("answered 429".to_owned());
    let later = PayoutFate::Back { left: true, error, again_in: Some(Duration::from_hours(1)) };
    assert_eq!(till.record(&first, later).await, Some(InstructionState::Pending));
    assert_eq!(till.view(&first.idempotency_key).await.last_error.as_deref(), Some("answered 429"));
    let second = till.take_as(one.clone()).await.payouts.remove(0);
    assert_ne!(second.instruction, first.instruction);
    let nothing = till.take_as(one.clone()).await;
    let wait = nothing.next_in.expect("one waits");
    assert!(wait > Duration::from_mins(58) && wait <= Duration::from_hours(1), "{wait:?}");
    assert_eq!(nothing, PayoutsTaken { next_in: Some(wait), ..PayoutsTaken::default() });
    till.record(&second, PayoutFate::Back { left: false, error: None, again_in: SOON }).await;
    let again = till.take_again(&terms).await;
    assert_eq!((again.instruction, again.attempt), (second.instruction, 2));
    assert_eq!(mine(till.leads.payout_jobs().await).len(), 1, "what waits is still to be sent");
}

pub async fn a_take_without_an_answer_is_put_back_and_what_is_in_hand_is_not(bench: &Bench) {
    let till = Till::open(bench, 4).await;
    let tenure = till.leads.as_ref();
    let one = PayoutTake { limit: 1, ..order(till.terms(false)) };
    let kept = till.take_as(one).await.payouts.remove(0);
    let others = till.take_as(PayoutTake { limit: 1, ..elsewhere(till.terms(false)) }).await.payouts.remove(0);
    let lost = till.take(till.terms(false)).await.payouts;
    let in_hand = [(kept.instruction, kept.attempt)];
    assert_eq!(mine(tenure.put_back_payouts(BANK, &in_hand).await), 2);
    let before = till.picture().await;
    assert_eq!(mine(tenure.put_back_payouts(BANK, &in_hand).await), 0, "a second time there is nothing to do");
    for payout in &lost {
        assert_eq!(till.shown(payout).await, (InstructionState::Pending, None, false));
        let view = till.view(&payout.idempotency_key).await;
        assert_eq!((view.first_sent_at, view.key_valid_until, view.attempts), (None, None, 1));
        assert_eq!(till.record(payout, paid()).await, None, "it is on the wire no more");
    }
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(till.take(till.terms(false)).await.payouts.len(), 2);
    assert_eq!(till.record(&others, paid()).await, Some(InstructionState::Paid), "another receiver's is left");
    assert_eq!(mine(tenure.put_back_payouts(BANK, &[(kept.instruction, 9)]).await), 3, "another try is in hand");
    assert_eq!(till.record(&kept, paid()).await, None);
}

pub async fn what_is_put_back_keeps_its_doubt_and_a_lower_terms_is_not_put_back(bench: &Bench) {
    let mut till = Till::open(bench, 2).await;
    let one = PayoutTake { limit: 1, ..order(till.terms(true)) };
    let doubted = till.take_as(one.clone()).await.payouts.remove(0);
    till.record(&doubted, unknown(Some(Duration::ZERO))).await;
    let first_sent_at = till.view(&doubted.idempotency_key).await.first_sent_at;
    assert!(first_sent_at.is_some());
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 2);
    assert_eq!(mine(till.leads.put_back_payouts(BANK, &[]).await), 2);
    assert_eq!(till.shown(&doubted).await, (InstructionState::Unknown, None, true));
    assert_eq!(till.view(&doubted.idempotency_key).await.first_sent_at, first_sent_at);
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 2);
    let next = bench.lead(2).await;
    assert_eq!(mine(next.put_back_payouts(BANK, &[]).await), 0, "nobody knows that no byte of it left");
    till.leads = next;
    assert_eq!(mine(till.leads.recover().await).calls_unknown, 2);
}

/// Every operation on payouts, and whether it begins something.
async fn asked(till: &Till<'_>, tenure: &dyn TenureStore) -> Vec<(bool, Result<Entered<String>, StoreError>)> {
    fn shown<T: std::fmt::Debug>(answer: Result<Entered<T>, StoreError>) -> Result<Entered<String>, StoreError> {
        answer.map(|entered| entered.map(|done| format!("{done:?}")))
    }
    let sent = till.payouts().await.into_iter().find(|payout| payout.state == InstructionState::Sending);
    let sent = sent.expect("one is on the wire");
    let record = PayoutRecord { instruction: sent.id, attempt: sent.attempts, asked: false, fate: paid() };
    vec![
        (true, shown(tenure.payout_jobs().await)),
        (true, shown(tenure.take_payouts(&PayoutTake { limit: 1, ..order(till.terms(false)) }).await)),
        (false, shown(tenure.record_payouts(&records(vec![record])).await)),
        (false, shown(tenure.put_back_payouts(BANK, &[]).await)),
    ]
}

pub async fn whoever_is_not_in_force_takes_and_records_no_payout(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let sent = till.take_as(PayoutTake { limit: 1, ..order(till.terms(false)) }).await.payouts.remove(0);
    let before = till.picture().await;
    let higher = Claim { term: claim(9).term, ..till.leads.claim().clone() };
    for presented in [claim(1), claim(0), claim(9), higher] {
        let strange = bench.tenure(&presented).await;
        for (_, answer) in asked(&till, strange.as_ref()).await {
            fenced(answer, till.leads.claim());
        }
    }
    assert_eq!(till.picture().await, before, "nothing changed");
    // Nor does another election.
    let other = bench.lead_of(&claim_of(ElectionName::new("other").expect("a name"), 7)).await;
    let before = till.picture().await;
    assert_eq!(mine(other.payout_jobs().await), []);
    assert_eq!(mine(other.take_payouts(&order(till.terms(false))).await), PayoutsTaken::default());
    assert_eq!(mine(other.record_payouts(&records(vec![of(&sent, paid())])).await).states, []);
    assert_eq!(mine(other.put_back_payouts(BANK, &[]).await), 0);
    assert_eq!(till.picture().await, before, "nothing changed");
    // An old term: what it sent is in doubt, and its own record of it comes too late.
    let next = claim(2);
    let new = bench.lead_of(&next).await;
    assert_eq!(mine(new.record_payouts(&records(vec![of(&sent, paid())])).await).states, [], "it is not this term's");
    let before = till.picture().await;
    for (_, answer) in asked(&till, till.leads.as_ref()).await {
        fenced(answer, &next);
    }
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(mine(new.recover().await).calls_unknown, 1);
    assert_eq!(till.shown(&sent).await, held("unknown", true));
}

pub async fn a_halted_election_sends_no_payout_and_records_what_had_left(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let sent = till.take_as(PayoutTake { limit: 2, ..order(till.terms(false)) }).await.payouts;
    bench.store.halt(&election(), "drill", &actor()).await.expect("halted");
    let suspect = bench.tenure_where(till.leads.claim(), Admits(false)).await;
    let before = till.picture().await;
    assert!(matches!(till.leads.payout_jobs().await, Ok(Entered::Halted(_))));
    assert!(matches!(till.leads.take_payouts(&order(till.terms(false))).await, Ok(Entered::Halted(_))));
    assert!(matches!(suspect.take_payouts(&order(till.terms(false))).await, Err(StoreError::Ended { .. })));
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(mine(suspect.record_payouts(&records(vec![of(&sent[0], paid())])).await).states.len(), 1);
    assert_eq!(mine(till.leads.put_back_payouts(BANK, &[]).await), 1);
    bench.store.resume(&election(), "over", &actor()).await.expect("resumed");
    assert_eq!(till.take(till.terms(false)).await.payouts.len(), 2);
}

pub async fn payouts_are_listed_as_the_filter_says(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let all = till.payouts().await;
    assert!(all.len() == 3 && all.is_sorted_by_key(|payout| payout.id));
    let second = &all[1];
    assert_eq!((second.merchant.as_str(), second.amount.as_str(), second.currency.as_str()), ("m1", "10.00", "EUR"));
    assert_eq!((second.job.as_str(), second.election.as_str(), second.run), ("daily", "settlement", till.run.id));
    assert_eq!((second.release.as_str(), second.term, second.value_date), ("auto", 1, Some(till.run.value_date)));
    assert_eq!((second.attempts, second.in_doubt, second.first_sent_at, second.final_at), (0, false, None, None));
    assert!(second.body.contains(r#""amount":"10.00""#) && second.body.contains(&second.key), "{}", second.body);
    till.record(&till.take_as(PayoutTake { limit: 1, ..order(till.terms(false)) }).await.payouts[0], paid()).await;
    let none = PayoutFilter { limit: 9, ..PayoutFilter::default() };
    for (filter, found) in [
        (PayoutFilter { run: Some(till.run.id), ..none.clone() }, vec!["m0", "m1", "m2"]),
        (PayoutFilter { run: Some(till.run.id + 1), ..none.clone() }, vec![]),
        (PayoutFilter { state: Some(InstructionState::Paid), ..none.clone() }, vec!["m0"]),
        (PayoutFilter { state: Some(InstructionState::Pending), ..none.clone() }, vec!["m1", "m2"]),
        (PayoutFilter { merchant: Some("m2".to_owned()), ..none.clone() }, vec!["m2"]),
        (PayoutFilter { key: Some(second.key.clone()), ..none.clone() }, vec!["m1"]),
        (PayoutFilter { above: Some(second.id), ..none.clone() }, vec!["m2"]),
        (PayoutFilter { limit: 2, ..none.clone() }, vec!["m0", "m1"]),
    ] {
        let listed = bench.store.payouts(&filter).await.expect("an answer");
        let listed: Vec<_> = listed.iter().map(|payout| payout.merchant.as_str()).collect();
        assert_eq!(listed, found, "{filter:?}");
    }
    let unit = bench.unit(till.run.id, "EUR:m0").await;
    assert_eq!((unit.state.as_str(), unit.instructions[0].state.as_str()), ("settled", "paid"));
    // An amount of another currency's exponent.
    bench.import("stripe", vec![capture("k1", "m9", "KWD", "18.600")]).await;
    bench.settled(till.leads.as_ref(), &till.job).await;
    let listed = till.listed(PayoutFilter { merchant: Some("m9".to_owned()), ..none }).await;
    assert_eq!((listed[0].amount.as_str(), listed[0].currency.as_str()), ("18.600", currency("KWD").code()));
}
