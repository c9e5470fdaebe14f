//! What one step does to the world: what a machine commands is carried out, what arrives is served; and what an onlooker sees.

use std::time::Duration;

use bursar::domain::{Claim, Moment, TenureId, Term};
use bursar::leadership::machine::{Command, EndMode, Event, Luck, Report};
use uuid::Uuid;

use super::{Election, Late, Message, OPERATION_LIMIT, World, name};
use crate::defect::Defect;
use crate::replica::{BUDGET, Tenure};

impl World {
    pub(super) fn shows(&self, model: &Election, node: usize) -> Moment {
        model.rates[node].shows(self.now)
    }

    pub(super) fn is_due(&self, model: &Election, node: usize) -> bool {
        let replica = &self.replicas[node];
        replica.wakes_at().is_some_and(|at| at <= self.shows(model, node))
    }

    /// Whether the next step of a replica touches nothing but its machine and its own lease.
    pub(super) fn is_local(&self, model: &Election, node: usize) -> bool {
        if self.replicas[node].paused {
            return false;
        }
        match self.prompt[node].first() {
            Some(Message::Tell(_) | Message::Request(Command::Renew { .. })) => true,
            Some(Message::Request(_) | Message::Advance(_) | Message::Refused(_)) => false,
            None => self.is_due(model, node),
        }
    }

    pub(super) fn hand(&mut self, model: &Election, node: usize, event: Event) {
        if let Event::Reported(Report::Ended { claim }) = &event {
            let tenure = &mut self.replicas[node].tenure;
            if tenure.as_ref().is_some_and(|tenure| tenure.claim == *claim) {
                *tenure = None;
            }
        }
        let tenure = TenureId(Uuid::from_u128(u128::from(self.campaigns) * 2 + node as u128 + 1));
        let shown = self.shows(model, node);
        for command in self.replicas[node].hand(shown, Luck { jitter: 0, tenure }, event) {
            self.carry_out(model, node, command);
        }
    }

    pub(super) fn carry_out(&mut self, model: &Election, node: usize, command: Command) {
        let replica = &mut self.replicas[node];
        match command {
            Command::Begin { claim, lease, .. } => {
                replica.began_beside |= replica.tenure.is_some();
                replica.tenure = Some(Tenure { claim: claim.clone(), ends_by: None, lease });
                self.prompt[node].push(Message::Advance(claim));
            }
            Command::End { claim, mode, .. } => {
                let Some(tenure) = replica.tenure.as_mut().filter(|tenure| tenure.claim == claim) else { return };
                let takes = match mode {
                    EndMode::Planned { drain } => drain + BUDGET,
                    EndMode::Abrupt => BUDGET,
                };
                let by = model.rates[node].shows(self.now) + takes;
                let told = tenure.ends_by.replace(tenure.ends_by.map_or(by, |before| before.min(by)));
                if told.is_none() {
                    self.prompt[node].retain(|message| !matches!(message, Message::Advance(_) | Message::Refused(_)));
                    self.prompt[node].push(Message::Tell(Event::Reported(Report::Ended { claim })));
                }
            }
            Command::Open { lease, deadline, .. } => {
                let shown = model.rates[node].shows(self.now);
                replica.revived |= replica.deadline.is_some_and(|(open, until)| open == lease && until <= shown);
                replica.deadline = Some((lease, deadline));
            }
            Command::Close { lease } => {
                replica.deadline = replica.deadline.filter(|(open, _)| *open != lease);
            }
            Command::Watch { from, .. } => {
                if model.watches {
                    replica.watch = Some(from);
                }
            }
            Command::Exit(_) | Command::Finished => {
                // What did not end in time ended with its process: that was not as planned.
                self.planned &= matches!(command, Command::Finished);
                replica.end();
                self.gone(node);
            }
            Command::Campaign { op, mut claim, lease, vacancy, term_revision } => {
                self.campaigns += 1;
                if model.defect == Some(Defect::TermFromClock) {
                    let seconds = model.rates[node].shows(self.now).since_boot().as_secs();
                    claim.term = i64::try_from(seconds / 10 + 1).ok().and_then(Term::new).unwrap_or(Term::NONE);
                }
                let campaign = Command::Campaign { op, claim, lease, vacancy, term_revision };
                self.prompt[node].push(Message::Request(campaign));
            }
            Command::Transfer { .. } => {
                self.campaigns += 1;
                self.prompt[node].push(Message::Request(command));
            }
            Command::Grant { .. }
            | Command::Renew { .. }
            | Command::Revoke { .. }
            | Command::Read { .. }
            | Command::Resign { .. }
            | Command::ReadFence { .. } => self.prompt[node].push(Message::Request(command)),
            Command::Register { lease, .. } => self.coordinator.register(self.now, node, lease),
            // What decides nothing is left out of the world.
            Command::Survey { .. }
            | Command::Accept { .. }
            | Command::Forget { .. }
            | Command::Hold { .. }
            | Command::Note(_) => {}
        }
    }

    /// A replica is told to end its tenure as planned. Where the other is paused or was killed, its record may stand on a lease that
    /// it has no more: that it does not take over is found out only when that lease lapses.
    pub(super) fn end_as_planned(&mut self, model: &Election, node: usize, why: Report) {
        let all_there = self.replicas.iter().all(|replica| replica.machine.is_some() && !replica.paused);
        let all_there = all_there && self.left.crashes == model.faults.crashes;
        self.planned = all_there && model.leads(self, node).is_some_and(|claim| self.fence == Some(claim));
        self.hand(model, node, Event::Reported(why));
    }

    /// Watches wake whoever has not heard of the last change yet.
    pub(super) fn wake_watchers(&mut self) {
        for node in 0..2 {
            let changed = self.replicas[node].watch.and_then(|from| self.coordinator.changed_since(self.now, from));
            if let Some(at) = changed {
                self.replicas[node].watch = Some(at.next());
                self.prompt[node].push(Message::Tell(Event::Woken(name())));
            }
        }
    }

    /// The process of a replica is gone: nobody waits for what it has sent.
    pub(super) fn gone(&mut self, node: usize) {
        self.prompt[node].clear();
        for late in self.late.iter_mut().filter(|late| late.node == node) {
            late.given_up = true;
        }
    }

    /// What a message comes to where it arrives. Answers what is to be told to whoever sent it.
    pub(super) fn serve(&mut self, model: &Election, node: usize, message: Message) -> Vec<Event> {
        match message {
            Message::Tell(event) => vec![event],
            Message::Request(Command::ReadFence { election }) => {
                let term = Ok(self.fence.as_ref().map_or(Term::NONE, |claim| claim.term));
                vec![Event::Reported(Report::FenceTerm { election, term })]
            }
            Message::Request(command) => {
                let event = self.coordinator.serve(self.now, node, &command, model.defect);
                vec![event]
            }
            Message::Advance(claim) => self.advance(model, claim),
            Message::Refused(_) if model.defect == Some(Defect::FencedAsNothingDue) => Vec::new(),
            Message::Refused(claim) => {
                let found = self.fence.clone();
                vec![Event::Reported(Report::Fenced { claim, found })]
            }
        }
    }

    /// The upsert of the fence: below one's own term, or one's own already.
    pub(super) fn advance(&mut self, model: &Election, claim: Claim) -> Vec<Event> {
        let lax = model.defect == Some(Defect::TermWithoutTenureId);
        let accepts = self
            .fence
            .as_ref()
            .is_none_or(|fence| fence.term < claim.term || *fence == claim || (lax && fence.term == claim.term));
        if !accepts {
            let found = self.fence.clone();
            if model.defect == Some(Defect::FencedAsNothingDue) {
                return Vec::new();
            }
            return vec![Event::Reported(Report::Fenced { claim, found })];
        }
        let before = self.fence.replace(claim.clone());
        self.accepted_twice |=
            before.as_ref().is_some_and(|fence| fence.term == claim.term && fence.tenure_id != claim.tenure_id);
        if before.as_ref() != Some(&claim) {
            self.accepted += 1;
        }
        // Whoever else is at work is refused with its next transaction.
        for (node, replica) in self.replicas.iter().enumerate() {
            let Some(tenure) =
                replica.tenure.as_ref().filter(|tenure| tenure.ends_by.is_none() && tenure.claim != claim)
            else {
                continue;
            };
            let advances = |message: &Message| matches!(message, Message::Advance(of) if *of == tenure.claim);
            if !self.prompt[node].iter().chain(self.late.iter().map(|late| &late.message)).any(advances) {
                self.prompt[node].push(Message::Refused(tenure.claim.clone()));
            }
        }
        let accepted = Event::Reported(Report::Accepted { claim: claim.clone() });
        vec![accepted, Event::Reported(Report::FirstWork { claim })]
    }

    pub(super) fn delay(&mut self, node: usize, message: Message, given_up: bool) {
        let start = self.replicas[node].start;
        self.late.push(Late { node, start, message, since: self.now, given_up });
    }

    /// Who leads now: by its machine, on its own clock, at work as far as the store is concerned.
    pub(super) fn leaders(&self, model: &Election) -> Vec<Claim> {
        (0..2).filter_map(|node| model.leads(self, node)).collect()
    }

    /// The next moment at which something has to happen.
    pub(super) fn next_moment(&self, model: &Election) -> Option<Moment> {
        let wakes = (0..2)
            .filter(|node| !self.replicas[*node].paused)
            .filter_map(|node| self.replicas[node].wakes_at().map(|at| model.rates[node].when(at)));
        let given_up = self.late.iter().filter(|late| !late.given_up && !matches!(late.message, Message::Advance(_)));
        let given_up = given_up.map(|late| late.since + OPERATION_LIMIT);
        let lapse = self.coordinator.next_lapse(self.now);
        wakes.chain(given_up).chain(lapse).filter(|at| *at > self.now).min()
    }

    /// Nothing is left to be done at this moment.
    pub(super) fn is_still(&self, model: &Election) -> bool {
        (0..2).all(|node| self.replicas[node].paused || (self.prompt[node].is_empty() && !self.is_due(model, node)))
            && self
                .late
                .iter()
                .all(|late| late.given_up || late.since + OPERATION_LIMIT > self.now || !late.is_waited_for())
    }

    /// What has to be true of a tenure in a process that runs.
    pub(super) fn outlives_its_session(&self, model: &Election) -> bool {
        (0..2).any(|node| {
            let replica = &self.replicas[node];
            let Some(tenure) = &replica.tenure else { return false };
            let runs = !replica.paused && !self.is_due(model, node);
            let session = replica.deadline.filter(|(lease, _)| *lease == tenure.lease);
            let over = session.is_none_or(|(_, deadline)| deadline <= self.shows(model, node));
            // Told to end, it has its time to; then the process ends.
            let ends = tenure.ends_by.map_or(over, |by| by < self.shows(model, node));
            runs && ends
        })
    }

    /// Whether somebody leads who was accepted, and whose workers work.
    pub(super) fn is_served(&self, model: &Election) -> bool {
        let serves = |node: usize| !self.replicas[node].stuck && model.leads(self, node) == self.fence;
        self.fence.is_some() && (0..2).any(serves)
    }

    /// Whether a tenure was told to end and has not yet.
    pub(super) fn is_ending(&self) -> bool {
        let mut tenures = self.replicas.iter().filter_map(|replica| replica.tenure.as_ref());
        tenures.any(|tenure| tenure.ends_by.is_some())
    }

    /// Whether calm has lasted for longer than this without a leader, although somebody could be one.
    pub(super) fn nobody_leads_for(&self, model: &Election, bound: Duration) -> bool {
        let Some(since) = self.vacant_since else { return false };
        let calm = self.late.iter().all(|late| late.given_up);
        let somebody = self.replicas.iter().any(|replica| replica.machine.is_some() && !replica.paused);
        calm && somebody && self.is_still(model) && self.now.since(since.max(self.disturbed_at)) > bound
    }
}

impl Election {
    /// What a replica leads, by its own clock.
    pub(super) fn leads(&self, world: &World, node: usize) -> Option<Claim> {
        world.replicas[node].leads(world.shows(self, node)).pop()
    }
}

impl Late {
    pub(super) const fn is_renewal(&self) -> bool {
        matches!(self.message, Message::Request(Command::Renew { .. }) | Message::Tell(Event::Renewed(..)))
    }

    pub(super) const fn is_waited_for(&self) -> bool {
        !matches!(self.message, Message::Advance(_))
    }
}
