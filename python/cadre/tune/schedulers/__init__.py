"""Schedulers: which trials go on, wait, end early, or take over others."""

from cadre.tune.schedulers.options import (PB2, ASHAScheduler, AsyncHyperBandScheduler, HyperBandForBOHB, HyperBandScheduler,
                                           MedianStoppingRule, PopulationBasedTraining, PopulationBasedTrainingReplay,
                                           create_scheduler)
from cadre.tune.schedulers.trial_scheduler import FIFOScheduler, TrialScheduler

__all__ = ["ASHAScheduler", "AsyncHyperBandScheduler", "FIFOScheduler", "HyperBandForBOHB", "HyperBandScheduler",
           "MedianStoppingRule", "PB2", "PopulationBasedTraining", "PopulationBasedTrainingReplay", "TrialScheduler",
           "create_scheduler"]
