"""A live deployment on loopback, for scripts/dashboards and scripts/alerts: three members of etcd, PostgreSQL with the roles of
deploy/postgres/roles.sql, three replicas, a receiver of payouts that answers as it is told, entries that keep coming, Prometheus.

Everything is in one temporary folder and dies with this process, whatever happens to it (the kernel's parent-death signal).
"""

import contextlib
import ctypes
import glob
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

SCHEDULE = """
[[job]]
name = "payouts"
cron = "*/5 * * * * *"
handler = "ledger"
overlap = "skip"
run_deadline = "{deadline}"
[job.batch]
size = 40
[job.ledger]
sources = ["shop"]
maximum_payout = {{ EUR = "9000.00" }}
[job.payout]
kind = "http"
url = "{receiver}/payouts"
idempotent = true
key_valid_for = "20h"
refusals = [422]
timeout = "2s"

[[job]]
name = "wallet"
cron = "*/10 * * * * *"
handler = "ledger"
misfire_grace = "1s"
catch_up_window = "{window}"
[job.ledger]
sources = ["wallet"]

[[job]]
name = "clearing"
cron = "*/15 * * * * *"
handler = "sql"
overlap = "skip"
run_deadline = "{deadline}"
[job.batch]
size = 6
concurrency = 1
[job.retry]
max_attempts = 2
backoff = "1s..2s"
[job.sql]
units = "select 'account-' || n as key, null::jsonb as payload from generate_series(1, 60) n"
settle = "{settle}"
"""
# Half a second for each batch, so that there is always something under way.
WELL = "select pg_sleep(0.5), count(*) from bursar_batch"
# One bad account of sixty; the others go on.
ONE_BAD = "select pg_sleep(0.02), 1 / (case when key = 'account-13' then 0 else 1 end) from bursar_batch"


def dies_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(what, probe, within=60):
    until = time.monotonic() + within
    while True:
        with contextlib.suppress(OSError, ValueError, KeyError):
            if found := probe():
                return found
        if time.monotonic() > until:
            raise SystemExit(f"waited {within} s in vain: {what}")
        time.sleep(0.2)


def get(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers every request with the status that stands in `server.status`; 0: with nothing, after a while."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.server.status
        if status == 0:
            time.sleep(4)
            self.close_connection = True
            return
        answer = {name: body[name] for name in ("key", "amount_minor", "currency") if name in body}
        text = json.dumps(answer if status == 200 else {}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A replica that is killed breaks its connections off."""


class Live:
    def __init__(self, binary, rules, scrape="2s", merchants=120, exporter=False):
        self.binary, self.rules, self.scrape, self.merchants = str(binary), rules, scrape, merchants
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bursar-live-"))
        self.folder.chmod(0o755)
        self.processes, self.imported, self.ending = {}, 0, threading.Event()
        self.deadline, self.window, self.settle, self.exporter = "45m", "1m", WELL, exporter

    # --- processes -------------------------------------------------------------------------------------------------------

    def start(self, name, command, user=None, env=None):
        if user and os.geteuid() == 0:
            command = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--pdeathsig", "KILL", *command]
        log = open(self.folder / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen(
            command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, preexec_fn=dies_with_parent, cwd=self.folder,
            env={**os.environ, **(env or {})})
        return self.processes[name]

    def send(self, name, what):
        self.processes[name].send_signal(what)

    def end(self, name, what=signal.SIGTERM, within=40):
        process = self.processes[name]
        process.send_signal(what)
        return process.wait(within)

    def __enter__(self):
        try:
            self.start_etcd()
            self.start_postgres()
            self.start_receiver()
            self.prepare()
            for n in range(3):
                self.start_replica(n)
            self.start_prometheus()
            self.wait_leader()
            threading.Thread(target=self.keep_importing, daemon=True).start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.ending.set()
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
        for process in self.processes.values():
            process.wait()
        if os.environ.get("BURSAR_LIVE_KEEP"):
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- servers ---------------------------------------------------------------------------------------------------------

    def start_etcd(self):
        self.etcd = [(free_port(), free_port()) for _ in range(3)]
        for n in range(3):
            self.start_member(n)
        wait("etcd", lambda: '"true"' in get(f"http://127.0.0.1:{self.etcd[0][0]}/health"))

    def start_member(self, n):
        client, peer = (f"http://127.0.0.1:{port}" for port in self.etcd[n])
        members = ",".join(f"e{i}=http://127.0.0.1:{ports[1]}" for i, ports in enumerate(self.etcd))
        command = [
            "etcd", "--name", f"e{n}", "--data-dir", str(self.folder / f"etcd-{n}"), "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
            "--initial-cluster", members]
        self.start(f"etcd-{n}", command)

    def start_postgres(self):
        programs = pathlib.Path(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[-1]).parent
        data, self.postgres_port = self.folder / "postgres", free_port()
        data.mkdir()
        if os.geteuid() == 0:
            shutil.chown(data, "postgres", "postgres")
        made = self.start("initdb", [str(programs / "initdb"), "--auth=trust", "--username=postgres", "--no-sync", "-D", str(data)], "postgres")
        if made.wait():
            raise SystemExit((self.folder / "initdb.log").read_text())
        self.postgres = [
            str(programs / "postgres"), "-D", str(data), "-k", str(data), "-c", f"port={self.postgres_port}", "-c", "fsync=off",
            "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]
        self.start_server()

    def start_server(self):
        self.start("postgres", self.postgres, "postgres")
        wait("PostgreSQL", lambda: self.psql("select 1", "postgres", check=False) == "1")

    def psql(self, sql, database="payments", user="postgres", check=True, file=None):
        command = ["psql", "-XqAt", "-h", "127.0.0.1", "-p", str(self.postgres_port), "-U", user, "-d", database, "-v", "ON_ERROR_STOP=1"]
        command += ["-f", str(file)] if file else ["-c", sql]
        done = subprocess.run(command, capture_output=True, text=True)
        if check and done.returncode:
            raise SystemExit(f"psql: {sql or file}: {done.stderr}")
        return done.stdout.strip()

    def start_receiver(self):
        self.receiver = Server(("127.0.0.1", 0), Receiver)
        self.receiver.status = 200
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()

    def close_receiver(self):
        self.receiver.shutdown()
        self.receiver.server_close()

    def open_receiver(self):
        """The same port again."""
        port = self.receiver.server_address[1]
        self.receiver = Server(("127.0.0.1", port), Receiver)
        self.receiver.status = 200
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()

    def start_prometheus(self):
        self.prometheus_port = free_port()
        config = {
            "global": {"scrape_interval": self.scrape, "evaluation_interval": "5s"},
            "rule_files": [str(self.rules)],
            "scrape_configs": [
                *self.start_exporter(),
                {"job_name": "bursar", "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in self.ports]}]},
                {"job_name": "textfile", "honor_labels": True, "metrics_path": "/textfile",
                 "static_configs": [{"targets": [f"127.0.0.1:{self.start_textfile()}"]}]}],
        }
        file = self.folder / "prometheus.yml"
        file.write_text(json.dumps(config))
        self.start("prometheus", ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={self.folder / 'tsdb'}",
                                  f"--web.listen-address=127.0.0.1:{self.prometheus_port}"])
        wait("Prometheus", lambda: get(f"http://127.0.0.1:{self.prometheus_port}/-/ready"))

    def start_exporter(self):
        """Debian's postgres_exporter, with the role that reads."""
        if not self.exporter or not shutil.which("prometheus-postgres-exporter"):
            return []
        port = free_port()
        self.start("exporter", ["prometheus-postgres-exporter", f"--web.listen-address=127.0.0.1:{port}"], env={
            "DATA_SOURCE_NAME": f"postgresql://bursar_reader@127.0.0.1:{self.postgres_port}/payments?sslmode=disable"})
        return [{"job_name": "postgres", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]

    def start_textfile(self):
        """Stands in for the node exporter's text files: serves what is put in `self.texts`."""
        self.texts = texts = {}

        class Texts(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write("".join(list(texts.values())).encode())

            def log_message(self, *_):
                pass

        server = Server(("127.0.0.1", 0), Texts)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address[1]

    # --- bursar ----------------------------------------------------------------------------------------------------------

    def prepare(self):
        self.ports = [free_port() for _ in range(3)]
        self.psql("create database payments", "postgres")
        self.psql(None, file=REPOSITORY / "deploy/postgres/roles.sql")
        for n in range(3):
            self.write_schedule(n)
            self.write_config(n, "bursar_run")
        self.write_config("owner", "bursar_owner")
        self.bursar("migrate", config="owner")
        self.psql(None, file=REPOSITORY / "deploy/postgres/roles.sql")

    def write_schedule(self, n, **other):
        settings = {"deadline": self.deadline, "window": self.window, "settle": self.settle, **other}
        text = SCHEDULE.format(receiver=f"http://127.0.0.1:{self.receiver.server_address[1]}", **settings)
        fresh = self.folder / f"schedule-{n}.new"
        fresh.write_text(text)
        fresh.replace(self.folder / f"schedule-{n}.toml")

    def write_config(self, n, role):
        endpoints = json.dumps([f"http://127.0.0.1:{client}" for client, _ in self.etcd])
        numbered = isinstance(n, int)
        (self.folder / f"replica-{n}.toml").write_text(f"""
schedule = "schedule-{n if numbered else 0}.toml"
[replica]
id = "replica-{n}"
[coordinator]
kind = "etcd"
endpoints = {endpoints}
prefix = "/bursar/live"
lease_ttl = "5s"
[database]
url = "postgres://{role}@127.0.0.1:{self.postgres_port}/payments"
max_connections = 12
[http]
listen = "127.0.0.1:{self.ports[n] if numbered else 0}"
[log]
format = "text"
""")

    def start_replica(self, n, env=None):
        self.start(f"replica-{n}", [self.binary, "--config", f"replica-{n}.toml", "run"], env=env)

    def bursar(self, *arguments, config=0, check=True):
        done = subprocess.run([self.binary, "--config", str(self.folder / f"replica-{config}.toml"), *arguments],
                              capture_output=True, text=True, cwd=self.folder)
        if check and done.returncode:
            raise SystemExit(f"bursar {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def leader(self):
        """The number of the replica that leads; None where none does."""
        for n, port in enumerate(self.ports):
            with contextlib.suppress(OSError):
                if 'bursar_leader{election="settlement"} 1' in get(f"http://127.0.0.1:{port}/metrics", 1):
                    return n
        return None

    def wait_leader(self, but=None, within=60):
        return next(iter(wait("a leader", lambda: [n for n in [self.leader()] if n is not None and n != but], within)))

    def advance_fence(self):
        """Another tenure's term, as the leader that is refused would see it."""
        self.psql("update bursar.fence set term = term + 1, tenure_id = gen_random_uuid() where election = 'settlement'", user="bursar_owner")

    def import_entries(self, source, amount=None):
        self.imported += 1
        batch, file = self.imported, self.folder / f"{source}-{self.imported}.csv"
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 60))
        rows = ["id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference"]
        for n in range(self.merchants):
            currency, value = ("EUR", amount or f"{(n * 7 + batch) % 90 + 1}.50") if source == "shop" else ("JPY", str(n + 1))
            rows.append(f"{source}-{batch}-{n},merchant-{n},{currency},capture,{value},0,{now},,")
        file.write_text("\n".join(rows) + "\n")
        done = self.bursar("import", str(file), "--source", source, check=False)
        file.unlink()
        return done.returncode == 0

    def keep_importing(self):
        while not self.ending.is_set():
            for source in ("shop", "wallet"):
                with contextlib.suppress(OSError):
                    self.import_entries(source)
            self.ending.wait(4)

    # --- Prometheus ------------------------------------------------------------------------------------------------------

    def ask(self, path, **values):
        url = f"http://127.0.0.1:{self.prometheus_port}/api/v1/{path}?{urllib.parse.urlencode(values)}"
        try:
            return json.loads(get(url, 30))["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.loads(error.read())["error"]) from None

    def firing(self):
        return {alert["labels"]["alertname"]: alert for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}
