//! The negative case of every conditional operation, for who led before: a win that was followed by another, and a win whose
//! lease has lapsed with nobody after it.

use super::*;

/// All of them; one lease is seen lapsing for all.
pub(super) async fn run(port: &dyn Coordinator) {
    a_win_that_another_followed_can_do_nothing(port).await;
    a_win_of_the_same_revision_on_another_lease_is_anothers(port).await;
    a_win_whose_lease_has_lapsed_can_do_nothing(port).await;
    a_successor_whose_lease_is_gone_is_not_put(port).await;
    a_campaign_with_a_leaseless_leader_in_mind_does_not_win_an_absent_one(port).await;
    a_term_is_lifted_and_never_lowered(port).await;
}

async fn a_win_that_another_followed_can_do_nothing(port: &dyn Coordinator) {
    let election = election("followed");
    let (first, second) = (lease(port).await, lease(port).await);
    let (_, old) = win(port, &election, first).await;
    assert_eq!(port.resign(&election, of(old, first)).await.expect("an answer"), ResignOutcome::Resigned);
    let (now, won) = win(port, &election, second).await;
    assert_eq!(now.term, term(2));
    assert_eq!(register(port, "heir", first).await, RegisterOutcome::Registered);

    let found = Some(now.clone());
    match port.resign(&election, of(old, first)).await.expect("an answer") {
        ResignOutcome::NotMine { found: seen } => assert_eq!(seen.expect("a leader").record, found),
        ResignOutcome::Resigned => panic!("an old win took the new one away"),
    }
    let heir = record(&election, "heir", first, 3);
    let transfer = Transfer { won: of(old, first), term_revision: won, record: heir };
    match port.transfer(&transfer).await.expect("an answer") {
        TransferOutcome::NotTransferred { found: seen } => {
            assert_eq!((seen.leader.expect("a leader").record, seen.term), (found.clone(), term(2)));
        }
        TransferOutcome::Transferred { .. } => panic!("an old win handed the new one over"),
    }
    match port.put_accepted(&election, of(old, first), "old").await.expect("an answer") {
        AcceptedOutcome::NotLeader { found: seen } => assert_eq!(seen.expect("a leader").record, found),
        AcceptedOutcome::Noted => panic!("an old win noted what it accepted"),
    }
    assert_eq!(port.read_accepted(&election).await.expect("an answer"), None);
    let state = read(port, &election).await;
    assert_eq!((state.leader.expect("a leader").record, state.term, state.term_revision), (found, term(2), won));
}

/// As after a restore, when a revision that one won at before is issued again to another.
async fn a_win_of_the_same_revision_on_another_lease_is_anothers(port: &dyn Coordinator) {
    let election = election("repeated");
    let (theirs, mine) = (lease(port).await, lease(port).await);
    let (now, won) = win(port, &election, theirs).await;
    let old = of(won, mine);
    assert_eq!(register(port, "heir", mine).await, RegisterOutcome::Registered);

    match port.resign(&election, old).await.expect("an answer") {
        ResignOutcome::NotMine { found } => assert_eq!(found.expect("a leader").win(), of(won, theirs)),
        ResignOutcome::Resigned => panic!("another's win was taken away"),
    }
    let transfer = Transfer { won: old, term_revision: won, record: record(&election, "heir", mine, 2) };
    match port.transfer(&transfer).await.expect("an answer") {
        TransferOutcome::NotTransferred { found } => assert_eq!(found.leader.expect("a leader").win(), of(won, theirs)),
        TransferOutcome::Transferred { .. } => panic!("another's win was handed over"),
    }
    match port.put_accepted(&election, old, "mine").await.expect("an answer") {
        AcceptedOutcome::NotLeader { found } => assert_eq!(found.expect("a leader").win(), of(won, theirs)),
        AcceptedOutcome::Noted => panic!("noted under another's win"),
    }
    assert_eq!(port.read_accepted(&election).await.expect("an answer"), None);
    assert_eq!(read(port, &election).await.leader.expect("untouched").record, Some(now));
}

async fn a_win_whose_lease_has_lapsed_can_do_nothing(port: &dyn Coordinator) {
    let election = election("lapsed");
    let grant = port.grant(SHORT_TTL).await.expect("granted");
    let heirs = lease(port).await;
    let (_, won) = win(port, &election, grant.lease).await;
    let heir = record(&election, "heir", heirs, 2);
    assert_eq!(register(port, "heir", heirs).await, RegisterOutcome::Registered);
    let gone = async || {
        let state = read(port, &election).await;
        state.leader.is_none().then_some(state)
    };
    let state = crate::support::eventually(LAPSES_WITHIN, "the lease lapses", gone).await;
    assert_eq!((state.term, state.term_revision), (term(1), won), "the term stays");
    assert!(state.read_at > won, "a lapse is a change");

    let lapsed = of(won, grant.lease);
    assert_eq!(port.resign(&election, lapsed).await.expect("an answer"), ResignOutcome::NotMine { found: None });
    let transfer = Transfer { won: lapsed, term_revision: won, record: heir };
    let outcome = port.transfer(&transfer).await.expect("an answer");
    assert!(matches!(&outcome, TransferOutcome::NotTransferred { found } if found.leader.is_none()), "{outcome:?}");
    let outcome = port.put_accepted(&election, lapsed, "late").await.expect("an answer");
    assert_eq!(outcome, AcceptedOutcome::NotLeader { found: None });
    assert_eq!(port.renew(grant.lease).await.expect("an answer"), RenewOutcome::Gone);
    assert_eq!(register(port, "late", grant.lease).await, RegisterOutcome::LeaseGone);
    assert_eq!(listed(port, "late").await, None);
    let again = record(&election, "first", grant.lease, 2);
    assert_eq!(campaign(port, &again, Vacancy::Absent, won).await, CampaignOutcome::LeaseGone);
    let state = read(port, &election).await;
    assert_eq!((state.leader, state.term, state.term_revision), (None, term(1), won), "nothing was put");
    assert_eq!(port.revoke(grant.lease).await.expect("an answer"), RevokeOutcome::Gone);

    // Who stands on a lease that lives wins the place that lapsed, once.
    let next = record(&election, "heir", heirs, 2);
    let outcome = campaign(port, &next, Vacancy::Absent, won).await;
    assert!(matches!(outcome, CampaignOutcome::Won { .. }), "{outcome:?}");
    let outcome = campaign(port, &record(&election, "other", heirs, 2), Vacancy::Absent, won).await;
    assert!(matches!(outcome, CampaignOutcome::Lost(_)), "{outcome:?}");
}

async fn a_successor_whose_lease_is_gone_is_not_put(port: &dyn Coordinator) {
    let election = election("heirless");
    let (mine, theirs) = (lease(port).await, lease(port).await);
    let (now, won) = win(port, &election, mine).await;
    assert_eq!(register(port, "brief", theirs).await, RegisterOutcome::Registered);
    assert_eq!(port.revoke(theirs).await.expect("an answer"), RevokeOutcome::Revoked);
    let transfer = Transfer { won: of(won, mine), term_revision: won, record: record(&election, "brief", theirs, 2) };
    match port.transfer(&transfer).await.expect("an answer") {
        TransferOutcome::NotTransferred { found } => assert_eq!(found.leader.expect("a leader").record, Some(now)),
        TransferOutcome::Transferred { .. } => panic!("handed over to a lease that is gone"),
    }
    // Registered on one lease, it is not put on another.
    let (one, other) = (lease(port).await, lease(port).await);
    assert_eq!(register(port, "moved", one).await, RegisterOutcome::Registered);
    let transfer = Transfer { won: of(won, mine), term_revision: won, record: record(&election, "moved", other, 2) };
    let outcome = port.transfer(&transfer).await.expect("an answer");
    assert!(matches!(outcome, TransferOutcome::NotTransferred { .. }), "{outcome:?}");
}

async fn a_campaign_with_a_leaseless_leader_in_mind_does_not_win_an_absent_one(port: &dyn Coordinator) {
    let election = election("leaseless");
    let lease = lease(port).await;
    let record = record(&election, "first", lease, 1);
    let outcome = campaign(port, &record, Vacancy::Leaseless(Revision(7)), Revision::ABSENT).await;
    assert!(matches!(&outcome, CampaignOutcome::Lost(found) if found.leader.is_none()), "{outcome:?}");
}

async fn a_term_is_lifted_and_never_lowered(port: &dyn Coordinator) {
    let election = election("lifted");
    let lease = lease(port).await;
    assert_eq!(port.lift_term(&election, term(40)).await.expect("an answer"), term(40));
    assert_eq!(port.lift_term(&election, term(7)).await.expect("an answer"), term(40), "never lowered");
    let before = read(port, &election).await;
    assert_eq!((before.leader.clone(), before.term), (None, term(40)));
    let (now, won) = win(port, &election, lease).await;
    assert_eq!(now.term, term(41), "the next is above it");
    // Under a leader it changes the term key alone: what was seen of it counts no more.
    assert_eq!(port.lift_term(&election, term(60)).await.expect("an answer"), term(60));
    let state = read(port, &election).await;
    assert_eq!(state.leader.expect("a leader").revision, won);
    assert_ne!(state.term_revision, won);
    assert_eq!(port.resign(&election, of(won, lease)).await.expect("an answer"), ResignOutcome::Resigned);
    let (next, _) = win(port, &election, lease).await;
    assert_eq!(next.term, term(61));
}
