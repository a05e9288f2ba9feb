"""What a training function of a run calls."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping

from cadre import _core, _values
from cadre.train.config import CheckpointConsistencyMode, CheckpointUploadMode, ReportedCheckpointStatus
from cadre.train.validation import ValidationTaskConfig, inline_validator
from cadre.tune.checkpoint import Checkpoint

if TYPE_CHECKING:
    from cadre.data.iterator import DataIterator


def report(metrics: Mapping[str, Any], checkpoint: Checkpoint | Callable[[str], object] | None = None,
           checkpoint_dir_name: str | None = None,
           checkpoint_upload_mode: CheckpointUploadMode = CheckpointUploadMode.SYNC,
           delete_local_checkpoint_after_upload: bool | None = None,
           checkpoint_upload_fn: Callable[[Checkpoint, str], Checkpoint] | None = None,
           validation: bool | ValidationTaskConfig = False, *,
           validate_fn: Callable[[Checkpoint, Any], Any] | None = None, validate_config: dict[str, Any] | None = None,
           until_published: bool = False) -> None:
    """Reports one result. Every rank calls it equally often: it returns when all have, and the result is recorded. The
    metrics are those of rank 0. Any ranks may have a checkpoint; their files become one directory.

    checkpoint: a Checkpoint, whose directory is copied, or a function of a directory that writes one there.
    checkpoint_upload_fn(checkpoint, name): stores it instead, and returns it. validation: True or a
    ValidationTaskConfig validates it beside training, with the trainer's ValidationConfig; validate_fn(checkpoint,
    validate_config) is one for this checkpoint. until_published: return when the checkpoint is where the run is
    published, so that it survives the loss of this machine. If the run is to stop, raises StopTrial, which is no Exception.
    """
    if validation and checkpoint is None:
        raise ValueError("report: validation is for a report with a checkpoint")
    if validate_config is not None and validate_fn is None:
        raise ValueError("report: validate_config is for validate_fn")
    task, timeout, resources = None, None, None
    if isinstance(validation, ValidationTaskConfig):
        task, timeout = _values.encode_inline(dict(validation.fn_kwargs or {})), validation.timeout_s
        resources = validation._resources()
    elif validation:
        task = {}
    upload = None
    if checkpoint_upload_fn is not None:
        def upload(path, name):
            StorageContext._name_of_upload = name
            return os.fspath(checkpoint_upload_fn(Checkpoint(path), name).path)
    is_writer = checkpoint is not None and not isinstance(checkpoint, Checkpoint)
    if is_writer and not callable(checkpoint):
        raise TypeError(f"report: checkpoint is {checkpoint!r}; it must be a Checkpoint or a function that writes one")
    _core.train.report(
        metrics, checkpoint.path if isinstance(checkpoint, Checkpoint) else None, checkpoint if is_writer else None,
        checkpoint_upload_mode.value, delete_local_checkpoint_after_upload, checkpoint_dir_name or "", upload, task, timeout,
        resources, None if validate_fn is None or checkpoint is None else inline_validator(validate_fn),
        _values.encode_inline(dict(validate_config or {})), until_published)


def get_checkpoint() -> Checkpoint | None:
    """Returns the latest committed checkpoint, the same in all ranks, or None at the very beginning."""
    path = _core.train.checkpoint_path()
    return None if path is None else Checkpoint(path)


@dataclass
class ReportedCheckpoint:
    """A checkpoint that was reported and kept, with the metrics of its report and its validation."""

    checkpoint: Checkpoint
    metrics: Dict[str, Any]
    status: ReportedCheckpointStatus
    validation_error: str = ""


def get_all_reported_checkpoints(consistency_mode: CheckpointConsistencyMode = CheckpointConsistencyMode.VALIDATED,
                                 timeout_s: float | None = None) -> list[ReportedCheckpoint]:
    """Returns the checkpoints that the run keeps, in the order of their reports. Waits until all that this rank has
    reported are committed, or validated, at most for a time in seconds."""
    return [reported_checkpoint(found) for found in
            _core.train.reported_checkpoints(consistency_mode.value, timeout_s)]


def reported_checkpoint(found):
    return ReportedCheckpoint(Checkpoint(found["checkpoint"]), found["metrics"],
                              ReportedCheckpointStatus(found["status"]), found["validation_error"])


class StorageContext:
    """The directory of a run."""

    _name_of_upload = None  # a generated name is refused, but for what an upload function is given

    @property
    def experiment_fs_path(self) -> str:
        return _core.train.storage_path()

    def build_checkpoint_path_from_name(self, checkpoint_name: str) -> str:
        """Returns a directory for a checkpoint, made unless it exists, to be filled and reported with NO_UPLOAD."""
        if checkpoint_name == self._name_of_upload:
            directory = os.path.join(self.experiment_fs_path, checkpoint_name)
            os.makedirs(directory, exist_ok=True)
            return directory
        return _core.train.checkpoint_directory(checkpoint_name)


class TrainContext:
    """The place of a training function in its run. A validator is rank 0 of 1."""

    def get_experiment_name(self) -> str:
        return _core.train.experiment_name()

    def get_world_size(self) -> int:
        return _core.train.world_size()

    def get_world_rank(self) -> int:
        return _core.train.world_rank()

    def get_local_rank(self) -> int:
        return _core.train.local_rank()

    def get_local_world_size(self) -> int:
        return _core.train.local_world_size()

    def get_node_rank(self) -> int:
        return _core.train.node_rank()

    def get_storage(self) -> StorageContext:
        return StorageContext()


def get_context() -> TrainContext:
    """Returns the context of the calling function."""
    return TrainContext()


def get_dataset_shard(dataset_name: str | None = None, *, resume: bool = False) -> DataIterator:
    """Returns this rank's share of a dataset of the trainer: a cadre.data.DataIterator, the same one each time. All ranks
    get equally many rows. Raises KeyError if there is none of this name.

    resume: begin with the row after the last batch that was taken before the latest checkpoint, and not with a new pass.
    All ranks must take equally many batches.
    """
    from cadre.train import trainer

    return trainer.dataset_shard(dataset_name, resume)
