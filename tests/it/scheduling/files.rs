//! The schedule file changes under running replicas: beside ticks, into nothing, behind a link.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bursar::clock;
use chrono::{DurationRound as _, TimeDelta};

use super::*;
use crate::support::long::repetitions;
use crate::support::replica::replace;

/// A tick of the job that is watched comes every so often.
const EVERY: TimeDelta = TimeDelta::seconds(2);

async fn sleep_until(at: DateTime<Utc>) {
    // The replicas' store is a file of this host, so its clock is ours.
    tokio::time::sleep((at - clock::wall()).to_std().unwrap_or_default()).await;
}

#[tokio::test]
async fn a_file_that_is_rewritten_around_each_tick_loses_and_doubles_none() {
    let rewrites = repetitions("the schedule rewritten within half a second of a tick", 5, 50);
    let watched = job("watched", "*/2 * * * * *", "", "");
    let cluster = led(&watched).await;
    wait_runs(&cluster, "watched", "complete", 1).await;
    let first = clock::wall().duration_trunc(EVERY).expect("in range");
    let mut last = first;
    for n in 0..rewrites {
        // Another tick each time, also where the last rewrite came before its own.
        let tick = (clock::wall().duration_trunc(EVERY).expect("in range") + EVERY).max(last + EVERY);
        // From half a second before it to half a second after it, also while it is looked at.
        let offset = i32::try_from(n * 1000 / rewrites).expect("below a thousand") - 500;
        sleep_until(tick + TimeDelta::milliseconds(offset.into())).await;
        cluster.write_schedule(&format!("{watched}{}", job(&format!("unrelated-{n}"), "0 0 1 1 *", "", "")));
        last = tick;
    }
    let found = eventually(SOON, "the last of the ticks has ended", async || {
        let found = runs(&cluster, "watched");
        found.iter().any(|run| run.tick >= last + EVERY && run.state == "complete").then_some(found)
    })
    .await;
    assert_without_gap(&found, EVERY);
    let during: Vec<&Run> = found.iter().filter(|run| run.tick > first && run.tick <= last).collect();
    assert!(during.len() >= rewrites - 1, "{during:?}");
    assert!(during.iter().all(|run| run.state == "complete"), "each has a run: {during:?}");
    let named = format!("unrelated-{}", rewrites - 1);
    let status = cluster.command(&["status", "--json"]).ok().json();
    let jobs: Vec<&str> =
        status["jobs"].as_array().expect("a list").iter().filter_map(|job| job["job"].as_str()).collect();
    assert_eq!(jobs, [named.as_str(), "watched"], "the last file is in force");
    cluster.assert_sound().await;
}

#[tokio::test]
async fn an_empty_or_missing_file_changes_nothing_and_is_named_until_it_is_back() {
    let cluster = led(&ticking()).await;
    let (replica, file) = (cluster.replica(0), cluster.replica(0).schedule());
    let refused = async |says: &str| {
        eventually(SOON, &format!("the file is refused: {says}"), async || {
            let status = replica.status().await?;
            status["schedule"]["refused"].as_str().is_some_and(|why| why.contains(says)).then_some(())
        })
        .await;
        let reloads = replica.metric("bursar_schedule_reloads_total", &[("outcome", "refused")]).await;
        assert!(reloads >= Some(1.0), "{reloads:?}");
        let settled = cluster.settled().await;
        cluster.wait_settled(settled + 2, SOON).await;
    };
    replace(&file, "");
    refused("expected at least one [[job]]").await;
    fs::remove_file(&file).expect("it was there");
    refused("is missing").await;
    replica.write_schedule(&(ticking() + &job("second", "0 0 1 1 *", "", "")));
    wait_job(&cluster, "second").await;
    assert!(replica.status().await.expect("it answers")["schedule"]["refused"].is_null());
    assert_without_gap(&runs(&cluster, "ticking"), TimeDelta::seconds(1));
    cluster.assert_sound().await;
}

/// Waits until a job is in the store.
async fn wait_job(cluster: &Cluster, name: &str) {
    eventually(SOON, &format!("{name} is in the store"), async || {
        let status = cluster.command(&["status", "--json"]).ok().json();
        status["jobs"].as_array()?.iter().any(|job| job["job"] == name).then_some(())
    })
    .await;
}

/// Writes a version of the mounted folder, and turns the link to it in one step, as the volume of a `ConfigMap` is updated.
fn mount(folder: &Path, version: &str, schedule: &str) {
    fs::create_dir(folder.join(version)).expect("a new version");
    fs::write(folder.join(version).join("schedule.toml"), schedule).expect("a new file");
    symlink(version, folder.join("..data_tmp")).expect("a new link");
    fs::rename(folder.join("..data_tmp"), folder.join("..data")).expect("in one step");
}

#[tokio::test]
async fn a_link_that_is_swapped_as_kubernetes_does_is_followed() {
    let cluster = Setup::new(1, &ticking()).embedded().steady().prepare().await;
    let file = cluster.replica(0).schedule();
    let folder = file.parent().expect("a folder").to_owned();
    mount(&folder, "..2027_01_01", &ticking());
    fs::remove_file(&file).expect("it was there");
    symlink("..data/schedule.toml", &file).expect("a link");
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    wait_runs(&cluster, "ticking", "complete", 1).await;
    for (version, name) in [("..2027_01_02", "second"), ("..2027_01_03", "third")] {
        mount(&folder, version, &(ticking() + &job(name, "0 0 1 1 *", "", "")));
        wait_job(&cluster, name).await;
    }
    fs::remove_dir_all(folder.join("..2027_01_01")).expect("nobody looks there any more");
    let status = cluster.replica(0).status().await.expect("it answers");
    assert!(status["schedule"]["refused"].is_null(), "{status}");
    assert_without_gap(&runs(&cluster, "ticking"), TimeDelta::seconds(1));
}
