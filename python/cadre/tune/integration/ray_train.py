"""Training runs inside trials."""

from cadre import _core
from cadre.train.trainer import UserCallback
from cadre.tune.session import report

CHECKPOINT_PATH_KEY = "checkpoint_path"


class TuneReportCallback(UserCallback):
    """Makes each report of a TorchTrainer one of the trial that it runs in, with the path of its checkpoint as the metric
    checkpoint_path. For RunConfig.callbacks of the trainer. Raises RuntimeError outside a trial."""

    def __init__(self):
        if not _core.trial_id():
            raise RuntimeError("TuneReportCallback is for a TorchTrainer in a trial, and there is none")

    def after_report(self, run_context, metrics, checkpoint):
        reported = dict(metrics[0])
        if checkpoint:
            reported[CHECKPOINT_PATH_KEY] = checkpoint.path
        report(reported)
