"""Parts that trackers share: the place of a training function, and results as trackers log them."""

from dataclasses import dataclass
from typing import Optional

from cadre import _core, _values
from cadre._table import flat


@dataclass
class Place:
    """The trial or training run of a training function; outside both, every field but `rank` is None."""

    name: Optional[str] = None  # of the trial
    experiment: Optional[str] = None
    folder: Optional[str] = None  # of the trial or the training run
    rank: int = 0


def place():
    """Returns the place of the caller."""
    if _core.trial_id():
        return Place(_core.trial_name(), _core.experiment_name(), _core.trial_dir())
    if _core.train.experiment_name():
        return Place(None, _core.train.experiment_name(), _core.train.storage_path(), _core.train.world_rank())
    return Place()


def numbers(result):
    """Returns the numbers of a result without its config, those of nested dictionaries as "eval/accuracy"."""
    return {key: float(value) for key, value in flat(result).items()
            if isinstance(value, (int, float)) and not key.startswith("config/")}


def parameters(config):
    """Returns the parameters of a config, flat; an object is shown by its repr."""
    return {key: value.repr if isinstance(value, _values.PickledObject) else value
            for key, value in flat(config or {}).items()}
