//! What may befall elections.

/// What may go wrong, and how often in one history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// A message is lost, going or coming; the sender is told that it failed.
    pub losses: u8,
    /// A message is late, going or coming.
    pub delays: u8,
    /// A renewal is late, going or coming.
    pub late_renewals: u8,
    /// A request arrives twice, the second time late.
    pub doubles: u8,
    /// A process is paused.
    pub pauses: u8,
    /// The same, begun and ended when nothing else is left to be done at that moment.
    pub stops: u8,
    /// A process is killed.
    pub crashes: u8,
    /// A process's workers stand still, while its session's thread goes on.
    pub stuck: u8,
    /// A process is asked to leave.
    pub drains: u8,
    /// A leader is asked to hand over to another.
    pub handovers: u8,
    /// An operator lifts the term, while somebody may lead.
    pub lifts: u8,
    /// The coordinator lets leases lapse later than it should, by a second or by three.
    pub stalls: u8,
    /// The coordinator is wiped.
    pub wipes: u8,
    /// The coordinator is restored from a backup that was made at any moment before.
    pub restores: u8,
    /// An operator deletes the leader key.
    pub deletions: u8,
    /// An operator puts a leader key without a lease.
    pub leaseless: u8,
}

impl Faults {
    /// Those that there may be, by name.
    pub fn kinds(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("losses", self.losses),
            ("delays", self.delays),
            ("late_renewals", self.late_renewals),
            ("doubles", self.doubles),
            ("pauses", self.pauses),
            ("stops", self.stops),
            ("crashes", self.crashes),
            ("stuck", self.stuck),
            ("drains", self.drains),
            ("handovers", self.handovers),
            ("lifts", self.lifts),
            ("stalls", self.stalls),
            ("wipes", self.wipes),
            ("restores", self.restores),
            ("deletions", self.deletions),
            ("leaseless", self.leaseless),
        ];
        all.into_iter().filter(|(_, most)| *most > 0).map(|(kind, _)| kind)
    }
}
