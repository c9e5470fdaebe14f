//! What a user's query for units gave, judged. Pure; the same for every store.

use std::time::Duration;

use super::{MOST_KEY, MOST_PAYLOAD};

/// One row of a query for units: key, payload as JSON text, and whether the job has the key pending or set aside in another run.
pub(super) type PlannedUnit = (Option<String>, Option<String>, bool);

/// One page that can be written.
pub(super) struct PlannedPage {
    /// Key and payload, in the order of keys.
    pub(super) units: Vec<(String, Option<String>)>,
    /// The last key where there is more.
    pub(super) next: Option<String>,
    /// Keys that stand in another run.
    pub(super) left_out: u64,
}

/// Judges up to `limit` + 1 rows, ordered by key with null first.
///
/// # Errors
/// Why the run cannot be planned.
pub(super) fn judge_planned(rows: Vec<PlannedUnit>, limit: u32) -> Result<PlannedPage, String> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = rows.len() > limit;
    let mut page = PlannedPage { units: Vec::with_capacity(rows.len()), next: None, left_out: 0 };
    let mut last: Option<String> = None;
    for (place, (key, payload, elsewhere)) in rows.into_iter().enumerate() {
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
        if last.as_ref().is_some_and(|last| *last == key) {
            return Err(format!("the query for units gave the key {key:?} more than once; expected each once"));
        }
        if place < limit {
            if more && place + 1 == limit {
                page.next = Some(key.clone());
            }
            if elsewhere {
                page.left_out += 1;
            } else {
                page.units.push((key.clone(), payload));
            }
        }
        last = Some(key);
    }
    Ok(page)
}

/// What is said of keys of a page that were left out.
pub(super) const LEFT_OUT: &str = "keys that stand pending or set aside in another run of the job are left out: see `units retry` and `units resolve`";

/// How old a call is, from seconds by the store's clock; one that a clock stepped back made younger than nothing is new.
pub(super) fn age(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(keys: &[Option<&str>]) -> Vec<PlannedUnit> {
        keys.iter().map(|key| (key.map(str::to_owned), None, false)).collect()
    }

    #[test]
    fn a_page_is_cut_at_its_limit_and_says_where_to_go_on() {
        let page = judge_planned(rows(&[Some("a"), Some("b"), Some("c")]), 2).expect("good rows");
        assert_eq!((page.units.len(), page.next.as_deref()), (2, Some("b")));
        let page = judge_planned(rows(&[Some("a"), Some("b")]), 2).expect("good rows");
        assert_eq!((page.units.len(), page.next), (2, None));
    }

    #[test]
    fn keys_that_stand_elsewhere_are_left_out_and_counted() {
        let mut of = rows(&[Some("a"), Some("b"), Some("c"), Some("d")]);
        for place in [1, 2, 3] {
            of[place].2 = true;
        }
        let page = judge_planned(of, 3).expect("good rows");
        let keys: Vec<&str> = page.units.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            (keys, page.next.as_deref(), page.left_out),
            (vec!["a"], Some("c"), 2),
            "the fourth is the next page's"
        );
    }

    #[test]
    fn units_that_cannot_be_told_apart_are_refused_also_across_the_edge_of_a_page() {
        for keys in [&[None, Some("a")][..], &[Some("a"), Some("a")], &[Some("a"), Some("b"), Some("b")], &[Some("")]] {
            assert!(judge_planned(rows(keys), 2).is_err(), "{keys:?}");
        }
        let long = "k".repeat(MOST_KEY + 1);
        assert!(judge_planned(rows(&[Some(&long)]), 2).is_err());
        let fat = vec![(Some("a".to_owned()), Some("1".repeat(MOST_PAYLOAD + 1)), false)];
        assert!(judge_planned(fat, 2).is_err());
    }
}
