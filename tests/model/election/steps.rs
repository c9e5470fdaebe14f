//! Faults: which are possible, and what becomes of messages that are lost, late or doubled.

use std::time::Duration;

use bursar::leadership::machine::{Command, Event, Failed, Report};

use super::{Action, Election, LIFT, Late, Message, STALLS, World};

pub(super) fn failure(command: &Command) -> Option<Event> {
    let event = match command.clone() {
        Command::Grant { op, .. } => Event::Granted(op, Err(Failed)),
        Command::Renew { op, .. } => Event::Renewed(op, Err(Failed)),
        Command::Revoke { op, .. } => Event::Revoked(op),
        Command::Read { op, election } => Event::Read(op, election, Err(Failed)),
        Command::Campaign { op, claim, .. } => Event::Campaigned(op, claim.election, Err(Failed)),
        Command::Resign { op, election, .. } => Event::Resigned(op, election, Err(Failed)),
        Command::Transfer { op, claim, .. } => Event::Transferred(op, claim.election, Err(Failed)),
        Command::ReadFence { election } => {
            Event::Reported(Report::FenceTerm { election, term: Err("no answer".to_owned()) })
        }
        _ => return None,
    };
    Some(event)
}

/// What a sender is told whose answer is late for too long.
pub(super) fn failure_of(event: &Event) -> Option<Event> {
    match event.clone() {
        Event::Granted(op, _) => Some(Event::Granted(op, Err(Failed))),
        Event::Renewed(op, _) => Some(Event::Renewed(op, Err(Failed))),
        Event::Read(op, election, _) => Some(Event::Read(op, election, Err(Failed))),
        Event::Campaigned(op, election, _) => Some(Event::Campaigned(op, election, Err(Failed))),
        Event::Resigned(op, election, _) => Some(Event::Resigned(op, election, Err(Failed))),
        Event::Transferred(op, election, _) => Some(Event::Transferred(op, election, Err(Failed))),
        _ => None,
    }
}

/// Whether a step is about a process or the coordinator itself, rather than about messages or a planned end.
pub(super) const fn is_of_a_process_or_the_coordinator(action: &Action) -> bool {
    match action {
        Action::Pause(_)
        | Action::Resume(_)
        | Action::Crash(_)
        | Action::Stick(_)
        | Action::Lift
        | Action::Stall(_)
        | Action::Wipe
        | Action::Backup
        | Action::Restore
        | Action::DeleteLeader
        | Action::PutLeaselessLeader => true,
        Action::Deliver(_)
        | Action::LoseRequest(_)
        | Action::LoseAnswer(_)
        | Action::DelayRequest(_)
        | Action::DelayAnswer(_)
        | Action::Double(_)
        | Action::Arrive(_)
        | Action::GiveUp(_)
        | Action::Wake(_)
        | Action::TimePasses
        | Action::Restart(_)
        | Action::Drain(_)
        | Action::HandOver(_) => false,
    }
}

impl Election {
    pub(super) fn fault_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let left = world.left;
        for node in 0..2 {
            let replica = &world.replicas[node];
            let Some(_) = &replica.machine else { continue };
            if left.crashes > 0 {
                actions.push(Action::Crash(node));
            }
            if replica.paused {
                continue;
            }
            if left.pauses > 0 || (left.stops > 0 && world.is_still(self)) {
                actions.push(Action::Pause(node));
            }
            if left.stuck > 0 && !replica.stuck {
                actions.push(Action::Stick(node));
            }
            if left.drains > 0 {
                actions.push(Action::Drain(node));
            }
            if left.handovers > 0 && self.leads(world, node).is_some() {
                actions.push(Action::HandOver(node));
            }
            match world.prompt[node].first() {
                Some(Message::Request(request)) => {
                    let renews = matches!(request, Command::Renew { .. });
                    if left.losses > 0 {
                        actions.extend([Action::LoseRequest(node), Action::LoseAnswer(node)]);
                    }
                    if left.delays > 0 || (renews && left.late_renewals > 0) {
                        actions.extend([Action::DelayRequest(node), Action::DelayAnswer(node)]);
                    }
                    if left.doubles > 0 {
                        actions.push(Action::Double(node));
                    }
                }
                Some(Message::Advance(_) | Message::Refused(_) | Message::Tell(_)) if left.delays > 0 => {
                    actions.push(Action::DelayRequest(node));
                }
                Some(_) | None => {}
            }
        }
        let edits = left.deletions > 0 || left.leaseless > 0;
        let led = edits && world.coordinator.leader(world.now).is_some();
        let possible = [
            (left.lifts > 0, Action::Lift),
            (left.stalls > 0, Action::Stall(STALLS[0])),
            (left.stalls > 0, Action::Stall(STALLS[1])),
            (left.wipes > 0, Action::Wipe),
            (left.restores > 0 && !world.coordinator.is_saved(), Action::Backup),
            (left.restores > 0 && world.coordinator.is_saved(), Action::Restore),
            (left.deletions > 0 && led, Action::DeleteLeader),
            (left.leaseless > 0 && edits && !led, Action::PutLeaselessLeader),
        ];
        actions.extend(possible.into_iter().filter(|(possible, _)| *possible).map(|(_, action)| action));
    }

    /// What befalls the coordinator.
    pub(super) fn meddle(world: &mut World, action: &Action) {
        let now = world.now;
        let (coordinator, left) = (&mut world.coordinator, &mut world.left);
        match action {
            Action::Lift => {
                left.lifts -= 1;
                coordinator.lift(now, LIFT);
            }
            Action::Stall(seconds) => {
                left.stalls -= 1;
                coordinator.behind += Duration::from_secs(u64::from(*seconds));
            }
            Action::Wipe => {
                left.wipes -= 1;
                coordinator.wipe();
            }
            Action::Restore => {
                left.restores -= 1;
                coordinator.restore(now);
            }
            Action::DeleteLeader => {
                left.deletions -= 1;
                coordinator.delete_leader();
            }
            Action::PutLeaselessLeader => {
                left.leaseless -= 1;
                coordinator.put_leaseless_leader();
            }
            other => unreachable!("{other:?} is not about the coordinator"),
        }
    }

    pub(super) fn message_step(&self, world: &mut World, node: usize, action: &Action) {
        let message = world.prompt[node].remove(0);
        if let Action::DelayRequest(_) | Action::DelayAnswer(_) = action {
            if world.left.delays > 0 {
                world.left.delays -= 1;
            } else {
                world.left.late_renewals -= 1;
            }
        }
        let fails = match &message {
            Message::Request(command) => failure(command),
            Message::Tell(_) | Message::Advance(_) | Message::Refused(_) => None,
        };
        match action {
            Action::Deliver(_) => {
                for event in world.serve(self, node, message) {
                    world.hand(self, node, event);
                }
            }
            Action::LoseRequest(_) | Action::LoseAnswer(_) => {
                world.left.losses -= 1;
                if matches!(action, Action::LoseAnswer(_)) {
                    world.serve(self, node, message);
                }
                if let Some(event) = fails {
                    world.hand(self, node, event);
                }
            }
            Action::DelayRequest(_) => {
                world.delay(node, message, false);
            }
            Action::DelayAnswer(_) => {
                for event in world.serve(self, node, message) {
                    world.delay(node, Message::Tell(event), false);
                }
            }
            Action::Double(_) => {
                world.left.doubles -= 1;
                world.delay(node, message.clone(), true);
                for event in world.serve(self, node, message) {
                    world.hand(self, node, event);
                }
            }
            other => unreachable!("{other:?} is not about a message"),
        }
    }

    pub(super) fn late_step(&self, world: &mut World, place: usize, arrives: bool) {
        if !arrives {
            let late = &mut world.late[place];
            late.given_up = true;
            let node = late.node;
            let fails = match &late.message {
                Message::Request(command) => failure(command),
                Message::Tell(event) => failure_of(event),
                Message::Advance(_) | Message::Refused(_) => None,
            };
            if let Some(event) = fails {
                world.hand(self, node, event);
            }
            return;
        }
        let Late { node, start, message, .. } = world.late.remove(place);
        let lives = world.replicas[node].start == start && world.replicas[node].machine.is_some();
        if !lives && !matches!(message, Message::Request(_) | Message::Advance(_)) {
            return;
        }
        for event in world.serve(self, node, message) {
            // Also after the sender gave up: the machine has to know what it does not wait for any more.
            if lives {
                world.hand(self, node, event);
            }
        }
    }
}
