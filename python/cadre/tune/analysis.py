"""tune.run and tune.run_experiments, the older front doors, and their results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Sequence

from cadre import _runs
from cadre._core import CadreError, InvalidArgument, read_results
from cadre.tune.config import CheckpointConfig, FailureConfig, ResumeConfig
from cadre.tune.experiment import Experiment, experiments_of
from cadre.tune.result_grid import ResultGrid
from cadre.tune.schedulers import create_scheduler
from cadre.tune.tuner import Tuner

if TYPE_CHECKING:
    import pandas

    from cadre.tune.checkpoint import Checkpoint
    from cadre.tune.result_grid import Result


def run(run_or_experiment: Any, *, name=None, metric=None, mode=None, stop=None, time_budget_s=None, config=None,
        resources_per_trial=None, num_samples=1, storage_path=None, storage_filesystem=None, local_dir=None,
        search_alg=None, scheduler=None, checkpoint_config=None, keep_checkpoints_num=None, checkpoint_score_attr=None,
        checkpoint_freq=0, checkpoint_at_end=None, verbose=1, fail_fast=False, max_failures=0, callbacks=None,
        max_concurrent_trials=None, raise_on_failed_trial=True, reuse_actors=False, progress_reporter=None,
        log_to_file=False, trial_name_creator=None, trial_dirname_creator=None, sync_config=None,
        resume: bool | str | None = None,
        resume_config: ResumeConfig | None = None) -> ExperimentAnalysis:
    """Runs an experiment and returns its ExperimentAnalysis. The arguments are those of Tuner, TuneConfig and RunConfig;
    with raise_on_failed_trial a trial that failed is a CadreError at the end. What an Experiment has itself takes the
    place of the arguments of the same names. scheduler: also a name, as create_scheduler() has it.

    resume: True or "AUTO" goes on with the interrupted experiment of this name, if there is one, with its original
    options; "AUTO+ERRORED" and "AUTO+RESTART_ERRORED" with its failed trials, too. resume_config says the same."""
    if isinstance(run_or_experiment, Experiment):
        experiment = run_or_experiment
    else:
        score = checkpoint_score_attr or ""  # "min-loss": the lowest losses are kept
        experiment = Experiment(
            name, run_or_experiment, stop=stop, time_budget_s=time_budget_s, config=config,
            resources_per_trial=resources_per_trial, num_samples=num_samples, storage_path=storage_path,
            storage_filesystem=storage_filesystem, sync_config=sync_config,
            checkpoint_config=checkpoint_config or CheckpointConfig(
                num_to_keep=keep_checkpoints_num, checkpoint_frequency=checkpoint_freq,
                checkpoint_at_end=checkpoint_at_end, checkpoint_score_attribute=score.removeprefix("min-") or None,
                checkpoint_score_order="min" if score.startswith("min-") else "max"),
            trial_name_creator=trial_name_creator, trial_dirname_creator=trial_dirname_creator, log_to_file=log_to_file,
            max_failures=max_failures, local_dir=local_dir)
    tune_config, run_config = experiment._configs(
        {"metric": metric, "mode": mode, "search_alg": search_alg,
         "scheduler": create_scheduler(scheduler) if isinstance(scheduler, str) else scheduler,
         "max_concurrent_trials": max_concurrent_trials, "reuse_actors": reuse_actors},
        {"callbacks": callbacks, "verbose": verbose, "progress_reporter": progress_reporter,
         "failure_config": FailureConfig(max_failures=experiment._max_failures, fail_fast=fail_fast)})
    grid = _tuner(experiment, tune_config, run_config, resume_config or _resume_config(resume)).fit()
    if raise_on_failed_trial:
        _raise_for_failed([grid])
    return ExperimentAnalysis(grid, default_metric=metric, default_mode=mode)


def run_experiments(experiments: Experiment | Mapping[str, Any] | Sequence[Experiment], scheduler: Any = None,
                    verbose: int | None = None, progress_reporter: Any = None, resume: bool | str | None = None,
                    resume_config: ResumeConfig | None = None, reuse_actors: bool = False,
                    raise_on_failed_trial: bool = True, concurrent: bool = True,
                    callbacks: Sequence[Any] | None = None) -> list[Result]:
    """Runs experiments one after the other, each with all resources, and returns the results of all their trials. The
    arguments are those of run(). experiments: an Experiment, a list of them, or a dictionary of their arguments by
    name. Ctrl-C ends them all.

    concurrent: with True a failed trial raises after the last experiment, with False it keeps the next one from
    beginning. Raises InvalidArgument for a scheduler of several concurrent experiments: Ray's compares their trials."""
    listed = experiments_of(experiments)
    if concurrent and scheduler is not None and len(listed) > 1:
        raise InvalidArgument("run_experiments: no scheduler compares the trials of several experiments; with "
                              "concurrent=False each experiment has a scheduler of its own")
    grids: list[ResultGrid] = []
    for experiment in listed:
        analysis = run(experiment, scheduler=scheduler, verbose=1 if verbose is None else verbose,
                       progress_reporter=progress_reporter, resume=resume, resume_config=resume_config,
                       reuse_actors=reuse_actors, callbacks=callbacks,
                       raise_on_failed_trial=raise_on_failed_trial and not concurrent)
        grids.append(analysis._grid)
        if analysis._grid.interrupted:
            break
    if raise_on_failed_trial:
        _raise_for_failed(grids)
    return [result for grid in grids for result in grid]


def _tuner(experiment, tune_config, run_config, resume_config):
    """Returns the Tuner of an experiment: with a ResumeConfig one that goes on with that of the same name, if there is
    one."""
    path = _runs.path_of(_runs.folder_of(run_config.storage_path), run_config.name or "")
    if resume_config is None or not run_config.name or not Tuner.can_restore(path):
        return Tuner(experiment._trainable, param_space=experiment._param_space, tune_config=tune_config,
                     run_config=run_config)
    return Tuner.restore(path, experiment._trainable, _resume_config=resume_config, callbacks=run_config.callbacks)


_SETTINGS = {"ERRORED": ResumeConfig.ResumeType.RESUME, "RESTART_ERRORED": ResumeConfig.ResumeType.RESTART}


def _resume_config(resume):
    """Returns the ResumeConfig of an older argument, or None for one that begins anew: True, or "AUTO+ERRORED"."""
    if resume in (None, False):
        return None
    first, *settings = ["AUTO"] if resume is True else str(resume).split("+")
    unknown = [setting for setting in settings if setting not in _SETTINGS]
    if first != "AUTO" or unknown or len(settings) > 1:
        raise InvalidArgument(f'resume is {resume!r}; it must be True, False, "AUTO", "AUTO+ERRORED" or '
                              '"AUTO+RESTART_ERRORED"')
    return ResumeConfig(errored=_SETTINGS[settings[0]]) if settings else ResumeConfig()


def _raise_for_failed(grids):
    """Raises CadreError if trials of experiments have failed."""
    failed = [result for grid in grids for result in grid if result.error]
    if failed:
        ids = ", ".join(result.trial_id for result in failed)
        raise CadreError(f"trials did not complete: {ids}: {failed[0].error}")


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
