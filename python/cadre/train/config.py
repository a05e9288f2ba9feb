"""Options of training runs."""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from cadre.tune.config import PublishConfig, RetentionConfig, refuse_filesystem
from cadre.tune.trainable import _stored_bundle


@dataclass
class ScalingConfig:
    """The number of workers and their resources."""

    num_workers: Union[int, Tuple[int, int]] = 1  # or (fewest, most): as many as there are resources for
    use_gpu: bool = False  # a GPU for each worker
    resources_per_worker: Optional[Dict] = None  # {"CPU": 2, "GPU": 1}; default: one CPU, and with use_gpu one GPU
    placement_strategy: str = "PACK"
    accelerator_type: Optional[str] = None
    label_selector: Optional[Dict[str, str]] = None
    trainer_resources: Optional[Dict] = None  # no meaning here
    elastic_resize_monitor_interval_s: float = 60.0

    @property
    def total_workers(self) -> int:
        return self._range()[1]

    def _range(self):
        """Returns the fewest and the most workers."""
        return self.num_workers if isinstance(self.num_workers, (tuple, list)) else (self.num_workers, self.num_workers)

    def _worker(self):
        """Returns the resources of a worker in the form in which they are stored."""
        bundle = _stored_bundle({"CPU": 1} if self.resources_per_worker is None else self.resources_per_worker)
        if self.use_gpu and bundle["gpus"] == 0:
            bundle["gpus"] = 1.0
        return bundle

    def _bundles(self):
        """Returns the resources of each worker of the largest group, in the form in which they are stored."""
        return [self._worker() for _ in range(self.total_workers)]

    def _stored(self):
        fewest, most = self._range()
        resources = None if self.resources_per_worker is None else self._worker()
        return {"num_workers": {"min": fewest, "max": most}, "use_gpu": self.use_gpu, "resources_per_worker": resources,
                "placement_strategy": self.placement_strategy.lower(), "accelerator_type": self.accelerator_type or "",
                "label_selector": dict(self.label_selector or {}),
                "elastic_resize_monitor_interval": self.elastic_resize_monitor_interval_s}


@dataclass
class CheckpointConfig(RetentionConfig):
    """Retention of a run's checkpoints."""


@dataclass
class FailureConfig:
    """Retries of a run that fails, each from its latest checkpoint."""

    max_failures: int = 0  # -1: any number
    max_preemption_failures: int = -1  # tries after workers that were lost with their node, or ended for it; counted apart
    max_start_failures: int = 3  # in a row: a worker that cannot be started, a group that fails before the function begins
    controller_failure_limit: int = -1  # no meaning here: a controller that dies is continued by the next run

    def _stored(self):
        return {"max_failures": self.max_failures, "max_preemption_failures": self.max_preemption_failures,
                "max_start_failures": self.max_start_failures}


@dataclass
class LoggingConfig:
    """Display of what workers print."""

    log_level: str = "INFO"  # of Ray's own messages: no meaning here
    log_to_driver: bool = False  # fit() shows what workers print, each line with its rank

    def __post_init__(self):
        if not isinstance(self.log_level, str) or not isinstance(logging.getLevelName(self.log_level.upper()), int):
            raise ValueError(f"LoggingConfig: log_level is {self.log_level!r}; it must be the name of a level, such as "
                             '"DEBUG", "INFO" or "WARNING"')
        if self.log_level.upper() != "INFO":
            warnings.warn("LoggingConfig.log_level has no meaning here", stacklevel=3)

    def _stored(self):
        return {"log_to_driver": self.log_to_driver}


@dataclass
class RunConfig:
    """Storage, failures and output of a run."""

    name: Optional[str] = None  # of its directory; default: the function and the time
    storage_path: Optional[Union[str, "os.PathLike[str]"]] = None  # a folder or the URI of a storage; default: ~/cadre_results
    storage_filesystem: Optional[Any] = None  # an error: storage_path may be a URI
    failure_config: FailureConfig = field(default_factory=FailureConfig)
    checkpoint_config: CheckpointConfig = field(default_factory=CheckpointConfig)
    callbacks: Optional[List[Any]] = None
    verbose: int = 1  # 0: failures only; 1: the beginning, the end and every report
    worker_runtime_env: Optional[Dict] = None  # no meaning here
    logging_config: LoggingConfig = field(default_factory=LoggingConfig)
    publish_config: PublishConfig = field(default_factory=PublishConfig)  # for a storage_path that is a URI

    def __post_init__(self):
        refuse_filesystem("RunConfig", self.storage_filesystem)
        self.failure_config = self.failure_config or FailureConfig()
        self.checkpoint_config = self.checkpoint_config or CheckpointConfig()
        self.logging_config = self.logging_config or LoggingConfig()
        self.publish_config = self.publish_config or PublishConfig()
        self.verbose = 1 if self.verbose is None else self.verbose  # None is Ray's default

    def _stored(self):
        return {"failure_config": self.failure_config._stored(), "checkpoint_config": self.checkpoint_config._stored(),
                "logging_config": self.logging_config._stored(), "verbose": min(self.verbose, 1)}


class DataConfig:
    """Choice of the datasets that the ranks divide among themselves; each rank gets all rows of the others."""

    def __init__(self, datasets_to_split: str | Iterable[str] = "all", execution_options=None,
                 enable_shard_locality: bool = True) -> None:
        if datasets_to_split != "all" and not isinstance(datasets_to_split, (list, tuple, set)):
            raise TypeError(f"DataConfig: datasets_to_split is {datasets_to_split!r}; it is \"all\" or a list of names")
        if execution_options is not None:
            warnings.warn("DataConfig: execution_options has no meaning here", stacklevel=2)
        del enable_shard_locality  # there is one machine
        self._datasets_to_split = datasets_to_split

    def _splits(self, name):
        return self._datasets_to_split == "all" or name in self._datasets_to_split


class CheckpointUploadMode(Enum):
    """The way in which a reported checkpoint gets into the run's directory."""

    SYNC = "sync"  # report() returns when the checkpoint is committed
    ASYNC = "async"  # report() returns when the result is committed; the checkpoint follows
    NO_UPLOAD = "no_upload"  # the checkpoint is already in the run's directory, and stays there


class CheckpointConsistencyMode(Enum):
    """The state that get_all_reported_checkpoints() waits for."""

    COMMITTED = "committed"
    VALIDATED = "validated"


class ReportedCheckpointStatus(Enum):
    """The progress of a reported checkpoint."""

    COMMITTED = "committed"
    PENDING_VALIDATION = "pending validation"
    VALIDATED = "validated"
    VALIDATION_TIMEOUT = "validation timed out"
    VALIDATION_FAILED = "validation failed"
