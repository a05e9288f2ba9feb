"""Hyper-parameter tuning, with the names of Ray Tune."""

from cadre._core import CadreError as TuneError
from cadre._core import StopTrial
from cadre.tune import schedulers, search, stopper
from cadre.tune.analysis import ExperimentAnalysis, run, run_experiments
from cadre.tune.callback import Callback, LoggerCallback
from cadre.tune.checkpoint import Checkpoint
from cadre.tune.config import (CheckpointConfig, Extension, FailureConfig, PublishConfig, ResumeConfig, RunConfig,
                               SyncConfig, TuneConfig)
from cadre.tune.experiment import Experiment
from cadre.tune.progress_reporter import CLIReporter, JupyterNotebookReporter, ProgressReporter
from cadre.tune.result_grid import Result, ResultGrid, TrialError
from cadre.tune.schedulers import create_scheduler
from cadre.tune.search_space import (choice, grid_search, loguniform, lograndint, qlograndint, qloguniform, qrandint,
                                     qrandn, quniform, randint, randn, sample_from, uniform)
from cadre.tune.session import TuneContext, get_checkpoint, get_context, report
from cadre.tune.stopper import Stopper
from cadre.tune.trainable import (PlacementGroupFactory, Trainable, register_trainable, with_parameters, with_resources)
from cadre.tune.tuner import Tuner

__all__ = ["CLIReporter", "Callback", "Checkpoint", "CheckpointConfig", "Experiment", "ExperimentAnalysis",
           "Extension", "FailureConfig", "JupyterNotebookReporter", "LoggerCallback", "PlacementGroupFactory",
           "ProgressReporter", "PublishConfig", "Result", "ResultGrid", "ResumeConfig", "RunConfig", "StopTrial",
           "Stopper", "SyncConfig", "Trainable", "TrialError", "TuneConfig", "TuneContext", "TuneError", "Tuner",
           "choice", "create_scheduler", "get_checkpoint", "get_context", "grid_search", "lograndint", "loguniform",
           "qlograndint", "qloguniform", "qrandint", "qrandn", "quniform", "randint", "randn", "register_trainable",
           "report", "run", "run_experiments", "sample_from", "schedulers", "search", "stopper", "uniform",
           "with_parameters", "with_resources"]
