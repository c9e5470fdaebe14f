use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::parts::words;
use super::*;
use crate::domain::unit::UnitState;
use crate::domain::{Claim, ElectionName, ReplicaId, TenureId, Term};
use crate::leadership::{LeaseId, ReplicaRecord};
use crate::store::{
    ActView, Cordon, ElectionStatus, Fence, FenceHolder, FenceReject, HistoryView, StatusView, UnitView,
};

fn tenure() -> TenureId {
    TenureId(Uuid::nil())
}

fn term(number: i64) -> Term {
    Term::new(number).expect("a term")
}

fn details() -> Details {
    let election = ElectionName::new("settlement").expect("a name");
    let reject = FenceReject {
        presented: Claim { election, term: term(7), tenure_id: tenure() },
        found: Some(FenceHolder { term: term(8), tenure_id: tenure() }),
        operation: "settle".to_owned(),
        replica: "r1".to_owned(),
        at: DateTime::UNIX_EPOCH,
    };
    let act = |action: &str, target: &str| ActView {
        at: DateTime::UNIX_EPOCH,
        action: action.to_owned(),
        target: target.to_owned(),
        reason: Some("<script>alert(1)</script>".to_owned()),
        by: "ops@host".to_owned(),
        role: "role".to_owned(),
        term: None,
    };
    let acts = vec![act("halt", "settlement"), act("merchant hold", "merchant-17")];
    let history = HistoryView { terms: Vec::new(), rejects: vec![reject], acts };
    Details { history, set_aside: Vec::new(), in_doubt: Vec::new(), receivers: Vec::new() }
}

fn page() -> Page {
    let status = StatusView {
        now: DateTime::<Utc>::UNIX_EPOCH,
        deployment_id: None,
        elections: Vec::new(),
        jobs: Vec::new(),
        runs: Vec::new(),
        cordons: Vec::new(),
        fencing_rejects: 1,
    };
    let age = Duration::from_secs(3);
    Page {
        status: Some(Aged { value: status, age }),
        details: Some(Aged { value: details(), age }),
        elections: vec![ElectionLine {
            election: "settlement".to_owned(),
            leads_for: Some(Duration::from_millis(8400)),
            phase: "active",
            leader: Some(Aged { value: Some(("r2".to_owned(), 8)), age: Duration::from_secs(40) }),
        }],
        ..Page::nothing_known("r2")
    }
}

fn replica(id: &str, schedule: &str) -> ReplicaRecord {
    ReplicaRecord {
        replica_id: ReplicaId::new(id).expect("an id"),
        lease_id: LeaseId(1),
        host: "host".to_owned(),
        address: String::new(),
        version: "0".to_owned(),
        schedule_fingerprint: schedule.to_owned(),
        eligible: Vec::new(),
    }
}

#[test]
fn a_replica_that_knows_nothing_yet_says_so() {
    let text = render(&Page::nothing_known("r1"));
    for said in ["Not ready: ", "not connected yet", "The store was not read yet", "was not asked yet"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_refusal_is_a_sentence_and_every_part_from_elsewhere_has_its_age() {
    let text = render(&page());
    assert!(text.contains("presented term 7 of settlement for <code>settle</code>; term 8 was in force"), "{text}");
    assert!(text.matches("as of 3 s ago").count() >= 6, "{text}");
    assert!(text.contains("lease 8.4 s"), "{text}");
}

#[test]
fn replicas_differ_by_their_schedules_and_not_by_a_list_that_is_a_moment_old() {
    let shown = |replicas: Vec<ReplicaRecord>| {
        let replicas = Some(Aged { value: replicas, age: Duration::from_secs(3) });
        render(&Page { replicas, fingerprint: "new".to_owned(), ..page() }).matches(">differs<").count()
    };
    assert_eq!(shown(vec![replica("r1", "old"), replica("r2", "old")]), 0, "all were edited since");
    assert_eq!(shown(vec![replica("r1", "old"), replica("r2", "new")]), 1);
    assert_eq!(shown(vec![replica("r1", "old"), replica("r3", "old")]), 2, "it is not listed itself");
}

#[test]
fn a_replica_that_an_operator_cordoned_says_so_and_why() {
    let cordoned = |id: &str| {
        let mut page = page();
        page.replicas = Some(Aged { value: vec![replica("r1", "x")], age: Duration::from_secs(3) });
        let reason = Some("its <host> is drained".to_owned());
        let cordon = Cordon { replica: id.to_owned(), at: DateTime::UNIX_EPOCH, by: "ops@host".to_owned(), reason };
        page.status.as_mut().expect("it was read").value.cordons.push(cordon);
        render(&page)
    };
    let of_it = cordoned("r1");
    assert!(of_it.contains("nothing: cordoned</span>: its &lt;host&gt; is drained"), "{of_it}");
    assert!(cordoned("r3").contains("nothing now"), "another one is");
}

#[test]
fn the_stores_leader_and_the_coordinators_stand_beside_each_other_each_with_its_own_age() {
    let mut page = page();
    let election = ElectionName::new("settlement").expect("a name");
    let fence = Fence { holder: FenceHolder { term: term(9), tenure_id: tenure() }, halt: None };
    let (leader, accepted_at) = (Some("r3".to_owned()), Some(DateTime::UNIX_EPOCH));
    let status = page.status.as_mut().expect("read");
    status.value.elections = vec![ElectionStatus { election, fence, leader, accepted_at, ended: None }];
    let text = render(&page);
    for said in [
        "<code>r3</code>, term 9</td><td><time datetime=\"1970-01-01T00:00:00Z\">",
        "<code>r2</code>, term 8<span class=\"age\"> (as of 40 s ago)</span>",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn of_errors_only_the_class_is_shown_and_of_acts_on_money_no_reason() {
    let mut page = page();
    let details = &mut page.details.as_mut().expect("read").value;
    details.set_aside = vec![UnitView {
        id: 5,
        run: 4,
        key: "EUR:merchant-17".to_owned(),
        state: UnitState::SetAside,
        attempts: 3,
        next_attempt_at: None,
        last_error: Some("exit 3: nothing was done: merchant-17 owes 123.45".to_owned()),
        term: None,
        net: None,
        ended_at: None,
        instructions: Vec::new(),
    }];
    for act in &mut details.history.acts {
        act.reason = Some(format!("reason of {}: merchant-17", act.action));
    }
    let text = render(&page);
    assert!(text.contains(">exit 3<") && text.contains("reason of halt"), "{text}");
    assert!(!text.contains("123.45") && !text.contains("reason of merchant hold"), "{text}");
}

#[test]
fn text_from_elsewhere_is_escaped_and_no_merchant_is_shown() {
    let text = render(&page());
    assert!(!text.contains("<script>alert") && text.contains("&lt;script&gt;alert"), "{text}");
    assert!(!text.contains("merchant-17") && text.contains("merchant hold"), "{text}");
}

#[test]
fn the_policy_allows_what_the_page_brings_along_and_nothing_else() {
    let policy = policy();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    let text = render(&page());
    assert_eq!((text.matches("<script").count(), text.matches("<style").count()), (1, 1), "as hashed");
    assert!(!text.contains("style=\"") && !text.contains(" onclick"), "{text}");
}

#[test]
fn an_age_is_said_in_the_unit_that_a_person_would_use() {
    let said = [0, 1, 119, 120, 7199, 7200, 172_799, 172_800].map(|seconds| words(Duration::from_secs(seconds)));
    assert_eq!(said, ["less than 1 s", "1 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]);
}
