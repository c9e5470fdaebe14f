#!/usr/bin/env python3
"""Nets a file of entries in decimal arithmetic, from the text of the CSV alone: what bursar's own netting is held against.

    scripts/expected_nets.py config/samples/entries.csv > nets.csv

It shares nothing with bursar: Python's csv and decimal modules, digits per currency from its own table, Unicode forms from
unicodedata. One line per merchant and currency that has entries, in the order of UTF-8 bytes: how many, the sums of amounts
and fees, the net, and what becomes of it without a minimum (a negative net is carried).
"""

import csv
import io
import sys
import unicodedata
from decimal import Decimal

DIGITS = {"EUR": 2, "GBP": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4, "SEK": 2, "BHD": 3, "PLN": 2, "ISK": 0}


def table(text):
    """The nets of a file's text, as CSV."""
    sums = {}
    for row in csv.DictReader(io.StringIO(text, newline="")):
        key = (unicodedata.normalize("NFC", row["merchant"].strip()), row["currency"].upper())
        count, amount, fee = sums.get(key, (0, Decimal(0), Decimal(0)))
        sums[key] = (count + 1, amount + Decimal(row["amount"]), fee + Decimal(row["fee"] or "0"))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["merchant", "currency", "entries", "amount", "fee", "net", "state"])
    for (merchant, currency), (count, amount, fee) in sorted(sums.items(), key=lambda item: (item[0][0].encode(), item[0][1])):
        net = amount - fee
        shown = [f"{value:.{DIGITS[currency]}f}" for value in (amount, fee, net)]
        exact = all(Decimal(text) == value for text, value in zip(shown, (amount, fee, net)))
        if not exact:
            raise ValueError(f"{merchant} {currency}: a fraction of a minor unit")
        writer.writerow([merchant, currency, count, *shown, "carried" if net < 0 else "settled"])
    return out.getvalue()


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8-sig", newline="") as file:
        sys.stdout.reconfigure(encoding="utf-8", newline="")
        sys.stdout.write(table(file.read()))
