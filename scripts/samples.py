#!/usr/bin/env python3
"""Makes sample entries in bursar's canonical CSV: the same bytes for the same arguments, on every machine.

    scripts/samples.py                                     # makes config/samples/ anew
    scripts/samples.py --check                             # exit 1 where config/samples/ is not what would be made
    scripts/samples.py --merchants 10000 --entries 100000 --out entries.csv    # for a benchmark

What they hold, because it is what goes wrong in practice: merchants in several scripts, some written in two Unicode
forms or with blanks around them, some that differ in case only; names with commas and quotes; currencies without minor
units, with three and with four digits; refunds, chargebacks and those won back, fees of both signs and fees of their own,
reserves held back now and given back later; times with offsets; empty optional columns.
"""

import argparse
import csv
import datetime
import io
import pathlib
import sys
import unicodedata

sys.dont_write_bytecode = True
import expected_nets  # noqa: E402, the module beside this one

HEADER = ["id", "merchant", "currency", "kind", "amount", "fee", "occurred_at", "available_at", "reference"]
SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "config" / "samples"
FIRST_DAY = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

# Code, digits after the point, weight, a usual amount in minor units.
CURRENCIES = [
    ("EUR", 2, 38, 4_200), ("GBP", 2, 18, 3_600), ("USD", 2, 14, 4_900), ("JPY", 0, 9, 5_400), ("KWD", 3, 6, 12_700),
    ("CLF", 4, 3, 15_000), ("SEK", 2, 4, 39_900), ("BHD", 3, 3, 15_500), ("PLN", 2, 3, 18_900), ("ISK", 0, 2, 6_100),
]
KINDS = [("capture", 780), ("refund", 90), ("chargeback", 22), ("chargeback_reversal", 12), ("fee", 36),
         ("adjustment", 40), ("reserve", 20)]
NAMES = [
    "shop-{n}", "Acme-{n}", "acme-{n}", "Café Zoé {n}", "Bäckerei Groß {n}", "Łódź Sklep {n}", "Магазин {n}",
    "商店{n}号", "さくら堂 {n}", "상점 {n}", "متجر {n}", "חנות {n}", "दुकान {n}", "ร้าน {n}", "Κατάστημα {n}",
    "Bolt, Nut & Sons {n}", 'Joe "the Fish" {n}', "Smith; Partner {n}", "O'Neill {n}", "Việt Quán {n}",
]
REFERENCES = ["order {n}", "Rechnung {n}, Teil 2", 'said "twice" {n}', "注文 {n}", "{n}"]


class Numbers:
    """splitmix64: a generator that is the same in every version of Python."""

    def __init__(self, seed):
        self.state = seed & (2**64 - 1)

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & (2**64 - 1)
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & (2**64 - 1)
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & (2**64 - 1)
        return z ^ (z >> 31)

    def below(self, n):
        return self.next() % n

    def one_in(self, n):
        return self.below(n) == 0

    def pick(self, weighted):
        """One of some tuples, by the weight at their second place, or third where there are four."""
        weight = (lambda item: item[2]) if len(weighted[0]) == 4 else (lambda item: item[1])
        at = self.below(sum(map(weight, weighted)))
        for item in weighted:
            at -= weight(item)
            if at < 0:
                return item
        raise AssertionError("weights sum to more than the number drawn")


def major(minor, digits):
    """Minor units as major units with a point: text to text, no arithmetic on fractions."""
    sign, text = ("-" if minor < 0 else ""), str(abs(minor)).rjust(digits + 1, "0")
    return f"{sign}{text[:-digits]}.{text[-digits:]}" if digits else sign + text


def instant(numbers, day):
    """A time on a day, in UTC or with an offset."""
    moment = FIRST_DAY + datetime.timedelta(days=day, seconds=numbers.below(86_400))
    if numbers.one_in(5):
        zone = datetime.timezone(datetime.timedelta(minutes=30 * (numbers.below(40) - 18)))
        return moment, moment.astimezone(zone).isoformat()
    return moment, moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def written(numbers, merchant):
    """The same merchant, now and then in another form that means the same."""
    if numbers.one_in(12):
        merchant = unicodedata.normalize("NFD", merchant)
    return f" {merchant} " if numbers.one_in(40) else merchant


def rows(numbers, merchants, entries):
    """Rows in the order of the file."""
    count = turn = 0
    while count < entries:
        count, turn = count + 1, turn + 1
        # The first round gives every merchant an entry; after it the early ones get more than the late ones.
        n = turn - 1 if turn <= merchants else min(numbers.below(merchants), numbers.below(merchants))
        merchant = NAMES[n % len(NAMES)].format(n=1 + n // len(NAMES))
        home = CURRENCIES[(n * 7 + n // 31) % len(CURRENCIES)]
        code, digits, _, usual = home if numbers.below(4) else numbers.pick(CURRENCIES)
        kind, _ = numbers.pick(KINDS)
        amount = 1 + numbers.below(2 * usual) * (40 if numbers.one_in(50) else 1)
        fee = None
        if kind in ("refund", "chargeback"):
            amount = -amount
            fee = usual // 10 if kind == "chargeback" else None
        elif kind == "capture":
            fee = None if numbers.one_in(9) else amount * (90 + numbers.below(200)) // 10_000
        elif kind == "chargeback_reversal":
            fee = -(usual // 10)
        elif kind == "fee":
            amount = -(amount // 20)
        elif kind == "adjustment":
            amount = amount // 4 - usual // 4
        day = numbers.below(28)
        moment, occurred = instant(numbers, day)
        available = "" if numbers.one_in(3) else (moment + datetime.timedelta(days=2)).strftime("%Y-%m-%dT00:00:00Z")
        reference = REFERENCES[numbers.below(len(REFERENCES))].format(n=count) if numbers.below(3) else ""
        shown = code.lower() if numbers.one_in(25) else code
        fee = "" if fee is None else major(fee, digits)
        ident = f"psp-{count:08d}"
        if kind == "reserve":
            later = (moment + datetime.timedelta(days=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
            held = [written(numbers, merchant), shown, "adjustment"]
            yield [ident + "-hold", *held, major(-amount, digits), "", occurred, "", "reserve"]
            if count < entries:
                count += 1
                yield [ident + "-free", *held, major(amount, digits), "", occurred, later, "reserve"]
        else:
            yield [ident, written(numbers, merchant), shown, kind, major(amount, digits), fee, occurred, available, reference]


def make(merchants, entries, seed):
    """The file's text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows(Numbers(seed), merchants, entries))
    return text.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--merchants", type=int, default=3_000)
    parser.add_argument("--entries", type=int, default=12_000)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--out", type=pathlib.Path, help="one file, instead of config/samples/ with its nets")
    parser.add_argument("--check", action="store_true", help="compare with config/samples/ and write nothing")
    given = parser.parse_args()
    if not 1 <= given.merchants <= given.entries <= 2_000_000:
        parser.error("expected 1 <= merchants <= entries <= 2000000")
    text = make(given.merchants, given.entries, given.seed)
    if given.out:
        given.out.write_text(text, encoding="utf-8", newline="")
        return 0
    made = {"entries.csv": text, "expected-nets.csv": expected_nets.table(text)}
    different = False
    for name, content in made.items():
        path = SAMPLES / name
        if not given.check:
            path.write_text(content, encoding="utf-8", newline="")
        elif path.read_bytes() != content.encode():
            print(f"{path} is not what scripts/samples.py makes", file=sys.stderr)
            different = True
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
