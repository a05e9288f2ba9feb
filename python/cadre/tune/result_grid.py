"""Results of experiments."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, Iterator

from cadre import _runs, _table, _values
from cadre._core import CadreError, NotFound, read_results
from cadre.tune.checkpoint import Checkpoint

if TYPE_CHECKING:
    import pandas

_SCOPES = {"last": "last", "avg": "avg", "min": "min", "max": "max", "last-5-avg": "last_5_avg",
           "last-10-avg": "last_10_avg"}


class TrialError(CadreError):
    """Why a trial failed: the traceback of its function, or what happened to its process."""


class _Unread:
    """The results of an experiment in a copy of one of them, which reads them from its directory when they are needed."""

    def __init__(self, experiment_path, is_interrupted):
        self.experiment_path = experiment_path
        self.is_interrupted = is_interrupted

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if "_read" not in vars(self):
            self._read = read_results(self.experiment_path)
        return getattr(self._read, name)

    def __reduce__(self):
        return _Unread, (self.experiment_path, self.is_interrupted)


class _OfExperiment:
    """Can be pickled and copied: the copy has its values, and reads all else from the experiment's directory."""

    _results: Any

    def __getstate__(self):
        unread = _Unread(self._results.experiment_path, self._results.is_interrupted)
        return {**vars(self), "_results": unread, "_objects": None}


class Result(_OfExperiment):
    """One trial: its config, its last result, its checkpoints."""

    trial_id: str
    status: str
    config: dict[str, Any]
    metrics: dict[str, Any]
    checkpoint: Checkpoint | None
    best_checkpoints: list[tuple[Checkpoint, dict[str, Any]]]
    path: str
    error: TrialError | None

    def __init__(self, results, index, objects=None):
        found = results.trial(index)
        self._results = results
        self._objects = objects  # held, so that PickledObject.load finds them
        self._index = index
        self.trial_id = found["trial_id"]
        self.status = found["status"]
        self.config = _values.show(found["config"])
        self.metrics = {**found["metrics"], "config": self.config} if found["metrics"] else {}
        self.checkpoint = Checkpoint._read_from(found["checkpoint"], results)
        kept = found["best_checkpoints"]
        num_to_keep = results.options["run_config"]["checkpoint_config"]["num_to_keep"] if kept else None
        if num_to_keep is not None and len(kept) > num_to_keep:  # the latest is kept beside the best
            kept = [one for one in kept if one[0] != found["checkpoint"]]
        self.best_checkpoints = [(Checkpoint._read_from(path, results), metrics) for path, metrics in kept]
        self.path = found["path"]
        self.error = None if found["error"] is None else TrialError(found["error"])

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Result:
        """Reads the result so far of the trial in a directory, or at a URI, which is one of an experiment's. Raises NotFound
        if it is none."""
        given = _runs.place_of(path)
        is_uri = _runs.is_uri(given)
        place, question_mark, options = given.partition("?") if is_uri else (os.path.realpath(given), "", "")
        experiment, name = os.path.split(place.rstrip("/"))
        results = read_results(experiment + question_mark + options)
        for index in range(len(results)):
            found = results.trial(index)["path"]
            if os.path.basename(found) == name if is_uri else os.path.realpath(found) == place:
                return cls(results, index)
        raise NotFound(f"{place} is no trial of the experiment in {experiment}")

    @property
    def last_result(self) -> dict[str, Any]:
        """The metrics, as a trial of tune.run has them."""
        return self.metrics

    @property
    def metrics_dataframe(self) -> pandas.DataFrame:
        """All results of the trial as a pandas DataFrame; nested metrics are columns such as "eval/accuracy". Where pandas
        is not installed, a table with the same columns."""
        return _table.data_frame([_table.flat(row) for row in self._results.history(self._index)])

    def column(self, name: str) -> list[Any]:
        """Returns the values of one column, one for each result of the trial, as a list: of a metric, of a nested one as
        "eval/accuracy", or "config/lr": the parameter lr that each result was reported with, that is its schedule. A result
        without the column has NaN. Raises NotFound, with the names that there are, if no result has it."""
        rows = [_table.flat(row) for row in self._results.history(self._index)]
        known = list(rows[-1]) if rows else []
        if name.startswith("config/") and not any(name in row for row in rows):
            rows = [_table.flat({"config": _values.show(self._results.config_at(self._index, i))}) for i in range(len(rows))]
            known += list(rows[-1]) if rows else []
        if rows and not any(name in row for row in rows):
            raise NotFound(f"no result of trial {self.trial_id} has a column {name!r}; the last one has: {', '.join(known)}")
        return [float("nan") if row.get(name) is None else row[name] for row in rows]

    def get_best_checkpoint(self, metric: str | None, mode: str | None) -> Checkpoint | None:
        """Returns the kept checkpoint with the best value of a metric in its result; None if there is none."""
        return best_checkpoint(self.best_checkpoints, metric, mode)

    def _row(self, metric):
        def history():
            return [_table.flat(one).get(metric) for one in self._results.history(self._index)] if metric else []

        return _table.Row(self.trial_id, self.status, self.config, self.metrics, history, self.error and str(self.error))

    def _repr_html_(self):
        metric = self._results.metric or None
        return _table.trials(os.path.basename(self.path), [self._row(metric)], metric)

    def __repr__(self):
        shown = {key: value for key, value in self.metrics.items() if key != "config"}
        return f"Result(metrics={shown}, path={self.path!r}, checkpoint={self.checkpoint}" + \
            (f", error={type(self.error).__name__})" if self.error else ")")


class ResultGrid(_OfExperiment):
    """The results of all trials, in the order in which they were made."""

    def __init__(self, results, objects=None):
        self._results = results
        self._objects = objects
        self._trials = [Result(results, index, objects) for index in range(len(results))]

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, index: int) -> Result:
        return self._trials[index]

    def __iter__(self) -> Iterator[Result]:
        return iter(self._trials)

    @property
    def experiment_path(self) -> str:
        return self._results.experiment_path

    @property
    def interrupted(self) -> bool:
        """True if Ctrl-C, a signal or the time limit of all nodes ended the experiment early: Tuner.restore goes on with it."""
        return self._results.is_interrupted

    @property
    def errors(self) -> list[TrialError]:
        return [result.error for result in self._trials if result.error]

    @property
    def num_errors(self) -> int:
        return self._results.num_errors

    @property
    def num_terminated(self) -> int:
        """The number of trials that ended successfully, also early."""
        return self._results.num_terminated

    def get_best_result(self, metric: str | None = None, mode: str | None = None, scope: str = "last",
                        filter_nan_and_inf: bool = True) -> Result:
        """Returns the trial with the best value of a metric; default: those of the TuneConfig; the only trial if there is
        one. scope: "last" result,
        "avg", "min" or "max" of all, "last-5-avg", "last-10-avg", or "all": the best of all. Trials without a finite
        number are left out. Raises InvalidArgument if no metric or mode is known, NotFound if no trial has it."""
        del filter_nan_and_inf
        if len(self._trials) == 1:
            return self._trials[0]
        if scope == "all":
            scope = mode or self._results.mode or "max"
        if scope not in _SCOPES:
            raise ValueError(f"scope is {scope!r}; it must be one of {', '.join(_SCOPES)}, all")
        return self._trials[self._results.best_index(metric, mode, _SCOPES[scope])]

    def get_dataframe(self, filter_metric: str | None = None, filter_mode: str | None = None) -> pandas.DataFrame:
        """Returns a pandas DataFrame with a row for each trial: its last result, or that with the best value of a
        metric, and its config as columns such as "config/lr". filter_mode: "min" or "max"; ValueError for another
        one; without it the metric has no meaning."""
        if filter_mode is not None:
            _check_mode(filter_mode)
        rows = []
        for index, result in enumerate(self._trials):
            row = {key: value for key, value in result.metrics.items() if key != "config"}
            if filter_metric is not None and filter_mode is not None:
                history = [one for one in self._results.history(index) if _is_comparable(_table.flat(one).get(filter_metric))]
                if history:
                    row = (min if filter_mode == "min" else max)(history, key=lambda one: _table.flat(one)[filter_metric])
            rows.append({"trial_id": result.trial_id, **_table.flat(row),
                         **{f"config/{key}": value for key, value in _table.flat(result.config).items()},
                         "logdir": result.path})
        return _table.data_frame(rows)

    def _repr_html_(self):
        return self._html()

    def _html(self, metric=None, mode=None):
        metric, mode = metric or self._results.metric or None, mode or self._results.mode
        return _table.trials(os.path.basename(self.experiment_path), [result._row(metric) for result in self._trials],
                             metric, mode)

    def __repr__(self):
        return f"ResultGrid<{self._trials!r}>"


def best_checkpoint(checkpoints, metric, mode):
    """Returns the checkpoint with the best value of a metric, of pairs of checkpoints and metrics; None if none has it. NaN
    is no value. Raises ValueError for another mode than "min" and "max"."""
    _check_mode(mode)
    values = [(_table.flat(metrics).get(metric), checkpoint) for checkpoint, metrics in checkpoints]
    found = [pair for pair in values if _is_comparable(pair[0])]
    return (min if mode == "min" else max)(found, key=lambda pair: pair[0])[1] if found else None


def _check_mode(mode):
    if mode not in ("min", "max"):
        raise ValueError(f"mode is {mode!r}; it must be \"min\" or \"max\"")


def _is_comparable(value):
    """Returns true for a number that has a place in an order."""
    return isinstance(value, (int, float)) and not math.isnan(value)
