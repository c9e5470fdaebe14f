//! The keys, and what stands under them.

use etcd_client::{KeyValue, TxnOpResponse, TxnResponse};

use crate::domain::{ElectionName, ReplicaId, Term};
use crate::leadership::record::{ElectionState, LeaseId, Revision, SeenLeader};

/// How much of a corrupt value an error shows.
const SHOWN: usize = 80;

/// The keys of one deployment.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.trim_end_matches('/').to_owned() }
    }

    pub(super) fn term(&self, election: &ElectionName) -> String {
        format!("{}/elections/{election}/term", self.prefix)
    }

    pub(super) fn accepted(&self, election: &ElectionName) -> String {
        format!("{}/elections/{election}/accepted", self.prefix)
    }

    pub(super) fn leader(&self, election: &ElectionName) -> String {
        format!("{}/elections/{election}/leader", self.prefix)
    }

    pub(super) fn replica(&self, replica: &ReplicaId) -> String {
        format!("{}/replicas/{replica}", self.prefix)
    }

    pub(super) fn replicas(&self) -> String {
        format!("{}/replicas/", self.prefix)
    }
}

/// The first key-value of the `index`-th operation of a transaction, which was a get.
fn got(response: &TxnResponse, index: usize) -> Option<KeyValue> {
    match response.op_responses().into_iter().nth(index)? {
        TxnOpResponse::Get(get) => get.kvs().first().cloned(),
        TxnOpResponse::Put(_) | TxnOpResponse::Delete(_) | TxnOpResponse::Txn(_) => None,
    }
}

/// The store's revision at which a transaction was answered: that of its own writes, if it made any.
pub(super) fn revision(response: &TxnResponse) -> Revision {
    Revision(response.header().map_or(0, etcd_client::ResponseHeader::revision))
}

/// The leader key, where the transaction's `index`-th operation read it.
pub(super) fn leader(response: &TxnResponse, index: usize) -> Option<SeenLeader> {
    got(response, index).map(|kv| SeenLeader {
        record: serde_json::from_slice(kv.value()).ok(),
        revision: Revision(kv.mod_revision()),
        lease: LeaseId(kv.lease()),
    })
}

/// An election, where the transaction read its leader key first and its term key second.
///
/// A term that a hand wrote and that is no number counts as none: the next campaign writes one above the fence's over it, as
/// after a wipe. To refuse it would leave nobody able to stand, or to see that the leader's key is gone.
pub(super) fn election(response: &TxnResponse) -> ElectionState {
    let term_kv = got(response, 1);
    let term = term_kv.as_ref().map_or(Term::NONE, |kv| {
        term_of(kv.value()).unwrap_or_else(|| {
            let (key, found) = (shown(kv.key()), shown(kv.value()));
            tracing::error!(
                key,
                found,
                "expected a whole number, at least 0: it counts as no term, and the next leader writes one over it"
            );
            Term::NONE
        })
    });
    ElectionState {
        leader: leader(response, 0),
        term,
        term_revision: Revision(term_kv.map_or(0, |kv| kv.mod_revision())),
        read_at: revision(response),
    }
}

/// A term as it stands under its key; a hand's line break behind it is none of it.
fn term_of(value: &[u8]) -> Option<Term> {
    std::str::from_utf8(value).ok()?.trim().parse().ok().and_then(Term::new)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_a_whole_number_whoever_wrote_it() {
        for (value, expected) in [("7", Some(7)), ("7\n", Some(7)), ("0", Some(0))] {
            assert_eq!(term_of(value.as_bytes()).map(Term::get), expected, "{value:?}");
        }
        for value in [&b"x"[..], b"", b"-1", b"7 8", b"1e3", b"99999999999999999999", b"\xff"] {
            assert_eq!(term_of(value), None, "{value:?}");
        }
    }

    #[test]
    fn keys_stand_under_one_prefix() {
        let keys = Keys::new("/bursar/production/");
        let election = ElectionName::new("settlement").expect("valid");
        assert_eq!(keys.term(&election), "/bursar/production/elections/settlement/term");
        assert_eq!(keys.accepted(&election), "/bursar/production/elections/settlement/accepted");
        assert_eq!(keys.leader(&election), "/bursar/production/elections/settlement/leader");
        assert_eq!(keys.replica(&ReplicaId::new("a-1").expect("valid")), "/bursar/production/replicas/a-1");
    }
}
