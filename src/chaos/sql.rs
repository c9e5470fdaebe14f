//! Mutants that lie in a statement of SQL: which words of which file say something else while the mutant is on.
//!
//! They are kept here so that the files stay as they run. A [`sql!`](crate::sql) asks for its file's text; a mutant that is
//! on gets it with its words exchanged. Words that are not, or no longer, in their file are a defect of this list, and a
//! test of this module says so.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A statement that a mutant breaks.
#[derive(Debug, Clone, Copy)]
pub struct Broken {
    /// The mutant.
    pub mutant: &'static str,
    /// The store, as its module is called.
    pub store: &'static str,
    /// The file, as [`sql!`](crate::sql) names it.
    pub file: &'static str,
    /// What stands there, once.
    pub sound: &'static str,
    /// What stands there while the mutant is on.
    pub broken: &'static str,
}

const fn broken(
    mutant: &'static str,
    (store, file): (&'static str, &'static str),
    sound: &'static str,
    broken: &'static str,
) -> Broken {
    Broken { mutant, store, file, sound, broken }
}

/// All of them.
pub const ALL: &[Broken] = &[
    broken(
        "fence.read-without-its-lock",
        ("postgres", "sql/enter.sql"),
        "bursar.enter($1, $2, $3, $4) e",
        "(select case when f.term is distinct from $2::bigint or f.tenure_id is distinct from $3::uuid then 'fenced'
                      when $4::text = 'begin' and f.halted_at is not null then 'halted'
                      else 'mine' end as outcome,
                 f.term as found_term, f.tenure_id as found_tenure, f.halt_reason, f.halted_at, f.halted_by
            from (select $1::text as election) x left join bursar.fence f using (election)) e",
    ),
    broken(
        "fence.tenure-not-compared",
        ("postgres", "sql/enter.sql"),
        "bursar.enter($1, $2, $3, $4) e",
        "(select case when i.outcome = 'fenced' and i.found_term = $2 then 'mine' else i.outcome end as outcome,
                 i.found_term, i.found_tenure, i.halt_reason, i.halted_at, i.halted_by
            from bursar.enter($1, $2, $3, $4) i) e",
    ),
    broken(
        "entries.summed-beside-the-bind",
        ("postgres", "sql/settle_bind.sql"),
        "from bound b",
        "from (select c.unit_id, e.source, e.kind, e.amount, e.fee, e.available_at
                 from candidate c join bursar.entry e on e.id = c.id) b",
    ),
    broken(
        "carry.taken-by-any-job",
        ("postgres", "sql/settle_bind.sql"),
        "(e.job_id = $5 or (e.job_id is null and",
        "($5::bigint is not null and (true and",
    ),
    broken(
        "import.twice",
        ("postgres", "sql/import_entries.sql"),
        "select $1, g.id, g.merchant",
        "select $1, g.id || '/' || $2, g.merchant",
    ),
    broken(
        "ticks.run-twice",
        ("postgres", "sql/ticks_insert.sql"),
        "'tick', t.tick, t.due_at",
        "'tick', t.tick + interval '1 microsecond' * (select count(*) from bursar.run), t.due_at",
    ),
    broken(
        "recovery.sending-left-as-it-is",
        ("postgres", "sql/recover_sending.sql"),
        "i.state = 'sending' and coalesce",
        "i.state = 'never' and coalesce",
    ),
    broken(
        "recovery.waits-for-a-time-out",
        ("postgres", "sql/recover_sending.sql"),
        "then clock_timestamp() end",
        "then clock_timestamp() + interval '1 hour' end",
    ),
    broken(
        "payouts.doubt-forgotten",
        ("postgres", "sql/payouts_record.sql"),
        "h.in_doubt or h.fate in ('unknown', 'mismatch') as doubt",
        "h.fate in ('unknown', 'mismatch') as doubt",
    ),
    broken(
        "payouts.rejected-in-doubt",
        ("postgres", "sql/payouts_record.sql"),
        "when h.fate = 'rejected' and not h.in_doubt then 'rejected'",
        "when h.fate = 'rejected' then 'rejected'",
    ),
    broken(
        "payouts.validity-of-the-key-ignored",
        ("postgres", "sql/payouts_pick.sql"),
        "< clock_timestamp(), false) as expired",
        "< '-infinity', false) as expired",
    ),
];

/// The text of a file of a module's, as the mutants that are on would have it.
///
/// # Panics
/// Where a mutant's words do not stand in its file once.
#[must_use]
pub fn statement(module: &str, file: &'static str, text: &'static str) -> &'static str {
    static BROKEN: OnceLock<Mutex<HashMap<&'static str, &'static str>>> = OnceLock::new();
    let on = ALL.iter().find(|broken| {
        broken.file == file
            && module.split("::").any(|step| step == broken.store)
            && super::mutants().iter().any(|on| on == broken.mutant)
    });
    let Some(on) = on else { return text };
    let mut made = BROKEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    let broken: &mut &'static str = made.entry(on.mutant).or_insert_with(|| {
        assert_eq!(text.matches(on.sound).count(), 1, "the words of {} in {file}", on.mutant);
        // Kept as long as the process lives: a statement is asked for each time that it is made.
        Box::leak(text.replace(on.sound, on.broken).into_boxed_str())
    });
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_each_mutant_stand_in_its_file_once() {
        for Broken { mutant, store, file, sound, .. } in ALL {
            let path = format!("{}/src/store/{store}/{file}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{mutant}: {path}: {error}"));
            assert_eq!(text.matches(sound).count(), 1, "{mutant}: {path}: {sound}");
        }
    }
}
