//! Files that come in twice, at once, in odd forms, or wrong: through the command, on a store that a leader works on.

use super::{READY, one_replica};
use crate::support::entries::HEADER;
use crate::support::{Cluster, Entries, LedgerJob, Setup, scratch};

/// How many entries and imports the store has.
async fn counts(cluster: &Cluster) -> (i64, i64) {
    let query = "select (select count(*) from bursar.entry), (select count(*) from bursar.import)";
    cluster.database().rows(query).await[0]
}

/// Imports these bytes as a file of that name; gives exit code and what was said.
fn import_bytes(cluster: &Cluster, name: &str, bytes: impl AsRef<[u8]>) -> (Option<i32>, String) {
    let file = scratch::folder("entries").join(name);
    std::fs::write(&file, bytes).expect("the folder is ours");
    let done = cluster.command(&["import", &file.to_string_lossy(), "--source", "psp"]);
    (done.code(), format!("{}{}", done.stdout, done.stderr))
}

#[tokio::test]
async fn wrong_rows_are_each_named_with_their_line_and_nothing_of_the_file_stays() {
    let cluster = one_replica().await;
    let at = "2026-01-05T10:00:00Z";
    let rows = [
        format!("ok,m,EUR,capture,1.00,,{at},,"),
        format!("jpy,m,JPY,capture,10.5,,{at},,"),
        format!("minus,m,EUR,capture,-1.00,,{at},,"),
        format!("plus,m,EUR,refund,1.00,,{at},,"),
        format!("fee,m,EUR,capture,1.00,0.10 USD,{at},,"),
        "short,m,EUR,capture".to_owned(),
    ];
    let (code, said) = import_bytes(&cluster, "wrong.csv", format!("{HEADER}\n{}\n", rows.join("\n")));
    assert_eq!(code, Some(1), "{said}");
    for line in ["wrong.csv:3: amount", "wrong.csv:4: amount", "wrong.csv:5: amount", "wrong.csv:6: fee", "wrong.csv:7"]
    {
        assert!(said.contains(line), "{line} is named:\n{said}");
    }
    assert!(!said.contains("wrong.csv:2"), "{said}");
    assert!(said.contains("nothing was imported"), "{said}");
    assert_eq!(counts(&cluster).await, (0, 0));
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_file_with_mark_crlf_quotes_and_small_letters_is_settled_as_it_was_meant() {
    let cluster = one_replica().await;
    let at = "2026-01-05T10:00:00Z";
    let text = format!(
        "\u{feff}{HEADER}\r\n\
         e1,\"Bolt, Nut & Co\",eur,capture,10.00,0.30,{at},,\"order 1, part 2\"\r\n\
         e2,\"The \"\"Shop\"\"\",jpy,capture,500,,{at},,\r\n\
         \"e3\",\"Bolt, Nut & Co\",EUR,refund,-1.00,,{at},,\r\n"
    );
    let (code, said) = import_bytes(&cluster, "odd.csv", text);
    assert_eq!(code, Some(0), "{said}");
    let run = cluster.run_now("daily").await;
    let expected = [("EUR:Bolt, Nut & Co", "8.70"), ("JPY:The \"Shop\"", "500")];
    assert_eq!(
        cluster.units_shown(run),
        expected.map(|(key, net)| (key.to_owned(), (net.to_owned(), "settled".to_owned()))).into()
    );
    // The same with a row cut short in the middle: its line is named, and the good rows do not stay either.
    let before = counts(&cluster).await;
    let cut = format!("\u{feff}{HEADER}\r\nf1,m,EUR,capture,10.00,,{at},,\r\nf2,m,EUR,cap");
    let (code, said) = import_bytes(&cluster, "cut.csv", cut);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cut.csv:3"), "{said}");
    assert_eq!(counts(&cluster).await, before);
    cluster.assert_sound().await;
}

#[tokio::test]
async fn a_file_that_comes_again_brings_nothing_new_under_whatever_name_and_from_wherever() {
    let cluster = Setup::new(2, &LedgerJob::new("daily").text()).steady().start().await;
    cluster.wait_leader(READY).await;
    let entries = Entries::new().bulk(50, 20);
    let (file, renamed) = (entries.write("monday.csv"), entries.write("tuesday.csv"));
    // From two replicas at once.
    let args = ["import", &file.to_string_lossy(), "--source", "psp", "--json"];
    let both = [0, 1].map(|index| cluster.replica(index).begin(&args));
    let said = both.each_ref().map(|import| {
        assert!(import.wait(READY).success(), "{}", import.log());
        let said: serde_json::Value = serde_json::from_str(&import.log()).expect("one JSON value");
        said["outcome"].as_str().unwrap_or_default().to_owned()
    });
    assert!(said.contains(&"imported".to_owned()) && said.contains(&"nothing_new".to_owned()), "{said:?}");
    assert_eq!(counts(&cluster).await, (1000, 1));
    let run = cluster.run_now("daily").await;
    assert_eq!(cluster.units_shown(run)["EUR:m00001"], ("20.00".to_owned(), "settled".to_owned()));

    // Again, settled as it is by now: the same file, and under another name.
    for (file, words) in [(&file, "the same file came as import 1"), (&renamed, "the same file came as import 1")] {
        let done = cluster.command(&["import", &file.to_string_lossy(), "--source", "psp"]).ok();
        assert!(done.stdout.contains("nothing new: all 1000") && done.stdout.contains(words), "{}", done.stdout);
    }
    assert_eq!(counts(&cluster).await, (1000, 1));
    let again = cluster.run_now("daily").await;
    assert_eq!(cluster.units_shown(again), [].into());

    // The same id with another amount, among others that are new.
    let changed = Entries::new().capture("m00000", "EUR", "2.00").fee("0.01");
    let changed = changed.last(|entry| entry.id = "new".to_owned()).capture("m00000", "EUR", "9.99").fee("0.01");
    let done = cluster.import_file(&changed.write("changed.csv"), "psp");
    assert_eq!(done.code(), Some(1), "{}{}", done.stdout, done.stderr);
    let conflicts = done.json();
    assert_eq!((&conflicts["outcome"], &conflicts["total"]), (&"conflicts".into(), &1.into()));
    let done = cluster.command(&["import", &changed.write("changed.csv").to_string_lossy(), "--source", "psp"]);
    assert_eq!(done.code(), Some(1));
    for words in ["e2", "9.99", "1.00", "1 conflicts"] {
        assert!(done.stdout.contains(words), "{words}:\n{}", done.stdout);
    }
    assert_eq!(counts(&cluster).await, (1000, 1));
    cluster.assert_sound().await;
}
