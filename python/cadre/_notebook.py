"""The table that a notebook shows while fit() runs, in place of the console's lines."""

import contextlib
import functools
import os
import sys
import time

from cadre import _core, _table
from cadre.tune.callback import Callback

_PAUSE_S = 0.5  # between two drawings
_LONGEST_HISTORY = 1000


def is_notebook():
    """Returns true in the kernel of a notebook, whose outputs are HTML."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


class _Display:
    """An output that is drawn again in its place, not more often than a reader can follow."""

    def __init__(self):
        self._handle = None
        self._drawn = 0.0

    def draw(self, make_html, now=False):
        if not now and time.monotonic() - self._drawn < _PAUSE_S:
            return
        from IPython.display import HTML, display

        self._drawn = time.monotonic()
        try:
            if self._handle is None:
                self._handle = display(HTML(make_html()), display_id=True)
            else:
                self._handle.update(HTML(make_html()))
        except Exception:  # a table that cannot be drawn is no reason to disturb the callbacks of the program
            self._drawn = float("inf")


@contextlib.contextmanager
def shown(live):
    """Shows a live table, unless it is None, in the place of the console while fit() runs."""
    _core.set_shows_progress(live is not None)
    try:
        yield
    finally:
        _core.set_shows_progress(False)


class LiveTrials(Callback):
    """Shows the trials of an experiment."""

    def __init__(self, metric=None, mode=None, reporter=None):
        self._metric = metric
        self._mode = mode
        self._columns = {"metric_columns": getattr(reporter, "metric_columns", None),
                         "parameter_columns": getattr(reporter, "parameter_columns", None)}
        self._display = _Display()
        self._begun = time.monotonic()
        self._trials = []
        self._histories = {}

    def setup(self, **info):
        self._begun = time.monotonic()

    def on_trial_result(self, iteration, trials, trial, result, **info):
        history = self._histories.setdefault(trial.trial_id, [])
        history.append(_table.flat(result).get(self._metric))
        if len(history) > _LONGEST_HISTORY:
            del history[1::2]
        trial.last_result = result
        self._show(trials)

    def on_step_end(self, iteration, trials, **info):
        self._show(trials)

    def on_trial_complete(self, iteration, trials, trial, **info):
        self._show(trials)

    on_trial_start = on_trial_error = on_trial_recover = on_trial_complete

    def on_experiment_end(self, trials, **info):
        self._show(trials, now=True)

    def _show(self, trials, now=False):
        self._trials = trials
        self._display.draw(self._html, now)

    def _html(self):
        rows = [_table.Row(trial.trial_id, trial.status, trial.config, trial.last_result or {},
                           functools.partial(self._histories.get, trial.trial_id, ()), trial.error or None)
                for trial in self._trials]
        name = self._trials[0].experiment_dir_name if self._trials else "experiment"
        passed = f"{time.monotonic() - self._begun:.0f} s"
        return _table.trials(name, rows, self._metric, self._mode, passed, **self._columns)


class LiveReports:
    """Shows the reports of a training run, as one of its callbacks."""

    def __init__(self):
        self._display = _Display()
        self._begun = time.monotonic()
        self._reports = []

    def after_report(self, run_context, metrics, checkpoint):
        self._reports.append({"report": len(self._reports) + 1, **_table.flat(metrics[0]),
                              "checkpoint": checkpoint and os.path.basename(checkpoint.path)})
        self._name, self._size = run_context.name, run_context.world_size
        self._display.draw(self._html)

    def after_exception(self, run_context, worker_exceptions):
        self.end()

    def end(self):
        """Draws the last reports."""
        if self._reports:
            self._display.draw(self._html, now=True)

    def _html(self):
        last = _table.Table(self._reports[-10:])
        heading = (f"<b>{_table.text(self._name)}</b> · {self._size} worker{'s' * (self._size != 1)} · "
                   f"{len(self._reports)} report{'s' * (len(self._reports) != 1)} · "
                   f"{time.monotonic() - self._begun:.0f} s")
        return _table.block(heading, [_table.Column(name, last[name]) for name in last.columns])
