//! What goes wrong, as the scenario says, and the end of it.

use std::sync::Arc;
use std::time::Duration;

use bursar::domain::ElectionName;
use bursar::domain::entry::NewEntry;
use bursar::store::{Actor, NewImport, RequestKind, Store as _, TransferAsked};
use chrono::TimeDelta;
use futures_util::FutureExt as _;

use crate::breaks::Break;
use crate::engine::Engine;
use crate::facts::Touch;
use crate::receiver;
use crate::scenario::{Act, Hand};
use crate::world::{BadCommits, Links, To};

/// What ends at a moment.
#[derive(Debug, Clone)]
pub enum End {
    Halt(ElectionName),
    Hold(String),
    Cordon(String),
    Commits,
}

fn actor() -> Actor {
    Actor { user: "operator".to_owned(), host: "desk".to_owned() }
}

impl Engine {
    /// One of the scenario's acts.
    pub fn act(&mut self, act: Act, now: Duration) {
        let world = Arc::clone(&self.world);
        world.log("nemesis", format!("{act:?}"));
        if let Some(name) = name(&act) {
            world.count(name);
        }
        match act {
            Act::Crash { place, down } => {
                self.stop(place);
                self.places[place].up_at = now + down;
            }
            Act::Drain { place, down } => {
                self.places[place].down_for = down;
                if let Some(process) = &mut self.places[place].process {
                    process.leaving = true;
                    process.running.drain();
                }
            }
            Act::Pause { place, time } => {
                if let Some(process) = &mut self.places[place].process {
                    let (since, until) = process.paused.unwrap_or((now, now));
                    process.paused = Some((since, until.max(now + time)));
                    world.state().paused[place] = true;
                }
            }
            Act::Cut { place, to, time } => world.state().links[place].to(to).cut_until = now + time,
            Act::CutAll { to, time } => {
                for links in &mut world.state().links {
                    links.to(to).cut_until = now + time;
                }
            }
            Act::Slow { place, to, time } => world.state().links[place].to(to).slow_until = now + time,
            Act::Deaf { place, to, time } => world.state().links[place].to(to).deaf_until = now + time,
            Act::Commits { bad, time } => {
                world.state().commits = bad;
                self.ends.push((now + time, End::Commits));
            }
            Act::Coordinator(hand) => self.act_on_coordinator(hand),
            Act::DeleteLeader { election } => world.state().model.delete_leader_by_hand(&election),
            Act::LeaselessLeader { election } => world.state().model.put_leaseless_leader_by_hand(&election),
            Act::Halt { election, time } => {
                let ignored = world.state().broken == Break::HaltIgnored;
                if !ignored {
                    done(world.judge.halt(&election, "nemesis", &actor()));
                }
                world.touch("operator", Touch::Halted { election: election.clone() });
                self.ends.push((now + time, End::Halt(election)));
            }
            Act::Edit { edited } => self.edit(edited, now),
            Act::StepStore { seconds } => world.state().store_offset += TimeDelta::seconds(seconds),
            Act::Import { entries } => self.import(entries, now),
            Act::Trigger { job } => {
                let kind = RequestKind::Trigger { job, tick: None, cutoff: None };
                // Before anybody has led there is no such job.
                let _filed = world.judge.request(&kind, &actor(), Some("nemesis")).now_or_never();
            }
            Act::HoldMerchant { merchant, time } => {
                done(world.judge.hold_merchant(&merchant, "nemesis", &actor()));
                self.ends.push((now + time, End::Hold(merchant)));
            }
            Act::Transfer { election, to } => self.ask_transfer(&election, to),
            Act::Cordon { place, time } => {
                if let Some(replica) = self.name_of(place)
                    && done(world.judge.cordon(&replica, true, "nemesis", &actor()))
                {
                    world.count("cordoned");
                    self.ends.push((now + time, End::Cordon(replica)));
                }
            }
            Act::ReceiverAway { host, time } => {
                if let Some(habits) = world.state().facts.book.habits.get_mut(&host) {
                    habits.away_until = now + time;
                }
            }
        }
        world.changed.notify_waiters();
    }

    fn import(&self, entries: Vec<NewEntry>, now: Duration) {
        let world = &self.world;
        let nets = entries.iter().map(|entry| (entry.merchant.clone(), entry.amount - entry.fee)).collect();
        world.touch("operator", Touch::Imported { entries: nets });
        let again = (world.state().broken == Break::ImportedTwice).then(|| {
            let again = |entry: &NewEntry| NewEntry { id: format!("{}-again", entry.id), ..entry.clone() };
            entries.iter().map(again).collect::<Vec<_>>()
        });
        let entries = entries
            .into_iter()
            .chain(again.into_iter().flatten())
            .enumerate()
            .map(|(line, entry)| (line as u64 + 2, entry))
            .collect();
        let import = NewImport {
            source: "psp".to_owned(),
            file_name: "simulated.csv".to_owned(),
            sha256: format!("{:064}", now.as_micros()),
            entries,
        };
        done(world.judge.import(&import, &actor()));
    }

    /// The replica that lives in a place.
    fn name_of(&self, place: usize) -> Option<String> {
        self.places[place].process.as_ref().map(|process| process.name.clone())
    }

    /// As the command does: it names the term that it finds.
    fn ask_transfer(&self, election: &ElectionName, to: Option<usize>) {
        let Some(claim) = self.world.in_force(election) else { return };
        let to = to.and_then(|place| self.name_of(place));
        let asked = done(self.world.judge.ask_transfer(election, claim.term, to.as_deref(), "nemesis", &actor()));
        if asked == TransferAsked::Filed {
            self.world.count("transfer");
        }
    }

    fn act_on_coordinator(&self, hand: Hand) {
        let now = self.world.coordinator_time();
        let mut state = self.world.state();
        match hand {
            Hand::Wipe => state.model.wipe(),
            Hand::Backup => state.backup = Some(state.model.clone()),
            Hand::Restore => {
                if let Some(backup) = state.backup.clone() {
                    state.model.restore(backup);
                    state.count("coordinator restored");
                }
            }
            Hand::Lapse => state.model.lapse(now + Duration::from_mins(1)),
        }
    }

    /// Everybody takes up an edit at once; with two elections by a restart each, since which of two tenures of a process
    /// would be woken first is drawn by tokio, not by the seed.
    fn edit(&mut self, edited: usize, now: Duration) {
        self.schedule = Arc::new(self.scenario.schedules[edited].clone());
        let restarts = self.scenario.elections.len() > 1;
        for place in 0..self.places.len() {
            if restarts {
                self.stop(place);
                self.places[place].up_at = now + Duration::from_millis(300 * place as u64);
            } else if let Some(process) = &self.places[place].process {
                process.schedule.send_replace(Arc::clone(&self.schedule));
            }
        }
    }

    /// Ends what is over.
    pub fn end_what_is_over(&mut self, now: Duration) {
        let over: Vec<End> = self.ends.extract_if(.., |(at, _)| *at <= now).map(|(_, end)| end).collect();
        for end in over {
            self.world.log("nemesis", format!("over: {end:?}"));
            match end {
                End::Halt(election) => {
                    done(self.world.judge.resume(&election, "over", &actor()));
                    self.world.touch("operator", Touch::Resumed { election });
                }
                End::Hold(merchant) => {
                    done(self.world.judge.release_merchant(&merchant, "over", &actor()));
                }
                End::Cordon(replica) => {
                    done(self.world.judge.cordon(&replica, false, "over", &actor()));
                }
                End::Commits => self.world.state().commits = BadCommits::default(),
            }
        }
    }

    /// Trouble is over: everybody is there, and everything can be reached.
    pub fn heal(&mut self, now: Duration) {
        self.world.log("nemesis", "all is well from here on");
        self.world.state().facts.calm_since = Some(now);
        for (at, _) in &mut self.ends {
            *at = now;
        }
        self.end_what_is_over(now);
        for place in &mut self.places {
            place.up_at = now;
            if let Some(process) = &mut place.process
                && let Some((_, until)) = &mut process.paused
            {
                *until = now;
            }
        }
        {
            let mut state = self.world.state();
            state.links.fill(Links::default());
            for habits in state.facts.book.habits.values_mut() {
                let (idempotent, checks_tokens) = (habits.idempotent, habits.checks_tokens);
                *habits = receiver::Habits { idempotent, checks_tokens, ..receiver::Habits::default() };
            }
        }
        for host in self.scenario.receivers.keys() {
            done(self.world.judge.resume_receiver(&format!("http://{host}"), "over", &actor()));
        }
    }
}

/// What the judge does at the store is done at once.
fn done<T>(act: impl Future<Output = Result<T, bursar::store::StoreError>>) -> T {
    act.now_or_never().expect("memory answers at once").expect("the judge has no faults")
}

/// What is counted where it is tried; what may come to nothing is counted where it is done.
fn name(act: &Act) -> Option<&'static str> {
    let name = match act {
        Act::Crash { .. } => "crash",
        Act::Drain { .. } => "drain",
        Act::Pause { .. } => "pause",
        Act::Cut { to: To::Coordinator, .. } => "cut from the coordinator",
        Act::Cut { to: To::Store, .. } => "cut from the store",
        Act::Cut { to: To::Receiver, .. } => "cut from the receiver",
        Act::CutAll { .. } => "cut of all",
        Act::Slow { .. } => "slow link",
        Act::Deaf { .. } => "lost answers",
        Act::Commits { .. } => "bad commits",
        Act::Coordinator(Hand::Wipe) => "coordinator wiped",
        Act::Coordinator(Hand::Backup) => "coordinator backed up",
        Act::Coordinator(Hand::Lapse) => "all leases lapsed",
        Act::DeleteLeader { .. } => "leader key deleted",
        Act::LeaselessLeader { .. } => "leader key put by hand",
        Act::Halt { .. } => "halt",
        Act::Edit { .. } => "schedule edited",
        Act::StepStore { .. } => "store clock stepped",
        Act::Import { .. } => "import",
        Act::Trigger { .. } => "manual run",
        Act::HoldMerchant { .. } => "merchant held",
        Act::ReceiverAway { .. } => "receiver away",
        Act::Coordinator(Hand::Restore) | Act::Transfer { .. } | Act::Cordon { .. } => return None,
    };
    Some(name)
}
