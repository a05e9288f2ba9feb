"""What a training function calls."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from cadre import _core
from cadre.tune.checkpoint import Checkpoint


def report(metrics: Mapping[str, Any], *, checkpoint: Checkpoint | Callable[[str], object] | None = None) -> None:
    """Reports one result, and with it a checkpoint: a Checkpoint, whose directory is copied, or a function that writes
    one into the directory that it is given, which is called only if a checkpoint of this result is wanted. Returns when
    the result is recorded. If the trial is to stop, the call does not return but raises StopTrial, which is no
    Exception; let it pass. Outside a trial it does nothing, with a warning.

    Raises TypeError for metrics that cannot be stored, naming the key.
    """
    if checkpoint is None or isinstance(checkpoint, Checkpoint):
        _core.report(metrics, None if checkpoint is None else checkpoint.path)
    elif callable(checkpoint):
        _core.report_offering(metrics, checkpoint)
    else:
        raise TypeError(f"report: checkpoint is {checkpoint!r}; it must be a Checkpoint or a function that writes one")


def get_checkpoint() -> Checkpoint | None:
    """Returns the checkpoint to continue from, or None at the very beginning."""
    path = _core.checkpoint_path()
    return None if path is None else Checkpoint(path)


class TuneContext:
    """The trial that the calling function runs in. Outside a trial the names are empty."""

    def get_experiment_name(self) -> str:
        return _core.experiment_name()

    def get_trial_name(self) -> str:
        return _core.trial_name()

    def get_trial_id(self) -> str:
        return _core.trial_id()

    def get_trial_dir(self) -> str:
        return _core.trial_dir()

    def get_trial_resources(self) -> dict[str, float]:
        """Returns the amounts of resources by name: {"CPU": 1.0, "GPU": 0.0, ...}."""
        resources: Any = _core.trial_resources()
        return {"CPU": resources["cpus"], "GPU": resources["gpus"], **resources["custom"]}

    def get_seed(self) -> int:
        """Returns a seed for the next iteration: the same in every run, another one in each trial and iteration."""
        return _core.trial_seed()

    def get_world_size(self) -> int:
        return 1

    def get_world_rank(self) -> int:
        return 0

    get_local_rank = get_node_rank = get_world_rank
    get_local_world_size = get_world_size


def get_context() -> TuneContext:
    """Returns the context of the calling function."""
    return TuneContext()
