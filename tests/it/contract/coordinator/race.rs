//! Two threads, each with a runtime and a client of its own, stand for one election again and again.

use std::sync::Barrier;

use super::*;

const ROUNDS: usize = 200;
const ATTEMPTS: usize = 10;

pub(super) fn one_of_two_wins_each_time_and_terms_rise(clients: &Clients) {
    let meet = Arc::new(Barrier::new(2));
    let racers: Vec<_> = ["red", "blue"]
        .into_iter()
        .map(|name| {
            let (clients, meet) = (Arc::clone(clients), Arc::clone(&meet));
            std::thread::spawn(move || race(name, &clients, &meet))
        })
        .collect();
    let wins: Vec<Vec<Option<i64>>> = racers.into_iter().map(|racer| racer.join().expect("it ends")).collect();
    let mut last = 0;
    for (round, (red, blue)) in wins[0].iter().zip(&wins[1]).enumerate() {
        let won = match (red, blue) {
            (Some(won), None) | (None, Some(won)) => *won,
            (both, neither) => panic!("round {round}: {both:?} and {neither:?} won"),
        };
        assert!(won > last, "round {round}: term {won} after {last}");
        last = won;
    }
}

/// The term that it won, round by round.
fn race(name: &str, clients: &Clients, meet: &Barrier) -> Vec<Option<i64>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let election = election("raced");
    let port = clients();
    // On a busy disk a file may be locked for longer than one attempt waits, and a session would try again.
    let lease = (0..ATTEMPTS)
        .find_map(|_| runtime.block_on(port.grant(TTL)).ok())
        .unwrap_or_else(|| runtime.block_on(port.grant(TTL)).expect("granted"))
        .lease;
    (0..ROUNDS)
        .map(|_| {
            // Two hundred rounds may take a busy machine longer than a lease.
            let renewed = runtime.block_on(port.renew(lease)).expect("an answer");
            assert_ne!(renewed, RenewOutcome::Gone, "it was renewed a round ago");
            let before = runtime.block_on(read(&*port, &election));
            let record = record(&election, name, lease, before.term.get() + 1);
            meet.wait();
            let outcome = runtime.block_on(campaign(&*port, &record, Vacancy::Absent, before.term_revision));
            meet.wait();
            let won = match outcome {
                CampaignOutcome::Won { revision } => {
                    let resigned = runtime.block_on(port.resign(&election, of(revision, lease))).expect("an answer");
                    assert_eq!(resigned, ResignOutcome::Resigned);
                    Some(record.term.get())
                }
                CampaignOutcome::Lost(found) => {
                    assert!(found.term >= record.term, "lost to nobody: {found:?}");
                    None
                }
                CampaignOutcome::LeaseGone => panic!("the lease lapsed"),
            };
            meet.wait();
            won
        })
        .collect()
}
