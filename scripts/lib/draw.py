"""Draws a board as SVG from what Prometheus answered: boxes with lines, bars, lanes and figures, as Grafana would place them.

Not Grafana's looks, but its content: titles, legends, units, states. Small on purpose, so that pictures can be kept.
"""

import html
import math
import re

COLUMN, ROW, GAP = 50, 26, 6
PALETTE = ("#3b78c4", "#d1762b", "#4c9a4e", "#b0413e", "#7b62a8", "#8a6a4f", "#c46ba5", "#6e6e6e", "#a9a12f", "#3aa6a6")
NAMED = {"green": "#4c9a4e", "yellow": "#c99a1b", "red": "#b0413e", "blue": "#3b78c4"}


def shown(value, unit):
    if math.isnan(value):
        return "-"
    if unit == "s":
        for size, name in ((3600, "h"), (60, "min"), (1, "s"), (0.001, "ms")):
            if abs(value) >= size:
                return f"{value / size:.3g} {name}"
        return "0 s"
    text = f"{value:.0f}" if value == int(value) else f"{value:.3g}"
    return f"{text}/s" if unit == "ops" else text


def legend(target, labels):
    text = target["legendFormat"] or ", ".join(labels.get(key, "") for key in sorted(labels) if key != "__name__")
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda match: labels.get(match.group(1), ""), text).strip() or "value"


def say(x, y, text, size=11, colour="#333", anchor="start", weight="normal"):
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" font-weight="{weight}">{html.escape(text)}</text>'


def shortened(text, width, size=11):
    most = max(3, int(width / (size * 0.56)))
    return text if len(text) <= most else text[:most - 1] + "…"


def mapping(panel, value):
    """A value in words with its colour, where the panel has words for it."""
    for each in panel["fieldConfig"]["defaults"]["mappings"]:
        found = each["options"].get(f"{value:g}")
        if found:
            return found["text"], NAMED.get(found.get("color"), found.get("color"))
    return None, None


def threshold(panel, value):
    colour = None
    for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]:
        if step["value"] is None or value >= step["value"]:
            colour = step["color"]
    return NAMED.get(colour, colour) or "#333"


def figure(panel, answers, x, y, w, h):
    unit, lines = panel["fieldConfig"]["defaults"]["unit"], []
    for target, answer in answers:
        for one in answer:
            value = float(one["value"][1])
            text, colour = mapping(panel, value)
            if panel["options"]["textMode"] == "name":
                text = legend(target, one["metric"])
            lines.append((text or shown(value, unit), colour or threshold(panel, value)))
    lines = lines or [(panel["fieldConfig"]["defaults"].get("noValue", "no data"), "#6e6e6e")]
    size = min(26, 1.5 * w / max(len(text) for text, _ in lines), h / len(lines) / 1.3)
    return "".join(say(x + w / 2, y + h / 2 + (n - (len(lines) - 1) / 2) * size * 1.2 + size / 3, text, round(size), colour, "middle", "bold")
                   for n, (text, colour) in enumerate(lines))


def lanes(panel, answers, x, y, w, h, begin, end):
    series = [(legend(target, one["metric"]), one["values"]) for target, answer in answers for one in answer]
    series.sort(key=lambda each: each[0])
    out, left, height = [], x + min(170, w * 0.3), (h - 14) / max(1, len(series))
    at = lambda time: left + (time - begin) / (end - begin) * (x + w - left)  # noqa: E731
    for n, (name, values) in enumerate(series):
        top = y + n * height
        out.append(say(left - 6, top + height / 2 + 4, shortened(name, left - x - 6), anchor="end"))
        step = values[1][0] - values[0][0] if len(values) > 1 else 1
        run = 0
        for m in range(1, len(values) + 1):
            over = m == len(values) or values[m][1] != values[run][1] or values[m][0] - values[m - 1][0] > step * 1.5
            if over:
                text, colour = mapping(panel, float(values[run][1]))
                a, b = at(values[run][0]), at(min(end, values[m - 1][0] + step))
                out.append(f'<rect x="{a:.1f}" y="{top + 2:.1f}" width="{b - a:.1f}" height="{height - 4:.1f}" fill="{colour or "#999"}"/>')
                if text and b - a > 7 * len(text):
                    out.append(say(a + 4, top + height / 2 + 4, text, 10, "#fff"))
                run = m
    return "".join(out) + times(left, y + h, x + w, begin, end)


def times(left, y, right, begin, end):
    return (say(left, y, "0", 9, "#777") + say((left + right) / 2, y, f"{(end - begin) / 2:.0f} s", 9, "#777", "middle")
            + say(right, y, f"{end - begin:.0f} s", 9, "#777", "end"))


def chart(panel, answers, x, y, w, h, begin, end):
    defaults = panel["fieldConfig"]["defaults"]
    custom, unit = defaults["custom"], defaults["unit"]
    series = []
    for target, answer in answers:
        for one in answer:
            values = [(time, float(value)) for time, value in one["values"]]
            values = [(time, value) for time, value in values if math.isfinite(value)]
            if values:
                series.append((legend(target, one["metric"]), values))
    if not series:
        return say(x + w / 2, y + h / 2, "no data", 12, "#777", "middle")
    stacked = custom["stacking"]["mode"] == "normal"
    logarithmic = custom["scaleDistribution"]["type"] == "log"
    shown_most = sorted(series, key=lambda each: -max(abs(value) for _, value in each[1]))[:10]
    totals = {}
    if stacked:
        for n, (name, values) in enumerate(shown_most):
            lifted = []
            for time, value in values:
                base = totals.get(time, 0.0)
                totals[time] = base + value
                lifted.append((time, base, base + value))
            shown_most[n] = (name, lifted)
        numbers = list(totals.values())
    else:
        numbers = [value for _, values in shown_most for _, value in values]
    low, high = (min(numbers), max(numbers)) if not stacked else (0, max(numbers))
    if logarithmic:
        low, high = (max(1e-3, min((v for v in numbers if v > 0), default=1e-3)), max(1e-2, high))
        scale = lambda value: math.log(max(value, low) / low) / max(1e-9, math.log(high / low))  # noqa: E731
    else:
        low = min(0, low) if defaults.get("min") == 0 or low < 0 else low
        scale = lambda value: (value - low) / ((high - low) or 1)  # noqa: E731
    left, bottom = x + 58, y + h - 30
    across = lambda time: left + (time - begin) / (end - begin) * (x + w - left)  # noqa: E731
    up = lambda value: bottom - scale(value) * (bottom - y - 4)  # noqa: E731
    out = [f'<path d="M{left},{y} V{bottom} H{x + w:.0f}" stroke="#bbb" fill="none"/>',
           say(left - 4, y + 10, shown(high, unit), 9, "#777", "end"), say(left - 4, bottom, shown(low, unit), 9, "#777", "end")]
    entry = left
    for n, (name, values) in enumerate(shown_most):
        colour = PALETTE[n % len(PALETTE)]
        if stacked:
            width = max(1.0, (x + w - left) / 240)
            for time, base, top in values:
                if top > base:
                    out.append(f'<rect x="{across(time) - width / 2:.0f}" y="{up(top):.1f}" width="{width:.1f}" height="{up(base) - up(top):.1f}" fill="{colour}"/>')
        else:
            path, before = [], None
            for time, value in values:
                gap = before is None or time - before > 3 * (end - begin) / 240 + 2
                stairs = custom["lineInterpolation"] == "stepAfter" and not gap
                path.append(f"H{across(time):.0f}V{up(value):.1f}" if stairs else f"{'M' if gap else 'L'}{across(time):.0f},{up(value):.1f}")
                before = time
            if len(values) == 1:
                path.append("h2")
            out.append(f'<path d="{"".join(path)}" stroke="{colour}" fill="none" stroke-width="1.4"/>')
        text = shortened(name, 150, 10)
        if entry + 14 + len(text) * 5.8 < x + w:
            out.append(f'<rect x="{entry:.0f}" y="{y + h - 10}" width="8" height="8" fill="{colour}"/>' + say(entry + 11, y + h - 3, text, 10))
            entry += 20 + len(text) * 5.8
    return "".join(out) + times(left, bottom + 11, x + w, begin, end)


def bars(panel, answers, x, y, w, h):
    unit = panel["fieldConfig"]["defaults"]["unit"]
    values = [(legend(target, one["metric"]), float(one["value"][1])) for target, answer in answers for one in answer]
    most = max([value for _, value in values if math.isfinite(value)] or [1]) or 1
    height, out = h / max(1, len(values)), []
    for n, (name, value) in enumerate(values):
        top, left = y + n * height, x + 110
        width = (w - 190) * (value / most if math.isfinite(value) else 0)
        out.append(say(left - 6, top + height / 2 + 4, name, anchor="end") + f'<rect x="{left}" y="{top + 4:.0f}" width="{width:.0f}" height="{height - 8:.0f}" fill="{threshold(panel, value)}"/>'
                   + say(left + width + 6, top + height / 2 + 4, shown(value, unit)))
    return "".join(out)


def rows(panel, answers, x, y, w, h):
    found = [one["metric"] for _, answer in answers for one in answer]
    columns = sorted({key for metric in found for key in metric if key != "__name__"})
    width, out = w / max(1, len(columns)), []
    for n, column in enumerate(columns):
        out.append(say(x + n * width, y + 12, column, weight="bold"))
        out += [say(x + n * width, y + 32 + m * 18, shortened(metric.get(column, ""), width - 8)) for m, metric in enumerate(found)]
    return "".join(out)


def board(content, seen, begin, end):
    """The whole board. seen: answers by a panel's id, each a target with what was answered."""
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in content["panels"]) * ROW + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{24 * COLUMN}" height="{height}" viewBox="0 0 {24 * COLUMN} {height}" font-family="sans-serif">',
           f"<title>{html.escape(content['title'])}</title>", '<rect width="100%" height="100%" fill="#f4f4f2"/>', say(8, 24, content["title"], 18, weight="bold")]
    for panel in content["panels"]:
        place = panel["gridPos"]
        x, y, w, h = place["x"] * COLUMN, place["y"] * ROW + 36, place["w"] * COLUMN, place["h"] * ROW
        if panel["type"] == "row":
            out.append(say(8, y + 18, panel["title"], 14, "#555", weight="bold"))
            continue
        out.append(f'<rect x="{x + GAP / 2}" y="{y + GAP / 2}" width="{w - GAP}" height="{h - GAP}" fill="#fff" stroke="#ddd"/>')
        out.append(say(x + 12, y + 19, shortened(panel["title"], w - 20, 12), 12, "#222", weight="bold"))
        inner = (x + 12, y + 28, w - 26, h - 40)
        answers = seen.get(panel["id"], [])
        match panel["type"]:
            case "stat":
                out.append(figure(panel, answers, *inner))
            case "state-timeline":
                out.append(lanes(panel, answers, *inner, begin, end))
            case "bargauge":
                out.append(bars(panel, answers, *inner))
            case "table":
                out.append(rows(panel, answers, *inner))
            case _:
                out.append(chart(panel, answers, *inner, begin, end))
    return "\n".join([*out, "</svg>", ""])
