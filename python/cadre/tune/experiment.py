"""Experiments as values, which tune.run and tune.run_experiments run, and the trials that callbacks see."""

from __future__ import annotations

import warnings
from typing import Any, Mapping

from cadre._core import CadreError, InvalidArgument
from cadre.tune._callbacks import Trial
from cadre.tune.config import CheckpointConfig, RunConfig, SyncConfig, TuneConfig, refuse_filesystem
from cadre.tune.trainable import with_resources

__all__ = ["Experiment", "Trial"]


class Experiment:
    """A trainable with its space, its end and its storage."""

    def __init__(self, name: str | None, run: Any, *, stop=None, time_budget_s=None, config=None,
                 resources_per_trial=None, num_samples=1, storage_path=None, storage_filesystem=None, sync_config=None, checkpoint_config=None,
                 trial_name_creator=None, trial_dirname_creator=None, log_to_file=False, export_formats=None,
                 max_failures=0, restore=None, local_dir=None) -> None:
        """Checks nothing but what has no meaning here; the run checks all options. run: a trainable, or the name of a
        registered one. The other arguments are those of TuneConfig and RunConfig, whose configs may be dictionaries;
        resources_per_trial is that of with_resources(). Raises InvalidArgument for `restore` and for
        `storage_filesystem`."""
        refuse_filesystem("Experiment", storage_filesystem)
        if restore is not None:
            raise InvalidArgument(f"Experiment: restore is {restore!r}, but no trial begins with a checkpoint of "
                                  "another experiment here; give its path in the config, and load it in the trainable")
        if export_formats:
            warnings.warn("Experiment.export_formats has no meaning here", stacklevel=2)
        if isinstance(sync_config, Mapping):
            sync_config = SyncConfig(**sync_config)
        if isinstance(checkpoint_config, Mapping):
            checkpoint_config = CheckpointConfig(**checkpoint_config)
        self.name = name
        self.checkpoint_config: CheckpointConfig = checkpoint_config or CheckpointConfig()
        self._trainable = run if resources_per_trial is None else with_resources(run, resources_per_trial)
        self._param_space = config
        self._tune_options: dict[str, Any] = {
            "num_samples": num_samples, "time_budget_s": time_budget_s, "trial_name_creator": trial_name_creator,
            "trial_dirname_creator": trial_dirname_creator}
        self._run_options: dict[str, Any] = {
            "name": name, "storage_path": storage_path or local_dir, "stop": stop, "sync_config": sync_config,
            "checkpoint_config": self.checkpoint_config, "log_to_file": log_to_file}
        self._max_failures = max_failures

    @classmethod
    def from_json(cls, name: str, spec: Mapping[str, Any]) -> Experiment:
        """Returns an experiment from a dictionary of its arguments, in which "run" is the trainable. Raises CadreError
        for one without it, or with a name that is no argument."""
        options = dict(spec)
        if "run" not in options:
            raise CadreError(f"the experiment {name!r} has no trainable; give it as \"run\"")
        trainable = options.pop("run")
        try:
            return cls(name, trainable, **options)
        except TypeError as error:
            raise CadreError(f"the experiment {name!r} cannot be made from {sorted(options)}: {error}") from None

    def _configs(self, tune_options, run_options):
        """Returns the TuneConfig and the RunConfig of a Tuner, with options that the run adds."""
        return TuneConfig(**self._tune_options, **tune_options), RunConfig(**self._run_options, **run_options)


def experiments_of(given: Any) -> list[Experiment]:
    """Returns the experiments of an argument of run_experiments(). Raises CadreError if it is none."""
    if isinstance(given, Mapping):
        return [Experiment.from_json(name, spec) for name, spec in given.items()]
    listed = [given] if isinstance(given, Experiment) else given
    if not isinstance(listed, (list, tuple)) or not all(isinstance(one, Experiment) for one in listed):
        raise CadreError(f"{given!r} is no Experiment, list of them, or dictionary of their arguments by name")
    return list(listed)
