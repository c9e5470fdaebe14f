//! From a term that was won to a tenure at work, in order, once.

use bursar::domain::job::ProbeDefinition;
use bursar::domain::{TenureId, Term};
use bursar::store::{FenceHolder, Lineage, Store};
use bursar::tenure::{AcceptedRecord, Ending, Order};

use super::ground::{Ground, NEVER, SOON, Said, actor, election, job, open};
use crate::support::eventually;

fn term(number: i64) -> Term {
    Term::new(number).expect("not negative")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_is_accepted_works_and_is_remembered() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    ground.order(Order::ReadFence { election: election() });
    ground.hear(&Said::FenceTerm(Ok(Term::NONE))).await;
    let claim = ground.lead(3).await;
    let said = ground.reports.said();
    assert_eq!(said[1..], [Said::Accepted(term(3)), Said::FirstWork(term(3))]);
    eventually(SOON, "what was accepted is remembered", async || {
        ground.memory.remembered().filter(|record| record.tenure_id == claim.tenure_id && record.term == claim.term)
    })
    .await;
    eventually(SOON, "the job is in force", async || {
        let jobs: Vec<(String,)> = ground.database.rows("select name from bursar.job where removed_at is null").await;
        (jobs == [("probe".to_owned(),)]).then_some(())
    })
    .await;
    let first = ground.memory.remembered().expect("remembered").lineage.position;
    eventually(SOON, "it is renewed once per TTL", async || {
        ground.memory.remembered().filter(|record| record.lineage.position > first)
    })
    .await;
    eventually(SOON, "the workers beat", async || (ground.reports.beats() >= 2).then_some(())).await;
    ground.end(&claim, Ending::Abrupt).await;
    let terms: Vec<(i64, bool, Option<String>)> =
        ground.database.rows("select term, worked_at is not null, end_reason from bursar.term_history").await;
    assert_eq!(terms, [(3, true, Some("drain".to_owned()))]);
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_behind_the_fence_is_told_so_and_does_nothing() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    let first = ground.lead(5).await;
    ground.end(&first, Ending::Abrupt).await;
    let late = ground.begin(4);
    let holder = FenceHolder { term: first.term, tenure_id: first.tenure_id };
    ground.hear(&Said::Fenced(term(4), Some(holder))).await;
    ground.end(&late, Ending::Abrupt).await;
    assert!(
        !ground
            .reports
            .said()
            .iter()
            .any(|said| matches!(said, Said::Accepted(t) | Said::FirstWork(t) if *t == term(4)))
    );
    assert_eq!(ground.counter.count("reject advance"), 1);
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_forgot_is_halted_and_only_a_resume_makes_it_the_baseline() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    let lineage = ground.store.health().await.expect("healthy").lineage;
    let later = Lineage { position: lineage.position + (1 << 40), ..lineage };
    let remembered =
        AcceptedRecord { term: term(9), tenure_id: TenureId(bursar::clock::random_id()), lineage: later, at: None };
    ground.memory.set(remembered.clone());
    let claim = ground.begin(10);
    ground.hear(&Said::Accepted(term(10))).await;
    let halt = ground.store.fence(&election()).await.expect("an answer").expect("a fence").halt.expect("halted");
    assert!(halt.reason.contains("forgot") && halt.by.contains("bursar"), "{halt:?}");
    // Two looks of the waiting promotion later nothing has changed.
    tokio::time::timeout(std::time::Duration::from_millis(2500), ground.hear(&Said::FirstWork(term(10))))
        .await
        .expect_err("nothing begins in a halted election");
    assert_eq!(ground.memory.remembered(), Some(remembered), "what is remembered outlives a store that forgot");
    ground.store.resume(&election(), "checked", &actor()).await.expect("an answer");
    ground.hear(&Said::FirstWork(term(10))).await;
    eventually(SOON, "what is there is the new baseline", async || {
        ground.memory.remembered().filter(|record| record.tenure_id == claim.tenure_id)
    })
    .await;
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resume_that_met_no_leader_is_the_baseline_of_the_next_promotion() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    let health = ground.store.health().await.expect("healthy");
    let lineage = Lineage { position: health.lineage.position + (1 << 40), ..health.lineage };
    let tenure_id = TenureId(bursar::clock::random_id());
    ground.memory.set(AcceptedRecord { term: term(9), tenure_id, lineage, at: Some(health.now) });
    ground.store.halt(&election(), "the store was restored", &actor()).await.expect("an answer");
    ground.store.resume(&election(), "checked", &actor()).await.expect("an answer");
    let claim = ground.lead(10).await;
    eventually(SOON, "what is there is remembered", async || {
        ground.memory.remembered().filter(|record| record.tenure_id == claim.tenure_id)
    })
    .await;
    ground.end(&claim, Ending::Abrupt).await;
    ground.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenure_that_is_overtaken_says_so_and_the_refusal_is_on_record() {
    let ground = Ground::with(vec![job(NEVER, ProbeDefinition::default())]).await;
    let old = ground.lead(1).await;
    let other = Ground::at(&ground, vec![job(NEVER, ProbeDefinition::default())]);
    let new = other.lead(2).await;
    let holder = FenceHolder { term: new.term, tenure_id: new.tenure_id };
    ground.hear(&Said::Fenced(term(1), Some(holder))).await;
    ground.end(&old, Ending::Abrupt).await;
    let store = open(&ground.database.url());
    let rejects = store.history(10).await.expect("an answer").rejects;
    assert_eq!(rejects.first().map(|reject| (reject.presented.clone(), reject.found)), Some((old, Some(holder))));
    other.end(&new, Ending::Abrupt).await;
    other.leave().await;
    ground.leave().await;
}
