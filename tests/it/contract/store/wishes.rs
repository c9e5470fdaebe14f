//! What operators want of single replicas.

use bursar::domain::{ElectionName, ReplicaId};
use bursar::store::{TransferAsked, TransferWish, Wishes};

use super::bench::{Bench, actor, claim, election, holder};

pub async fn a_cordon_is_of_one_replica_put_once_lifted_once_and_written_down_each_time(bench: &Bench) {
    let cordon = async |replica, cordoned| bench.store.cordon(replica, cordoned, "a drill", &actor()).await;
    assert_eq!(bench.store.wishes("a").await, Ok(Wishes::default()));
    assert_eq!(cordon("a", true).await, Ok(true));
    assert_eq!(cordon("a", true).await, Ok(false), "nothing changed");
    assert!(bench.store.wishes("a").await.expect("an answer").cordoned);
    assert!(!bench.store.wishes("b").await.expect("an answer").cordoned, "another one");
    let shown = bench.store.status().await.expect("an answer").cordons;
    let shown: Vec<_> = shown.iter().map(|it| (it.replica.as_str(), it.by.as_str(), it.reason.as_deref())).collect();
    assert_eq!(shown, [("a", "tester@bench", Some("a drill"))]);
    assert_eq!(cordon("a", false).await, Ok(true));
    assert_eq!(bench.store.status().await.expect("an answer").cordons, []);
    assert_eq!(cordon("a", false).await, Ok(false));
    assert_eq!(bench.store.wishes("a").await, Ok(Wishes::default()));
    let acts = bench.store.history(10).await.expect("an answer").acts;
    let told: Vec<_> = acts.iter().map(|act| (act.action.as_str(), act.target.as_str())).collect();
    assert_eq!(told, [("uncordon", "a"), ("cordon", "a")], "what changed nothing is no act");
}

pub async fn a_transfer_is_asked_of_the_term_in_force_and_means_nothing_to_the_next(bench: &Bench) {
    let ask = async |election: &ElectionName, of, to: Option<&str>| {
        bench.store.ask_transfer(election, of, to, "a drill", &actor()).await
    };
    let (first, second) = (claim(3), claim(4));
    assert_eq!(ask(&election(), first.term, None).await, Ok(TransferAsked::OtherTerm(None)), "nobody led");
    bench.accepted(&first).await;
    let found = TransferAsked::OtherTerm(Some(holder(&first)));
    assert_eq!(ask(&election(), second.term, None).await, Ok(found), "not in force");
    assert_eq!(bench.store.wishes("a").await, Ok(Wishes::default()));
    assert_eq!(ask(&election(), first.term, None).await, Ok(TransferAsked::Filed));
    let to = ReplicaId::new("b").expect("an id");
    assert_eq!(ask(&election(), first.term, Some(to.as_str())).await, Ok(TransferAsked::Filed));
    let wish = TransferWish { election: election(), term: first.term, to: Some("b".to_owned()) };
    let wishes = bench.store.wishes("whoever leads").await.expect("an answer");
    assert_eq!(wishes.transfers, [wish], "the later one stands");
    bench.accepted(&second).await;
    assert_eq!(bench.store.wishes("a").await, Ok(Wishes::default()), "it was asked of the term before");
    let acts = bench.store.history(10).await.expect("an answer").acts;
    assert_eq!(acts.iter().map(|act| act.target.as_str()).collect::<Vec<_>>(), ["b", "any replica"]);
}
