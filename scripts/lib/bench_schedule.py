"""What scripts/bench --schedule measures: a schedule of 10,000 jobs, 1,000 of them due in the same minute.

    python3 scripts/lib/bench_schedule.py BINARY [--config FILE] [--jobs N] [--together N] [--minutes N]

Without --config it runs on files of SQLite in a temporary folder; with it, on what that configuration names (its schedule file is
replaced). Printed: the time from start to ready and to all jobs being in the store, the memory then, the time that an edit of one job
takes to be in force, and how late the runs of the jobs that are due together were opened: as the store recorded it, and as the
replica's log has it, whose line comes once all is committed.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from bench_embedded import listening, ready, resident  # noqa: E402

LOOK = 0.05


def job(n, together, changed=False):
    cron = "* * * * *" if n < together else f"{n % 60} {n // 60 % 24} 1 1 *"
    size = 7 if changed else 8
    return (f'[[job]]\nname = "job-{n:05d}"\ncron = "{cron}"\nhandler = "ledger"\n[job.batch]\nsize = {size}\n'
            f'[job.ledger]\nsources = ["source-{n}"]\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--config", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--together", type=int, default=1_000)
    parser.add_argument("--minutes", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bursar-bench-") as folder:
        folder = pathlib.Path(folder)
        config = arguments.config
        if config is None:
            config = folder / "bursar.toml"
            config.write_text('schedule = "schedule.toml"\n[coordinator]\nkind = "database"\nlease_ttl = "10s"\n'
                              '[database]\nurl = "sqlite://bursar.db"\n[http]\nlisten = "127.0.0.1:0"\n')
        measure(arguments, config, folder)


def measure(arguments, config, folder):
    schedule = config.parent / "schedule.toml"

    def write(changed):
        new = schedule.with_suffix(".new")
        new.write_text("".join(job(n, arguments.together, changed and n == arguments.jobs - 1) for n in range(arguments.jobs)))
        new.rename(schedule)

    def command(*args):
        done = subprocess.run([arguments.binary, "--config", str(config), *args], cwd=folder, capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def status():
        found = command("status", "--json")
        return found["jobs"] if found else []

    write(False)
    log = folder / "replica.log"
    began = time.monotonic()
    with log.open("w") as out:
        replica = subprocess.Popen([arguments.binary, "--config", str(config), "run"], cwd=folder, stdout=out, stderr=out,
                                   env=os.environ | {"BURSAR__LOG__FORMAT": "text"})
    try:
        wait(lambda: (address := listening(log.read_text())) and ready(address), "the replica is ready", log)
        print(f"{arguments.jobs} jobs: ready after {time.monotonic() - began:.1f} s", end="", flush=True)
        found = wait(lambda: (jobs := status()) and len(jobs) == arguments.jobs and jobs, "all jobs are in the store", log)
        print(f", all in the store after {time.monotonic() - began:.1f} s; {resident(replica.pid)[0]:.0f} MB resident")
        before = found[-1]["fingerprint"]
        write(True)
        began = time.monotonic()
        wait(lambda: (jobs := status()) and jobs[-1]["fingerprint"] != before, "the edit is in force", log)
        print(f"an edit of one job is in force {time.monotonic() - began:.1f} s after it (the file is looked at every second)")
        # From here on nothing else is done.
        time.sleep(60 * arguments.minutes + 5)
        runs = command("runs", "list", "--limit", "10000", "--json")
        ticks = sorted({run["tick"] for run in runs})[-arguments.minutes:]
        late = sorted(run["lateness_ms"] for run in runs if run["tick"] in ticks)
        print(f"{len(ticks)} minutes with {arguments.together} jobs each, {len(late)} runs: opened late by "
              f"{spread(late)}; in the log by {spread(logged(log, ticks))}; {resident(replica.pid)[0]:.0f} MB resident")
    finally:
        replica.kill()
        replica.wait()


def spread(late):
    """Milliseconds in order, as text."""
    at = lambda part: late[min(len(late) - 1, int(len(late) * part))]
    return f"{at(0.5):.0f} ms at p50, {at(0.99):.0f} at p99, {late[-1]:.0f} at most" if late else "nothing"


def logged(log, ticks):
    """How late the log speaks of the ticks, in milliseconds, in order."""
    ticks = {datetime.datetime.fromisoformat(tick) for tick in ticks}
    late = []
    for line in log.read_text().splitlines():
        if " tick=" not in line or "outcome=" not in line:
            continue
        written = datetime.datetime.fromisoformat(line.split()[0])
        tick = datetime.datetime.fromisoformat(line.split(" tick=")[1].split(" outcome")[0].replace(" UTC", "+00:00"))
        if tick in ticks:
            late.append((written - tick).total_seconds() * 1000)
    return sorted(late)


def wait(asked, what, log):
    until = time.monotonic() + 600
    while time.monotonic() < until:
        if found := asked():
            return found
        time.sleep(LOOK)
    sys.exit(f"{what}: not within ten minutes\n{log.read_text()[-2000:]}")


if __name__ == "__main__":
    main()
