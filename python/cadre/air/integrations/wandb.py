"""Experiments in Weights & Biases, with the names of Ray."""

import os
import secrets

import wandb

from cadre import _values
from cadre._table import flat
from cadre.air.integrations._trial import numbers, place
from cadre.tune.callback import LoggerCallback

WANDB_ENV_VAR = "WANDB_API_KEY"
WANDB_PROJECT_ENV_VAR = "WANDB_PROJECT_NAME"
WANDB_GROUP_ENV_VAR = "WANDB_GROUP_NAME"
WANDB_MODE_ENV_VAR = "WANDB_MODE"


class WandbLoggerCallback(LoggerCallback):
    """Logs each trial as a run of W&B: config, the numbers of each result and, if upload_checkpoints, its checkpoints. The
    files of a run are in its trial's directory.

    project: default: the environment variable WANDB_PROJECT_NAME. group: of the runs; default: WANDB_GROUP_NAME, or the
    experiment's name. api_key, api_key_file: default: WANDB_API_KEY, or `wandb login`. excludes: names of metrics and
    parameters that are not logged. log_config: logs the config with each result, for Population Based Training. Others:
    of wandb.init().
    """

    # Results that are entries of the run's config.
    AUTO_CONFIG_KEYS = ["trial_id", "experiment_tag", "node_ip", "experiment_id", "hostname", "pid", "date"]

    def __init__(self, project=None, group=None, api_key_file=None, api_key=None, excludes=None, log_config=False,
                 upload_checkpoints=False, save_checkpoints=False, upload_timeout=None, video_kwargs=None,
                 image_kwargs=None, **kwargs):
        del upload_timeout, video_kwargs, image_kwargs  # a result has no images, and W&B's own timeouts hold
        self.project = project
        self.group = group
        self.api_key_file = api_key_file
        self.api_key = api_key
        self.excludes = list(excludes or [])
        self.log_config = log_config
        self.upload_checkpoints = upload_checkpoints or save_checkpoints
        self.kwargs = kwargs
        self._runs = {}

    def setup(self, *args, **info):
        _set_api_key(self.api_key_file, self.api_key)
        self.project = self.project or os.environ.get(WANDB_PROJECT_ENV_VAR)
        if not self.project:
            raise ValueError(f"WandbLoggerCallback: there is no project; give it, or set {WANDB_PROJECT_ENV_VAR}")

    def log_trial_start(self, trial):
        if trial.trial_id in self._runs:
            return
        group = self.group or os.environ.get(WANDB_GROUP_ENV_VAR) or trial.experiment_dir_name
        run = wandb.init(**{"id": _run_id(trial.path), "name": str(trial), "resume": "allow", "reinit": "create_new",
                            "allow_val_change": True, "group": group, "project": self.project,
                            "config": self._config_of(trial), "dir": trial.path, **self.kwargs})
        run.config.update({"trial_log_path": trial.path}, allow_val_change=True)
        self._runs[trial.trial_id] = run

    def log_trial_result(self, iteration, trial, result):
        self.log_trial_start(trial)
        run = self._runs[trial.trial_id]
        as_config = {key: result[key] for key in self.AUTO_CONFIG_KEYS if key in result}
        excluded = {"done", "should_checkpoint", *as_config, *self.excludes}
        if self.log_config:
            as_config.update(self._config_of(trial))
        run.config.update(as_config, allow_val_change=True)
        logged = {key: value for key, value in numbers(result).items() if key.split("/")[0] not in excluded
                  and key not in excluded}
        run.log(logged, step=result["training_iteration"])

    def log_trial_save(self, trial):
        if self.upload_checkpoints and trial.checkpoint and trial.trial_id in self._runs:
            artifact = wandb.Artifact(name=f"checkpoint_{trial}", type="model")
            artifact.add_dir(trial.checkpoint.path)
            self._runs[trial.trial_id].log_artifact(artifact)

    def log_trial_end(self, trial, failed=False):
        run = self._runs.pop(trial.trial_id, None)
        if run:
            run.finish(exit_code=1 if failed else 0)

    def on_experiment_end(self, trials, **info):
        for run in self._runs.values():
            run.finish()
        self._runs.clear()

    def _config_of(self, trial):
        return {key: value for key, value in _plain(trial.config).items() if key not in self.excludes}


def setup_wandb(config=None, api_key=None, api_key_file=None, rank_zero_only=True, **kwargs):
    """Begins a run of W&B in a training function and returns it. By default its name is the trial's and its group
    the experiment's, and a further try goes on with the run. Other ranks than 0 get a run that does nothing, unless
    rank_zero_only is False. The run ends with the function's process. Others: of wandb.init()."""
    here = place()
    if rank_zero_only and here.rank != 0:
        return wandb.init(mode="disabled")
    _set_api_key(api_key_file, api_key)
    given = {"id": kwargs.pop("trial_id", None), "name": kwargs.pop("trial_name", None)}
    return wandb.init(**{"id": given["id"] or _run_id(here.folder, here.rank), "name": given["name"] or here.name,
                         "group": here.experiment or os.environ.get(WANDB_GROUP_ENV_VAR), "resume": "allow", "reinit": True,
                         "allow_val_change": True, "config": _plain(config or {}), "dir": here.folder,
                         "project": os.environ.get(WANDB_PROJECT_ENV_VAR), **kwargs})


def _run_id(folder, rank=0):
    """Returns the id of the run of a trial or a training run: one of its own, kept in a file of its directory, so that a
    further try goes on with the run, and another experiment of the same name does not. None without a directory."""
    if folder is None:
        return None
    file = os.path.join(folder, f".wandb_id_{rank}" if rank else ".wandb_id")
    if not os.path.exists(file):
        with open(file, "w", encoding="utf-8") as opened:
            opened.write(secrets.token_hex(8))
    with open(file, encoding="utf-8") as opened:
        return opened.read()


def _set_api_key(file, key):
    """Sets the key for wandb.init(). Raises ValueError if there is none."""
    if os.environ.get(WANDB_MODE_ENV_VAR) in ("offline", "disabled"):
        return
    if file:
        if key:
            raise ValueError("both api_key and api_key_file are given")
        with open(os.path.expanduser(file), encoding="utf-8") as opened:
            key = opened.readline().strip()
    if key:
        os.environ[WANDB_ENV_VAR] = key
    elif not os.environ.get(WANDB_ENV_VAR) and not wandb.Api().api_key:
        raise ValueError(f"there is no key for W&B: set {WANDB_ENV_VAR}, give api_key or api_key_file, or run `wandb login`; "
                         f"{WANDB_MODE_ENV_VAR}=offline needs none")


def _plain(config):
    """Returns a config whose objects are shown by their repr."""
    return {key: value.repr if isinstance(value, _values.PickledObject) else
            value if isinstance(value, (type(None), bool, int, float, str, list, tuple)) else repr(value)
            for key, value in flat(config).items()}
