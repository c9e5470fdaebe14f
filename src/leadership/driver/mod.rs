//! The session's thread: runs the machine against a coordinator, on an OS thread and a single-threaded runtime of its own,
//! so that no load on workers, handlers or pools can delay a renewal.
//!
//! The order is: select what happens next, let the machine decide, carry out its commands in order, publish the view. There
//! is no decision about leadership here.
//!
//! Deliberately absent: tenures. They live on the worker runtime, which carries out [`TenureOrder`]s and reports back.

mod carry;
mod ops;
mod settings;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::coordinator::Coordinator;
use super::gate::Gate;
use super::machine::{EndMode, Event, LeadershipView, Luck, Machine, Now, Report};
use super::observer::Observer;
use super::reason::{EndReason, ExitReason};
use super::record::{LeaderRecord, Members, Revision};
use crate::clock;
use crate::domain::{Claim, ElectionName, Moment, TenureId};
use carry::Shell;
pub use settings::{ExitHook, LeadershipSettings, ReplicaDescription, StoreTime, exit_process};

/// The thread wakes at least this often: the runtime's timers do not count through a suspend, boot time does.
const LONGEST_SLEEP: Duration = Duration::from_millis(250);

/// Wake-ups of watches that may be waiting; each is worth one read.
const WAKE_QUEUE: usize = 64;

/// A tenure as it is begun.
#[derive(Debug, Clone)]
pub struct TenureGrant {
    /// What every transaction of it presents.
    pub claim: Claim,
    /// What stands before BEGIN and before the first byte.
    pub gate: Gate,
    /// The leader's record as it stands in the coordinator.
    pub record: LeaderRecord,
    /// The revision of the win: what `accepted` is put under.
    pub won: Revision,
    /// When this replica learnt of the win, in boot time.
    pub won_at: Moment,
    /// Whether it was found on this replica's lease rather than campaigned for: a hand-over.
    pub adopted: bool,
    /// Since when this replica saw the place free, in boot time.
    pub vacant_since: Option<Moment>,
}

/// What the worker runtime is to do.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a few per tenure: a box would be in the way")]
pub enum TenureOrder {
    /// Begin a tenure: promote, then work. Answered by `Accepted`, `FirstWork`, or a failure.
    Begin(TenureGrant),
    /// End it, and report `Ended` when nothing of it goes on. May come again with [`EndMode::Abrupt`]; may come for a tenure
    /// that has ended already.
    End {
        /// The tenure.
        claim: Claim,
        /// How.
        mode: EndMode,
        /// Why.
        reason: EndReason,
    },
    /// Read the fence's term and report `FenceTerm`.
    ReadFence {
        /// The election.
        election: ElectionName,
    },
}

/// Makes the coordinator, on the session's thread and within its runtime.
pub type CoordinatorFactory = Box<dyn FnOnce() -> Arc<dyn Coordinator> + Send>;

/// Leadership's entrance.
#[derive(Debug)]
pub struct Leadership;

/// The process's end of the session's thread. When the last one is dropped, the replica drains.
#[derive(Clone)]
pub struct LeadershipHandle {
    reports: mpsc::UnboundedSender<Report>,
    view: watch::Receiver<LeadershipView>,
    thread: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
    finished: watch::Receiver<bool>,
}

impl Leadership {
    /// Starts the session's thread. Orders for tenures come from the receiver; they have no bound, being few by nature: one
    /// tenure per election at a time.
    ///
    /// # Errors
    /// The operating system's, where it gives no thread.
    pub fn start(
        settings: LeadershipSettings,
        coordinator: CoordinatorFactory,
        observer: Arc<dyn Observer>,
    ) -> std::io::Result<(LeadershipHandle, mpsc::UnboundedReceiver<TenureOrder>)> {
        let exit = settings.exit.clone();
        let (handle, order_receiver, session, finished_sender) = Self::prepare(settings, coordinator, observer);
        let thread = std::thread::Builder::new().name("session".to_owned()).spawn(move || {
            let run = std::panic::AssertUnwindSafe(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(session);
                runtime.shutdown_background();
                Ok::<(), std::io::Error>(())
            });
            match std::panic::catch_unwind(run) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::error!(%error, "the session's runtime could not be built");
                    exit(ExitReason::SessionThreadEnded);
                }
                Err(_) => exit(ExitReason::SessionThreadEnded),
            }
            finished_sender.send_replace(true);
        })?;
        *handle.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok((handle, order_receiver))
    }

    /// Everything but the thread: the handle, the orders, what the session runs as, and what says that it has ended.
    fn prepare(
        settings: LeadershipSettings,
        coordinator: CoordinatorFactory,
        observer: Arc<dyn Observer>,
    ) -> (
        LeadershipHandle,
        mpsc::UnboundedReceiver<TenureOrder>,
        impl Future<Output = ()> + Send + 'static,
        watch::Sender<bool>,
    ) {
        let (report_sender, reports) = mpsc::unbounded_channel();
        let (orders, order_receiver) = mpsc::unbounded_channel();
        let machine = Machine::new(settings.machine(), now());
        let (view_sender, view) = watch::channel(machine.view(Members::default()));
        let (finished_sender, finished) = watch::channel(false);
        let session = run(settings, machine, coordinator, observer, reports, orders, view_sender);
        let handle = LeadershipHandle { reports: report_sender, view, thread: Arc::default(), finished };
        (handle, order_receiver, session, finished_sender)
    }

    /// The same without a thread: whoever asks runs the session, on a runtime of one thread. For simulators, which have no
    /// threads; not compiled into a release.
    #[cfg(feature = "chaos")]
    pub fn in_place(
        settings: LeadershipSettings,
        coordinator: CoordinatorFactory,
        observer: Arc<dyn Observer>,
    ) -> (LeadershipHandle, mpsc::UnboundedReceiver<TenureOrder>, impl Future<Output = ()> + Send + 'static) {
        let (handle, orders, session, finished) = Self::prepare(settings, coordinator, observer);
        let session = async move {
            session.await;
            finished.send_replace(true);
        };
        (handle, orders, session)
    }
}

impl LeadershipHandle {
    /// Tells the session's thread. After it has ended, nothing listens.
    pub fn report(&self, report: Report) {
        if self.reports.send(report).is_err() {
            tracing::debug!("a report came after the session's thread had ended");
        }
    }

    /// What may be shown, as it changes.
    #[must_use]
    pub fn view(&self) -> watch::Receiver<LeadershipView> {
        self.view.clone()
    }

    /// Waits until the session's thread has ended: after [`Report::Drain`], keys are deleted and the lease is revoked by then,
    /// as far as the coordinator could be reached.
    pub async fn join(&self) {
        let mut finished = self.finished.clone();
        // An error means that the sender went with the thread: it has ended as well.
        let _ended = finished.wait_for(|finished| *finished).await;
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if thread.is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the session's thread panicked");
        }
    }
}

fn now() -> Now {
    Now { boot: clock::boottime(), monotonic: clock::monotonic() }
}

fn luck() -> Luck {
    Luck { jitter: clock::random_u64(), tenure: TenureId(clock::random_id()) }
}

async fn run(
    settings: LeadershipSettings,
    mut machine: Machine,
    coordinator: CoordinatorFactory,
    observer: Arc<dyn Observer>,
    mut reports: mpsc::UnboundedReceiver<Report>,
    orders: mpsc::UnboundedSender<TenureOrder>,
    view: watch::Sender<LeadershipView>,
) {
    let (wakes, mut woken) = mpsc::channel(WAKE_QUEUE);
    let mut shell = Shell::new(settings, coordinator(), observer, orders, wakes);
    let mut listening = true;
    while !shell.finished() {
        let sleep = machine.deadline().map_or(LONGEST_SLEEP, |(at, _)| at.since(clock::boottime()).min(LONGEST_SLEEP));
        let event = tokio::select! {
            // Reports first: an end that was reported in time must not be found overdue.
            biased;
            report = reports.recv(), if listening => {
                report.map_or_else(|| { listening = false; Event::Reported(Report::Drain) }, Event::Reported)
            }
            event = shell.answered() => event,
            Some(event) = woken.recv() => event,
            () = tokio::time::sleep(sleep) => Event::Wake,
        };
        shell.note_report(&event);
        let is_wake = event == Event::Wake;
        let mut commands = machine.handle(now(), luck(), event);
        let due = machine.deadline().is_some_and(|(at, _)| at <= clock::boottime());
        if !is_wake && due && reports.is_empty() {
            // A steady flow of events must not starve the timers.
            commands.extend(machine.handle(now(), luck(), Event::Wake));
        }
        shell.carry_out(commands);
        view.send_if_modified(|shown| {
            let next = shell.complete(machine.view(shell.members()));
            let changed = *shown != next;
            *shown = next;
            changed
        });
    }
    shell.end();
}
