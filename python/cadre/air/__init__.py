"""Older names of Ray's, which are those of cadre.tune and cadre.train."""

from cadre.train.config import ScalingConfig
from cadre.tune import session
from cadre.tune.checkpoint import Checkpoint
from cadre.tune.config import CheckpointConfig, FailureConfig, RunConfig
from cadre.tune.result_grid import Result

__all__ = ["Checkpoint", "CheckpointConfig", "FailureConfig", "Result", "RunConfig", "ScalingConfig", "session"]
