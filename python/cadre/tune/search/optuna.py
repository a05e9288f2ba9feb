"""Optuna's samplers as a searcher."""

import inspect

from cadre import _core
from cadre._table import flat
from cadre.tune.search.searcher import Searcher
from cadre.tune.search_space import Domain, Function


class OptunaSearch(Searcher):
    """Asks a study of Optuna's. An experiment that goes on after an interruption tells a study that it has loaded of what
    happened since then, so that no trial is asked for twice.

    Source: Optuna (Akiba et al., 2019) by its ask-and-tell interface; Ray Tune's OptunaSearch for names and arguments.
    """

    may_wait = False

    def __init__(self, space=None, metric=None, mode=None, points_to_evaluate=None, sampler=None, study_name=None, storage=None,
                 seed=None, evaluated_rewards=None):
        """space: a dictionary of domains of cadre.tune's or of Optuna's distributions, or a function of an Optuna trial that
        calls its suggest methods and may return a dictionary of constants; default: the Tuner's param_space.
        metric, mode: default: the TuneConfig's; lists for several. points_to_evaluate: configs that come first.
        evaluated_rewards: their metrics, if they are known; then they are not tried, and only told. sampler: of Optuna's;
        default: TPESampler with `seed`. study_name, storage: of Optuna's; default: in memory.

        Raises ImportError if Optuna is not installed, ValueError for a sampler and a seed, or rewards that do not go with
        the points.
        """
        super().__init__(metric, mode)
        import optuna  # so that a missing package is named here, and not by a worker

        if sampler is not None and seed is not None:
            raise ValueError("OptunaSearch: `seed` is for the default sampler; give your sampler its seed itself")
        if evaluated_rewards and len(evaluated_rewards) != len(points_to_evaluate or []):
            raise ValueError(f"OptunaSearch: evaluated_rewards has {len(evaluated_rewards)} items, and points_to_evaluate "
                             f"{len(points_to_evaluate or [])}")
        self._space = None if space is None else _to_space(space)
        self._points = list(points_to_evaluate or [])
        self._rewards = list(evaluated_rewards or [])
        self._sampler = sampler or optuna.samplers.TPESampler(seed=seed)
        self._study_name = study_name
        self._storage = storage
        self._constants = {}
        self._trials = {}  # of the study, by the id of a trial whose end the study has not been told
        self._study = None

    def set_search_properties(self, metric, mode, config, **spec):
        self._set_metric(metric, mode)
        if config and self._space is None:
            self._space = _to_space(config)
            return True
        return False

    @property
    def study(self):
        """The study; None before the first suggestion."""
        return self._study

    def suggest(self, trial_id):
        self._begin()
        return self._ask(trial_id)

    def on_trial_add(self, trial_id, config):
        self._begin()
        self._study.enqueue_trial(flat(config))
        self._ask(trial_id)

    def on_trial_result(self, trial_id, result):
        value = result.get(self._metric) if isinstance(self._metric, str) else None
        if isinstance(value, (int, float)) and trial_id in self._trials:  # unless it had failed, and runs again
            self._trials[trial_id].report(value, step=result["training_iteration"])

    def on_trial_complete(self, trial_id, result=None, error=False):
        import optuna

        trial = self._trials.pop(trial_id, None)
        if trial is None:
            return  # it had failed, and has run again
        values = [(result or {}).get(metric) for metric in self._metrics]
        if error or any(value is None for value in values):
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            self._study.tell(trial, values)

    @property
    def _metrics(self):
        return [self._metric] if isinstance(self._metric, str) else list(self._metric or [])

    def _begin(self):
        if self._study is not None:
            return
        import optuna

        if self._space is None:
            raise _core.InvalidArgument("OptunaSearch has no space: give it one, or domains in the Tuner's param_space")
        modes = [self._mode] if isinstance(self._mode, str) else list(self._mode or [])
        if len(modes) != len(self._metrics) or not modes:
            raise _core.InvalidArgument(f"OptunaSearch: metric is {self._metric!r} and mode {self._mode!r}; both must be known")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(storage=self._storage, study_name=self._study_name, sampler=self._sampler,
                                          directions=[{"min": "minimize", "max": "maximize"}[mode] for mode in modes],
                                          load_if_exists=True)
        if self._rewards:
            self._add_evaluated()
        else:
            for point in self._points:
                self._study.enqueue_trial(flat(point))

    def _add_evaluated(self):
        import optuna

        if callable(self._space):
            raise _core.InvalidArgument("OptunaSearch: evaluated_rewards needs a space that is a dictionary")
        for point, reward in zip(self._points, self._rewards):
            self._study.add_trial(optuna.trial.create_trial(
                params={name: value for name, value in flat(point).items() if name in self._space},
                distributions=self._space, values=reward if isinstance(reward, (list, tuple)) else [reward]))

    def _ask(self, trial_id):
        if callable(self._space):
            trial = self._study.ask()
            constants = self._space(trial) or {}
            if not isinstance(constants, dict):
                raise TypeError(f"OptunaSearch: the space's function returned {constants!r}, which is no dictionary of constants")
        else:
            trial = self._study.ask(fixed_distributions=self._space)
            constants = {}
        self._trials[trial_id] = trial
        return {**constants, **_nested(trial.params)}


def _to_space(space):
    """Returns Optuna's distributions by path, or the function that it is."""
    if callable(space) or not isinstance(space, dict):
        if not callable(space):
            raise TypeError(f"OptunaSearch: space is {space!r}; it must be a dictionary or a function")
        parameters = inspect.signature(space).parameters
        if len(parameters) != 1:
            raise TypeError("OptunaSearch: the space's function takes one argument, an Optuna trial")
        return space
    return dict(_distributions(space, ""))


def _distributions(space, prefix):
    for key, entry in space.items():
        path = prefix + key
        if isinstance(entry, dict) and set(entry) == {"grid_search"}:
            raise _core.InvalidArgument(f"OptunaSearch: {path!r} is a grid search, which it cannot search; use choice()")
        if isinstance(entry, dict):
            yield from _distributions(entry, path + "/")
        elif isinstance(entry, Domain) and not isinstance(entry, Function):  # functions are called by the core
            yield path, _distribution(path, entry)
        elif type(entry).__module__.startswith("optuna.distributions"):
            yield path, entry


def _distribution(path, domain):
    """Returns a domain as a distribution of Optuna's."""
    import optuna

    members, kind = domain._members, domain._kind
    lower, upper, step = members.get("lower"), members.get("upper"), members.get("q") or None
    is_logarithmic = kind.startswith("log")
    if is_logarithmic and step:
        raise _core.InvalidArgument(f"OptunaSearch: {path!r} is logarithmic and rounded; Optuna has only one of both")
    if kind in ("uniform", "loguniform"):
        return optuna.distributions.FloatDistribution(lower, upper, step=step, log=is_logarithmic)
    if kind in ("randint", "lograndint"):  # the upper end belongs to it only where there is a step
        return optuna.distributions.IntDistribution(lower, upper if step else upper - 1, step=step or 1, log=is_logarithmic)
    if kind == "choice":
        return optuna.distributions.CategoricalDistribution(members["options"])
    raise _core.InvalidArgument(f"OptunaSearch: {path!r} is {kind}, which Optuna does not have; use uniform, loguniform, randint, "
                                "lograndint or choice")


def _nested(values):
    """Returns a config of values by path."""
    config = {}
    for path, value in values.items():
        *parents, key = path.split("/")
        place = config
        for parent in parents:
            place = place.setdefault(parent, {})
        place[key] = value
    return config
