"""Cadre's own searchers."""

from __future__ import annotations


class SearchAlgorithm:
    """Options of a searcher of Cadre's, in the form in which they are stored."""

    _type: str | None = None

    def __init__(self, **members):
        self._members = {key: value for key, value in members.items() if value is not None}

    def set_search_properties(self, metric, mode, config, **spec):
        """Returns true: it searches the space of the Tuner."""
        return True

    @property
    def metric(self):
        """The TuneConfig's."""
        return None

    @property
    def mode(self):
        return None

    def _stored(self):
        return {"type": self._type, **self._members}

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self._members.items())})"


class BasicVariantGenerator(SearchAlgorithm):
    """Draws configs at random. Its arguments are the TuneConfig's own: points_to_evaluate, max_concurrent_trials,
    seed."""

    _type = "RandomSearch"

    def __init__(self, points_to_evaluate=None, max_concurrent=0, constant_grid_search=False, random_state=None):
        super().__init__()
        self._tune_config = {"points_to_evaluate": points_to_evaluate or [], "constant_grid_search": constant_grid_search}
        if max_concurrent:
            self._tune_config["max_concurrent_trials"] = max_concurrent
        if random_state is not None:
            self._tune_config["seed"] = random_state


class QuasiRandom(SearchAlgorithm):
    """Covers the space evenly (scrambled Sobol or Halton sequences)."""

    _type = "QuasiRandom"


class TPE(SearchAlgorithm):
    """Tree-structured Parzen estimators (Bergstra et al., 2011). Members as in cadre/tune/searchers/tpe.h."""

    _type = "TPE"


class GaussianProcess(SearchAlgorithm):
    """Bayesian optimisation. Members as in cadre/tune/searchers/gaussian_process.h."""

    _type = "GaussianProcess"


class CMAES(SearchAlgorithm):
    """Evolution of a normal distribution (Hansen and Ostermeier, 2001). Members as in cadre/tune/searchers/cmaes.h."""

    _type = "CMAES"


class NSGA2(SearchAlgorithm):
    """Evolution for several metrics (Deb et al., 2002). Members as in cadre/tune/searchers/nsga2.h."""

    _type = "NSGA2"


class BOHB(SearchAlgorithm):
    """TPE at growing budgets, for HyperBandScheduler (Falkner et al., 2018)."""

    _type = "BOHB"


class _Wrapper(SearchAlgorithm):
    """A searcher that asks another one."""

    def __init__(self, searcher, **members):
        super().__init__(**members)
        self.searcher = searcher

    def set_search_properties(self, metric, mode, config, **spec):
        return self.searcher.set_search_properties(metric, mode, config, **spec)

    @property
    def metric(self):
        return self.searcher.metric

    @property
    def mode(self):
        return self.searcher.mode

    def _stored(self):
        return {**super()._stored(), "searcher": self.searcher._stored()}


class ConcurrencyLimiter(_Wrapper):
    """Asks another searcher for at most max_concurrent trials at a time; with `batch`, for the next ones when all of them
    have ended."""

    _type = "ConcurrencyLimiter"

    def __init__(self, searcher, max_concurrent, batch=False):
        super().__init__(searcher, max_concurrent=max_concurrent, batch=batch)


class Repeater(_Wrapper):
    """Tries each config of another searcher of Cadre's several times, and tells it the mean."""

    _type = "Repeater"

    def __init__(self, searcher, repeat=1):
        super().__init__(searcher, repeat=repeat)
