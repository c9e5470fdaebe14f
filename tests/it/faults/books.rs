//! The receiver's book against the store, and the store against what was offered: what one side knows that the other does not
//! is a finding.

use std::collections::{BTreeMap, HashMap};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::feed::Offered;
use super::ground::Ground;
use super::quiet::Quiet;
use crate::support::receiver::{Logged, Receiver};

/// Answers that prove that nothing was done: the sender may ask again, whatever the receiver is.
const UNDONE: [u16; 3] = [412, 425, 429];
/// How many of one sort of finding are told.
const TOLD: usize = 10;

/// A payment of the receiver's book.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Payment {
    key: String,
    merchant: String,
    amount_minor: String,
    currency: String,
    scope: String,
    token: i64,
}

/// A payout of the store.
#[derive(Debug, Clone)]
struct Payout {
    idempotency_key: String,
    merchant: String,
    amount: i64,
    currency: String,
    state: String,
    reason: Option<String>,
    idempotent: bool,
    in_doubt: bool,
    run_id: i64,
}

/// Sums for the report.
#[derive(Debug, Default)]
pub struct Books {
    /// Payments in the receiver's book.
    pub payments: usize,
    /// Requests that the receiver read in full.
    pub requests: usize,
    /// Those of them that it refused for their tokens.
    pub refused: usize,
    /// Payouts by state, with the reason where they are held.
    pub payouts: BTreeMap<String, u64>,
    /// What is not as it must be.
    pub findings: Vec<String>,
}

/// Compares all of it.
pub async fn compare(ground: &Ground, receiver: &Receiver, offered: &Offered, quiet: &Quiet) -> Books {
    let (payments, payouts) = (payments(receiver).await, payouts(ground).await);
    let log = receiver.log();
    let mut books = Books { payments: payments.len(), requests: log.len(), refused: refused(&log), ..Books::default() };
    for payout in &payouts {
        let reason = payout.reason.as_ref().map_or_else(String::new, |reason| format!(" ({reason})"));
        let job = if payout.idempotent { "idempotent" } else { "once only" };
        *books.payouts.entry(format!("{}{reason}, {job}", payout.state)).or_default() += 1;
    }
    one_for_one(&payments, &payouts, quiet, &mut books.findings);
    tokens_rise(&payments, &mut books.findings);
    tries(&log, &payouts, &mut books.findings);
    entries(ground, offered, &mut books.findings).await;
    books
}

/// How many of these the receiver refused for their tokens: of one that had led before.
pub fn refused(log: &[Logged]) -> usize {
    log.iter().filter(|logged| logged.method == "POST" && !logged.taken && logged.answered == Some(412)).count()
}

async fn payments(receiver: &Receiver) -> Vec<Payment> {
    let options = SqliteConnectOptions::new().filename(receiver.book_file()).read_only(true);
    let mut book = options.connect().await.expect("the book is there");
    let query = "select key, merchant, amount_minor, currency, scope, token from payment order by rowid";
    let rows: Vec<(String, String, String, String, String, i64)> =
        sqlx::query_as(query).fetch_all(&mut book).await.expect("the book is readable");
    book.close().await.ok();
    let payment = |(key, merchant, amount_minor, currency, scope, token)| Payment {
        key,
        merchant,
        amount_minor,
        currency,
        scope,
        token,
    };
    rows.into_iter().map(payment).collect()
}

/// Key, merchant, amount, currency; state, reason; whether it is idempotent, whether in doubt; the run.
type PayoutRow = (String, String, i64, String, String, Option<String>, bool, bool, i64);

async fn payouts(ground: &Ground) -> Vec<Payout> {
    // Those of the job that leaves them in the store are nobody's to pay.
    let query = "select i.idempotency_key, i.merchant, i.amount, i.currency, i.state, i.reason, i.idempotent, i.in_doubt, i.run_id
                   from bursar.instruction i join bursar.job j on j.id = i.job_id
                  where i.kind = 'payout' and j.name <> 'keeps' order by i.id";
    let rows: Vec<PayoutRow> = ground.cluster.database().rows(query).await;
    let payout =
        |(idempotency_key, merchant, amount, currency, state, reason, idempotent, in_doubt, run_id): PayoutRow| {
            Payout { idempotency_key, merchant, amount, currency, state, reason, idempotent, in_doubt, run_id }
        };
    rows.into_iter().map(payout).collect()
}

/// Each payment has its instruction and each paid instruction its payment, with the same content.
fn one_for_one(payments: &[Payment], payouts: &[Payout], quiet: &Quiet, findings: &mut Vec<String>) {
    let by_key: HashMap<&str, &Payment> = payments.iter().map(|payment| (payment.key.as_str(), payment)).collect();
    let known: HashMap<&str, &Payout> =
        payouts.iter().map(|payout| (payout.idempotency_key.as_str(), payout)).collect();
    let mut found = Vec::new();
    for payment in payments {
        let Some(payout) = known.get(payment.key.as_str()) else {
            found.push(format!("{} was paid, and the store has no instruction for it", payment.key));
            continue;
        };
        let same = (payout.merchant.as_str(), payout.amount.to_string(), payout.currency.as_str())
            == (payment.merchant.as_str(), payment.amount_minor.clone(), payment.currency.as_str());
        if !same {
            found.push(format!("{} was paid otherwise than instructed: {payment:?}, {payout:?}", payment.key));
        }
        if matches!(payout.state.as_str(), "rejected" | "returned") || (payout.state == "held" && !payout.in_doubt) {
            found.push(format!("{} was paid, and the store has it as {}", payment.key, payout.state));
        }
    }
    for payout in payouts {
        let paid = by_key.contains_key(payout.idempotency_key.as_str());
        if payout.state == "paid" && !paid {
            found.push(format!("{} is paid in the store, and not in the receiver's book", payout.idempotency_key));
        }
        if payout.idempotent && payout.run_id <= quiet.last_run && payout.state != "paid" {
            let key = &payout.idempotency_key;
            found.push(format!("{key} is for a receiver that knows keys, and {} in the end", payout.state));
        }
    }
    tell("books", found, findings);
}

/// In the order of the book, no payment was made under a token lower than one before it in its scope.
fn tokens_rise(payments: &[Payment], findings: &mut Vec<String>) {
    let mut highest: HashMap<&str, i64> = HashMap::new();
    let mut found = Vec::new();
    for payment in payments {
        let highest = highest.entry(&payment.scope).or_insert(payment.token);
        if payment.token < *highest {
            found.push(format!("{} was paid under {}, behind {highest}", payment.key, payment.token));
        }
        *highest = payment.token.max(*highest);
    }
    tell("tokens", found, findings);
}

/// The same bytes at every try; and where it must not be asked twice, no try behind one that may have had its effect.
fn tries(log: &[Logged], payouts: &[Payout], findings: &mut Vec<String>) {
    let once: HashMap<&str, bool> =
        payouts.iter().map(|payout| (payout.idempotency_key.as_str(), !payout.idempotent)).collect();
    let mut by_key: HashMap<&str, Vec<&Logged>> = HashMap::new();
    for logged in log.iter().filter(|logged| logged.method == "POST") {
        by_key.entry(&logged.key).or_default().push(logged);
    }
    let mut found = Vec::new();
    for (key, tries) in by_key {
        let Some((last, earlier)) = tries.split_last() else { continue };
        if earlier.iter().any(|logged| logged.body != last.body) {
            found.push(format!("{key}: other bytes than at another try"));
        }
        let proved = |logged: &&Logged| logged.answered.is_some_and(|status| UNDONE.contains(&status));
        if once.get(key).copied().unwrap_or(false) && !earlier.iter().all(proved) {
            let answers: Vec<_> = tries.iter().map(|logged| (logged.token, logged.answered)).collect();
            found.push(format!("{key}: sent again although it may have had its effect: {answers:?}"));
        }
    }
    tell("tries", found, findings);
}

/// What was offered is in the store, once, to the cent.
async fn entries(ground: &Ground, offered: &Offered, findings: &mut Vec<String>) {
    for (source, sum) in &offered.sums {
        let query = format!("select count(*), sum(amount)::bigint from bursar.entry where source = '{source}'");
        let found: Vec<(i64, i64)> = ground.cluster.database().rows(&query).await;
        if found != [(sum.rows, sum.minor)] {
            findings.push(format!("entries: {sum:?} of {source} were offered, the store has {found:?}"));
        }
    }
    findings.extend(offered.refused.iter().map(|refused| format!("entries: refused: {refused}")));
}

/// Tells the first of many.
pub fn tell(sort: &str, found: Vec<String>, findings: &mut Vec<String>) {
    let more = found.len().saturating_sub(TOLD);
    findings.extend(found.into_iter().take(TOLD).map(|what| format!("{sort}: {what}")));
    if more > 0 {
        findings.push(format!("{sort}: and {more} more"));
    }
}

#[cfg(test)]
mod tests {
    use bursar::clock::boottime;

    use super::*;

    fn payment(key: &str, amount: i64, token: i64) -> Payment {
        let text = str::to_owned;
        let amount_minor = amount.to_string();
        Payment { key: text(key), merchant: text("m"), amount_minor, currency: text("EUR"), scope: text("s"), token }
    }

    fn payout(key: &str, amount: i64, state: &str, idempotent: bool, in_doubt: bool) -> Payout {
        let text = str::to_owned;
        Payout {
            idempotency_key: text(key),
            merchant: text("m"),
            amount,
            currency: text("EUR"),
            state: text(state),
            reason: None,
            idempotent,
            in_doubt,
            run_id: 1,
        }
    }

    fn logged(key: &str, body: &str, answered: Option<u16>) -> Logged {
        Logged {
            method: "POST".to_owned(),
            target: "/".to_owned(),
            key: key.to_owned(),
            token: 1,
            scope: "s".to_owned(),
            signature: None,
            body: body.as_bytes().to_vec(),
            at: boottime(),
            connection: 0,
            taken: true,
            answered,
            said: crate::support::receiver::Said::Unclear,
        }
    }

    fn compared(payments: &[Payment], payouts: &[Payout]) -> usize {
        let (quiet, mut findings) = (Quiet { last_run: 1, ..Quiet::default() }, Vec::new());
        one_for_one(payments, payouts, &quiet, &mut findings);
        findings.len()
    }

    #[test]
    fn a_payment_and_its_instruction_that_agree_are_no_finding() {
        assert_eq!(compared(&[payment("k", 5, 1)], &[payout("k", 5, "paid", true, true)]), 0);
        assert_eq!(compared(&[payment("k", 5, 1)], &[payout("k", 5, "held", false, true)]), 0, "a person will ask");
        assert_eq!(compared(&[], &[payout("k", 5, "held", false, true)]), 0);
    }

    #[test]
    fn what_one_side_has_otherwise_than_the_other_is_a_finding() {
        let paid = payment("k", 5, 1);
        for (payments, payouts) in [
            (vec![paid.clone()], vec![]),
            (vec![paid.clone()], vec![payout("k", 6, "paid", true, false)]),
            (vec![paid.clone()], vec![payout("k", 5, "rejected", false, false)]),
            (vec![paid], vec![payout("k", 5, "held", false, false)]),
            (vec![], vec![payout("k", 5, "paid", false, false)]),
            (vec![], vec![payout("k", 5, "unknown", true, true)]),
        ] {
            assert_eq!(compared(&payments, &payouts), 1, "{payments:?} {payouts:?}");
        }
    }

    #[test]
    fn a_payment_behind_one_of_a_higher_token_is_a_finding() {
        for (tokens, expected) in [([1, 2, 2], 0), ([2, 1, 2], 1), ([3, 1, 2], 2)] {
            let payments: Vec<Payment> = tokens.iter().map(|token| payment("k", 5, *token)).collect();
            let mut findings = Vec::new();
            tokens_rise(&payments, &mut findings);
            assert_eq!(findings.len(), expected, "{tokens:?}");
        }
    }

    #[test]
    fn a_request_is_refused_that_the_book_answers_with_412() {
        let answered = |taken, answered| Logged { taken, ..logged("k", "b", answered) };
        assert_eq!(refused(&[answered(false, Some(412)), answered(false, None), answered(true, Some(412))]), 1);
        let asked = Logged { method: "GET".to_owned(), ..answered(false, Some(412)) };
        assert_eq!(refused(&[asked, answered(false, Some(429)), answered(true, Some(201))]), 0);
    }

    #[test]
    fn a_second_try_is_a_finding_where_the_first_may_have_had_its_effect_and_the_receiver_knows_no_keys() {
        let count = |log: &[Logged], idempotent| {
            let mut findings = Vec::new();
            tries(log, &[payout("k", 5, "paid", idempotent, false)], &mut findings);
            findings.len()
        };
        let again = |first| [logged("k", "b", first), logged("k", "b", Some(201))];
        assert_eq!(count(&again(None), true), 0);
        assert_eq!(count(&again(Some(429)), false), 0);
        assert_eq!(count(&again(None), false), 1);
        assert_eq!(count(&again(Some(503)), false), 1);
        assert_eq!(count(&[logged("k", "b", None), logged("k", "c", None)], true), 1, "other bytes");
    }
}
