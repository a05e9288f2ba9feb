"""Training runs."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any, Callable, Mapping

from cadre import _core, _driver, _functions, _notebook, _runs, _table, _values
from cadre.train.config import DataConfig, RunConfig, ScalingConfig
from cadre.train.validation import makes_trainer, stored_workers
from cadre.tune.checkpoint import Checkpoint
from cadre.tune.result_grid import best_checkpoint
from cadre.tune.trainable import _stored_bundle

if TYPE_CHECKING:
    import pandas

    from cadre.train.validation import ValidationConfig


TrainingFailedError = _core.TrainingFailedError


class WorkerGroupError(TrainingFailedError):
    """A worker failed; worker_failures has the errors by rank."""

    def __init__(self, message, worker_failures=None):
        super().__init__(message)
        self.worker_failures = worker_failures or {}


class UserCallback:
    """Base of callbacks of a run. All methods do nothing by default."""

    def after_report(self, run_context, metrics, checkpoint):
        """Called when all ranks have made a report; metrics is a list, by rank."""

    def after_exception(self, run_context, worker_exceptions):
        """Called when a group of workers has failed, with the errors by rank."""


class RunContext:
    """The run, as a callback sees it."""

    name: str
    path: str
    train_loop_config: dict[str, Any]
    world_size: int
    attempt: int

    def __init__(self, state):
        self.name = state["name"]
        self.path = state["path"]
        self.train_loop_config = state["train_loop_config"]
        self.world_size = state["world_size"]
        self.attempt = state["attempt"]

    def get_run_config(self) -> RunConfig:
        return RunConfig(name=self.name, storage_path=os.path.dirname(self.path))


class _Callbacks:
    """Passes what the core says on to callbacks."""

    def __init__(self, callbacks):
        self._callbacks = list(callbacks or [])
        self._is_off = [False] * len(self._callbacks)
        self.hooks = {name for name in ("after_report", "after_exception")
                      if any(getattr(type(one), name) is not getattr(UserCallback, name) for one in self._callbacks)}
        self.hooks.add("after_exception")
        self.failures = {}

    def after_report(self, run, metrics, checkpoint):
        self._call("after_report", RunContext(run), metrics, None if checkpoint is None else Checkpoint(checkpoint))

    def after_exception(self, run, failures):
        self.failures = failures
        errors = {rank: _core.CadreError(text) for rank, text in failures.items()}
        self._call("after_exception", RunContext(run), errors)

    def _call(self, hook, *arguments):
        """Calls a method of all callbacks. Switches off one that raises, and no other."""
        for index, callback in enumerate(self._callbacks):
            if self._is_off[index]:
                continue
            try:
                getattr(callback, hook)(*arguments)
            except Exception:
                self._is_off[index] = True
                print(f"cadre: the callback {type(callback).__name__} failed in {hook}, and is switched off: "
                      f"{traceback.format_exc()}", file=sys.stderr)


class Result:
    """The result of a run."""

    metrics: dict[str, Any] | None
    checkpoint: Checkpoint | None
    best_checkpoints: list[tuple[Checkpoint, dict[str, Any]]]
    path: str
    config: dict[str, Any]
    return_value: Any
    error: TrainingFailedError | None

    def __init__(self, found, objects=None):
        copy = found["copy"]  # held by its checkpoints
        self._objects = objects  # held, so that PickledObject.load finds them
        self._history = [reported | validated for reported, validated in found["history"]]
        self.metrics = self._history[-1] or None if self._history else None  # with the metrics of its validation
        self.checkpoint = Checkpoint._read_from(found["checkpoint"], copy)
        self.best_checkpoints = [(Checkpoint._read_from(one["checkpoint"], copy), one["metrics"])
                                 for one in found["best_checkpoints"]]
        self.path = found["path"]
        self.config = _values.show(found["config"])
        self.return_value = found["return_value"]
        self.error = None if found["error"] is None else TrainingFailedError(found["error"])

    def __getstate__(self):
        return {**vars(self), "_objects": None}

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> Result:
        """Reads the current result in a run's directory, or at its URI, also while the run goes on."""
        return cls(_core.train.read_result(_runs.place_of(path)))

    @property
    def metrics_dataframe(self) -> pandas.DataFrame:
        """All reports as a pandas DataFrame, or as a table where pandas is not installed."""
        return _table.data_frame([_table.flat(metrics) for metrics in self._history])

    def get_best_checkpoint(self, metric: str, mode: str) -> Checkpoint | None:
        """Returns the kept checkpoint with the best value of a metric; None if there is none."""
        return best_checkpoint(self.best_checkpoints, metric, mode)

    def _repr_html_(self):
        reports = _table.Table([_table.flat(metrics) for metrics in self._history[-10:]])
        name = _table.text(os.path.basename(self.path))
        heading = f"<b>{name}</b> · {len(self._history)} reports, the last {len(reports)}"
        failure = f"<pre>{_table.html.escape(str(self.error))}</pre>" if self.error else ""
        return _table.block(heading, [_table.Column(name, reports[name]) for name in reports.columns], footer=failure)

    def __repr__(self):
        return f"Result(metrics={self.metrics}, checkpoint={self.checkpoint}, path={self.path!r})"


class DataParallelTrainer:
    """A training run: one function in a group of workers."""

    _prologue = None  # runs in each worker before the function; returns what runs after it

    def __init__(self, train_loop_per_worker: Callable[..., Any], *, train_loop_config: dict[str, Any] | None = None,
                 scaling_config: ScalingConfig | None = None, run_config: RunConfig | None = None,
                 datasets: Mapping[str, Any] | None = None, dataset_config: DataConfig | None = None,
                 validation_config: ValidationConfig | None = None, metadata: Any = None,
                 resume_from_checkpoint: Any = None) -> None:
        """Checks all options; raises InvalidArgument, a ValueError, that names every error. Writes nothing.

        train_loop_per_worker: a function of the config, or without arguments; what rank 0's returns is the result's
        return_value. datasets: by name, for get_dataset_shard(): of cadre.data, or any objects, of which each rank gets a
        copy, or what they return if they are functions. dataset_config: a DataConfig.
        """
        if metadata is not None or resume_from_checkpoint is not None:
            raise DeprecationWarning("metadata and resume_from_checkpoint have no meaning any more: a run of the same name "
                                     "goes on, and a config carries other data")
        _driver.init_if_needed()
        self._run_config = run_config = run_config or RunConfig()
        scaling_config = scaling_config or ScalingConfig()
        self._live = _notebook.LiveReports() if _notebook.is_notebook() and run_config.verbose > 0 else None
        self._callbacks = _Callbacks([*(run_config.callbacks or []), *([self._live] if self._live else [])])
        self._datasets, others = _prepared(datasets or {}, dataset_config or DataConfig())
        loop = _Loop(train_loop_per_worker, _takes_config(train_loop_per_worker), type(self)._prologue, self._backend(
            scaling_config), others)
        self._description = {
            "loop": {"name": _functions.name_of(train_loop_per_worker),
                     "host_function": _functions.to_host_function(loop, kind="loop")},
            "train_loop_config": _values.encode(train_loop_config or {}), "scaling_config": scaling_config._stored(),
            "run_config": run_config._stored(),
            "datasets": {name: dataset._stored() for name, dataset in self._datasets.items()}}
        validator = validation_config.fn if validation_config else train_loop_per_worker  # it may report some
        workers = scaling_config._bundles() if makes_trainer(validator) else []
        if validation_config is not None:
            self._description["validation"] = validation_config._stored(workers)
        elif workers:
            self._description["validation"] = {"resources": _stored_bundle({"CPU": 0}), **stored_workers(workers)}
        self._storage_path = _runs.folder_of(run_config.storage_path)
        self._trainer = _core.train.make_trainer(self._description, run_config.name or "", self._storage_path, "fail",
                                                 run_config.publish_config._stored(), self._callbacks, self._callbacks.hooks)

    def _backend(self, scaling_config):
        del scaling_config
        return None

    def fit(self) -> Result:
        """Runs the training to its end and returns its result. A run of the same name that was interrupted or has failed
        goes on from its last checkpoint; one that has finished is moved aside, and a line says so. In an object storage
        nothing is moved: fit() raises InvalidArgument there. Raises
        TrainingFailedError if it failed more often than allowed, and Interrupted after Ctrl-C."""
        trainer = self._continued() or self._trainer
        try:
            with _notebook.shown(self._live):
                return Result(trainer.fit(takes_signals=_runs.prepare_for_fit()),
                              self._description["train_loop_config"])
        except TrainingFailedError as error:
            if self._callbacks.failures:
                errors = {rank: _core.CadreError(text) for rank, text in self._callbacks.failures.items()}
                raise WorkerGroupError(str(error), errors) from None
            raise
        finally:
            if self._live:
                self._live.end()

    def _continued(self):
        """Returns a trainer that continues the run of the same name, if that did not finish. Moves a finished one aside."""
        name = self._run_config.name
        path = _runs.path_of(self._storage_path, name or "")
        publish = self._run_config.publish_config._stored()
        if not name or _core.train.is_in_trial() or not _core.train.can_restore(path, publish):
            return None
        if not _core.train.is_finished(path):
            print(f"cadre: the training run {name} goes on from its last checkpoint, with its original options",
                  file=sys.stderr)
            return _core.train.restore_trainer(path, publish, self._callbacks, self._callbacks.hooks)
        if _runs.is_uri(path):
            _runs.refuse_existing(path, f'it has finished, and Result.from_path("{path}") reads it')
        _runs.move_aside(path, "training run")
        return None


_datasets: dict[str, Any] = {}  # of the run that this worker belongs to


def dataset_shard(name, resume):
    if name is None and len(_datasets) == 1:
        name = next(iter(_datasets))
    if name not in _datasets:
        raise KeyError(f"the trainer has no dataset {name!r}; it has: {', '.join(map(repr, _datasets)) or 'none'}")
    if isinstance(_datasets[name], _OfCore):
        _datasets[name] = _datasets[name].open(name, resume)
    elif callable(_datasets[name]):
        _datasets[name] = _datasets[name]()
    return _datasets[name]


class _OfCore:
    """A dataset of cadre.data, which is one of the run's stored options. Ranks open their shares of it."""

    def __init__(self, is_split):
        self.is_split = is_split

    def open(self, name, resume):
        from cadre.data.iterator import of_run

        return of_run(name, self.is_split, resume)


def _prepared(datasets, config):
    """Returns the datasets that are stored with the run, and for its workers an object for each name."""
    stored, others = {}, {}
    for name, dataset in datasets.items():
        others[name] = dataset
        kind = type(dataset)
        if (kind.__module__, kind.__name__) == ("cadre.data.dataset", "Dataset"):  # which may not be importable
            if dataset.name is None:
                dataset.set_name(name)
            stored[name] = dataset._divisible() if config._splits(name) else dataset
            others[name] = _OfCore(config._splits(name))
    unknown = [] if config._datasets_to_split == "all" else set(config._datasets_to_split) - set(datasets)
    if unknown:
        raise ValueError(f"DataConfig: there is no dataset {', '.join(sorted(unknown))}; the trainer has: "
                         f"{', '.join(datasets) or 'none'}")
    return stored, others


class _Loop:
    """A training function in its worker."""

    def __init__(self, func, takes_config, prologue, backend, datasets):
        self.func = func
        self.takes_config = takes_config
        self.prologue = prologue
        self.backend = backend
        self.datasets = datasets

    def __call__(self, config):
        _datasets.update(self.datasets)
        epilogue = self.prologue(self.backend) if self.prologue else None
        returned = self.func(config) if self.takes_config else self.func()
        if epilogue:
            epilogue()
        return returned


def _takes_config(function):
    """Returns true if the function is called with the config. Raises ValueError if it takes more than that."""
    if not callable(function):
        raise TypeError(f"train_loop_per_worker is {function!r}, which is no function")
    required = 0
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL or (
                parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
                and parameter.default is parameter.empty):
            required += 1
    if required > 1:
        raise ValueError(f"{_functions.name_of(function)} takes {required} arguments; a training function takes the config, "
                         "or nothing")
    return required == 1
