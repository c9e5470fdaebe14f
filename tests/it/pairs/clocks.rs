//! Wall clocks that are stepped under elections in the database: the server's own, which leases expire by, and the replicas',
//! which decide nothing.

use super::*;
use crate::support::{FakeClock, Postgres};

#[tokio::test]
async fn a_database_whose_clock_steps_an_hour_both_ways_has_one_leader_at_a_time_and_work_goes_on() {
    let clock = FakeClock::new();
    let server = Postgres::start_with(&[], &clock.env());
    let setup = Setup::new(3, &schedule(&[each_second()])).on_database_coordinator().on_postgres(&server);
    let cluster = setup.start().await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let sampler = cluster.watch();
    let mut term = cluster.wait_work_above(0, SETTLED).await;

    // Forward: every lease has lapsed at once. Whoever leads then is at work.
    clock.set("+3600s");
    let settled = cluster.settled().await;
    cluster.wait_settled(settled + 2, SETTLED).await;
    cluster.wait_leader(TAKEOVER).await;
    assert!(cluster.term().await >= term);
    term = cluster.term().await;

    // Back: leases would live for an hour more. Seen, they are capped, so a leader that dies is followed within a TTL and a look.
    clock.set("+0s");
    let leader = cluster.wait_leader(TAKEOVER).await;
    eventually(TAKEOVER, "the leases are capped", async || {
        let beyond = "select count(*) from bursar.coordinator_lease where expires_at > clock_timestamp() + ttl";
        (cluster.number(beyond).await == 0).then_some(())
    })
    .await;
    let killed = boottime();
    cluster.replica(leader).kill();
    let next = cluster.wait_work_above(term, TAKEOVER).await;
    let took = boottime().since(killed);
    assert!(took <= TTL * 2 + Duration::from_secs(3), "{took:?}");
    assert!(next > term);
    sampler.finish();
    cluster.replica(leader).start();
    cluster.replica(leader).wait_ready(READY).await;
    // The steps are in the store's times, so its history may read as out of order: only the audit judges.
    cluster.assert_audited();
}

#[tokio::test]
async fn replicas_whose_wall_clocks_step_an_hour_and_a_day_both_ways_go_on_as_before() {
    let clock = FakeClock::new();
    let mut setup = Setup::new(2, &schedule(&[each_second()])).on_database_coordinator();
    for (key, value) in clock.env() {
        setup = setup.env(&key, &value);
    }
    let cluster = setup.start().await;
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    let sampler = cluster.watch();
    let leader = cluster.wait_leader(READY).await;
    let term = cluster.wait_work_above(0, SETTLED).await;
    // From one to the next a step of an hour, two, or a day and more, either way.
    for (offset, ttls) in [("+3600s", 1), ("-3600s", 1), ("+86400s", 3), ("-86400s", 3), ("+0s", 1)] {
        clock.set(offset);
        let stepped = boottime();
        let settled = cluster.settled().await;
        let while_it_lasts = TTL * ttls / 2;
        eventually(TTL * 3, "it stands for a while", async || {
            (boottime().since(stepped) > while_it_lasts).then_some(())
        })
        .await;
        cluster.wait_settled(settled + 2, SETTLED).await;
        assert_eq!((cluster.leader().await, cluster.term().await), (Some(leader), term), "{offset}");
    }
    let gaps = "select (extract(epoch from max(tick) - min(tick)) + 1)::bigint - count(distinct tick) from bursar.run";
    assert_eq!(cluster.number(gaps).await, 0, "every tick of the store's clock has its run");
    let other = "select count(*) from bursar.run where kind <> 'tick' or caught_up or state in ('skipped', 'coalesced', 'missed')";
    assert_eq!(cluster.number(other).await, 0, "and is on time");
    cluster.assert_sound().await;
    sampler.finish();
}
