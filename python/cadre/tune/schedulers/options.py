"""Cadre's own schedulers."""

from __future__ import annotations

import inspect
import os
from typing import Any, Callable, Sequence

from cadre import _functions, _values
from cadre.tune.schedulers.trial_scheduler import FIFOScheduler, TrialScheduler
from cadre.tune.search_space import Domain, uniform


class _SchedulerOfCadre(TrialScheduler):
    """Options of a scheduler of Cadre's, in the form in which they are stored."""

    _type: str | None = None

    def __init__(self, **members):
        self._members = {key: value for key, value in members.items() if value is not None}

    def set_search_properties(self, metric, mode, **spec):
        """Does nothing: the core completes metric and mode."""
        return True

    @property
    def metric(self):
        return self._members.get("metric")

    def _stored(self):
        for name in ("on_trial_result", "on_trial_add", "on_trial_complete", "choose_trial_to_run"):
            if getattr(type(self), name) is not getattr(TrialScheduler, name):
                raise TypeError(f"{type(self).__name__}.{name}: Cadre's scheduler {self._type} is not written in Python and does not "
                                "call it; derive from FIFOScheduler or TrialScheduler")
        return {"type": self._type, **self._members}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._members.items())})"


class AsyncHyperBandScheduler(_SchedulerOfCadre):
    """Ends the worse trials at growing budgets, each trial at once when it gets there (ASHA; Li et al., 2020)."""

    _type = "ASHAScheduler"

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None,
                 max_t: float = 100, grace_period: float = 1, reduction_factor: float = 4, brackets: int = 1,
                 stop_last_trials: bool = True) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode, max_t=max_t, grace_period=grace_period,
                         reduction_factor=reduction_factor, brackets=brackets, stop_last_trials=stop_last_trials)


ASHAScheduler = AsyncHyperBandScheduler


class HyperBandScheduler(_SchedulerOfCadre):
    """Runs brackets of trials, whose worse ones end together at each budget (Li et al., 2018)."""

    _type = "HyperBandScheduler"

    def __init__(self, time_attr: str = "training_iteration", metric: str | None = None, mode: str | None = None,
                 max_t: float = 81, reduction_factor: float = 3, stop_last_trials: bool = True) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode, max_t=max_t, reduction_factor=reduction_factor,
                         stop_last_trials=stop_last_trials)


HyperBandForBOHB = HyperBandScheduler


class MedianStoppingRule(_SchedulerOfCadre):
    """Ends a trial whose best result is worse than the median of the others' averages (Golovin et al., 2017)."""

    _type = "MedianStoppingRule"

    def __init__(self, time_attr: str = "time_total_s", metric: str | None = None, mode: str | None = None,
                 grace_period: float = 60.0, min_samples_required: int = 3, min_time_slice: float = 0,
                 hard_stop: bool = True) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode, grace_period=grace_period,
                         min_samples_required=min_samples_required, min_time_slice=min_time_slice, hard_stop=hard_stop)


class PopulationBasedTraining(_SchedulerOfCadre):
    """Lets the worst trials go on from checkpoints of the best ones, with explored configs (Jaderberg et al., 2017)."""

    _type = "PopulationBasedTraining"

    def __init__(self, time_attr: str = "time_total_s", metric: str | None = None, mode: str | None = None,
                 perturbation_interval: float = 60.0, burn_in_period: float = 0.0,
                 hyperparam_mutations: dict[str, Any] | None = None, quantile_fraction: float = 0.25,
                 resample_probability: float = 0.25, perturbation_factors: Sequence[float] = (1.2, 0.8),
                 custom_explore_fn: Callable[[dict[str, Any]], dict[str, Any]] | None = None, log_config: bool = True,
                 require_attrs: bool = True, synch: bool = False) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode, perturbation_interval=perturbation_interval,
                         burn_in_period=burn_in_period, hyperparam_mutations=_mutations(hyperparam_mutations or {}),
                         quantile_fraction=quantile_fraction, resample_probability=resample_probability,
                         perturbation_factors=list(perturbation_factors), custom_explore_fn=_explore(custom_explore_fn),
                         log_config=log_config, require_attrs=require_attrs, synch=synch)


class PopulationBasedTrainingReplay(_SchedulerOfCadre):
    """Trains one trial with the schedule of configs that a policy file of an earlier run has."""

    _type = "PopulationBasedTrainingReplay"

    def __init__(self, policy_file: str | os.PathLike[str]) -> None:
        super().__init__(policy_file=str(policy_file))


class PB2(_SchedulerOfCadre):
    """Population Based Training that explores by a Gaussian process (Parker-Holder et al., 2020)."""

    _type = "PB2"

    def __init__(self, time_attr: str = "time_total_s", metric: str | None = None, mode: str | None = None,
                 perturbation_interval: float = 60.0, hyperparam_bounds: dict[str, Any] | None = None,
                 quantile_fraction: float = 0.25, log_config: bool = True, require_attrs: bool = True,
                 synch: bool = False,
                 custom_explore_fn: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode, perturbation_interval=perturbation_interval,
                         hyperparam_bounds=_mutations(_domains(hyperparam_bounds or {}, "")),
                         quantile_fraction=quantile_fraction, log_config=log_config, require_attrs=require_attrs,
                         synch=synch, custom_explore_fn=_explore(custom_explore_fn))


def create_scheduler(scheduler: str, **kwargs) -> TrialScheduler:
    """Returns a scheduler by its name, as "async_hyperband" or "pbt". Leaves out arguments that it does not have. Raises
    ValueError for a name that there is not."""
    kinds = {"fifo": FIFOScheduler, "async_hyperband": AsyncHyperBandScheduler, "asynchyperband": AsyncHyperBandScheduler,
             "median_stopping_rule": MedianStoppingRule, "medianstopping": MedianStoppingRule, "hyperband": HyperBandScheduler,
             "hb_bohb": HyperBandForBOHB, "pbt": PopulationBasedTraining, "pbt_replay": PopulationBasedTrainingReplay,
             "pb2": PB2}
    if scheduler.lower() not in kinds:
        raise ValueError(f"there is no scheduler {scheduler!r}; there are: {', '.join(kinds)}")
    kind = kinds[scheduler.lower()]
    known = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in kwargs.items() if name in known})


def _domains(bounds, prefix):
    """Returns bounds with a domain in the place of each pair, also in nested dictionaries. Raises ValueError for a list
    of another length."""
    domains = {}
    for key, value in bounds.items():
        if isinstance(value, (list, tuple)) and len(value) != 2:
            raise ValueError(f"PB2: hyperparam_bounds of {prefix + key!r} are {value!r}; they must be the least and "
                             "the greatest value")
        domains[key] = (uniform(*value) if isinstance(value, (list, tuple)) else
                        _domains(value, f"{prefix}{key}/") if isinstance(value, dict) else value)
    return domains


def _mutations(mutations):
    """Returns mutations in the form in which they are stored."""
    return {key: _mutation(value) for key, value in mutations.items()}


def _mutation(value):
    if isinstance(value, Domain):
        return value._stored()
    if isinstance(value, (list, tuple)):
        return {"type": "values", "values": _values.encode(list(value))}
    if isinstance(value, dict):
        return {"type": "mutations", "entries": _mutations(value)}
    if callable(value):
        function = _functions.to_host_function(_WithoutConfig(value))
        return {"type": "sample_from", "function": _functions.name_of(value), "host_function": function}
    raise TypeError(f"hyperparam_mutations: {value!r} is no domain, list, dictionary or function")


class _WithoutConfig:
    """A function without arguments, which is called with a config."""

    def __init__(self, func):
        self.func = func

    def __call__(self, config):
        return self.func()


def _explore(function):
    if function is None:
        return None
    return {"function": _functions.name_of(function), "host_function": _functions.to_host_function(function)}
