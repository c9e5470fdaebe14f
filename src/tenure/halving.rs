//! Halving: a batch that failed is split until the unit at fault stands alone, so that one bad unit holds up no other and
//! nobody else is charged for it.
//!
//! Pure. Invariants: every unit is in at most one half at a time; a half that succeeds is done; only a unit that failed
//! alone is charged. With one bad unit among n at most 2·log2(n) further transactions are made.

/// A unit with the attempts behind it.
pub(super) type Tried = (i64, u32);

/// The halves of failed batches that are still to be tried.
#[derive(Debug, Default)]
pub(super) struct Halving {
    waiting: Vec<Vec<Tried>>,
}

/// What becomes of units that failed together.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// It stood alone: charge it.
    Alone(Tried),
    /// Its halves were queued, or there was nothing.
    Split,
}

impl Halving {
    /// The next half to be tried.
    pub(super) fn next(&mut self) -> Option<Vec<Tried>> {
        self.waiting.pop()
    }

    /// Takes in units that failed together.
    pub(super) fn failed(&mut self, mut units: Vec<Tried>) -> Failed {
        match units.len() {
            0 => Failed::Split,
            1 => Failed::Alone(units[0]),
            _ if crate::mutant!("batch.charged-without-halving") => Failed::Alone(units[0]),
            count => {
                let second = units.split_off(count / 2);
                self.waiting.push(second);
                self.waiting.push(units);
                Failed::Split
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn exactly_the_bad_units_end_alone_and_every_other_is_settled_once(
            count in 1i64..400,
            bad in proptest::collection::btree_set(0i64..400, 0..6),
        ) {
            let units: Vec<Tried> = (0..count).map(|id| (id, 0)).collect();
            let bad: BTreeSet<i64> = bad.into_iter().filter(|id| *id < count).collect();
            let (mut halving, mut settled, mut charged, mut batches) = (Halving::default(), BTreeSet::new(), BTreeSet::new(), 0);
            let mut next = Some(units);
            while let Some(batch) = next.take().or_else(|| halving.next()) {
                batches += 1;
                if batch.iter().any(|(id, _)| bad.contains(id)) {
                    if let Failed::Alone((id, _)) = halving.failed(batch) {
                        prop_assert!(charged.insert(id));
                    }
                } else {
                    for (id, _) in batch {
                        prop_assert!(settled.insert(id));
                    }
                }
            }
            prop_assert_eq!(&charged, &bad);
            prop_assert_eq!(settled.len() + charged.len(), usize::try_from(count).expect("positive"));
            let depth = f64::from(i32::try_from(count).expect("small")).log2().ceil();
            let most = 1.0 + f64::from(u32::try_from(bad.len()).expect("small")) * 2.0 * depth;
            prop_assert!(f64::from(batches) <= most, "{batches} batches, at most {most}");
        }
    }
}
