"""Training runs inside trials."""

from cadre import _core
from cadre.train.trainer import UserCallback


class TuneReportCallback(UserCallback):
    """Does nothing: the reports of a TorchTrainer in a trial are those of the trial, and its checkpoints the trial's. For
    programs that list it in RunConfig.callbacks of the trainer. Raises RuntimeError outside a trial."""

    def __init__(self):
        if not _core.trial_id():
            raise RuntimeError("TuneReportCallback is for a TorchTrainer in a trial, and there is none")
