#!/usr/bin/env python3
"""Works out a year of ticks a second time, with Python's zoneinfo and cron libraries from PyPI, and compares.

    python3 -m venv .venv && .venv/bin/pip install -r scripts/ticks/requirements.txt
    cargo build --features chaos --example ticks
    .venv/bin/python scripts/ticks/compare.py [--binary PATH] [--quick]

Independent are: which local times an expression names (cronsim, croniter for W), what a zone does to them (zoneinfo's
fold attribute, PEP 495), and the order and removal of doubles (a set). Ours come from `examples/ticks.rs`.

Calendars: the days off of TARGET2 and of England and Wales for 30 years, and those of the Federal Reserve (federal holidays, moved from a
Sunday to the Monday and never off a Saturday), by `holidays`; and where each day of ten years is rolled to, by numpy's busday_offset.

Also checked, over the zone data itself: what the walk over the time line takes for granted (SAMPLE and LONGEST_CHANGE in
`src/schedule/wall.rs`).

Exit status 1 where anything differs.
"""

import argparse
import collections
import importlib.resources
import pathlib
import struct
import subprocess
import sys
import time
import zoneinfo
from datetime import datetime, timedelta, timezone

import holidays
import numpy
from croniter import croniter
from cronsim import CronSim

ZONES = [
    ("America/New_York", 2027),
    ("Europe/London", 2027),
    ("Europe/Berlin", 2027),
    ("Australia/Lord_Howe", 2027),
    ("America/Santiago", 2027),
    ("Africa/Casablanca", 2026),
    ("Africa/Casablanca", 2027),
    ("Pacific/Apia", 2011),
    ("Asia/Kolkata", 2027),
    ("UTC", 2027),
]
DENSE = ["* * * * *", "*/15 * * * *", "0 * * * *", "*/7 0-6 * * *", "30 */10 0-4 * * *"]
SPARSE = [
    "0 0 * * *", "30 0 * * *", "0 1 * * *", "15 1 * * *", "30 1 * * *", "45 1 * * *", "0 2 * * *", "15 2 * * *",
    "30 2 * * *", "59 2 * * *", "0 3 * * *", "30 3 * * *", "0,30 1,2,3 * * *", "*/20 2 * * *", "0 */2 * * *",
    "0 7 * * *", "30 17 * * MON-FRI", "0 7 * * 1-5", "0 9-17 * * 1-5", "30 23 * * *", "59 59 23 * * *",
    "0 2 31 * *", "0 2 30 * *", "0 2 29 2 *", "0 2 L * *", "0 2 LW * *", "0 0 2 L * *", "0 2 1 1 *",
    "0 2 15W * *", "0 2 1W * *", "0 7 * * 5L", "0 7 * * 5#2", "0 7 * * 0#1", "0 7 * * 7", "0 7 * * SUN",
    "0 0 13 * 5", "0 7 1,15 * MON", "0 12 30 12 *", "0 7,19 30,31 12 *", "0 2 28 3 *", "30 2 14 3 *", "30 1 7 11 *",
]
RULES = [(gap, fold) for gap in ("shift", "skip") for fold in ("first", "last", "both")]


def local_times(cron, start, end):
    """The local times that an expression names, by another library."""
    if "W" in cron and "LW" not in cron:
        source = croniter(cron, start - timedelta(seconds=1))
        following = lambda: source.get_next(datetime)
    else:
        source = CronSim(cron, start - timedelta(seconds=1))
        following = lambda: next(source)
    found = []
    while (wall := following()) < end:
        found.append(wall)
    return found


def default_rules(cron):
    """What a job's rules are where it names none, said a second time: does the hour field repeat by the hour?"""
    hour = cron.split()[-4]
    return ("skip", "both") if hour == "*" or "-" in hour else ("shift", "first")


def place(walls, zone, gap, fold, start, end):
    """Local times on the time line, as a sorted list of seconds."""
    found = set()
    epoch = datetime(1970, 1, 1)
    for wall in walls:
        first, second = wall.replace(tzinfo=zone), wall.replace(tzinfo=zone, fold=1)
        before, after = wall - first.utcoffset(), wall - second.utcoffset()
        if before == after:
            chosen = [before]
        elif before > after:  # a gap: fold=0 has the offset before it, so the time moves forward by its length
            chosen = [before] if gap == "shift" else []
        else:
            chosen = {"first": [before], "last": [after], "both": [before, after]}[fold]
        found.update(int((instant - epoch).total_seconds()) for instant in chosen)
    return sorted(second for second in found if start < second <= end)


def days_off(calendar, year):
    """The days off from Monday to Friday, by another library."""
    if calendar == "target2":
        found = set(holidays.ECB(years=year))
    elif calendar == "england-and-wales":
        found = set(holidays.GB(subdiv="ENG", years=year))
    else:
        # By their names, without what is observed on another day: the Reserve Banks move a Sunday's to the Monday, and no other.
        found = {day + timedelta(days=1) if day.weekday() == 6 else day
                 for day in holidays.US(years=year, observed=False) if (day.month, day.day) != (6, 19) or year >= 2022}
    return sorted(day for day in found if day.weekday() < 5)


def check_calendars(ask):
    """How many answers differ."""
    wrong, compared = 0, 0
    years = range(2002, 2033)
    calendars = ["target2", "us-federal-reserve", "england-and-wales"]
    for calendar in calendars:
        answers = ask([f"days off\t{calendar}\t{year}" for year in years])
        for year, answer in zip(years, answers):
            expected = " ".join(day.isoformat() for day in days_off(calendar, year))
            compared += len(expected.split())
            if answer != expected:
                wrong += 1
                print(f"DIFFERS {calendar} {year}: {sorted(set(answer.split()) ^ set(expected.split()))}")
        all_days = numpy.arange("2024-01-01", "2034-01-01", dtype="datetime64[D]")
        off = [day for year in range(2023, 2036) for day in days_off(calendar, year)]
        for roll, theirs in [("following", "following"), ("modified_following", "modifiedfollowing"), ("preceding", "preceding")]:
            answer, = ask([f"rolled\t{calendar}\t{roll}\t{' '.join(map(str, all_days))}"])
            expected = numpy.busday_offset(all_days, 0, roll=theirs, holidays=off)
            found = numpy.array(answer.split(), dtype="datetime64[D]")
            compared += len(all_days)
            if not (found == expected).all():
                wrong += 1
                print(f"DIFFERS {calendar} {roll}: {all_days[found != expected][:5]}")
    print(f"calendars: {compared} days compared, {wrong} answers differ")
    return wrong


def zone_changes(data):
    """(second, offset) of each change in a TZif file, version 2 and above."""
    def header(at):
        return struct.unpack(">6l", data[at + 20:at + 44])
    isut, isstd, leap, times, types, chars = header(0)
    at = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    isut, isstd, leap, times, types, chars = header(at)
    at += 44
    moments = struct.unpack(f">{times}q", data[at:at + times * 8])
    kinds = data[at + times * 8:at + times * 9]
    at += times * 9
    offsets = [struct.unpack(">l", data[at + n * 6:at + n * 6 + 4])[0] for n in range(types)]
    return [(moment, offsets[kind]) for moment, kind in zip(moments, kinds)]


def check_assumptions():
    """No change longer than 26 hours, no two within 3 hours, since 1970."""
    wrong, shortest, longest = 0, None, 0
    for name in sorted(zoneinfo.available_timezones()):
        package, _, resource = ("tzdata.zoneinfo." + name.replace("/", ".")).rpartition(".")
        try:
            data = importlib.resources.files(package).joinpath(resource).read_bytes()
        except (ModuleNotFoundError, FileNotFoundError):
            continue
        previous = None
        for moment, offset in zone_changes(data):
            if previous is not None and moment >= 0 and offset != previous[1]:
                apart, change = moment - previous[0], abs(offset - previous[1])
                longest = max(longest, change)
                if previous[0] >= 0:
                    shortest = apart if shortest is None else min(shortest, apart)
                if change > 26 * 3600 or (previous[0] >= 0 and apart <= 3 * 3600):
                    print(f"ASSUMPTION {name}: change of {change} s at {moment}, {apart} s after the one before")
                    wrong += 1
            if previous is None or offset != previous[1]:
                previous = (moment, offset)
    print(f"zone data since 1970: longest change {longest / 3600:g} h, changes at least {shortest / 86400:.1f} days apart")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/debug/examples/ticks", help="the built example")
    parser.add_argument("--quick", action="store_true", help="leave out the expressions that tick all day")
    arguments = parser.parse_args()
    zoneinfo.reset_tzpath(to=[])
    began = time.monotonic()

    cases = []
    for name, year in ZONES:
        for cron in SPARSE + ([] if arguments.quick else DENSE):
            for gap, fold in [("default", "default")] + (RULES if cron in SPARSE else []):
                cases.append((name, year, gap, fold, cron))
    lines = "".join(
        f"{name}\t{gap}\t{fold}\t{year}-01-01T00:00:00Z\t{year + 1}-01-01T00:00:00Z\t{cron}\n"
        for name, year, gap, fold, cron in cases
    )
    run = subprocess.run([arguments.binary], input=lines, capture_output=True, text=True, check=True)
    ours = run.stdout.splitlines()
    version = pathlib.Path(str(importlib.resources.files("tzdata").joinpath("zones"))).parent
    theirs = next((line.split('"')[1] for line in (version / "__init__.py").read_text().splitlines()
                   if line.startswith("IANA_VERSION")), "unknown")
    print(f"zone data: ours {ours[0]}, theirs {theirs}")
    if len(ours) != len(cases) + 1:
        sys.exit(f"{len(cases)} cases, {len(ours) - 1} answers")

    named, compared, differing, by_zone = {}, 0, 0, collections.Counter()
    for (name, year, gap, fold, cron), answer in zip(cases, ours[1:]):
        if (cron, year) not in named:
            named[cron, year] = local_times(cron, datetime(year - 1, 12, 28), datetime(year + 1, 1, 4))
        rules = default_rules(cron) if gap == "default" else (gap, fold)
        start, end = (int(datetime(y, 1, 1, tzinfo=timezone.utc).timestamp()) for y in (year, year + 1))
        expected = place(named[cron, year], zoneinfo.ZoneInfo(name), *rules, start, end)
        found = [] if answer.startswith("refused") else [int(second) for second in answer.split()]
        compared += len(expected)
        by_zone[name, year] += len(expected)
        if found != expected or answer.startswith("refused"):
            differing += 1
            odd = sorted(set(found) ^ set(expected))
            show = [f"{datetime.fromtimestamp(s, timezone.utc):%Y-%m-%dT%H:%M:%SZ} {'ours' if s in found else 'theirs'}"
                    for s in odd[:4]]
            print(f"DIFFERS {name} {year} {rules} {cron!r}: {len(found)} ours, {len(expected)} theirs, {show} {answer[:80]!r}")
    for (name, year), count in by_zone.items():
        print(f"  {name} {year}: {count} ticks")
    def ask(questions):
        lines = "".join(question + "\n" for question in questions)
        return subprocess.run([arguments.binary], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()[1:]

    wrong = check_assumptions() + check_calendars(ask)
    print(f"{len(cases)} cases, {compared} ticks, {differing} cases differ, {time.monotonic() - began:.1f} s")
    sys.exit(1 if differing or wrong else 0)


if __name__ == "__main__":
    main()
