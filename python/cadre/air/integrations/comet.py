"""Experiments in Comet, with the names of Ray."""

import comet_ml

from cadre.air.integrations._trial import numbers, parameters
from cadre.tune.callback import LoggerCallback


class CometLoggerCallback(LoggerCallback):
    """Logs each trial as an experiment of Comet: config, the numbers of each result and, if save_checkpoints, its
    checkpoints. online: False writes files for `comet upload`. Others: of comet_ml.Experiment or OfflineExperiment."""

    def __init__(self, online=True, tags=None, save_checkpoints=False, **experiment_kwargs):
        self.online = online
        self.tags = tags
        self.save_checkpoints = save_checkpoints
        self.experiment_kwargs = {"auto_output_logging": False, "log_git_metadata": False, "log_git_patch": False,
                                  "log_env_cpu": False, "log_env_gpu": False, **experiment_kwargs}
        self._experiments = {}

    def log_trial_start(self, trial):
        if trial.trial_id not in self._experiments:
            make = comet_ml.Experiment if self.online else comet_ml.OfflineExperiment
            self._experiments[trial.trial_id] = experiment = make(**self.experiment_kwargs)
            comet_ml.config.set_global_experiment(None)  # each trial has its own
            experiment.set_name(str(trial))
            experiment.add_tags(self.tags or [])
            experiment.log_parameters(parameters(trial.config))

    def log_trial_result(self, iteration, trial, result):
        self.log_trial_start(trial)
        self._experiments[trial.trial_id].log_metrics(numbers(result), step=result["training_iteration"])

    def log_trial_save(self, trial):
        if self.save_checkpoints and trial.checkpoint and trial.trial_id in self._experiments:
            artifact = comet_ml.Artifact(name=f"checkpoint_{trial}", artifact_type="model")
            artifact.add(trial.checkpoint.path)
            self._experiments[trial.trial_id].log_artifact(artifact)

    def log_trial_end(self, trial, failed=False):
        experiment = self._experiments.pop(trial.trial_id, None)
        if experiment:
            experiment.end()
