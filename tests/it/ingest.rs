//! Files of entries from the outside: what is right is read right, and whatever is wrong is named with line and column.

use bursar::domain::entry::{EntryKind, MERCHANT_BYTES, NewEntry};
use bursar::domain::money::Currency;
use bursar::ingest::{self, FINDINGS_SHOWN, HEADER, MOST_FIELD, ParsedFile};
use chrono::{DateTime, Utc};
use proptest::prelude::*;

const H: &str = "id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference";
const ROW: &str = "e1,m1,EUR,capture,10.00,0.10,2027-01-01T10:00:00Z,2027-01-02T00:00:00Z,r1";

fn read(bytes: impl AsRef<[u8]>) -> Result<ParsedFile, String> {
    ingest::parse("in/e.csv", "psp", bytes.as_ref()).map_err(|errors| errors.to_string())
}

fn at(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}

#[test]
fn a_row_is_read_exactly() {
    let file = read(format!("{H}\n{ROW}\n")).expect("good");
    assert_eq!((file.source.as_str(), file.file_name.as_str(), file.sha256.len()), ("psp", "e.csv", 64));
    let expected = NewEntry {
        id: "e1".to_owned(),
        merchant: "m1".to_owned(),
        currency: Currency::new("EUR").expect("a currency"),
        kind: EntryKind::Capture,
        amount: 1000,
        fee: 10,
        occurred_at: at("2027-01-01T10:00:00Z"),
        available_at: at("2027-01-02T00:00:00Z"),
        reference: Some("r1".to_owned()),
    };
    assert_eq!(file.entries, [(2, expected)]);
    assert_eq!(HEADER.join(","), H);
    assert_eq!(read(format!("{H}\n")).expect("a day without entries").entries, []);
}

#[test]
fn a_mark_crlf_quotes_blank_lines_and_small_letters_are_read_right() {
    let text = format!(
        "\u{feff}{H}\r\n\r\ne1,\"Bolt, \"\"Nut\"\"\",eur,capture,1,,2027-01-01T10:00:00+02:00,,\r\n\
         e2,\"two\u{301} \",jpy,refund,-5,-1,2027-01-01t10:00:00.123456z,,\"a,\"\"b\"\"\"\r\n\"e3\",m,KWD,fee,-18.600,0,2027-01-01T10:00:00Z,,"
    );
    let file = read(text).expect("good");
    let [(first_line, first), (second_line, second), (third_line, third)] = file.entries.as_slice() else {
        panic!("three rows")
    };
    assert_eq!((*first_line, *second_line, *third_line), (3, 4, 5));
    assert_eq!(
        (first.merchant.as_str(), first.currency.code(), first.amount, first.fee),
        ("Bolt, \"Nut\"", "EUR", 100, 0)
    );
    assert_eq!((first.occurred_at, first.available_at), (at("2027-01-01T08:00:00Z"), at("2027-01-01T08:00:00Z")));
    assert_eq!((second.merchant.as_str(), second.fee, second.reference.as_deref()), ("tw\u{f3}", -1, Some("a,\"b\"")));
    assert_eq!((third.id.as_str(), third.amount), ("e3", -18_600));
}

/// A row in place of [`ROW`] on line 2, and the starts of the lines that must be reported.
const BAD_ROWS: &[(&str, &[&str])] = &[
    (",m,EUR,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: id: found nothing, expected 1 to 128 bytes"]),
    (
        " e,m,EUR,capture,1,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: id: found \" e\", expected no white space around it"],
    ),
    ("e\u{7},m,EUR,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: id: found the control character '\\u{7}'"]),
    ("e, ,EUR,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: merchant: the merchant is empty"]),
    ("e,m,EU,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: currency: \"EU\" is not an ISO 4217 currency"]),
    ("e,m,XAU,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: currency: XAU has no minor unit"]),
    ("e,m,,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: currency: \"\" is not an ISO 4217 currency"]),
    (
        "e,m,EUR,Capture,1,,2027-01-01T10:00:00Z,,",
        &[
            "in/e.csv:2: kind: found \"Capture\", expected capture, refund, chargeback, chargeback_reversal, fee, adjustment",
        ],
    ),
    ("e,m,EUR,carry,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: kind: found \"carry\", which bursar writes itself"]),
    ("e,m,EUR,capture,,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: amount: \"\" is not an amount"]),
    ("e,m,EUR,capture,1e3,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: amount: \"1e3\" is not an amount"]),
    ("e,m,EUR,capture,\"1,00\",,2027-01-01T10:00:00Z,,", &["in/e.csv:2: amount: \"1,00\" is not an amount"]),
    ("e,m,EUR,capture, 1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: amount: \" 1\" is not an amount"]),
    (
        "e,m,JPY,capture,10.5,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: amount: \"10.5\" has 1 digits after the point, JPY has 0"],
    ),
    (
        "e,m,KWD,capture,1.0000,0.0001,2027-01-01T10:00:00Z,,",
        &[
            "in/e.csv:2: amount: \"1.0000\" has 4 digits after the point, KWD has 3",
            "in/e.csv:2: fee: \"0.0001\" has 4 digits after the point, KWD has 3",
        ],
    ),
    (
        "e,m,EUR,capture,92233720368547758.08,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: amount: \"92233720368547758.08\" is out of range"],
    ),
    (
        "e,m,EUR,capture,-1,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: amount: found -1.00, expected another: a capture is at least 0"],
    ),
    ("e,m,EUR,chargeback_reversal,-1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: amount: found -1.00"]),
    (
        "e,m,EUR,refund,1,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: amount: found 1.00, expected another: a refund is at most 0"],
    ),
    (
        "e,m,EUR,chargeback,1,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: amount: found 1.00, expected another: a chargeback is at most 0"],
    ),
    (
        "e,m,EUR,fee,1,,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: amount: found 1.00, expected another: an entry of kind fee"],
    ),
    (
        "e,m,EUR,fee,-1,0.10,2027-01-01T10:00:00Z,,",
        &["in/e.csv:2: fee: found 0.10, expected another: an entry of kind fee"],
    ),
    ("e,m,EUR,capture,1,1 USD,2027-01-01T10:00:00Z,,", &["in/e.csv:2: fee: \"1 USD\" is not an amount"]),
    (
        "e,m,EUR,capture,1,,2027-01-01,,",
        &["in/e.csv:2: occurred_at: found \"2027-01-01\", expected a time in RFC 3339"],
    ),
    (
        "e,m,EUR,capture,1,,2027-01-01T10:00:00,,",
        &["in/e.csv:2: occurred_at: found \"2027-01-01T10:00:00\", expected a time in RFC 3339"],
    ),
    ("e,m,EUR,capture,1,,,,", &["in/e.csv:2: occurred_at: found \"\", expected a time in RFC 3339"]),
    (
        "e,m,EUR,capture,1,,2027-02-30T10:00:00Z,soon,",
        &["in/e.csv:2: occurred_at: found \"2027-02-30T10:00:00Z\"", "in/e.csv:2: available_at: found \"soon\""],
    ),
    (
        "e,m,EUR,capture,1,,2027-01-01T10:00:00.1234567Z,,",
        &["in/e.csv:2: occurred_at: found \"2027-01-01T10:00:00.1234567Z\", expected at most six digits"],
    ),
    (
        "e,m,EUR,capture,1,,2016-12-31T23:59:60Z,,",
        &["in/e.csv:2: occurred_at: found \"2016-12-31T23:59:60Z\", expected no leap second"],
    ),
    (
        "e,m,EUR,capture,1,,0027-01-01T10:00:00Z,,",
        &["in/e.csv:2: occurred_at: found \"0027-01-01T10:00:00Z\", expected a year"],
    ),
    (
        "e,m,EUR,capture,1,,2027-01-01T10:00:00Z,,\"a\nb\"",
        &["in/e.csv:2: reference: found the control character '\\n'"],
    ),
    ("e,m,EUR,capture,1", &["in/e.csv:2: found 5 fields, expected 9"]),
    ("e,m,EUR,capture,1,,2027-01-01T10:00:00Z,", &["in/e.csv:2: found 8 fields, expected 9"]),
    ("e,m,EUR,capture,1,,2027-01-01T10:00:00Z,,,", &["in/e.csv:2: found 10 fields, expected 9"]),
    ("   ", &["in/e.csv:2: found 1 fields, expected 9"]),
    ("e,m,EUR,capture,1,,2027-01-01T10:00:00Z,,\"cut", &["in/e.csv:2: opens a quote that is never closed"]),
    ("e,m\"n,EUR,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: has a quote in the middle of a field"]),
    ("e,\"m\"n,EUR,capture,1,,2027-01-01T10:00:00Z,,", &["in/e.csv:2: has text after a closing quote"]),
    (
        " ,,XX,x,1,,x,x,",
        &[
            "in/e.csv:2: id: found \" \"",
            "in/e.csv:2: merchant: the merchant is empty",
            "in/e.csv:2: currency: \"XX\"",
            "in/e.csv:2: kind: found \"x\"",
            "in/e.csv:2: occurred_at: found \"x\"",
            "in/e.csv:2: available_at: found \"x\"",
        ],
    ),
];

#[test]
fn whatever_is_wrong_in_a_row_is_named_with_line_and_column() {
    let mut missed = Vec::new();
    for (row, expected) in BAD_ROWS {
        let found = read(format!("{H}\n{row}\n")).err().unwrap_or_default();
        let lines: Vec<&str> = found.lines().collect();
        if lines.len() != expected.len() || !lines.iter().zip(*expected).all(|(line, start)| line.starts_with(start)) {
            missed.push(format!("{row}\nfound:\n{found}\nexpected:\n{}", expected.join("\n")));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n\n"));
}

#[test]
fn files_that_are_no_canonical_csv_are_refused_with_the_reason() {
    for (text, expected) in [
        (String::new(), "in/e.csv: is empty, expected the header id,merchant"),
        ("\u{feff}\n\n".to_owned(), "in/e.csv: is empty"),
        (ROW.to_owned(), "in/e.csv:1: is not the header id,merchant"),
        (format!("\n{}\n{ROW}\n", H.replace("kind", "type")), "column 4 is \"type\", expected kind"),
        (format!("{}\n", H.replace(',', ";")), "columns are separated by commas, not by ';'"),
        (format!("{}\n", H.replace(',', "\t")), "columns are separated by commas, not by tabs"),
        (format!("{H},note\n"), "there are 1 columns too many"),
        (format!("{}\n", H.replace(",reference", "")), "column 9 is missing, expected reference"),
        (H.replace("id,", "ID,"), "column 1 is \"ID\", expected id"),
    ] {
        let found = read(&text).expect_err("refused");
        assert!(found.contains(expected) && found.lines().count() == 1, "{text:?}\n{found}");
    }
    assert!(read(b"\xff\xfei\x00d\x00").expect_err("refused").contains("is UTF-16 text, expected UTF-8"));
    let found =
        read([H.as_bytes(), b"\ne1,m\xff,EUR,capture,1,,2027-01-01T10:00:00Z,,\n"].concat()).expect_err("bytes");
    assert_eq!(found, "in/e.csv:2: merchant: found \"m\u{fffd}\", which is not UTF-8");
    let found = ingest::parse("e.csv", "bursar", format!("{H}\n{ROW}\n").as_bytes()).expect_err("our own").to_string();
    assert!(
        found.starts_with("e.csv: cannot be imported: \"bursar\" is the source of entries that bursar writes"),
        "{found}"
    );
    let away = ingest::load(std::path::Path::new("/away/e.csv"), "psp").expect_err("away").to_string();
    assert!(away.starts_with("/away/e.csv: cannot be read: No such file"), "{away}");
}

#[test]
fn lines_are_those_that_an_editor_shows() {
    let rows = ["e1,m,EUR,capture,1,,2027-01-01T10:00:00Z,,", "e2,\"m\",EUR,capture,x,,2027-01-01T10:00:00Z,,"];
    for end in ["\n", "\r\n", "\r"] {
        let text = format!("{H}{end}{end}{}{end}{end}{end}{}{end}", rows[0], rows[1]);
        let found = read(text).expect_err("x is no amount");
        assert!(found.starts_with("in/e.csv:6: amount: "), "{end:?} {found}");
    }
}

#[test]
fn an_id_that_stands_twice_is_named_with_both_lines() {
    let again = ROW.replace("10.00", "x");
    let found = read(format!("{H}\n{ROW}\n{}\n{again}\n{ROW}\n", ROW.replace("e1", "e2"))).expect_err("twice");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "in/e.csv:4: id: found \"e1\", which line 2 has too; expected each once");
    assert!(lines[1].starts_with("in/e.csv:4: amount: "), "{found}");
    assert_eq!(lines[2], "in/e.csv:5: id: found \"e1\", which line 2 has too; expected each once");
}

#[test]
fn every_bound_holds_on_its_edge() {
    let merchant = |length: usize| ROW.replace("m1", &"m".repeat(length));
    read(format!("{H}\n{}\n", merchant(MERCHANT_BYTES))).expect("at the edge");
    let found = read(format!("{H}\n{}\n", merchant(MERCHANT_BYTES + 1))).expect_err("over it");
    assert!(found.contains("merchant: the merchant has 129 bytes, at most 128 are allowed"), "{found}");
    let found = read(format!("{H}\n{}\n", merchant(MOST_FIELD + 1))).expect_err("far over it");
    assert_eq!(found, "in/e.csv:2: merchant: found 1025 bytes, expected at most 1024");
    for (from, column) in [("e1", "id"), ("r1", "reference")] {
        read(format!("{H}\n{}\n", ROW.replace(from, &"x".repeat(128)))).expect("at the edge");
        let found = read(format!("{H}\n{}\n", ROW.replace(from, &"x".repeat(129)))).expect_err("over it");
        assert_eq!(found, format!("in/e.csv:2: {column}: found 129 bytes, expected at most 128"));
    }
    let bad = |n: usize| ROW.replace("e1", &format!("e{n}")).replace("10.00", "x");
    let rows = (0..=FINDINGS_SHOWN + 5).map(bad).collect::<Vec<_>>().join("\n");
    let found = read(format!("{H}\n{rows}")).expect_err("many");
    assert_eq!(found.lines().count(), FINDINGS_SHOWN + 1);
    assert!(found.ends_with("and 6 more"), "{found}");
}

fn entries() -> impl Strategy<Value = Vec<NewEntry>> {
    let currency = prop::sample::select(vec!["EUR", "JPY", "KWD", "CLF"]);
    let kind = prop::sample::select(EntryKind::ALL[..6].to_vec());
    let time = (0..4_000_000_000_i64, 0..1_000_000_u32)
        .prop_map(|(seconds, micros)| DateTime::from_timestamp(seconds, micros * 1000).expect("in range"));
    let merchant =
        "[^\\p{Cc}]{1,12}".prop_filter_map("a merchant", |text| bursar::domain::entry::merchant_id(&text).ok());
    let reference = "[^\\p{Cc}]{0,12}".prop_map(|text| (!text.is_empty()).then_some(text));
    let one = (merchant, currency, kind, any::<i64>(), -5_000_i64..5_000, time.clone(), time, reference);
    let one = one.prop_map(|(merchant, currency, kind, amount, fee, occurred_at, available_at, reference)| {
        let size = amount.checked_abs().unwrap_or(0);
        let amount = match kind {
            EntryKind::Capture | EntryKind::ChargebackReversal => size,
            EntryKind::Refund | EntryKind::Chargeback | EntryKind::Fee => -size,
            EntryKind::Adjustment | EntryKind::Carry => amount.max(-i64::MAX),
        };
        let fee = if kind == EntryKind::Fee { 0 } else { fee };
        let currency = Currency::new(currency).expect("a currency");
        NewEntry { id: String::new(), merchant, currency, kind, amount, fee, occurred_at, available_at, reference }
    });
    prop::collection::vec(one, 0..20).prop_map(|mut all| {
        for (n, entry) in all.iter_mut().enumerate() {
            entry.id = format!("id-{n}");
        }
        all
    })
}

fn written(entries: &[NewEntry]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEADER).expect("memory");
    for entry in entries {
        let (amount, fee) = (entry.currency.format(entry.amount), entry.currency.format(entry.fee));
        let (occurred, available) = (entry.occurred_at.to_rfc3339(), entry.available_at.to_rfc3339());
        let (currency, reference) = (entry.currency.code(), entry.reference.as_deref().unwrap_or_default());
        let row = [
            &entry.id,
            &entry.merchant,
            currency,
            entry.kind.as_str(),
            &amount,
            &fee,
            &occurred,
            &available,
            reference,
        ];
        writer.write_record(row).expect("memory");
    }
    writer.into_inner().expect("memory")
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(entries in entries()) {
        let file = read(written(&entries)).map_err(TestCaseError::fail)?;
        let found: Vec<NewEntry> = file.entries.into_iter().map(|(_, entry)| entry).collect();
        prop_assert_eq!(found, entries);
    }

    #[test]
    fn a_file_cut_anywhere_is_refused_or_loses_nothing_but_whole_rows_and_a_last_reference(entries in entries(), at: prop::sample::Index) {
        let bytes = written(&entries);
        let cut = at.index(bytes.len() + 1);
        if let Ok(file) = read(&bytes[..cut]) {
            for ((_, found), whole) in file.entries.iter().zip(&entries) {
                let (mut found, mut whole) = (found.clone(), whole.clone());
                found.reference = None;
                whole.reference = None;
                prop_assert_eq!(found, whole);
            }
            // What may be missing from the last reference is told.
            let is_open = file.entries.last().map(|(line, _)| *line).filter(|_| !bytes[..cut].ends_with(b"\n"));
            prop_assert_eq!(file.open_end, is_open);
        }
    }

    #[test]
    fn any_bytes_are_refused_or_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), with_header: bool) {
        let bytes = if with_header { [H.as_bytes(), b"\n", &bytes].concat() } else { bytes };
        if let Err(found) = read(&bytes) {
            prop_assert!(!found.is_empty());
        }
    }
}
