//! Processes of `command` handlers: their outcomes, their environment, and that nothing of them is left behind, whatever
//! happens to whoever started them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;
use bursar::domain::outside::CommandDefinition;
use bursar::settlement::command::wire::{Ended, Ending, MOST_OUTPUT, Order, deadline_line};
use bursar::settlement::command::{CommandHandler, Launch, outcome, run};
use bursar::settlement::{CallOutcome, Departure, OutsideHandler};
use bursar::store::Call;
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::ground::{fence, open, shut};
use crate::support::scratch;
use crate::support::wait::{eventually_blocking, holds_for};

const BURSAR: &str = env!("CARGO_BIN_EXE_bursar");
const SOON: Duration = Duration::from_secs(10);

fn order(script: &str) -> Order {
    Order {
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), script.to_owned()],
        environment: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        input: b"{\"key\":\"k\"}".to_vec(),
        timeout: Duration::from_secs(20),
        deadline: Moment::BOOT,
    }
}

/// A lease that is held for long.
fn launch() -> (watch::Sender<Moment>, Launch) {
    let (held, deadline) = watch::channel(boottime() + Duration::from_mins(5));
    (held, Launch { supervisor: PathBuf::from(BURSAR), deadline, stop: CancellationToken::new() })
}

async fn ran(script: &str) -> Ended {
    let (_held, launch) = launch();
    run(&order(script), &launch, &open()).await
}

/// A folder in which processes say who they are: a file for each, named after its number.
struct Roll(PathBuf);

impl Roll {
    fn new() -> Self {
        Self(scratch::folder("roll"))
    }

    /// What a script says to enter itself.
    fn enter(&self) -> String {
        format!(": > {}/$$", self.0.display())
    }

    fn entered(&self) -> BTreeSet<i32> {
        let names = fs::read_dir(&self.0).expect("a folder").flatten();
        names.filter_map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())).collect()
    }

    fn alive(&self) -> Vec<i32> {
        let lives = |pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
        };
        self.entered().into_iter().filter(lives).collect()
    }

    fn wait_for(&self, count: usize) {
        let what = format!("{count} processes have begun");
        eventually_blocking(SOON, &what, || (self.entered().len() >= count).then_some(()));
    }

    fn wait_for_none(&self) {
        eventually_blocking(SOON, "nothing of the tree is alive", || self.alive().is_empty().then_some(()));
    }
}

#[tokio::test]
async fn exit_codes_are_outcomes() {
    for (script, ending, expected) in [
        ("exit 0", Ending::Exited(0), "done"),
        ("exit 75", Ending::Exited(75), "again"),
        ("exit 65", Ending::Exited(65), "undone"),
        ("exit 1", Ending::Exited(1), "in doubt"),
        ("exit 70", Ending::Exited(70), "in doubt"),
        ("exit 128", Ending::Exited(128), "in doubt"),
        ("sh -c 'kill -KILL $$'; exit $?", Ending::Exited(137), "unknown"),
        ("kill -TERM $$", Ending::Signalled(15), "unknown"),
        ("kill -KILL $$", Ending::Signalled(9), "unknown"),
    ] {
        let ended = ran(script).await;
        assert_eq!(ended.ending, ending, "{script}");
        let found = match outcome(ended) {
            CallOutcome::Done => "done",
            CallOutcome::Failed { permanent: false, .. } => "again",
            CallOutcome::Failed { permanent: true, .. } => "undone",
            CallOutcome::Mismatch { .. } => "in doubt",
            CallOutcome::Unknown { .. } => "unknown",
            other @ (CallOutcome::PutOff { .. }
            | CallOutcome::NotNow { .. }
            | CallOutcome::Fenced { .. }
            | CallOutcome::Refused { .. }
            | CallOutcome::Stopped { .. }) => panic!("no process ends so: {other:?}"),
            CallOutcome::NotSent => "not sent",
        };
        assert_eq!(found, expected, "{script}");
    }
    let mut missing = order("");
    missing.program = "/nowhere/program".to_owned();
    let (_held, launched) = launch();
    let ended = run(&missing, &launched, &open()).await;
    assert!(matches!(&ended.ending, Ending::NotBegun(why) if why.contains("/nowhere/program")), "{ended:?}");
    // What is there and cannot be executed was not begun either.
    let folder = scratch::folder("programs");
    for (name, content, mode) in
        [("not-executable", "#!/bin/sh\n", 0o644), ("no-interpreter", "#!/nowhere/sh\n", 0o755)]
    {
        let program = folder.join(name);
        fs::write(&program, content).expect("the folder is ours");
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).expect("the file is ours");
        let order = Order { program: program.display().to_string(), ..order("") };
        let ended = run(&order, &launched, &open()).await;
        assert!(matches!(&ended.ending, Ending::NotBegun(why) if why.contains(name)), "{name}: {ended:?}");
        assert!(matches!(outcome(ended), CallOutcome::Failed { permanent: false, .. }), "{name}: tried again");
    }
    // A program that says the same words proves nothing.
    let ended = ran("echo 'not begun 00000000000000000000000000000000: it' >&2; exit 70").await;
    assert_eq!(ended.ending, Ending::Exited(70));
}

#[tokio::test]
async fn a_program_gets_its_unit_and_nothing_that_is_bursars() {
    let definition = CommandDefinition {
        units: String::new(),
        program: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), "cat; echo; env | sort; ls -l /proc/self/fd; pwd".to_owned()],
        environment: ["HOME".to_owned()].into(),
        idempotent: false,
        timeout: Duration::from_secs(20),
    };
    let call = Call {
        instruction: 1,
        unit: 1,
        key: "u".to_owned(),
        idempotency_key: "bkey".to_owned(),
        attempt: 1,
        charged: 0,
        in_doubt: false,
        age: Duration::ZERO,
        body: b"{\"key\":\"bkey\",\"unit\":\"u\"}".to_vec(),
    };
    let own = |name: &str| match name {
        "PATH" => Some("/usr/bin:/bin".to_owned()),
        "HOME" => Some("/home/x".to_owned()),
        "BURSAR__DATABASE__PASSWORD" => Some("hunter2".to_owned()),
        _ => None,
    };
    let order = bursar::settlement::command::order(&definition, &fence(7), &call, own);
    let (held, launch) = launch();
    let _open_file = fs::File::create(scratch::folder("open").join("an-open-file")).expect("a file");
    let ended = run(&order, &launch, &open()).await;
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(ended.ending, Ending::Exited(0), "{ended:?}");
    let ours: Vec<&&str> = lines.iter().filter(|line| line.contains('=') && !line.starts_with("PWD=")).collect();
    assert_eq!(lines[0], "{\"key\":\"bkey\",\"unit\":\"u\"}");
    let shells_own = |line: &str| ["_=", "OLDPWD=", "SHLVL="].iter().any(|name| line.starts_with(name));
    let ours: Vec<&str> = ours.into_iter().copied().filter(|line| !shells_own(line)).collect();
    assert_eq!(
        ours,
        [
            "BURSAR_IDEMPOTENCY_KEY=bkey",
            "BURSAR_SCOPE=deployment/settlement",
            "BURSAR_TERM=7",
            "HOME=/home/x",
            "PATH=/usr/bin:/bin",
        ],
        "{text}"
    );
    assert_eq!(lines[lines.len() - 1], "/");
    assert!(text.contains("pipe:[") && !text.contains("an-open-file"), "{text}");
    // The whole handler, through its port.
    let handler = CommandHandler::new(definition, fence(7), launch.deadline.clone(), launch.stop.clone());
    let handler = handler.supervised_by(PathBuf::from(BURSAR));
    assert_eq!(handler.call(&call, boottime(), &open()).await, CallOutcome::Done);
    assert_eq!(handler.call(&call, boottime(), &shut()).await, CallOutcome::NotSent);
    drop(held);
}

#[tokio::test]
async fn a_flood_of_output_is_read_and_kept_to_its_bound() {
    let ended = ran("yes | head -c 20000000; yes no | head -c 20000000 >&2; exit 75").await;
    assert_eq!(ended.ending, Ending::Exited(75));
    assert_eq!((ended.stdout.len(), ended.stderr.len()), (MOST_OUTPUT, MOST_OUTPUT));
    let CallOutcome::Failed { error, .. } = outcome(ended) else { panic!("to be tried again") };
    assert!(error.starts_with("exit 75") && error.len() < 600, "{error}");
}

#[tokio::test]
async fn an_input_that_is_not_read_holds_nothing_up() {
    let (_held, launch) = launch();
    let mut order = order("exit 0");
    order.input = vec![b' '; 1024 * 1024];
    assert_eq!(run(&order, &launch, &open()).await.ending, Ending::Exited(0));
    order.input.push(b' ');
    assert!(matches!(run(&order, &launch, &open()).await.ending, Ending::NotBegun(_)));
}

#[tokio::test]
async fn without_leave_nothing_is_started() {
    let roll = Roll::new();
    let (held, launch) = launch();
    let order = order(&roll.enter());
    assert_eq!(run(&order, &launch, &shut()).await.ending, Ending::NoLeave);
    held.send_replace(boottime());
    assert_eq!(run(&order, &launch, &open()).await.ending, Ending::NoLeave);
    held.send_replace(boottime() + Duration::from_mins(1));
    launch.stop.cancel();
    assert_eq!(run(&order, &launch, &open()).await.ending, Ending::NoLeave);
    assert_eq!(roll.entered(), BTreeSet::new());
}

#[tokio::test]
async fn what_a_program_leaves_behind_dies_with_it() {
    let roll = Roll::new();
    let enter = roll.enter();
    let inner = enter.replace("$$", "\\$$");
    let daemon =
        format!("setsid sh -c 'trap \"\" TERM HUP; {enter}; setsid sh -c \"{inner}; sleep 600\" & sleep 600' &");
    let ended =
        ran(&format!("{daemon} while [ $(ls {} | wc -l) -lt 2 ]; do sleep 0.05; done; exit 0", roll.0.display())).await;
    assert_eq!(ended.ending, Ending::Exited(0));
    assert_eq!((roll.entered().len() >= 2, roll.alive()), (true, Vec::new()), "gone when it is reported");
}

#[tokio::test]
async fn at_its_time_out_the_whole_tree_is_killed_and_the_outcome_unknown() {
    let roll = Roll::new();
    let enter = roll.enter();
    let (_held, launch) = launch();
    let mut order = order(&format!("{enter}; setsid sh -c '{enter}; sleep 600' & sleep 600"));
    order.timeout = Duration::from_millis(700);
    let ended = run(&order, &launch, &open()).await;
    assert_eq!((ended.ending.clone(), roll.entered().len(), roll.alive()), (Ending::TimedOut, 2, Vec::new()));
    assert!(matches!(outcome(ended), CallOutcome::Unknown { .. }));
}

#[tokio::test]
async fn a_bomb_of_processes_that_hide_in_sessions_of_their_own_is_killed_to_the_last() {
    let roll = Roll::new();
    let script = roll.0.join("bomb.sh");
    // Each starts two others in sessions of their own, to a depth; and stays.
    let text =
        format!("{}\n[ $1 -gt 0 ] && for i in 1 2; do setsid sh $0 $(($1 - 1)) & done\nsleep 600\n", roll.enter());
    fs::write(&script, text).expect("written");
    let (_held, launch) = launch();
    let mut order = order(&format!("sh {} 6", script.display()));
    order.timeout = Duration::from_millis(600);
    let ended = run(&order, &launch, &open()).await;
    assert_eq!(ended.ending, Ending::TimedOut);
    assert_eq!(roll.alive(), Vec::<i32>::new(), "of {}", roll.entered().len());
    let begun = roll.entered().len();
    assert!(begun > 1, "{begun}");
    holds_for(Duration::from_millis(300), "nothing begins any more", async || {
        if roll.entered().len() == begun { Ok(()) } else { Err("another".to_owned()) }
    })
    .await;
}

#[tokio::test]
async fn a_deadline_that_is_renewed_lets_it_run_and_one_that_is_not_kills_it() {
    let roll = Roll::new();
    let (held, launch) = launch();
    held.send_replace(boottime() + Duration::from_millis(800));
    let mut renewing = tokio::task::JoinSet::new();
    renewing.spawn(async move {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            held.send_replace(boottime() + Duration::from_millis(800));
        }
        // Held on to: it is the deadline that ends it, not the end of the pipe.
        tokio::time::sleep(SOON).await;
    });
    let since = boottime();
    let ended = run(&order(&format!("{}; sleep 600", roll.enter())), &launch, &open()).await;
    let took = boottime().since(since);
    drop(renewing);
    assert_eq!((ended.ending, roll.alive()), (Ending::DeadlinePassed, Vec::new()));
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(8), "{took:?}");
}

#[tokio::test]
async fn the_end_of_a_tenure_and_a_dropped_call_kill_the_tree() {
    let roll = Roll::new();
    let order = order(&format!("{}; sleep 600", roll.enter()));
    let (_held, launch) = launch();
    let stop = launch.stop.clone();
    let (departure, stopping): (Departure, _) = (open(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        stop.cancel();
    });
    let (ended, ()) = tokio::join!(run(&order, &launch, &departure), stopping);
    assert_eq!((ended.ending, roll.alive()), (Ending::Abandoned, Vec::new()));

    let (_held, launch) = self::launch();
    let began = roll.entered().len() + 1;
    let dropped = tokio::time::timeout(Duration::from_millis(500), run(&order, &launch, &departure)).await;
    assert!(dropped.is_err(), "{dropped:?}");
    roll.wait_for(began);
    roll.wait_for_none();
}

/// What stands for a replica: a process that holds the pipe to a supervisor, and can be killed and stopped.
struct Parent {
    child: std::process::Child,
}

impl Parent {
    /// Starts one with an order whose lease is held for `held`.
    fn start(order: &Order, held: Duration) -> Self {
        let order = Order { deadline: boottime() + held, ..order.clone() };
        let more = deadline_line(boottime() + held);
        // The shell holds the write end of the pipe, and nobody else does: `cat` would, so it is not used.
        let script = format!(
            "{{ read -r order; printf '%s\\n' \"$order\"; read -r more; printf '%s\\n' \"$more\"; read -r end; }} | {BURSAR} supervise"
        );
        let mut child = Command::new("bash")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("bash can be started");
        let stdin = child.stdin.as_mut().expect("a pipe");
        stdin.write_all(order.to_line().as_bytes()).expect("written");
        stdin.write_all(more.as_bytes()).expect("written");
        Self { child }
    }

    /// The process that holds the pipe.
    fn holder(&self) -> Pid {
        let shell = i32::try_from(self.child.id()).expect("a number");
        let children = format!("/proc/{shell}/task/{shell}/children");
        let found = eventually_blocking(SOON, "the parent has its processes", || {
            let text = fs::read_to_string(&children).ok()?;
            let pids: Vec<i32> = text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect();
            pids.into_iter().find(|pid| {
                let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.starts_with("bash")
            })
        });
        Pid::from_raw(found).expect("a process")
    }

    fn report(mut self) -> Ended {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().expect("a pipe")).read_line(&mut line).expect("readable");
        self.child.wait().expect("ended");
        Ended::of_line(&line).unwrap_or_else(|| panic!("no report: {line:?}"))
    }
}

#[test]
fn a_parent_that_is_killed_leaves_nothing_behind() {
    let roll = Roll::new();
    let enter = roll.enter();
    let order = order(&format!("{enter}; setsid sh -c '{enter}; sleep 600' & sleep 600"));
    let parent = Parent::start(&order, Duration::from_mins(5));
    roll.wait_for(2);
    assert_eq!(roll.alive().len(), 2);
    kill_process(parent.holder(), Signal::KILL).expect("ours");
    roll.wait_for_none();
    assert_eq!(parent.report().ending, Ending::Abandoned);
}

#[test]
fn a_parent_that_is_stopped_leaves_nothing_behind_once_its_lease_is_over() {
    let roll = Roll::new();
    let parent = Parent::start(&order(&format!("{}; sleep 600", roll.enter())), Duration::from_secs(2));
    roll.wait_for(1);
    let holder = parent.holder();
    kill_process(holder, Signal::STOP).expect("ours");
    roll.wait_for_none();
    kill_process(holder, Signal::CONT).expect("ours");
    kill_process(holder, Signal::KILL).expect("ours");
    assert_eq!(parent.report().ending, Ending::DeadlinePassed);
}

#[test]
fn a_signal_to_end_does_not_end_a_supervisor_before_its_tree() {
    let roll = Roll::new();
    let mut child = Command::new(BURSAR)
        .arg("supervise")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let order = order(&format!("{}; setsid sh -c '{}; sleep 600' & sleep 600", roll.enter(), roll.enter()));
    let order = Order { deadline: boottime() + Duration::from_mins(5), ..order };
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(order.to_line().as_bytes()).expect("written");
    roll.wait_for(2);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        kill_process(Pid::from_child(&child), signal).expect("ours");
    }
    assert_eq!(roll.alive().len(), 2);
    drop(pipe);
    let output = child.wait_with_output().expect("ended");
    let ended = Ended::of_line(&String::from_utf8_lossy(&output.stdout)).expect("a report");
    assert_eq!((ended.ending, roll.alive()), (Ending::Abandoned, Vec::new()));
}

#[test]
fn a_program_dies_with_its_supervisor() {
    let roll = Roll::new();
    let mut child = Command::new(BURSAR)
        .arg("supervise")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let order = order(&format!("{}; exec sleep 600", roll.enter()));
    let order = Order { deadline: boottime() + Duration::from_mins(5), ..order };
    child.stdin.as_mut().expect("a pipe").write_all(order.to_line().as_bytes()).expect("written");
    roll.wait_for(1);
    child.kill().expect("ours");
    child.wait().expect("ended");
    roll.wait_for_none();
}

#[test]
fn a_supervisor_without_a_whole_order_starts_nothing() {
    let roll = Roll::new();
    let order = order(&roll.enter());
    let line = Order { deadline: boottime() + Duration::from_mins(5), ..order }.to_line();
    for text in ["", &line[..line.len() - 1], "{}\n", "run this\n"] {
        let mut child = Command::new(BURSAR)
            .arg("supervise")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("started");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
        let output = child.wait_with_output().expect("ended");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{text}");
    }
    assert_eq!(roll.entered(), BTreeSet::new());
}
