//! What a user's query for units gave, judged. Pure; the same for every store.

use std::time::Duration;

use super::{MOST_KEY, MOST_PAYLOAD};

/// One row of a query for units: key, and payload as JSON text.
pub(super) type PlannedUnit = (Option<String>, Option<String>);

/// One page that can be written.
pub(super) struct PlannedPage {
    /// Key and payload, in the order of keys.
    pub(super) units: Vec<(String, Option<String>)>,
    /// The last key where there is more.
    pub(super) next: Option<String>,
}

/// Judges up to `limit` + 1 rows, ordered by key with null first.
///
/// # Errors
/// Why the run cannot be planned.
pub(super) fn judge_planned(rows: Vec<PlannedUnit>, limit: u32) -> Result<PlannedPage, String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut units: Vec<(String, Option<String>)> = Vec::with_capacity(rows.len());
    for (key, payload) in rows {
        let Some(key) = key else {
            return Err("the query for units gave a row without a key; expected a text in each".to_owned());
        };
        if key.is_empty() || key.len() > MOST_KEY {
            let found = key.len();
            return Err(format!("the query for units gave a key of {found} bytes; expected 1 to {MOST_KEY}"));
        }
        if payload.as_ref().is_some_and(|payload| payload.len() > MOST_PAYLOAD) {
            return Err(format!("the query for units gave {key:?} a payload beyond {MOST_PAYLOAD} bytes"));
        }
        if units.last().is_some_and(|(last, _)| *last == key) {
            return Err(format!("the query for units gave the key {key:?} more than once; expected each once"));
        }
        units.push((key, payload));
    }
    let more = units.len() > limit;
    units.truncate(limit);
    let next = if more { units.last().map(|(key, _)| key.clone()) } else { None };
    Ok(PlannedPage { units, next })
}

/// How old a call is, from seconds by the store's clock; one that a clock stepped back made younger than nothing is new.
pub(super) fn age(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[Option<&str>]) -> Vec<PlannedUnit> {
        keys.iter().map(|key| (key.map(str::to_owned), None)).collect()
    }

    #[test]
    fn a_page_is_cut_at_its_limit_and_says_where_to_go_on() {
        let page = judge_planned(rows(&[Some("a"), Some("b"), Some("c")]), 2).expect("good rows");
        assert_eq!((page.units.len(), page.next.as_deref()), (2, Some("b")));
        let page = judge_planned(rows(&[Some("a"), Some("b")]), 2).expect("good rows");
        assert_eq!((page.units.len(), page.next), (2, None));
    }

    #[test]
    fn units_that_cannot_be_told_apart_are_refused_also_across_the_edge_of_a_page() {
        for keys in [&[None, Some("a")][..], &[Some("a"), Some("a")], &[Some("a"), Some("b"), Some("b")], &[Some("")]] {
            assert!(judge_planned(rows(keys), 2).is_err(), "{keys:?}");
        }
        let long = "k".repeat(MOST_KEY + 1);
        assert!(judge_planned(rows(&[Some(&long)]), 2).is_err());
        let fat = vec![(Some("a".to_owned()), Some("1".repeat(MOST_PAYLOAD + 1)))];
        assert!(judge_planned(fat, 2).is_err());
    }
}
