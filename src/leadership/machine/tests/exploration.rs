//! A small world, explored exhaustively: two machines, one election, one coordinator, every order of what is under way, with
//! a message lost here and there and wake-ups that come as late as they like.
//!
//! A node that is not woken is a node that is paused: nothing forces a machine to notice that its time has come.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::*;
use crate::leadership::memory::MemoryModel;
use crate::leadership::record::{Campaign, CampaignOutcome};

/// Worlds after which a plain run stops, at the end of a step: seconds. A long run (`BURSAR_TEST_LONG`) takes
/// [`MANY_WORLDS`].
const WORLDS: usize = 8_000;
const MANY_WORLDS: usize = 1_000_000;
/// Answers that are lost, of all, in one history.
const LOSSES: u8 = 1;
/// Times that some machine is woken by its own timer, in one history.
const WAKES: u8 = 5;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Message {
    Request(Command),
    Answer(Event),
    Advance(Claim),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Small {
    machines: [Machine; 2],
    now: Moment,
    coordinator: MemoryModel,
    fence: Option<Claim>,
    under_way: Vec<(usize, Message)>,
    losses: u8,
    wakes: u8,
    begun: Vec<Claim>,
    /// Begun and not reported as ended, by node.
    working: [Option<Claim>; 2],
    dead: [bool; 2],
}

fn name() -> ElectionName {
    election("settlement")
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Small {
    fn new() -> Self {
        let machine = |id: &str| {
            let settings = Settings {
                me: replica(id),
                elections: vec![name()],
                ttl: TTL,
                teardown_budget: Duration::from_secs(1),
                drain: Duration::from_secs(2),
            };
            Machine::new(settings, Now::both(ms(1000)))
        };
        let mut small = Self {
            machines: [machine("a"), machine("b")],
            now: ms(1000),
            coordinator: MemoryModel::default(),
            fence: None,
            under_way: Vec::new(),
            losses: LOSSES,
            wakes: WAKES,
            begun: Vec::new(),
            working: [None, None],
            dead: [false, false],
        };
        for node in 0..2 {
            let eligible = Report::Eligible { election: name(), eligible: Ok(()) };
            small.hand(node, Event::Reported(eligible));
            small.hand(node, Event::Wake);
        }
        // Both hold a session and have read that nobody leads; from here on everything may come in any order.
        for _ in 0..8 {
            if let Some((node, message)) = small.under_way.first().cloned() {
                small.under_way.remove(0);
                small.deliver(node, message);
            }
        }
        small
    }

    fn hand(&mut self, node: usize, event: Event) {
        if self.dead[node] {
            return;
        }
        if let Event::Reported(Report::Ended { .. }) = &event {
            self.working[node] = None;
        }
        let drawn = u128::from(fingerprint(&self.machines)) | 1;
        let luck = Luck { jitter: 0, tenure: TenureId(Uuid::from_u128(drawn << 1 | node as u128)) };
        for command in self.machines[node].handle(Now::both(self.now), luck, event) {
            self.carry_out(node, command);
        }
        self.under_way.sort_by_cached_key(fingerprint);
    }

    fn carry_out(&mut self, node: usize, command: Command) {
        let mut answer = |event| self.under_way.push((node, Message::Answer(event)));
        match command {
            Command::Begin { claim, .. } => {
                assert_eq!(self.working[node], None, "{claim} begins before the one before it has ended");
                assert!(!self.begun.contains(&claim), "{claim} begins twice");
                self.working[node] = Some(claim.clone());
                self.begun.push(claim.clone());
                self.under_way.push((node, Message::Advance(claim)));
            }
            Command::End { claim, .. } => answer(Event::Reported(Report::Ended { claim })),
            Command::ReadFence { election } => {
                let term = Ok(self.fence.as_ref().map_or(Term::NONE, |claim| claim.term));
                answer(Event::Reported(Report::FenceTerm { election, term }));
            }
            Command::Exit(_) => {
                self.dead[node] = true;
                self.working[node] = None;
            }
            // What decides nothing is left out of the world.
            Command::Register { .. }
            | Command::Survey { .. }
            | Command::Watch { .. }
            | Command::Accept { .. }
            | Command::Forget { .. }
            | Command::Open { .. }
            | Command::Hold { .. }
            | Command::Close { .. }
            | Command::Note(_)
            | Command::Finished => {}
            Command::Grant { .. }
            | Command::Renew { .. }
            | Command::Revoke { .. }
            | Command::Read { .. }
            | Command::Campaign { .. }
            | Command::Resign { .. }
            | Command::Transfer { .. } => self.under_way.push((node, Message::Request(command))),
        }
    }

    fn deliver(&mut self, node: usize, message: Message) {
        match message {
            Message::Answer(event) => self.hand(node, event),
            Message::Request(command) => {
                let event = self.serve(node, command);
                self.under_way.push((node, Message::Answer(event)));
                self.under_way.sort_by_cached_key(fingerprint);
            }
            Message::Advance(claim) => {
                let accepts = self.fence.as_ref().is_none_or(|fence| fence.term < claim.term);
                if accepts {
                    self.fence = Some(claim.clone());
                    self.hand(node, Event::Reported(Report::Accepted { claim }));
                } else {
                    let found = self.fence.clone();
                    self.hand(node, Event::Reported(Report::Fenced { claim, found }));
                }
            }
        }
    }

    fn serve(&mut self, node: usize, command: Command) -> Event {
        let now = self.now;
        match command {
            Command::Grant { op, ttl } => Event::Granted(op, Ok(self.coordinator.grant(now, ttl))),
            Command::Renew { op, lease } => Event::Renewed(op, Ok(self.coordinator.renew(now, lease))),
            Command::Revoke { op, lease } => {
                self.coordinator.revoke(now, lease);
                Event::Revoked(op)
            }
            Command::Read { op, election } => {
                let state = self.coordinator.read(now, &election);
                Event::Read(op, election, Ok(state))
            }
            Command::Resign { op, election, won } => {
                let outcome = self.coordinator.resign(now, &election, won);
                Event::Resigned(op, election, Ok(outcome))
            }
            Command::Campaign { op, claim, lease, vacancy, term_revision } => {
                let record = record_of(&claim, ["a", "b"][node], lease);
                let campaign = Campaign { record: record.clone(), vacancy, term_revision };
                let outcome = match self.coordinator.campaign(now, &campaign) {
                    CampaignOutcome::Won { revision } => Campaigned::Won { revision, record },
                    CampaignOutcome::Lost(state) => Campaigned::Lost(state),
                    CampaignOutcome::LeaseGone => Campaigned::LeaseGone,
                };
                Event::Campaigned(op, claim.election, Ok(outcome))
            }
            other => panic!("not for the coordinator: {other:?}"),
        }
    }

    fn wake_the_next(&mut self) {
        let due = (0..2).filter_map(|node| self.machines[node].deadline().map(|(at, _)| (at, node))).min();
        let (at, node) = due.expect("a machine always wants to be woken");
        self.now = self.now.max(at);
        self.hand(node, Event::Wake);
    }

    /// Every world that may follow.
    fn next(&self) -> Vec<Self> {
        let mut worlds = Vec::new();
        for (index, (node, message)) in self.under_way.iter().enumerate() {
            let mut world = self.clone();
            world.under_way.remove(index);
            let mut lost = world.clone();
            world.deliver(*node, message.clone());
            worlds.push(world);
            // Lost on the way there, or on the way back after it was done: the sender is told nothing either way.
            if let (Some(failure), true) = (failure(message), self.losses > 0) {
                lost.losses -= 1;
                lost.hand(*node, failure);
                worlds.push(lost);
            }
        }
        for node in (0..2).filter(|node| self.wakes > 0 && !self.dead[*node]) {
            if let Some((at, _)) = self.machines[node].deadline() {
                let mut world = self.clone();
                world.wakes -= 1;
                world.now = world.now.max(at);
                world.hand(node, Event::Wake);
                worlds.push(world);
            }
        }
        worlds
    }

    fn look(&self) {
        let leaders: Vec<_> =
            (0..2).filter(|n| !self.dead[*n]).flat_map(|node| self.machines[node].leads(self.now)).collect();
        assert!(leaders.len() <= 1, "two lead: {leaders:?}");
        for claim in &leaders {
            let fence = self.fence.as_ref().expect("a leader was accepted");
            assert!(self.working.iter().flatten().any(|working| working == claim), "{claim} leads and has ended");
            assert!(fence.term >= claim.term);
        }
    }
}

fn failure(message: &Message) -> Option<Event> {
    match message {
        Message::Request(Command::Grant { op, .. }) | Message::Answer(Event::Granted(op, Ok(_))) => {
            Some(Event::Granted(*op, Err(Failed)))
        }
        Message::Request(Command::Renew { op, .. }) | Message::Answer(Event::Renewed(op, Ok(_))) => {
            Some(Event::Renewed(*op, Err(Failed)))
        }
        Message::Request(Command::Read { op, election }) | Message::Answer(Event::Read(op, election, Ok(_))) => {
            Some(Event::Read(*op, election.clone(), Err(Failed)))
        }
        Message::Answer(Event::Campaigned(op, election, Ok(_))) => {
            Some(Event::Campaigned(*op, election.clone(), Err(Failed)))
        }
        Message::Request(Command::Campaign { op, claim, .. }) => {
            Some(Event::Campaigned(*op, claim.election.clone(), Err(Failed)))
        }
        Message::Request(Command::Resign { op, election, .. })
        | Message::Answer(Event::Resigned(op, election, Ok(_))) => {
            Some(Event::Resigned(*op, election.clone(), Err(Failed)))
        }
        Message::Request(_) | Message::Answer(_) | Message::Advance(_) => None,
    }
}

/// Looks at every history from `start` on, step by step.
#[expect(clippy::print_stdout, reason = "how large the explored world was is a figure to be read")]
fn explore(start: Small) {
    let long = std::env::var_os("BURSAR_TEST_LONG").is_some_and(|value| !value.is_empty());
    let most = if long { MANY_WORLDS } else { WORLDS };
    let mut layer = vec![start];
    let mut seen: HashSet<u64> = layer.iter().map(fingerprint).collect();
    let (mut steps, mut begun) = (0, 0);
    while seen.len() < most && !layer.is_empty() {
        let mut following = Vec::new();
        for world in &layer {
            for next in world.next() {
                next.look();
                begun = begun.max(next.begun.len());
                if seen.insert(fingerprint(&next)) {
                    following.push(next);
                }
            }
        }
        layer = following;
        steps += 1;
    }
    println!("{} worlds, all within {steps} steps, up to {begun} tenures in one", seen.len());
    assert!(begun >= 1, "somebody is elected in some of them");
}

#[test]
fn in_every_history_of_a_small_world_at_most_one_leads() {
    explore(Small::new());
}

#[test]
fn in_every_history_after_a_first_win_at_most_one_leads() {
    let mut start = Small::new();
    // What is under way is delivered in order until somebody leads.
    while (0..2).all(|node| start.machines[node].leads(start.now).is_empty()) {
        match start.under_way.first().cloned() {
            Some((node, message)) => {
                start.under_way.remove(0);
                start.deliver(node, message);
            }
            None => start.wake_the_next(),
        }
    }
    start.wakes = WAKES;
    explore(start);
}
