"""Searchers: which configs to try next."""

from cadre.tune.search.options import (BOHB, CMAES, NSGA2, TPE, BasicVariantGenerator, ConcurrencyLimiter, GaussianProcess,
                                       QuasiRandom, Repeater, SearchAlgorithm)
from cadre.tune.search.searcher import Searcher

__all__ = ["BOHB", "BasicVariantGenerator", "CMAES", "ConcurrencyLimiter", "GaussianProcess", "NSGA2", "QuasiRandom",
           "Repeater", "SearchAlgorithm", "Searcher", "TPE"]
