"""Criteria that end trials and experiments."""

from __future__ import annotations

import datetime
from typing import Any, Callable

from cadre.tune.config import seconds_of, stored_stop


class Stopper:
    """Base of stoppers in Python: __call__(trial_id, result) returns true to end that trial."""

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        raise NotImplementedError

    def stop_all(self) -> bool:
        """Returns true to end the experiment."""
        return False


class _StopperOfCadre(Stopper):
    _type: str | None = None

    def __init__(self, **members):
        self._members = {key: value for key, value in members.items() if value is not None}

    def _stored(self):
        return {"type": self._type, **self._members}


class MaximumIterationStopper(_StopperOfCadre):
    """Ends a trial after a number of its results."""

    _type = "MaximumIterationStopper"

    def __init__(self, max_iter: int) -> None:
        super().__init__(max_iter=max_iter)


class TrialPlateauStopper(_StopperOfCadre):
    """Ends a trial whose metric has stopped changing."""

    _type = "TrialPlateauStopper"

    def __init__(self, metric: str, std: float = 0.01, num_results: int = 4, grace_period: int = 4,
                 metric_threshold: float | None = None, mode: str | None = None) -> None:
        super().__init__(metric=metric, std=std, num_results=num_results, grace_period=grace_period,
                         metric_threshold=metric_threshold, mode=mode)


class ExperimentPlateauStopper(_StopperOfCadre):
    """Ends all trials when the best results have stopped improving."""

    _type = "ExperimentPlateauStopper"

    def __init__(self, metric: str, std: float = 0.001, top: int = 10, mode: str = "min", patience: int = 0) -> None:
        super().__init__(metric=metric, std=std, top=top, mode=mode, patience=patience)


class TimeoutStopper(_StopperOfCadre):
    """Ends all trials after a time, in seconds or as a timedelta."""

    _type = "TimeoutStopper"

    def __init__(self, timeout: float | datetime.timedelta) -> None:
        super().__init__(timeout=float(seconds_of(timeout)))


class FunctionStopper(Stopper):
    """Ends a trial when a function of its id and its result returns true."""

    def __init__(self, function: Callable[[str, dict[str, Any]], bool]) -> None:
        self.function = function

    def __call__(self, trial_id, result):
        return self.function(trial_id, result)

    def _stored_all(self):
        return stored_stop(self.function)


class CombinedStopper(Stopper):
    """Ends what any of several stoppers ends."""

    def __init__(self, *stoppers: Stopper) -> None:
        self._stoppers = stoppers

    def _stored_all(self):
        return stored_stop(list(self._stoppers))
