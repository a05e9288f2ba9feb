"""Tables of results: data frames, and how a notebook shows trials and reports."""

import html
import math

_MAX_ROWS = 30
_MAX_COLUMNS = 14
_LONGEST_TEXT = 40

# Colours that are readable on light and dark pages: text is the page's own, and backgrounds are transparent.
_STYLE = """<style>
.cadre{font-size:13px;line-height:1.45;max-width:100%;overflow-x:auto;margin:4px 0}
.cadre table{border-collapse:collapse;margin:6px 0;font-size:13px;font-variant-numeric:tabular-nums;color:inherit}
.cadre th,.cadre td{padding:3px 10px!important;text-align:right;white-space:nowrap;border:0;background:none}
.cadre th{font-weight:600;border-bottom:1px solid rgba(128,128,128,.5)!important}
.cadre td{border-bottom:1px solid rgba(128,128,128,.2)!important}
.cadre th.t,.cadre td.t{text-align:left}
.cadre tr.best td{background:rgba(46,160,67,.16)!important;font-weight:600}
.cadre .state::before{content:"";display:inline-block;width:8px;height:8px;border-radius:4px;margin-right:6px;
background:#8b949e}
.cadre .RUNNING::before{background:#388bfd}.cadre .TERMINATED::before{background:#2ea043}
.cadre .STOPPED::before{background:#9a7fd1}.cadre .PAUSED::before{background:#d29922}
.cadre .ERROR::before{background:#f85149}
.cadre .q{opacity:.7}.cadre svg{vertical-align:middle}.cadre pre{font-size:12px;overflow-x:auto;margin:4px 0}
</style>"""


def flat(entries, prefix=""):
    """Returns nested dictionaries as one, with keys such as "eval/accuracy"."""
    found = {}
    for key, value in entries.items():
        if isinstance(value, dict):
            found.update(flat(value, f"{prefix}{key}/"))
        else:
            found[f"{prefix}{key}"] = value
    return found


def data_frame(rows):
    """Returns dictionaries as a pandas DataFrame, or as a Table where pandas is not installed."""
    try:
        import pandas
    except ModuleNotFoundError:
        return Table(rows)
    return pandas.DataFrame(rows)


class Table:
    """A data frame where pandas is not installed: table["loss"] is a list, table.rows a list of dictionaries."""

    def __init__(self, rows):
        self.rows = [dict(row) for row in rows]
        self.columns = list(dict.fromkeys(key for row in self.rows for key in row))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, column):
        if column not in self.columns:
            raise KeyError(column)
        return [row.get(column) for row in self.rows]

    def _repr_html_(self):
        return block(f"{len(self)} rows", [Column(name, self[name]) for name in self.columns])

    def __repr__(self):
        return f"Table({len(self)} rows of {', '.join(self.columns)}; pandas is not installed)"


class Column:
    """A column of a table: its title and its values, which are HTML already if `is_html`."""

    def __init__(self, title, values, is_html=False):
        self.title = title
        self.values = list(values)
        self.is_html = is_html
        self.is_text = is_html or any(isinstance(value, str) for value in self.values)


def block(heading, columns, best_row=None, footer=""):
    """Returns HTML: a line of text above a table, with its best row marked, and what is below it."""
    left_out = len(columns) - _MAX_COLUMNS
    columns = columns[:_MAX_COLUMNS]
    count = max((len(column.values) for column in columns), default=0)
    lines = [_STYLE, '<div class="cadre">', f"<div>{heading}</div>", "<table><thead><tr>"]
    lines += [f'<th{_class(column)}>{html.escape(str(column.title))}</th>' for column in columns]
    lines.append("</tr></thead><tbody>")
    for row in range(min(count, _MAX_ROWS)):
        cells = "".join(f"<td{_class(column)}>{column.values[row] if column.is_html else text(column.values[row])}</td>"
                        for column in columns)
        lines.append(f'<tr class="best">{cells}</tr>' if row == best_row else f"<tr>{cells}</tr>")
    lines.append("</tbody></table>")
    more = [f"{count - _MAX_ROWS} more rows"] * (count > _MAX_ROWS) + [f"{left_out} more columns"] * (left_out > 0)
    lines.append(f'<div class="q">and {" and ".join(more)}</div>' if more else "")
    return "".join([*lines, footer, "</div>"])


def text(value):
    """Returns a value as HTML."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return '<span class="q">–</span>' if value is None else "nan"
    shown = f"{value:.5g}" if isinstance(value, float) else str(value)
    return html.escape(shown if len(shown) <= _LONGEST_TEXT else shown[:_LONGEST_TEXT - 1] + "…")


def curve(values):
    """Returns the values of a metric as a small line."""
    numbers = [value for value in values if isinstance(value, (int, float)) and math.isfinite(value)]
    if len(numbers) < 2:
        return ""
    numbers = numbers[::max(1, len(numbers) // 100)]
    low, high = min(numbers), max(numbers)
    points = " ".join(f"{1 + 78 * index / (len(numbers) - 1):.1f},"
                      f"{15 - 14 * (number - low) / (high - low) if high > low else 8:.1f}"
                      for index, number in enumerate(numbers))
    return ('<svg width="80" height="16" role="img"><polyline fill="none" stroke="currentColor" stroke-width="1.3" '
            f'stroke-linejoin="round" points="{points}"/></svg>')


def _class(column):
    return ' class="t"' if column.is_text else ""


class Row:
    """A trial in a table of trials."""

    def __init__(self, trial_id, status, config, metrics, history=list, error=None):
        self.trial_id = trial_id
        self.status = status
        self.config = flat(config)
        self.metrics = flat({key: value for key, value in metrics.items() if key != "config"})
        self.history = history  # a function that returns the values of the metric: only rows that are shown need them
        self.error = error


# What the core adds to each result; the iteration and the time have columns of their own.
_ADDED = {"training_iteration", "time_total_s", "time_this_iter_s", "timestamp", "date", "trial_id", "pid", "hostname",
          "node_ip", "time_since_restore", "iterations_since_restore", "config", "done", "experiment_id",
          "experiment_tag", "should_checkpoint", "timesteps_total", "episodes_total"}


def trials(name, rows, metric=None, mode=None, note="", metric_columns=None, parameter_columns=None):
    """Returns HTML of trials: their states, parameters and last metrics, with the best one marked. The columns are
    dictionaries of names and titles; default: the metric and a few others, and the parameters, those that differ first."""
    counts = {}
    for row in rows:
        counts[row.status] = counts.get(row.status, 0) + 1
    best = best_of(rows, metric, mode)
    if len(rows) > _MAX_ROWS:
        rows = sorted(rows, key=lambda row: (row is not best, row.status != "RUNNING"))
    heading = f"<b>{html.escape(name)}</b> · {len(rows)} trial{'s' * (len(rows) != 1)}: " + ", ".join(
        f'<span class="state {status}">{count} {status.lower()}</span>' for status, count in sorted(counts.items()))
    if best is not None:
        heading += f" · best: {html.escape(best.trial_id)} with {html.escape(metric)} = {text(best.metrics[metric])}"
    heading += f' <span class="q">· {html.escape(note)}</span>' if note else ""
    columns = [Column("trial", [("★ " if row is best else "") + row.trial_id for row in rows]),
               Column("status", [f'<span class="state {row.status}">{row.status}</span>' for row in rows], is_html=True),
               Column("iteration", [row.metrics.get("training_iteration") for row in rows]),
               Column("time (s)", [row.metrics.get("time_total_s") for row in rows])]
    columns += [Column(title, [row.metrics.get(key) for row in rows])
                for key, title in (metric_columns or _metrics_to_show(rows, metric)).items()]
    curves = [curve(row.history()) for row in rows[:_MAX_ROWS]]
    if any(curves):
        columns.append(Column(metric, curves, is_html=True))
    columns += [Column(title, [row.config.get(key) for row in rows])
                for key, title in (parameter_columns or _parameters_to_show(rows)).items()]
    failures = "".join(_failure(row) for row in rows[:_MAX_ROWS] if row.error)
    return block(heading, columns, None if best is None else rows.index(best), failures)


def _failure(row):
    return (f"<details><summary>{html.escape(row.trial_id)} failed: {html.escape(_last_line(row.error))}</summary>"
            f"<pre>{html.escape(row.error)}</pre></details>")


def best_of(rows, metric, mode):
    """Returns the row with the best value of a metric; None if no row has it."""
    found = [row for row in rows
             if isinstance(row.metrics.get(metric), (int, float)) and math.isfinite(row.metrics[metric])]
    return (min if mode == "min" else max)(found, key=lambda row: row.metrics[metric]) if found and mode else None


def _metrics_to_show(rows, metric):
    names = [metric] if metric else []
    for row in rows:
        names += [key for key, value in row.metrics.items()
                  if key not in _ADDED and isinstance(value, (int, float)) and key not in row.config]
    return {name: name for name in list(dict.fromkeys(names))[:4]}


def _parameters_to_show(rows):
    names = list(dict.fromkeys(key for row in rows for key in row.config))
    differ = [name for name in names if len({repr(row.config.get(name)) for row in rows}) > 1]
    return {name: name for name in differ + [name for name in names if name not in differ]}


def _last_line(error):
    lines = [line.strip() for line in error.strip().splitlines() if line.strip()]
    return lines[-1] if lines else "no message"
