"""Training of one model in several workers, with the names of Ray Train."""

from cadre.train import collective
from cadre.train.config import (CheckpointConfig, CheckpointConsistencyMode, CheckpointUploadMode, DataConfig,
                                FailureConfig, LoggingConfig, PublishConfig, ReportedCheckpointStatus, RunConfig,
                                ScalingConfig)
from cadre.train.session import (ReportedCheckpoint, TrainContext, get_all_reported_checkpoints, get_checkpoint,
                                 get_context, get_dataset_shard, report)
from cadre.train.trainer import (DataParallelTrainer, Result, RunContext, TrainingFailedError, UserCallback,
                                 WorkerGroupError)
from cadre.train.validation import ValidationConfig, ValidationTaskConfig
from cadre.tune.checkpoint import Checkpoint
from cadre.tune.config import SyncConfig

__all__ = ["Checkpoint", "CheckpointConfig", "CheckpointConsistencyMode", "CheckpointUploadMode", "DataConfig",
           "DataParallelTrainer", "FailureConfig", "LoggingConfig", "PublishConfig", "ReportedCheckpoint",
           "ReportedCheckpointStatus", "Result", "RunConfig", "RunContext", "ScalingConfig", "SyncConfig",
           "TrainContext", "TrainingFailedError", "UserCallback", "ValidationConfig", "ValidationTaskConfig",
           "WorkerGroupError", "collective", "get_all_reported_checkpoints", "get_checkpoint", "get_context",
           "get_dataset_shard", "report"]
