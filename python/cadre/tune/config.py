"""Options of experiments."""

import datetime
import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Callable, Dict, List, Optional, Union

from cadre import _core, _functions, _values


@dataclass
class TuneConfig:
    """Which configs to try, and in which order."""

    metric: Optional[str] = None
    mode: Optional[str] = None  # "min" or "max"
    search_alg: Optional[Any] = None  # of cadre.tune.search; default: random and grids
    scheduler: Optional[Any] = None  # of cadre.tune.schedulers; default: each trial runs to its end
    num_samples: int = 1  # draws from the space; each makes as many trials as its grids have combinations
    max_concurrent_trials: Optional[int] = None  # default: as many as the resources allow
    time_budget_s: Optional[Union[int, float, datetime.timedelta]] = None  # of the whole experiment; default: none
    reuse_actors: bool = False  # no meaning here: a process costs milliseconds
    trial_name_creator: Optional[Callable] = None
    trial_dirname_creator: Optional[Callable] = None
    chdir_to_trial_dir: bool = True  # each trial runs in its own directory
    seed: Optional[int] = None  # of all random draws; default: 0


@dataclass
class RetentionConfig:
    """Which checkpoints are kept, of trials and of training runs."""

    num_to_keep: Optional[int] = None  # default: all
    checkpoint_score_attribute: Optional[str] = None  # default: the latest are kept
    checkpoint_score_order: Optional[str] = "max"

    def __post_init__(self):
        if self.num_to_keep is not None and self.num_to_keep <= 0:
            raise ValueError(f"num_to_keep is {self.num_to_keep}; it must be above 0, or None for all checkpoints")
        if self.checkpoint_score_order not in ("max", "min", None):
            raise ValueError(f"checkpoint_score_order is {self.checkpoint_score_order!r}; it must be \"max\" or \"min\"")

    def _stored(self):
        attribute = self.checkpoint_score_attribute
        return {"num_to_keep": self.num_to_keep, "checkpoint_score_attribute": attribute,
                "checkpoint_score_order": None if attribute is None else self.checkpoint_score_order}


@dataclass
class CheckpointConfig(RetentionConfig):
    """Which checkpoints are made and kept."""

    checkpoint_frequency: int = 0  # of classes, in iterations; 0: none
    checkpoint_at_end: Optional[bool] = None

    def _stored(self):
        return {**super()._stored(), "checkpoint_frequency": self.checkpoint_frequency or None,
                "checkpoint_at_end": self.checkpoint_at_end}


@dataclass
class FailureConfig:
    """What follows when a trial fails."""

    max_failures: int = 0  # further tries, from the latest checkpoint; -1: any number
    fail_fast: Union[bool, str] = False  # True: the first trial that fails for good ends the experiment; "raise": and fit()
    max_restore_failures: int = 0  # in a row that are not counted: after a checkpoint, and before the first report
    max_preemption_failures: int = -1  # further tries of a trial whose worker was lost with its node; counted apart

    def _stored(self):
        return {"max_failures": self.max_failures, "fail_fast": bool(self.fail_fast),
                "max_restore_failures": self.max_restore_failures,
                "max_preemption_failures": self.max_preemption_failures}


@dataclass
class PublishConfig:
    """How an experiment or a run is published whose storage_path is a URI or a directory on a network file system: all work
    is done in a working directory on a local disk."""

    local_path: Optional[str] = None  # where the working directory is made; default: ~/cadre_results
    interval_s: float = 5.0  # from one published state to the next: the most that is lost with the local disk
    patience_s: float = 600.0  # fit() waits so long at its end for what is not published yet

    def _stored(self):
        return {"local_path": os.path.abspath(os.path.expanduser(os.fspath(self.local_path))) if self.local_path else "",
                "interval": float(self.interval_s), "patience": float(self.patience_s)}


@dataclass
class SyncConfig:
    """How often Ray copies an experiment to its storage. It has no meaning here: PublishConfig has that."""

    sync_period: int = 300
    sync_timeout: int = 1800
    sync_artifacts: bool = False
    sync_artifacts_on_checkpoint: bool = True


@dataclass
class ResumeConfig:
    """What becomes of the trials of an interrupted experiment that goes on: tune.run(resume_config=...)."""

    class ResumeType(Enum):
        """What becomes of a trial."""

        RESUME = "resume"  # it goes on from its latest checkpoint
        RESTART = "restart"  # it begins anew
        SKIP = "skip"  # it stays as it is

    finished: Union[ResumeType, str] = ResumeType.SKIP
    unfinished: Union[ResumeType, str] = ResumeType.RESUME
    errored: Union[ResumeType, str] = ResumeType.SKIP

    def __post_init__(self):
        self.finished = self.ResumeType(self.finished)
        self.unfinished = self.ResumeType(self.unfinished)
        self.errored = self.ResumeType(self.errored)

    def _restore_options(self):
        """Returns its form as arguments of Tuner.restore. Raises InvalidArgument for what a restore does not do."""
        kinds = self.ResumeType
        faults = []
        if self.finished is not kinds.SKIP:
            faults.append(f"finished is {self.finished}, but trials that have ended stay as they are; "
                          "Tuner.restore(extend=...) goes on with them")
        if self.unfinished is not kinds.RESUME:
            faults.append(f"unfinished is {self.unfinished}, but trials that have not ended always go on from their "
                          "latest checkpoint; leave it out")
        if faults:
            raise _core.InvalidArgument(f"ResumeConfig: {'; '.join(faults)}")
        return {"resume_errored": self.errored is kinds.RESUME, "restart_errored": self.errored is kinds.RESTART}


def refuse_filesystem(owner, filesystem):
    """Raises InvalidArgument for a file system of pyarrow's, which other processes cannot use. `owner`: who got it."""
    if filesystem is not None:
        raise _core.InvalidArgument(f"{owner}: storage_filesystem is not used here; give the path as a URI with the "
                                    "options of the file system, such as s3://bucket/folder?region=eu-central-1")


@dataclass
class RunConfig:
    """Storage, end and output of an experiment."""

    name: Optional[str] = None  # of its directory; default: the trainable and the time
    storage_path: Optional[Union[str, "os.PathLike[str]"]] = None  # a folder or the URI of a storage; default: ~/cadre_results
    storage_filesystem: Optional[Any] = None  # an error: storage_path may be a URI
    failure_config: FailureConfig = field(default_factory=FailureConfig)
    checkpoint_config: CheckpointConfig = field(default_factory=CheckpointConfig)
    stop: Optional[Union[Dict, Callable, List, Any]] = None
    callbacks: Optional[List[Any]] = None
    verbose: int = 1  # 0: errors only; 1: the state of the trials; 2: every result
    progress_reporter: Optional[Any] = None
    log_to_file: Any = False  # always: stdout and stderr in the trial's directory
    log_to_driver: bool = False  # shows what trials print, each line with its trial's name
    sync_config: Optional[SyncConfig] = None  # no meaning here
    publish_config: PublishConfig = field(default_factory=PublishConfig)  # for a storage_path that is a URI

    def __post_init__(self):
        refuse_filesystem("RunConfig", self.storage_filesystem)
        self.failure_config = self.failure_config or FailureConfig()
        self.checkpoint_config = self.checkpoint_config or CheckpointConfig()
        self.publish_config = self.publish_config or PublishConfig()
        self.verbose = 1 if self.verbose is None else self.verbose  # None is Ray's default


@dataclass
class Extension:
    """Options that an experiment has from a restore on: Tuner.restore(extend=...). What is None stays as it is. Each is
    the new value, not what is added to the former one."""

    num_samples: Optional[int] = None  # in all, with those that have trials already
    max_concurrent_trials: Optional[int] = None
    time_budget_s: Optional[Union[int, float, datetime.timedelta]] = None  # in all; trials that it had ended go on
    stop: Optional[Union[Dict, Callable, List, Any]] = None  # trials that ended only because of the former one go on
    param_space: Optional[Dict] = None  # of the trials to come
    search_alg: Optional[Any] = None  # it learns from the trials before
    scheduler: Optional[Any] = None

    def _stored(self, metric, mode):
        """Returns it in the form in which it is stored; `metric` and `mode` are those of the experiment."""
        config = TuneConfig(metric=metric, mode=mode, search_alg=self.search_alg, scheduler=self.scheduler)
        options = stored_options(self.param_space, config, RunConfig(stop=self.stop))
        stored = {"num_samples": self.num_samples, "max_concurrent_trials": self.max_concurrent_trials,
                  "time_budget": seconds_of(self.time_budget_s),
                  "stop": options["run_config"]["stop"] if self.stop else None,
                  "param_space": options["param_space"] if self.param_space else None,
                  "searcher": options["tune_config"].get("searcher"), "scheduler": options["tune_config"].get("scheduler")}
        return {name: value for name, value in stored.items() if value is not None}


def seconds_of(time):
    """Returns a time that is a number of seconds, a timedelta or None as a number, or None."""
    return time.total_seconds() if isinstance(time, datetime.timedelta) else time


def stored_stop(stop):
    """Returns criteria of Ray's forms in the form in which they are stored: a dictionary of thresholds, a stopper, a
    function of the trial's id and its result, or a list of these. Raises ValueError for anything else."""
    stored = {"thresholds": {}, "stoppers": []}
    for one in stop if isinstance(stop, (list, tuple)) else [stop]:
        if one is None:
            continue
        if isinstance(one, dict):
            stored["thresholds"].update({metric: float(value) for metric, value in one.items()})
        elif hasattr(one, "_stored_all"):
            part = one._stored_all()
            stored["thresholds"].update(part["thresholds"])
            stored["stoppers"] += part["stoppers"]
        elif hasattr(one, "_stored"):
            stored["stoppers"].append(one._stored())
        elif callable(one):
            stored["stoppers"].append({"type": "FunctionStopper", "function": _functions.name_of(one),
                                       "host_function": _functions.to_host_function(_Stops(one))})
        else:
            raise ValueError(f"stop: {one!r} is no dictionary, stopper or function")
    return stored


class _Stops:
    """A function or a stopper, as the core calls it: with a trial's id and its result, or without, about all trials."""

    def __init__(self, func):
        self.func = func

    def __call__(self, *trial_and_result):
        if trial_and_result:
            return bool(self.func(*trial_and_result))
        return bool(getattr(self.func, "stop_all", bool)())


def _stored_searcher(searcher, param_space, tune_config):
    """Returns what a searcher makes of a TuneConfig. Raises TypeError if it is none, ValueError if it does not use the
    space."""
    from cadre.tune.search_space import Function, has_domains

    if isinstance(searcher, type) or not hasattr(searcher, "_stored"):
        raise TypeError(f"search_alg is {searcher!r}; it must be a searcher, such as those of cadre.tune.search")
    uses_space = searcher.set_search_properties(tune_config.metric, tune_config.mode, param_space)
    if not uses_space and has_domains(param_space, but=Function):  # functions see what it suggests
        raise ValueError(f"search_alg: {type(searcher).__name__} does not search param_space, because it has a space of its own or "
                         "does not override set_search_properties(); leave domains out of param_space")
    stored = {"searcher": searcher._stored(), **getattr(searcher, "_tune_config", {})}
    if "points_to_evaluate" in stored:  # may have objects, as the space
        stored["points_to_evaluate"] = _values.encode(list(stored["points_to_evaluate"]))
    if searcher.metric and not tune_config.metric:
        stored.update({"metric": searcher.metric, "mode": searcher.mode})
    return stored


def stored_options(param_space, tune_config, run_config):
    """Returns the options of a Tuner in the form in which they are stored."""
    from cadre.tune.search_space import stored_space

    tune = {"metric": tune_config.metric or "", "mode": tune_config.mode, "num_samples": tune_config.num_samples,
            "max_concurrent_trials": tune_config.max_concurrent_trials or 0,
            "time_budget": seconds_of(tune_config.time_budget_s),
            "seed": tune_config.seed or 0}
    if tune_config.search_alg is not None:
        tune.update(_stored_searcher(tune_config.search_alg, param_space or {}, tune_config))
    if tune_config.scheduler is not None:
        if isinstance(tune_config.scheduler, type) or not hasattr(tune_config.scheduler, "_stored"):
            raise TypeError(f"scheduler is {tune_config.scheduler!r}; it must be a scheduler, such as those of "
                            "cadre.tune.schedulers")
        tune_config.scheduler.set_search_properties(tune_config.metric, tune_config.mode)
        tune["scheduler"] = tune_config.scheduler._stored()
    run = {"stop": stored_stop(run_config.stop), "checkpoint_config": run_config.checkpoint_config._stored(),
           "failure_config": run_config.failure_config._stored(), "verbose": min(run_config.verbose, 2),
           "log_to_driver": run_config.log_to_driver, "chdir_to_trial_dir": tune_config.chdir_to_trial_dir}
    return {"param_space": stored_space(param_space or {}), "tune_config": tune, "run_config": run}
