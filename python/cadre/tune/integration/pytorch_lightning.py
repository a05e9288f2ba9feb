"""Trials that train with PyTorch Lightning, with the names of Ray Tune."""

import inspect
import os
import warnings

from cadre.tune.session import report

try:
    from lightning.pytorch import Callback
except ModuleNotFoundError:
    from pytorch_lightning import Callback

_HOOKS = [name for name, _ in inspect.getmembers(Callback, inspect.isfunction) if name.startswith("on_")]


class TuneReportCheckpointCallback(Callback):
    """Reports the Trainer's metrics, and a checkpoint with them.

    metrics: names of metrics, or a dictionary of reported names and the Trainer's; default: all. filename: of the
    checkpoint's file, which Trainer.fit(ckpt_path=...) continues from. on: the hooks of Lightning after which it reports,
    without their "on_". Raises ValueError for a hook that does not exist.
    """

    def __init__(self, metrics=None, filename="checkpoint", save_checkpoints=True, on="validation_end"):
        self._metrics = [metrics] if isinstance(metrics, str) else metrics
        self._filename = filename
        self._save_checkpoints = save_checkpoints
        self._on = {f"on_{hook}" for hook in (on if isinstance(on, list) else [on])}
        if not self._on <= set(_HOOKS):
            raise ValueError(f"on: there is no hook {', '.join(sorted(self._on - set(_HOOKS)))}; there are: {', '.join(_HOOKS)}")

    def _report(self, trainer):
        if trainer.sanity_checking:
            return
        found = trainer.callback_metrics
        wanted = self._metrics or list(found)
        names = wanted if isinstance(wanted, dict) else {name: name for name in wanted}
        missing = [name for name in names.values() if name not in found]
        if missing:
            warnings.warn(f"the Trainer has no metrics {', '.join(missing)}; it has: {', '.join(found) or 'none'}")
        metrics = {name: found[original].item() for name, original in names.items() if original in found}
        if metrics and not self._save_checkpoints:
            report(metrics)
        elif metrics:
            report(metrics, checkpoint=lambda folder: trainer.save_checkpoint(os.path.join(folder, self._filename)))


def _hook(name):
    def hook(self, trainer, *others, **named):
        if name in self._on:
            self._report(trainer)

    return hook


for _name in _HOOKS:
    setattr(TuneReportCheckpointCallback, _name, _hook(_name))


class TuneReportCallback(TuneReportCheckpointCallback):
    """Reports the Trainer's metrics only."""

    def __init__(self, metrics=None, on="validation_end"):
        super().__init__(metrics=metrics, save_checkpoints=False, on=on)
