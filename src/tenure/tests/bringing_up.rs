//! Job rows are brought up to the schedule, each by itself, and in bounded steps.

use super::*;
use crate::tenure::bringup::tests::definition;

#[tokio::test]
async fn a_job_that_cannot_be_brought_up_keeps_no_other_from_it_and_is_tried_again() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let jobs = [BAD, EARLY, "good"].map(|name| definition(name, "here", "0 1 * * *")).to_vec();
    let schedule = ScheduleInForce { jobs, fingerprint: String::new() };
    assert_eq!(bringup::bring_up(&tenure, &schedule).await, Ok(false), "something is left");
    assert_eq!(rig.store.jobs.lock().expect("no panic holds it").len(), 1);
    let schedule = ScheduleInForce { jobs: schedule.jobs[2..].to_vec(), ..schedule };
    assert_eq!(bringup::bring_up(&tenure, &schedule).await, Ok(true));
}

#[tokio::test]
async fn a_job_whose_row_cannot_be_read_is_not_taken_for_a_new_one_and_the_others_are_brought_up() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    rig.store.unreadable.lock().expect("no panic holds it").push("odd".to_owned());
    let jobs = ["odd", "good"].map(|name| definition(name, "here", "0 1 * * *")).to_vec();
    let schedule = ScheduleInForce { jobs, fingerprint: String::new() };
    assert_eq!(bringup::bring_up(&tenure, &schedule).await, Ok(false), "it is looked at again");
    let names: Vec<String> = {
        let rows = rig.store.jobs.lock().expect("no panic holds it");
        rows.iter().map(|row| row.definition.name.to_string()).collect()
    };
    assert_eq!(names, ["good"]);
    rig.store.unreadable.lock().expect("no panic holds it").clear();
    assert_eq!(bringup::bring_up(&tenure, &schedule).await, Ok(true), "once it can be read, or is gone");
}

#[tokio::test]
async fn an_edited_job_with_ever_so_many_old_ticks_takes_a_bounded_number_of_pages_at_a_time_and_keeps_no_other() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    // Nobody led for half a day: 43,200 ticks, of which a page has 1,000.
    let absence = DateTime::from_timestamp(1_800_000_000 - 12 * 3_600, 0).expect("in range");
    let old = row_of(definition("each-second", "here", "* * * * * *"), absence);
    rig.store.jobs.lock().expect("no panic holds it").push(old);
    let edited = definition("each-second", "here", "0 1 * * *");
    let jobs = vec![edited.clone(), definition("new", "here", "0 1 * * *")];
    let schedule = ScheduleInForce { jobs, fingerprint: String::new() };
    let in_force = |name: &str| {
        let rows = rig.store.jobs.lock().expect("no panic holds it");
        rows.iter().find(|row| row.definition.name.as_str() == name).cloned()
    };
    let mut recorded = 0;
    for look in 1..=8 {
        assert_eq!(bringup::bring_up(&tenure, &schedule).await, Ok(false), "look {look}");
        let pages = *rig.store.pages.lock().expect("no panic holds it");
        assert!(pages > recorded && pages - recorded <= 5, "{pages} pages after look {look}, {recorded} before it");
        recorded = pages;
        assert!(in_force("new").is_some(), "the other one is brought up");
        assert_ne!(in_force("each-second").expect("there").definition, edited, "not before its old ticks are settled");
    }
    assert_eq!(bringup::bring_up(&tenure, &schedule).await, Ok(true));
    assert_eq!(in_force("each-second").expect("there").definition, edited);
    assert_eq!(
        *rig.store.pages.lock().expect("no panic holds it"),
        43,
        "all but the last, which goes in with the change"
    );
}
