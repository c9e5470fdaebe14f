//! Pausing a job, and ending it.

use chrono::TimeDelta;

use super::*;

#[tokio::test]
async fn a_paused_job_skips_its_ticks_through_a_restart_until_it_is_unpaused() {
    let cluster = led(&ticking()).await;
    wait_runs(&cluster, "ticking", "complete", 1).await;
    let paused = cluster.command(&["pause", "ticking", "--reason", "wrong fees", "--json"]).ok().json();
    assert_eq!((&paused["paused"], &paused["already"]), (&true.into(), &false.into()), "{paused}");
    let again = cluster.command(&["pause", "ticking", "--reason", "other"]).ok().stdout;
    assert!(again.contains("paused already") && again.contains("wrong fees"), "{again}");
    wait_runs(&cluster, "ticking", "skipped", 2).await;
    let status = cluster.command(&["status", "--json"]).ok().json();
    assert_eq!(status["jobs"][0]["paused"], "wrong fees", "{status}");
    assert!(cluster.command(&["status"]).ok().stdout.contains("paused: wrong fees"));

    cluster.replica(0).term();
    assert!(cluster.replica(0).wait_end(SOON).success());
    let before = runs(&cluster, "ticking").len();
    cluster.replica(0).start();
    cluster.wait_leader(READY).await;
    let found = eventually(SOON, "its ticks are evaluated again", async || {
        let found = runs(&cluster, "ticking");
        (found.len() >= before + 2).then_some(found)
    })
    .await;
    let first = found.iter().position(|run| run.state == "skipped").expect("some are");
    for run in &found[first..] {
        assert_eq!((run.state.as_str(), run.why.as_deref()), ("skipped", Some("paused: wrong fees")), "{run:?}");
    }

    // A manual run is opened all the same.
    cluster.trigger("ticking");
    let unpaused = cluster.command(&["unpause", "ticking", "--reason", "they were right"]).ok().stdout;
    assert!(unpaused.contains("paused no more"), "{unpaused}");
    let last = runs(&cluster, "ticking").last().map(|run| run.tick).expect("there are some");
    let found = eventually(SOON, "ticks open runs again", async || {
        let found = runs(&cluster, "ticking");
        found.iter().any(|run| run.tick > last && run.state == "complete").then_some(found)
    })
    .await;
    assert_without_gap(&found, TimeDelta::seconds(1));
    let acts = cluster.command(&["history", "--json"]).ok().json();
    let acts: Vec<(&str, &str)> = acts["acts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|act| act["target"] == "job ticking" && act["by"].as_str().is_some_and(|by| by.contains('@')))
        .map(|act| (act["action"].as_str().unwrap_or_default(), act["reason"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(acts, [("unpause", "they were right"), ("trigger", ""), ("pause", "wrong fees")]);
    cluster.assert_sound().await;
}

#[tokio::test]
async fn what_cannot_be_paused_is_refused_with_what_is_there() {
    let cluster = led(&ticking()).await;
    wait_runs(&cluster, "ticking", "complete", 1).await;
    for command in ["pause", "unpause"] {
        let refused = cluster.command(&[command, "tickling", "--reason", "x"]);
        assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains("no job tickling") && refused.stderr.contains("ticking"), "{}", refused.stderr);
        assert_eq!(cluster.command(&[command, "ticking"]).code(), Some(64), "a reason is required");
    }
    let unpaused = cluster.command(&["unpause", "ticking", "--reason", "x", "--json"]).ok().json();
    assert_eq!(unpaused["already"], true, "{unpaused}");
}
