"""Schedulers, also those written in Python."""

from cadre import _functions


class TrialScheduler:
    """Base of a program's own schedulers, which decide on each result. FIFOScheduler is another one.

    The calls are made in the driver, in the thread of fit(). A scheduler is a function of its calls: no clock, no random
    numbers without a seed; a restore makes the same calls, and finds the same decisions. The object, and later its state,
    goes into the experiment as a pickle. An exception ends the experiment, which can be restored.

    `tune_controller` has get_trials(), get_live_trials() and stop_trial(trial), for a trial that waits. A trial has
    trial_id, config, status ("PENDING", "RUNNING", "PAUSED", "TERMINATED", "STOPPED" or "ERROR") and last_result, and is
    the same object in every call.
    """

    CONTINUE = "CONTINUE"
    PAUSE = "PAUSE"
    STOP = "STOP"
    NOOP = "NOOP"  # as CONTINUE

    _metric = None
    _mode = None

    @property
    def metric(self):
        return self._metric

    def set_search_properties(self, metric, mode, **spec):
        """Called once, before the experiment begins, with the TuneConfig's. Default: takes them, if it has none."""
        self._metric = self._metric or metric
        self._mode = self._mode or mode
        return True

    def on_trial_add(self, tune_controller, trial):
        """Called for a new trial. Default: does nothing."""

    def on_trial_result(self, tune_controller, trial, result):
        """Returns CONTINUE, PAUSE or STOP. In `result` a nested metric has a key such as "eval/accuracy". trial.last_result
        is the result before this one, with nested dictionaries."""
        raise NotImplementedError

    def on_trial_complete(self, tune_controller, trial, result):
        """Called when a trial has ended, with its last result, as above. Default: does nothing."""

    def on_trial_error(self, tune_controller, trial):
        """Called when a trial has failed for good. Default: does nothing."""

    def on_trial_remove(self, tune_controller, trial):
        """Called when a trial has ended that was pending or paused. Default: does nothing."""

    def choose_trial_to_run(self, tune_controller):
        """Returns the trial to run next, one of those for which there is room: tune_controller.get_candidates(). None: none
        of them. Default: the first one that is pending, else the first one that is paused."""
        raise NotImplementedError  # never called: the core does it

    def debug_string(self):
        """Returns a line for the console."""
        return f"Using {type(self).__name__}."

    def _stored(self):
        """Returns its options in the form in which they are stored."""
        return {"type": "HostScheduler", "name": type(self).__name__, "metrics": [self._metric] if self._metric else [],
                "host_function": _functions.to_host_function(self)}


class FIFOScheduler(TrialScheduler):
    """Lets each trial run to its end. A program's own schedulers may derive from it."""

    def on_trial_result(self, tune_controller, trial, result):
        return self.CONTINUE

    def _stored(self):
        return {"type": "FIFO"} if type(self) is FIFOScheduler else super()._stored()
