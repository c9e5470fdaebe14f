#!/usr/bin/env python3
"""Writes the three boards: dashboards/boards.py [--check]

A board in Grafana's JSON is a thousand lines, most of them the same in every panel; here each panel is what is its own: title, what
it says, unit, queries, size. The JSON is committed, since that is what Grafana takes; --check says whether it is what this writes.
Needs nothing but Python.
"""

import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Grafana 11.6. Newer ones read it and bring it up to theirs.
SCHEMA = 41

OF = 'job=~"$deployment", instance=~"$replica"'
OF_ELECTION = OF + ', election=~"$election"'
# Series whose own label is `job`: it is a job of the schedule, and the deployment is told by the replica.
OF_JOB = 'job=~"$job", instance=~"$replica"'

GREEN, YELLOW, RED, BLUE, GREY = "green", "yellow", "red", "blue", "#6e6e6e"


def variable(name, label, query, multi=True):
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": multi,
        "includeAll": multi,
        "current": {"text": ["All"], "value": ["$__all"]} if multi else {},
        "options": [],
        "hide": 0,
        "skipUrlSync": False,
        "regex": "",
    }


DATASOURCE = {
    "name": "datasource",
    "label": "Prometheus",
    "type": "datasource",
    "query": "prometheus",
    "current": {},
    "options": [],
    "refresh": 1,
    "regex": "",
    "multi": False,
    "includeAll": False,
    "hide": 0,
    "skipUrlSync": False,
}
DEPLOYMENT = variable("deployment", "Deployment", "label_values(bursar_leader, job)", multi=False)
REPLICA = variable("replica", "Replica", 'label_values(bursar_leader{job=~"$deployment"}, instance)')
ELECTION = variable("election", "Election", 'label_values(bursar_leader{job=~"$deployment"}, election)')
JOB = variable("job", "Job", 'label_values(bursar_ticks_total{instance=~"$replica"}, job)')


def steps(*pairs):
    """Thresholds: (None, colour) first, then (from this value on, colour)."""
    return {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in pairs]}


def words(**texts):
    """Values in words: n0="follows", or n0=("follows", colour)."""
    options = {}
    for index, (key, text) in enumerate(texts.items()):
        text, colour = text if isinstance(text, tuple) else (text, None)
        options[key[1:]] = {"text": text, "index": index} | ({"color": colour} if colour else {})
    return [{"type": "value", "options": options}]


def panel(kind, title, description, unit, queries, width, height, *, mappings=(), thresholds=None, custom=None, options=None,
          decimals=None, none=None, minimum=None, colour=None):
    targets = []
    for n, (query, legend, *how) in enumerate(queries):
        target = {"refId": chr(ord("A") + n), "datasource": SOURCE, "expr": query, "legendFormat": legend, "editorMode": "code",
                  "range": "instant" not in how, "instant": "instant" in how}
        if "table" in how:
            target["format"] = "table"
        targets.append(target)
    defaults = {"unit": unit, "mappings": list(mappings), "thresholds": thresholds or steps((None, GREEN)), "custom": custom or {}}
    if colour:
        defaults["color"] = {"mode": colour}
    for key, value in {"decimals": decimals, "noValue": none, "min": minimum}.items():
        if value is not None:
            defaults[key] = value
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options or {},
        "gridPos": {"w": width, "h": height, "x": 0, "y": 0},
    }


def figure(title, description, unit, query, legend="", width=4, text="value", **more):
    """One number. text: "value", or "name" where the label is what is asked for."""
    more.setdefault("colour", "thresholds")
    return panel("stat", title, description, unit, [(query, legend, "instant")], width, 4, options={
        "colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": text,
        "wideLayout": True, "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}, **more)


def lines(title, description, unit, queries, width=12, height=8, *, bars=False, stacked=False, stairs=False, logarithmic=False, **more):
    custom = {
        "drawStyle": "bars" if bars else "line",
        "fillOpacity": 60 if bars or stacked else 8,
        "lineWidth": 1,
        "lineInterpolation": "stepAfter" if stairs else "linear",
        "showPoints": "auto",
        "spanNulls": False,
        "stacking": {"mode": "normal" if stacked or bars else "none", "group": "A"},
        "scaleDistribution": {"type": "log", "log": 10} if logarithmic else {"type": "linear"},
    }
    more.setdefault("minimum", None if logarithmic else 0)
    return panel("timeseries", title, description, unit, queries, width, height, custom=custom, colour="palette-classic", options={
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"}}, **more)


def timeline(title, description, queries, mappings, width=24, height=6):
    return panel("state-timeline", title, description, "none", queries, width, height, mappings=mappings, colour="thresholds",
                 custom={"fillOpacity": 80, "lineWidth": 0}, options={
                     "mergeValues": True, "showValue": "auto", "alignValue": "left", "rowHeight": 0.85,
                     "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                     "tooltip": {"mode": "single", "sort": "none"}})


def gauges(title, description, unit, queries, width=12, height=8, **more):
    return panel("bargauge", title, description, unit, queries, width, height, colour="thresholds", options={
        "displayMode": "basic", "orientation": "horizontal", "showUnfilled": True, "valueMode": "color", "minVizHeight": 16,
        "minVizWidth": 8, "namePlacement": "auto", "sizing": "auto", "maxVizHeight": 300,
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}, **more)


def table(title, description, unit, query, width=12, height=8, hidden=()):
    made = panel("table", title, description, unit, [(query, "", "instant", "table")], width, height, options={
        "showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""}})
    made["transformations"] = [{"id": "organize", "options": {
        "excludeByName": {name: True for name in ("Time", "Value", *hidden)}, "indexByName": {}, "renameByName": {}}}]
    return made


def quantiles(series, by_label, window="$__rate_interval", which=(0.5, 0.99)):
    return [(f"histogram_quantile({q}, sum by (le) (increase({series}_bucket{{{by_label}}}[{window}])))", f"p{q * 100:g}") for q in which]


def board(name, title, description, variables, content):
    """content: rows of (title, panels); panels flow from left to right, 24 columns wide."""
    placed, number, y = [], 1, 0
    for row, panels in content:
        placed.append({"type": "row", "id": number, "title": row, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
        number, y, x, tallest = number + 1, y + 1, 0, 0
        for each in panels:
            place = each["gridPos"]
            if x + place["w"] > 24:
                y, x, tallest = y + tallest, 0, 0
            place["x"], place["y"] = x, y
            x, tallest = x + place["w"], max(tallest, place["h"])
            placed.append({"id": number, **each})
            number += 1
        y += tallest
    return {
        "uid": f"bursar-{name}",
        "title": title,
        "description": description,
        "tags": ["bursar"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "15s",
        "timepicker": {},
        "annotations": {"list": [{
            "name": "Alerts of bursar", "datasource": SOURCE, "enable": True, "hide": False, "iconColor": "red",
            "expr": 'ALERTS{alertname=~"Bursar.+", alertstate="firing"}'}]},
        "templating": {"list": [DATASOURCE, *variables]},
        "links": [{"title": "bursar", "type": "dashboards", "tags": ["bursar"], "asDropdown": False, "includeVars": True, "keepTime": True,
                   "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}],
        "panels": placed,
    }


LEADERSHIP = board(
    "leadership", "bursar: leadership and churn",
    "Who leads, since when, why it changed, and how close it came to changing.",
    [DEPLOYMENT, REPLICA, ELECTION],
    [
        ("Who leads", [
            figure("Leader", "The replica that leads each election right now: fence accepted, session live, deadline ahead. Nobody: see BursarNoLeader.",
                   "none", f"max by (election, instance) (bursar_leader{{{OF_ELECTION}}}) == 1", "{{election}}: {{instance}}", 8, "name",
                   none="nobody", thresholds=steps((None, RED), (1, GREEN))),
            figure("Term", "The highest term that any replica knows of. Larger for each leader; gaps are normal.", "none",
                   f"max by (election) (bursar_term{{{OF_ELECTION}}})", "{{election}}", decimals=0, colour="thresholds"),
            figure("Since", "Time since the term last rose, looked for in the last six hours.", "s",
                   f"time() - max_over_time(timestamp(max by (election) (bursar_term{{{OF_ELECTION}}}) > max by (election) (bursar_term{{{OF_ELECTION}}} offset 15s))[6h:15s])",
                   "{{election}}", none="more than 6 h"),
            figure("Replicas that could lead", "Replicas that reach both the coordinator and the store. One alone has no successor.", "none",
                   f"sum(bursar_coordinator_up{{{OF}}} * bursar_store_up{{{OF}}})", thresholds=steps((None, RED), (1, YELLOW), (2, GREEN))),
            figure("Fencing rejects on record", "Writes of leaders that were over, refused by the store, of all time. The store's own record.", "none",
                   f"max(bursar_fencing_rejects_recorded{{{OF}}})", thresholds=steps((None, GREEN), (1, YELLOW))),
            timeline("Who leads, over replicas", "A lane for each election and replica: green where it leads. Two green lanes of one election for longer than a scrape: BursarTwoLeaders. None: BursarNoLeader.",
                     [(f"max by (election, instance) (bursar_leader{{{OF_ELECTION}}})", "{{election}} {{instance}}")],
                     words(n0=("follows", GREY), n1=("leads", GREEN))),
        ]),
        ("Churn", [
            lines("Terms", "The highest term known. Each step is a new leader.", "none",
                  [(f"max by (election) (bursar_term{{{OF_ELECTION}}})", "{{election}}")], stairs=True, minimum=None, decimals=0),
            lines("Transitions by reason", "Changes of leadership at replicas: won and adopted bring it, all others end it and say why.", "short",
                  [(f"sum by (reason) (increase(bursar_leadership_transitions_total{{{OF}}}[$__rate_interval])) > 0", "{{reason}}")], bars=True),
            gauges("Election, takeover and teardown times", "Over the time shown: from seeing the last leader's end to winning, to the first work of one's own, and from the order to end a tenure to its end.", "s", [
                (f"histogram_quantile({q}, sum by (le) (increase(bursar_{what}_seconds_bucket{{{OF}}}[$__range])))", f"{what} p{q * 100:g}", "instant")
                for what in ("election", "takeover", "teardown") for q in (0.5, 0.95)], thresholds=steps((None, GREEN), (5, YELLOW), (15, RED)), minimum=0),
            lines("Takeovers and teardowns, mean", "Mean of those in the last 15 minutes; a gap where there was none.", "s", [
                (f"sum(increase(bursar_{what}_seconds_sum{{{OF}}}[15m])) / (sum(increase(bursar_{what}_seconds_count{{{OF}}}[15m])) > 0)", what)
                for what in ("takeover", "teardown")]),
        ]),
        ("Sessions", [
            lines("Renewal time against the lease", "How long renewals take, beside what a renewal gives (the lease less the teardown budget). They must stay far apart.", "s", [
                *quantiles("bursar_lease_renewal_seconds", OF),
                (f"max(max_over_time(bursar_session_remaining_seconds{{{OF}}}[15m]))", "what a renewal gives")], logarithmic=True),
            lines("Left of the session", "Time until each replica's session counts as lost without another renewal. A saw of a fifth of the lease is normal; below half is BursarRenewalSlow.", "s",
                  [(f"bursar_session_remaining_seconds{{{OF}}}", "{{instance}}")]),
            timeline("Session states", "The state of each replica's session with the coordinator. While it is suspect nothing new begins there.", [(
                "sum by (instance) (" + " or ".join(f'{n} * bursar_session_state{{{OF}, state="{state}"}}' for n, state in enumerate(("none", "granting", "live", "suspect", "lost"))) + ")",
                "{{instance}}")], words(n0=("none", GREY), n1=("granting", BLUE), n2=("live", GREEN), n3=("suspect", YELLOW), n4=("lost", RED))),
            lines("Left of the lease, where one leads", "Time that a leading tenure may go on without another renewal; 0 where a replica does not lead.", "s",
                  [(f"bursar_lease_remaining_seconds{{{OF_ELECTION}}}", "{{election}} {{instance}}")]),
            lines("Sessions lost, teardowns overrun", "Sessions whose lease ran out or was gone, and tenures that did not end in time (each ends its process).", "short", [
                (f"sum by (instance) (increase(bursar_lease_expiries_total{{{OF}}}[$__rate_interval]))", "lost {{instance}}"),
                (f"sum by (instance) (increase(bursar_teardown_overruns_total{{{OF}}}[$__rate_interval]))", "overrun {{instance}}")], bars=True),
        ]),
        ("The fence", [
            lines("Fencing rejects by operation", "What tenures that were over tried and the store refused, as the refused processes counted it. Nothing was written.", "short",
                  [(f"sum by (operation) (increase(bursar_fencing_rejects_total{{{OF}}}[$__rate_interval])) > 0 or sum by (operation) (bursar_fencing_rejects_total{{{OF}, operation=\"settle\"}}) * 0", "{{operation}}")], bars=True),
            lines("Fencing rejects on record", "The store's own record, of all replicas, as the leader reads it; 0 for some seconds between two leaders.", "short",
                  [(f"max(bursar_fencing_rejects_recorded{{{OF}}})", "on record")], stairs=True, decimals=0),
        ]),
    ])

SETTLEMENT = board(
    "settlement", "bursar: settlement",
    "What was settled, what was not, and what waits. Series of the store are those of the leader; counts are of work, never of money.",
    [DEPLOYMENT, REPLICA, ELECTION, JOB],
    [
        ("Now", [
            figure("Open runs", "Runs that are being planned or worked on.", "none", f"sum(bursar_runs{{{OF_JOB}}})", thresholds=steps((None, BLUE))),
            figure("Overdue runs", "Open runs past their run_deadline. The deadline is an alert, not a kill.", "none",
                   f"sum(bursar_run_overdue{{{OF_ELECTION}}})", thresholds=steps((None, GREEN), (1, RED))),
            figure("Oldest pending", "Age of the oldest pending unit.", "s", f"max(bursar_oldest_pending_seconds{{{OF_ELECTION}}})",
                   thresholds=steps((None, GREEN), (900, YELLOW), (3600, RED))),
            figure("Set aside in open runs", "Units of open runs that wait for a person. Those of ended runs: bursar units list --state set_aside.", "none",
                   f'sum(bursar_units{{{OF_JOB}, state="set_aside"}})', thresholds=steps((None, GREEN), (1, YELLOW))),
            figure("Payouts held or unknown", "Payouts that wait for a person, or whose outcome nobody knows yet.", "none",
                   f'sum(bursar_payouts{{{OF}, state=~"held|unknown"}})', thresholds=steps((None, GREEN), (1, YELLOW))),
            figure("Halted", "Whether an operator has halted an election.", "none", f"max(bursar_halted{{{OF_ELECTION}}})",
                   mappings=words(n0=("no", GREEN), n1=("halted", RED))),
        ]),
        ("Runs", [
            lines("Open runs by job and state", "Open runs, as the leader reads them from the store.", "short",
                  [(f"sum by (job, state) (bursar_runs{{{OF_JOB}}})", "{{job}} {{state}}")], stacked=True, decimals=0),
            lines("Ticks by what became of them", "Ticks of the schedule: run, caught_up, skipped, coalesced, missed.", "short",
                  [(f"sum by (job, outcome) (increase(bursar_ticks_total{{{OF_JOB}}}[$__rate_interval]))", "{{job}} {{outcome}}")], bars=True),
            lines("Lateness", "From a tick's due time to the opening of its run. Caught-up ticks are late by nature.", "s",
                  quantiles("bursar_tick_lag_seconds", OF, "15m"), logarithmic=True),
            lines("Duration of runs", "From the opening of a run to its end, over runs that ended in the last 15 minutes.", "s",
                  quantiles("bursar_run_seconds", OF, "15m"), logarithmic=True),
            lines("Overdue runs", "Open runs past their deadline, by election.", "short",
                  [(f"sum by (election) (bursar_run_overdue{{{OF_ELECTION}}})", "{{election}}")], stairs=True, decimals=0),
            lines("Runs that were there already", "Ticks that a leader found to have their run: a sign of a takeover in between, and of the guarantee at work.", "short",
                  [(f"sum(increase(bursar_duplicate_runs_prevented_total{{{OF}}}[$__rate_interval]))", "prevented")], bars=True),
        ]),
        ("Units", [
            lines("Units of open runs by state", "Units of open runs. What has ended with its run is not counted any more.", "short",
                  [(f"sum by (state) (bursar_units{{{OF_JOB}}})", "{{state}}")], stacked=True, decimals=0),
            lines("Throughput", "Units ended per second (settled, carried or empty), by replica: only the leader has any.", "ops",
                  [(f"sum by (instance) (rate(bursar_units_settled_total{{{OF}}}[$__rate_interval]))", "{{instance}}")]),
            lines("Attempts by outcome", "Attempts at units per second: settled, failed (tried again), set_aside.", "ops",
                  [(f"sum by (outcome) (rate(bursar_unit_attempts_total{{{OF}}}[$__rate_interval]))", "{{outcome}}")]),
            lines("Batch time", "From a batch's claim to the end of its COMMIT.", "s", quantiles("bursar_batch_seconds", OF), logarithmic=True),
            lines("Oldest pending unit", "Age of the oldest pending unit, by election. Falls back when it is settled.", "s",
                  [(f"max by (election) (bursar_oldest_pending_seconds{{{OF_ELECTION}}})", "{{election}}")]),
            lines("In flight", "Units that each replica works on right now.", "short", [(f"bursar_in_flight_units{{{OF}}}", "{{instance}}")], decimals=0),
            lines("Units set aside", "Units set aside in open runs by job, and how many were set aside in the last hour.", "short", [
                (f'sum by (job) (bursar_units{{{OF_JOB}, state="set_aside"}})', "{{job}}, open runs"),
                (f'sum(increase(bursar_unit_attempts_total{{{OF}, outcome="set_aside"}}[1h]))', "in the last hour")], 24, 7, stairs=True),
        ]),
        ("Payouts", [
            lines("Payouts by state", "Instructions that are not final: pending, sending, unknown, held. Final ones are in the books, not here.", "short",
                  [(f"sum by (state) (bursar_payouts{{{OF}}})", "{{state}}")], stacked=True, decimals=0),
            lines("Tries by outcome", "Tries at payouts and outside units per second, by what came of them.", "ops",
                  [(f"sum by (outcome) (rate(bursar_payout_attempts_total{{{OF}}}[$__rate_interval]))", "{{outcome}}")]),
        ]),
    ])

FLEET = board(
    "fleet", "bursar: fleet",
    "Whether all replicas are the same and have what they need: version, schedule, coordinator, store.",
    [DEPLOYMENT, REPLICA],
    [
        ("Replicas", [
            figure("Replicas scraped", "Replicas that answer Prometheus.", "none", f"count(bursar_build_info{{{OF}}})", thresholds=steps((None, RED), (2, GREEN)), none="0"),
            figure("Could lead", "Replicas that reach both the coordinator and the store.", "none", f"sum(bursar_coordinator_up{{{OF}}} * bursar_store_up{{{OF}}})",
                   thresholds=steps((None, RED), (1, YELLOW), (2, GREEN))),
            figure("Schedules", "How many different schedules are in force. More than one: what runs depends on who leads.", "none",
                   f"count(count by (fingerprint) (bursar_schedule_info{{{OF}}}))", thresholds=steps((None, GREEN), (2, RED))),
            figure("Versions", "How many different versions run. More than one outside a roll-out: one was forgotten.", "none",
                   f"count(count by (version) (bursar_build_info{{{OF}}}))", thresholds=steps((None, GREEN), (2, YELLOW))),
            figure("Coordinator's members", "Members of the coordinator that the replica which reaches fewest has reached.", "none",
                   f"min(bursar_coordinator_members_reachable{{{OF}}})", thresholds=steps((None, RED), (1, GREEN))),
            figure("Largest clock difference", "Between any replica's wall clock and the store's. Nothing is decided by a replica's.", "s",
                   f"max(abs(bursar_store_clock_skew_seconds{{{OF}}}))", thresholds=steps((None, GREEN), (1, YELLOW), (5, RED)), decimals=3),
            table("Fingerprints and versions", "Each replica with the fingerprint of its schedule and its version.", "none",
                  f"max by (instance, fingerprint, version) (bursar_schedule_info{{{OF}}} * on (instance) group_left (version) bursar_build_info{{{OF}}})"),
            lines("Replicas by schedule", "Replicas by the fingerprint of the schedule in force. During a change there are two for some seconds.", "short",
                  [(f"count by (fingerprint) (bursar_schedule_info{{{OF}}})", "{{fingerprint}}")], stacked=True, decimals=0),
            lines("Changes of the schedule file", "Changes that replicas have taken over, or refused while the old schedule goes on.", "short",
                  [(f"sum by (outcome) (increase(bursar_schedule_reloads_total{{{OF}}}[$__rate_interval]))", "{{outcome}}")], bars=True),
            lines("Starts", "Starts of each replica, told by the times at which its processes started.", "short",
                  [(f"changes(bursar_start_time_seconds{{{OF}}}[15m])", "{{instance}}, in 15 minutes")], bars=True, decimals=0),
        ]),
        ("Coordinator", [
            timeline("Coordinator answers", "Whether the coordinator answers each replica.", [(f"bursar_coordinator_up{{{OF}}}", "{{instance}}")],
                     words(n0=("away", RED), n1=("answers", GREEN)), 12, 7),
            lines("Members reachable", "Members of the coordinator that answered each replica when last asked.", "short",
                  [(f"bursar_coordinator_members_reachable{{{OF}}}", "{{instance}}")], height=7, stairs=True, decimals=0),
            lines("Round trip of renewals", "How long the coordinator takes to answer a renewal, by replica: one slow replica is its machine, all are the coordinator.", "s",
                  [(f"histogram_quantile(0.99, sum by (instance, le) (increase(bursar_lease_renewal_seconds_bucket{{{OF}}}[$__rate_interval])))", "p99 {{instance}}")],
                  24, 7, logarithmic=True),
        ]),
        ("Store", [
            timeline("Store usable", "Whether the store answers each replica and could be led on (primary, writable, of this release's schema).",
                     [(f"bursar_store_up{{{OF}}}", "{{instance}}")], words(n0=("not usable", RED), n1=("usable", GREEN)), 12, 7),
            lines("Clock against the store's", "Each replica's wall clock minus the store's. All by the same: it is the store's clock, by which ticks run.", "s",
                  [(f"bursar_store_clock_skew_seconds{{{OF}}}", "{{instance}}")], height=7, minimum=None),
            timeline("Halts", "Whether elections are halted by an operator, as each replica knows it.",
                     [(f"max by (election) (bursar_halted{{{OF}}})", "{{election}}")], words(n0=("runs", GREEN), n1=("halted", RED)), 24, 5),
        ]),
    ])

BOARDS = {"leadership": LEADERSHIP, "settlement": SETTLEMENT, "fleet": FLEET}


def main():
    stale = []
    for name, content in BOARDS.items():
        path = FOLDER / f"{name}.json"
        text = json.dumps(content, indent=2) + "\n"
        if sys.argv[1:] == ["--check"]:
            if not path.exists() or path.read_text() != text:
                stale.append(path.name)
        else:
            path.write_text(text)
    if stale:
        sys.exit(f"not what dashboards/boards.py writes: {', '.join(stale)}")


if __name__ == "__main__":
    main()
