"""What scripts/bench measures of the embedded default: size, start, memory of an idle follower, settling on SQLite.

    python3 scripts/lib/bench_embedded.py BINARY [--units N] [--entries N] [--batch N]

Everything lives in a temporary folder, and the replicas end with this script. The yardstick is benches/one_script.sqlite.sql,
run through Python's sqlite3 on a copy of the same file, with the same synchronous commits.
"""

import argparse
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ONE_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "benches" / "one_script.sqlite.sql"
STARTS = 10
IDLE_SECONDS = 10
LOOK = 0.01


class Deployment:
    """A folder with a configuration of its own, and its replicas."""

    def __init__(self, binary, folder, batch):
        self.binary, self.folder, self.replicas = binary, folder, []
        folder.mkdir()
        (folder / "bursar.toml").write_text(
            'schedule = "schedule.toml"\n[coordinator]\nkind = "database"\nlease_ttl = "5s"\n'
            '[database]\nurl = "sqlite://bursar.db"\n[http]\nlisten = "127.0.0.1:0"\n'
        )
        (folder / "schedule.toml").write_text(
            '[[job]]\nname = "bench"\ncron = "0 0 1 1 *"\nelection = "bench"\nhandler = "ledger"\n'
            f'[job.batch]\nsize = {batch}\n[job.payout]\nkind = "none"\n'
        )

    def command(self, *args):
        done = subprocess.run([self.binary, "--config", "bursar.toml", *args], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"bursar {' '.join(args)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def start(self):
        """Starts a replica; answers it and the seconds until it was ready."""
        log = self.folder / f"replica-{len(self.replicas)}.log"
        with log.open("w") as out:
            began = time.monotonic()
            replica = subprocess.Popen(
                [self.binary, "--config", "bursar.toml", "run"], cwd=self.folder, stdout=out, stderr=out, start_new_session=True
            )
        self.replicas.append(replica)
        address = None
        while time.monotonic() - began < 60:
            if replica.poll() is not None:
                break
            address = address or listening(log.read_text())
            if address and ready(address):
                return replica, time.monotonic() - began
            time.sleep(LOOK)
        sys.exit(f"a replica was not ready within a minute; its log:\n{log.read_text()}")

    def end(self):
        for replica in self.replicas:
            replica.kill()
            replica.wait()
        self.replicas = []

    def database(self):
        return self.folder / "bursar.db"


def listening(log):
    """The address in the line that a replica says first."""
    for line in log.splitlines():
        for part in line.replace('"', " ").replace(",", " ").split():
            if part.startswith(("http=127.0.0.1:", "http:127.0.0.1:")):
                return part[5:]
        if '"http":"' in line:
            return line.split('"http":"', 1)[1].split('"', 1)[0]
    return None


def ready(address):
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=1) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def resident(pid):
    """Resident memory in megabytes, of which the program's own file."""
    lines = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    return tuple(int(lines[key].split()[0]) / 1024 for key in ("VmRSS", "RssFile"))


def write_entries(path, units, entries):
    """The same number of entries for each merchant, all in one currency: as many units as merchants."""
    with path.open("w") as out:
        out.write("id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference\n")
        for n in range(entries):
            out.write(f"e{n},merchant-{n % units:06d},EUR,capture,{10 + n % 90}.{n % 100:02d},0.10,2026-01-01T00:00:00Z,,\n")


def copy(database, to):
    """A copy of a store, with what is still in its log."""
    source, target = sqlite3.connect(database), sqlite3.connect(to)
    source.backup(target)
    source.close()
    target.close()


def settle(deployment, units):
    """Has a run settled; answers its seconds by the store's clock, from opening to finishing."""
    deployment.start()
    wait_for(deployment, "the job is there", lambda db: db.execute("select count(*) from job").fetchone()[0] == 1)
    deployment.command("trigger", "bench", "--reason", "bench")
    ended = "select (finished_at - opened_at) / 1e6 from run where state = 'complete'"
    wait_for(deployment, "the run is complete", lambda db: db.execute(ended).fetchone() is not None)
    with sqlite3.connect(deployment.database()) as db:
        seconds = db.execute(ended).fetchone()[0]
        settled = db.execute("select count(*) from unit where state = 'settled'").fetchone()[0]
    if settled != units:
        sys.exit(f"{settled} units were settled, expected {units}")
    deployment.end()
    deployment.command("audit")
    return seconds


def wait_for(deployment, what, holds):
    until = time.monotonic() + 300
    while time.monotonic() < until:
        if deployment.replicas[-1].poll() is not None:
            break
        with sqlite3.connect(deployment.database(), timeout=10) as db:
            if holds(db):
                return
        time.sleep(0.05)
    sys.exit(f"waited in vain: {what}")


def yardstick(database):
    """Seconds of the one script on a copy of the file."""
    db = sqlite3.connect(database, isolation_level=None)
    # Python's SQLite may be older than the one that the schema is written for.
    db.create_function("unixepoch", 1, lambda _: time.time())
    db.create_function("octet_length", 1, lambda text: len(str(text).encode()), deterministic=True)
    db.create_function("json_valid", 1, lambda text: None if text is None else 1, deterministic=True)
    db.execute("pragma synchronous = full")
    db.execute("pragma foreign_keys = on")
    db.execute(
        "insert into job (name, election, definition, fingerprint, evaluated_until, term, created_at)"
        " select 'yardstick', 'bench', '{}', 'yardstick', now, 1, now from clock"
    )
    db.execute(
        "insert into fence (election, term, tenure_id, accepted_at)"
        " select 'bench', 1, '00000000-0000-4000-8000-000000000000', now from clock"
    )
    began = time.monotonic()
    db.executescript(ONE_SCRIPT.read_text())
    seconds = time.monotonic() - began
    done = db.execute("select count(*) from unit where state = 'settled'").fetchone()[0]
    db.close()
    return seconds, done


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--units", type=int, default=20_000)
    parser.add_argument("--entries", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    binary = str(given.binary.resolve())
    for variable in [name for name in os.environ if name.startswith("BURSAR_")]:
        del os.environ[variable]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="bursar-bench-"))
    running = []

    def deployment(name):
        running.append(Deployment(binary, folder / name, given.batch))
        return running[-1]

    try:
        print(f"binary: {os.path.getsize(binary) / 1e6:.1f} MB")
        starts = []
        for n in range(STARTS):
            fresh = deployment(f"start-{n}")
            starts.append(fresh.start()[1] * 1000)
            fresh.end()
        print(f"start to ready, on a new store: median {statistics.median(starts):.0f} ms, at worst {max(starts):.0f} ms, {STARTS} starts")
        pair = deployment("pair")
        pair.start()
        follower, _ = pair.start()
        time.sleep(IDLE_SECONDS)
        rss, of_file = resident(follower.pid)
        print(f"an idle follower after {IDLE_SECONDS} s: {rss:.1f} MB resident, {of_file:.1f} MB of them the program's file")
        pair.end()

        template = deployment("template")
        write_entries(folder / "entries.csv", given.units, given.entries)
        template.command("migrate")
        began = time.monotonic()
        template.command("import", str(folder / "entries.csv"), "--source", "bench")
        seconds = time.monotonic() - began
        print(f"SQLite, import: {given.entries / seconds:,.0f} entries/s, the whole command")
        ratios = []
        for round_ in range(1, given.rounds + 1):
            ours = deployment(f"ours-{round_}")
            copy(template.database(), ours.database())
            seconds = settle(ours, given.units)
            bare = folder / f"bare-{round_}.db"
            copy(template.database(), bare)
            bare_seconds, done = yardstick(bare)
            if done != given.units:
                sys.exit(f"the one script settled {done} units, expected {given.units}")
            ratios.append(bare_seconds / seconds)
            print(
                f"SQLite, round {round_}: bursar {given.units / seconds:,.0f} units/s ({seconds:.2f} s), "
                f"one script {given.units / bare_seconds:,.0f} units/s ({bare_seconds:.2f} s), ratio {ratios[-1]:.2f}"
            )
        print(f"SQLite, ratio to the one script: median {statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}")
    finally:
        for each in running:
            each.end()
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
