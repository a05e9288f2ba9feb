"""Searchers written in Python."""

from __future__ import annotations

import warnings

from cadre import _functions


class Searcher:
    """Base of a program's own searchers: suggest() chooses configs, and on_trial_complete() hears what came of them.

    The calls are made in the driver; suggest() in a thread of its own, while no other call is made. The object, and
    later its state, goes into the experiment as a pickle; a restore goes on with it. An exception ends the experiment,
    which can be restored.
    """

    FINISHED = "FINISHED"

    # True: suggest() may return None. Then no scheduler that pauses trials can be used with it.
    may_wait = True

    def __init__(self, metric: str | None = None, mode: str | None = None) -> None:
        """metric, mode: of the results that it learns from; default: those of the TuneConfig."""
        self._metric = metric
        self._mode = mode
        self._has_warned = False

    @property
    def metric(self) -> str | None:
        return self._metric

    @property
    def mode(self) -> str | None:
        return self._mode

    def set_search_properties(self, metric, mode, config, **spec):
        """Called once, before the experiment begins, with what the Tuner was given. `config` is the search space.
        Returns false if it cannot use that. Default: takes metric and mode, if it has none, and returns false."""
        self._set_metric(metric, mode)
        return False

    def suggest(self, trial_id):
        """Returns a config for a new trial, whose other keys are drawn from the space; None: not before another trial
        has ended; FINISHED: no further trials."""
        raise NotImplementedError

    def on_trial_result(self, trial_id, result):
        """Called for each result, in which a nested metric has a key such as "eval/accuracy". Default: does nothing."""

    def on_trial_complete(self, trial_id, result=None, error=False):
        """Called when a trial has ended, with its last result, as above; None: it has none. Default: does nothing."""

    def on_trial_add(self, trial_id, config):
        """Called for a trial that this object has not suggested, because the experiment was interrupted since then and
        goes on. The config is the trial's. Default: suggests it once more, so that the state is what it was, and warns if
        it suggests something else now; a searcher that draws random numbers without a seed overrides this."""
        suggested = self.suggest(trial_id)
        is_same = isinstance(suggested, dict) and all(config.get(key) == value for key, value in suggested.items())
        if not is_same and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"{type(self).__name__} suggests {suggested} for trial {trial_id} now, which has {config}: what it "
                          "learns is about the wrong config. Override on_trial_add() to hear the right one")

    def _set_metric(self, metric, mode):
        self._metric = self._metric or metric
        self._mode = self._mode or mode

    def _stored(self):
        """Returns its options in the form in which they are stored."""
        return {"type": "HostSearcher", "name": type(self).__name__, "learns": self._metric is not None,
                "may_wait": self.may_wait, "host_function": _functions.to_host_function(self)}
