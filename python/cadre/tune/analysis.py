"""tune.run, the older front door, and its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cadre import _runs
from cadre._core import CadreError, read_results
from cadre.tune.config import CheckpointConfig, FailureConfig, RunConfig, TuneConfig
from cadre.tune.result_grid import ResultGrid
from cadre.tune.trainable import with_resources
from cadre.tune.tuner import Tuner

if TYPE_CHECKING:
    import pandas

    from cadre.tune.checkpoint import Checkpoint
    from cadre.tune.result_grid import Result


def run(run_or_experiment: Any, *, name=None, metric=None, mode=None, stop=None, time_budget_s=None, config=None,
        resources_per_trial=None, num_samples=1, storage_path=None, local_dir=None, search_alg=None, scheduler=None,
        checkpoint_config=None, keep_checkpoints_num=None, checkpoint_score_attr=None, checkpoint_freq=0,
        checkpoint_at_end=None, verbose=1, fail_fast=False, max_failures=0, callbacks=None, max_concurrent_trials=None,
        raise_on_failed_trial=True, reuse_actors=False, progress_reporter=None, log_to_file=False,
        trial_name_creator=None, trial_dirname_creator=None, sync_config=None) -> ExperimentAnalysis:
    """Runs an experiment and returns its ExperimentAnalysis. The arguments are those of Tuner, TuneConfig and RunConfig;
    with raise_on_failed_trial a trial that failed is a CadreError at the end."""
    trainable = run_or_experiment if resources_per_trial is None else with_resources(run_or_experiment, resources_per_trial)
    score = checkpoint_score_attr or ""  # "min-loss": the lowest losses are kept
    checkpoint_config = checkpoint_config or CheckpointConfig(
        num_to_keep=keep_checkpoints_num, checkpoint_frequency=checkpoint_freq, checkpoint_at_end=checkpoint_at_end,
        checkpoint_score_attribute=score.removeprefix("min-") or None,
        checkpoint_score_order="min" if score.startswith("min-") else "max")
    grid = Tuner(
        trainable, param_space=config,
        tune_config=TuneConfig(metric=metric, mode=mode, num_samples=num_samples, search_alg=search_alg,
                               scheduler=scheduler, time_budget_s=time_budget_s,
                               max_concurrent_trials=max_concurrent_trials, reuse_actors=reuse_actors,
                               trial_name_creator=trial_name_creator, trial_dirname_creator=trial_dirname_creator),
        run_config=RunConfig(name=name, storage_path=storage_path or local_dir, stop=stop, callbacks=callbacks,
                             verbose=verbose, checkpoint_config=checkpoint_config, progress_reporter=progress_reporter,
                             log_to_file=log_to_file, sync_config=sync_config,
                             failure_config=FailureConfig(max_failures=max_failures, fail_fast=fail_fast))).fit()
    if raise_on_failed_trial and grid.errors:
        failed = [result.trial_id for result in grid if result.error]
        raise CadreError(f"trials did not complete: {', '.join(failed)}: {grid.errors[0]}")
    return ExperimentAnalysis(grid, default_metric=metric, default_mode=mode)


class ExperimentAnalysis:
    """The results of an experiment, or of one in a directory or at a URI."""

    def __init__(self, experiment: Any, *, default_metric: str | None = None, default_mode: str | None = None) -> None:
        if not hasattr(experiment, "get_best_result"):
            experiment = ResultGrid(read_results(_runs.place_of(experiment)))
        self._grid = experiment
        self.default_metric = default_metric
        self.default_mode = default_mode

    @property
    def experiment_path(self) -> str:
        return self._grid.experiment_path

    @property
    def trials(self) -> list[Result]:
        return list(self._grid)

    @property
    def best_trial(self) -> Result:
        return self.get_best_trial()

    @property
    def best_config(self) -> dict[str, Any]:
        return self.get_best_config()

    @property
    def best_result(self) -> dict[str, Any]:
        return self.best_trial.metrics

    @property
    def best_checkpoint(self) -> Checkpoint | None:
        """The kept checkpoint of the best trial with the best value of the default metric."""
        return self.get_best_checkpoint(self.best_trial)

    @property
    def best_logdir(self) -> str:
        return self.best_trial.path

    @property
    def results(self) -> dict[str, dict[str, Any]]:
        return {result.trial_id: result.metrics for result in self._grid}

    @property
    def results_df(self) -> pandas.DataFrame:
        return self.dataframe()

    @property
    def trial_dataframes(self) -> dict[str, pandas.DataFrame]:
        return {result.path: result.metrics_dataframe for result in self._grid}

    def dataframe(self, metric: str | None = None, mode: str | None = None) -> pandas.DataFrame:
        """Returns a row for each trial: its last result, or that with the best value of a metric."""
        return self._grid.get_dataframe(filter_metric=metric, filter_mode=mode)

    def get_best_trial(self, metric: str | None = None, mode: str | None = None, scope: str = "last",
                       filter_nan_and_inf=True) -> Result:
        return self._grid.get_best_result(metric or self.default_metric, mode or self.default_mode, scope,
                                          filter_nan_and_inf)

    def get_best_config(self, metric: str | None = None, mode: str | None = None,
                        scope: str = "last") -> dict[str, Any]:
        return self.get_best_trial(metric, mode, scope).config

    def get_best_logdir(self, metric: str | None = None, mode: str | None = None, scope: str = "last") -> str:
        return self.get_best_trial(metric, mode, scope).path

    def get_best_checkpoint(self, trial: Result, metric: str | None = None,
                            mode: str | None = None) -> Checkpoint | None:
        """Returns the kept checkpoint of a trial with the best value of a metric; default: as for get_best_trial()."""
        of_experiment = self._grid._results
        return trial.get_best_checkpoint(metric or self.default_metric or of_experiment.metric or None,
                                         mode or self.default_mode or of_experiment.mode)

    def get_last_checkpoint(self, trial: Result | None = None, metric: str | None = None,
                            mode: str | None = None) -> Checkpoint | None:
        return (trial or self.get_best_trial(metric, mode)).checkpoint

    def get_all_configs(self) -> dict[str, dict[str, Any]]:
        return {result.path: result.config for result in self._grid}

    def _repr_html_(self):
        return self._grid._html(self.default_metric, self.default_mode)
