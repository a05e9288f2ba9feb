"""Searchers and schedulers written in Python, as the core calls them (cadre/tune/searcher.h, cadre/tune/scheduler.h). They
get results as Ray gives them: a nested metric has a key such as "eval/accuracy"."""

import threading

from cadre import _functions, _pickle, _values
from cadre._table import flat
from cadre.tune._callbacks import TrialState
from cadre.tune.schedulers.trial_scheduler import TrialScheduler

_KINDS = {TrialScheduler.CONTINUE: "go_on", TrialScheduler.NOOP: "go_on", None: "go_on", TrialScheduler.PAUSE: "pause",
          TrialScheduler.STOP: "stop"}


def make_searcher(value):
    """Returns the searcher of a HostFunction's value."""
    return ToldSearcher(_functions.load(value))


def make_scheduler(value):
    """Returns the scheduler of a HostFunction's value."""
    return ToldScheduler(_functions.load(value))


class ToldSearcher:
    """A searcher, and what it does not know yet. A restore tells of all trials, and of the ends of those that have ended,
    and then loads a state that has all of that; so the searcher hears of these only when something else happens."""

    def __init__(self, searcher):
        self._searcher = searcher
        self._suggested = {}  # by trial, which the core has not added yet
        self._added = set()
        self._untold = []
        self._may_load = True
        self._lock = threading.Lock()  # the core saves while another thread suggests

    def suggest(self, trial):
        """Returns a config, None for none now, or False for none any more."""
        with self._lock:
            self._tell()
            if trial not in self._suggested:
                answer = self._searcher.suggest(_trial_id(trial))
                if answer is None:
                    return None
                if isinstance(answer, str) and answer == self._searcher.FINISHED:
                    return False
                if not isinstance(answer, dict):
                    raise TypeError(f"{type(self._searcher).__name__}.suggest() returned {answer!r}, which is no config, None or "
                                    "FINISHED")
                self._suggested[trial] = answer
            return _values.encode(self._suggested[trial])

    def on_trial_add(self, trial, config):
        self._tell_or_wait(self._add, trial, config)

    def on_result(self, trial, result):
        self._tell()
        self._searcher.on_trial_result(_trial_id(trial), flat(result))

    def on_trial_end(self, trial, has_failed, last_result):
        self._tell_or_wait(self._end, trial, has_failed, last_result)

    def save(self):
        with self._lock:
            self._tell()
            return _pickle.to_text((self._searcher, self._suggested, self._added))

    def load(self, state):
        if state is not None:
            self._untold.clear()
            self._searcher, self._suggested, self._added = _pickle.from_text(state)

    def _tell_or_wait(self, call, *arguments):
        if self._may_load:
            self._untold.append((call, *arguments))
        else:
            call(*arguments)

    def _tell(self):
        self._may_load = False
        untold, self._untold = self._untold, []
        for call, *arguments in untold:
            call(*arguments)

    def _add(self, trial, config):
        is_new = trial not in self._added  # not one that has failed and runs again
        self._added.add(trial)
        if self._suggested.pop(trial, None) is None and is_new:
            self._searcher.on_trial_add(_trial_id(trial), _values.decode(config))

    def _end(self, trial, has_failed, last_result):
        self._searcher.on_trial_complete(_trial_id(trial), result=flat(last_result) or None, error=has_failed)


class ToldScheduler:
    """A scheduler, and the trials that it knows. Trials that are added are told with the next call, as above."""

    def __init__(self, scheduler):
        self._scheduler = scheduler
        self._trials = {}  # by index
        self._untold = []
        self.chooses = type(scheduler).choose_trial_to_run is not TrialScheduler.choose_trial_to_run

    def on_trial_add(self, state):
        self._untold.append(state)

    def on_result(self, view, state, result):
        controller, trial = self._call(view, state)
        decision = self._scheduler.on_trial_result(controller, trial, flat(result))
        if decision not in _KINDS:
            raise ValueError(f"{type(self._scheduler).__name__}.on_trial_result() returned {decision!r}, which is not CONTINUE, "
                             "PAUSE or STOP")
        return {"kind": _KINDS[decision], "stopped": controller.stopped}

    def on_trial_end(self, view, state):
        controller, trial = self._call(view, state, updates=False)
        waited = trial.status in ("PENDING", "PAUSED")
        trial.update(state)
        if trial.status == "ERROR":
            self._scheduler.on_trial_error(controller, trial)
        elif waited:
            self._scheduler.on_trial_remove(controller, trial)
        else:
            self._scheduler.on_trial_complete(controller, trial, flat(trial.last_result))
        return {"kind": "go_on", "stopped": controller.stopped}

    def choose(self, view, candidates):
        controller, _ = self._call(view)
        controller.candidates = candidates
        chosen = self._scheduler.choose_trial_to_run(controller)
        if chosen is None:
            return None
        if chosen.index not in candidates:
            raise ValueError(f"{type(self._scheduler).__name__}.choose_trial_to_run() returned trial {chosen.trial_id}, for which "
                             "there is no room: it must be one of tune_controller.get_candidates()")
        return chosen.index

    def debug_string(self):
        return self._scheduler.debug_string()

    def save(self):
        self._tell(None)
        return _pickle.to_text((self._scheduler, self._trials))

    def load(self, state):
        if state is not None:
            self._untold.clear()
            self._scheduler, self._trials = _pickle.from_text(state)

    def _call(self, view, state=None, updates=True):
        controller = _Controller(view, self._trials)
        self._tell(controller)
        trial = None if state is None else self._trials[state["index"]]
        if trial is not None and updates:
            trial.update(state)
        return controller, trial

    def _tell(self, controller):
        untold, self._untold = self._untold, []
        for state in untold:
            trial = self._trials.setdefault(state["index"], _Trial(state["index"]))
            trial.update(state)
            self._scheduler.on_trial_add(controller or _Controller(None, self._trials), trial)


class _Trial(TrialState):
    """A trial as a scheduler sees it."""

    def __init__(self, index):
        self.index = index

    def update(self, state):
        self.trial_id = state["trial_id"]
        self.status = state["status"]
        self.config = _values.show(state["config"])
        self.last_result = state["last_result"]


class _Controller:
    """What a scheduler may ask for while it is called."""

    def __init__(self, view, trials):
        self._view = view
        self._trials = trials
        self.candidates = []
        self.stopped = []

    def get_trials(self):
        """Returns all trials, as they are now."""
        for index, trial in self._trials.items():
            if not trial.is_finished() and self._view is not None:
                trial.update(self._view.trial(index))
        return list(self._trials.values())

    def get_live_trials(self):
        """Returns those that have not ended."""
        return [trial for trial in self.get_trials() if not trial.is_finished()]

    def get_candidates(self):
        """Returns those that could run now, in choose_trial_to_run()."""
        trials = self.get_trials()
        return [trials[index] for index in self.candidates]

    def stop_trial(self, trial):
        """Ends a trial that is pending or paused, when the call returns."""
        if not trial.is_finished() and self._view is not None:
            trial.update(self._view.trial(trial.index))  # it may have paused since the scheduler heard of it
        if trial.status not in ("PENDING", "PAUSED"):
            raise ValueError(f"stop_trial: trial {trial.trial_id} is {trial.status}; only one that waits can be stopped so")
        self.stopped.append(trial.index)


def _trial_id(index):
    return f"{index:05d}"
