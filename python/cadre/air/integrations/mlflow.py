"""Experiments in MLflow, with the names of Ray."""

import atexit
import os

import mlflow
from mlflow import MlflowClient

from cadre.air.integrations._trial import numbers, parameters, place
from cadre.tune.callback import LoggerCallback


class MLflowLoggerCallback(LoggerCallback):
    """Logs each trial as a run of MLflow: config, metrics of each result and, if save_artifact, the files of its
    directory. A trial that is tried again, or continued by a restore, goes on with its run; one that ends before a
    worker starts has none.

    tracking_uri, registry_uri: of MLflow; default: what MLflow is set up for. experiment_name: made if there is none;
    default: the environment variable MLFLOW_EXPERIMENT_NAME. tags: of each run. tracking_token: for a server.
    log_params_on_trial_end: logs the config at the end, so that it is the last one.
    """

    def __init__(self, tracking_uri=None, *, registry_uri=None, experiment_name=None, tags=None, tracking_token=None,
                 save_artifact=False, log_params_on_trial_end=False):
        self.tracking_uri = tracking_uri
        self.registry_uri = registry_uri
        self.experiment_name = experiment_name
        self.tags = tags
        self.tracking_token = tracking_token
        self.should_save_artifact = save_artifact
        self.log_params_on_trial_end = log_params_on_trial_end
        self._runs = {}

    def setup(self, *args, **info):
        _set_up(self.tracking_uri, self.registry_uri, self.tracking_token)
        self._client = MlflowClient(mlflow.get_tracking_uri(), self.registry_uri)
        self._experiment_id = _experiment(None, self.experiment_name, create=True)

    def log_trial_start(self, trial):
        if trial.trial_id not in self._runs:
            tags = {**(self.tags or {}), "trial_name": str(trial)}
            run = self._client.create_run(self._experiment_id, run_name=str(trial), tags=tags)
            self._runs[trial.trial_id] = run.info.run_id
            if not self.log_params_on_trial_end:
                self._log_parameters(trial)

    def log_trial_result(self, iteration, trial, result):
        step = result.get("timesteps_total") or result["training_iteration"]
        for name, value in numbers(result).items():
            self._client.log_metric(self._runs[trial.trial_id], name, value, step=step)

    def log_trial_end(self, trial, failed=False):
        run = self._runs.get(trial.trial_id)
        if run is None:
            return  # no worker of it has started
        if self.log_params_on_trial_end:
            self._log_parameters(trial)
        if self.should_save_artifact:
            self._client.log_artifacts(run, trial.path)
        self._client.set_terminated(run, "FAILED" if failed else "FINISHED")

    def get_state(self):
        return {"runs": self._runs}

    def set_state(self, state):
        self._runs = dict(state["runs"])

    def _log_parameters(self, trial):
        for name, value in parameters(trial.config).items():
            self._client.log_param(self._runs[trial.trial_id], name, value)


class _Nothing:
    """What ranks other than 0 have for mlflow: every call does nothing."""

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **named):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


def setup_mlflow(config=None, tracking_uri=None, registry_uri=None, experiment_id=None, experiment_name=None,
                 tracking_token=None, artifact_location=None, run_name=None, create_experiment_if_not_exists=False,
                 tags=None, rank_zero_only=True):
    """Begins a run of MLflow in a training function, logs the config as its parameters, and returns the module mlflow; for
    other ranks than 0, unless rank_zero_only is False, an object whose every call does nothing. The run ends with the
    function's process.

    The experiment is that of experiment_id, or of experiment_name, by default the trial's name. Raises ValueError if
    there is none and create_experiment_if_not_exists is False.
    """
    here = place()
    if rank_zero_only and here.rank != 0:
        return _Nothing()
    _set_up(tracking_uri, registry_uri, tracking_token)
    experiment_name = experiment_name or here.name
    found = _experiment(experiment_id, experiment_name, create_experiment_if_not_exists, artifact_location)
    if mlflow.active_run() is None:
        mlflow.start_run(run_name=run_name or experiment_name, experiment_id=found, tags=tags)
        atexit.register(mlflow.end_run)  # mlflow has done that when the fork server imported it, not here
    mlflow.log_params(parameters(config))
    return mlflow


def _set_up(tracking_uri, registry_uri, tracking_token):
    if tracking_token:
        os.environ["MLFLOW_TRACKING_TOKEN"] = tracking_token
    if tracking_uri is not None:
        mlflow.set_tracking_uri(tracking_uri)
    if registry_uri is not None:
        mlflow.set_registry_uri(registry_uri)


def _experiment(experiment_id, name, create, artifact_location=None):
    """Returns the id of an experiment, which is made if that is allowed."""
    experiment_id = experiment_id if experiment_id is not None else os.environ.get("MLFLOW_EXPERIMENT_ID")
    name = name if name is not None else os.environ.get("MLFLOW_EXPERIMENT_NAME")
    if experiment_id is not None:
        try:
            return mlflow.get_experiment(str(experiment_id)).experiment_id
        except mlflow.MlflowException:
            pass
    found = None if name is None else mlflow.get_experiment_by_name(name)
    if found:
        return found.experiment_id
    if name is None or not create:
        raise ValueError(f"MLflow has no experiment with the id {experiment_id} or the name {name}; give the "
                         "experiment_name of one, or of one that is made (create_experiment_if_not_exists)")
    return mlflow.create_experiment(name, artifact_location=artifact_location)
