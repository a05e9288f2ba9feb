"""The callbacks of an experiment, as the core calls them."""

import copy
import os
import sys
import traceback

from cadre import _values
from cadre.tune.callback import Callback
from cadre.tune.checkpoint import Checkpoint

_HOOKS = [name for name in vars(Callback) if not name.startswith("_")]


class TrialState:
    """What trials of callbacks and of schedulers have alike."""

    def is_finished(self):
        return self.status in ("TERMINATED", "STOPPED", "ERROR")

    def __repr__(self):
        return f"Trial({self.trial_id}, {self.status})"


class Trial(TrialState):
    """A trial, the same object in every call. Its fields have what they had when the core last spoke of it."""

    def __init__(self, state):
        self._update(state)

    def _update(self, state):
        self.trial_id = state["trial_id"]
        self.trial_name = state["trial_name"]
        self.trainable_name = self.trial_name.rsplit("_", 1)[0]
        self.status = state["status"]
        self.config = _values.show(state["config"])
        self.last_result = state["last_result"]
        self.checkpoint = None if state["checkpoint"] is None else Checkpoint(state["checkpoint"])
        self.path = self.local_path = state["path"]
        self.error = state["error"]

    @property
    def experiment_dir_name(self):
        return os.path.basename(os.path.dirname(self.path))

    def __str__(self):
        return self.trial_name


class CallbackList:
    """Passes what the core says on to callbacks, with Ray's arguments. Switches off one that raises."""

    def __init__(self, callbacks):
        self._callbacks = list(callbacks or [])
        self._is_off = [False] * len(self._callbacks)
        self._trials = {}
        for callback in self._callbacks:
            if not isinstance(callback, Callback):
                raise TypeError(f"callbacks: {callback!r} does not derive from cadre.tune.Callback")

    @property
    def hooks(self):
        """The methods that a callback overrides; the core calls only these."""
        return {name for name in _HOOKS if any(getattr(type(one), name) is not getattr(Callback, name)
                                               for one in self._callbacks)}

    def setup(self, info):
        self._call("setup", num_samples=info["num_samples"], total_num_samples=info["total_num_samples"])

    def add_trial(self, state):
        self._trials[state["trial_id"]] = Trial(state)

    def on_event(self, hook, iteration):
        self._call(hook, iteration=iteration, trials=self._all())

    def on_trial_event(self, hook, iteration, state):
        self._call(hook, iteration=iteration, trials=self._all(), trial=self._updated(state))

    def on_trial_result(self, iteration, state, result):
        trial = self._updated(state)
        before = copy.deepcopy(result)  # a callback may change nested dictionaries, too
        self._call("on_trial_result", iteration=iteration, trials=self._all(), trial=trial, result=result)
        trial.last_result = result
        return None if result == before else result

    def on_checkpoint(self, iteration, state, path):
        self._call("on_checkpoint", iteration=iteration, trials=self._all(), trial=self._updated(state),
                   checkpoint=Checkpoint(path))

    def on_experiment_end(self):
        self._call("on_experiment_end", trials=self._all())

    def get_state(self):
        states = self._call("get_state")
        return None if all(state is None for state in states) else states

    def set_state(self, states):
        for index, state in enumerate((states or [])[:len(self._callbacks)]):
            if state is not None:
                self._call_one(index, "set_state", state)

    def _call(self, hook, **arguments):
        """Calls a method of all callbacks, and returns what they have returned."""
        return [self._call_one(index, hook, **arguments) for index in range(len(self._callbacks))]

    def _call_one(self, index, hook, *positional, **arguments):
        if self._is_off[index]:
            return None
        try:
            return getattr(self._callbacks[index], hook)(*positional, **arguments)
        except Exception:
            self._is_off[index] = True
            print(f"cadre: the callback {type(self._callbacks[index]).__name__} failed in {hook}, and is switched off: "
                  f"{traceback.format_exc()}", file=sys.stderr)
            return None

    def _all(self):
        return list(self._trials.values())

    def _updated(self, state):
        trial = self._trials[state["trial_id"]]
        trial._update(state)
        return trial
