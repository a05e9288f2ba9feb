"""Validation of checkpoints beside training."""

from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional

from cadre import _functions, _values
from cadre.tune.checkpoint import Checkpoint
from cadre.tune.trainable import _stored_bundle


@dataclass
class ValidationTaskConfig:
    """Arguments of one validation."""

    fn_kwargs: Optional[Dict[str, Any]] = None  # further arguments of the function
    timeout_s: Optional[float] = None  # default: none

    def __post_init__(self):
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"ValidationTaskConfig: timeout_s is {self.timeout_s}; it must be above 0")


@dataclass
class ValidationConfig:
    """The validator of a run: fn(checkpoint, **fn_kwargs) returns metrics, in a process of its own."""

    fn: Callable
    task_config: ValidationTaskConfig = field(default_factory=ValidationTaskConfig)
    ray_remote_kwargs: Optional[Dict[str, Any]] = None
    # num_cpus, num_gpus, resources, accelerator_type, label_selector, max_retries

    def __post_init__(self):
        self.task_config = self.task_config or ValidationTaskConfig()

    def _stored(self):
        others = dict(self.ray_remote_kwargs or {})
        resources = {"CPU": others.pop("num_cpus", 1), "GPU": others.pop("num_gpus", 0), **others.pop("resources", {})}
        stored = {"function": stored_validator(self.fn), "config": _values.encode(dict(self.task_config.fn_kwargs or {})),
                  "resources": _stored_bundle(resources), "timeout": self.task_config.timeout_s}
        for theirs, ours in (("accelerator_type", "accelerator_type"), ("label_selector", "labels")):
            if others.get(theirs):
                stored["resources"][ours] = others.pop(theirs)
        if "max_retries" in others:
            stored["max_retries"] = others.pop("max_retries")
        if others:
            raise ValueError(f"ValidationConfig: ray_remote_kwargs has {', '.join(others)}; known are num_cpus, num_gpus, "
                             "resources, accelerator_type, label_selector and max_retries")
        return stored


def stored_validator(function):
    """Returns a validator in the form in which it is stored."""
    return {"name": _functions.name_of(function),
            "host_function": _functions.to_host_function(_Validator(function), kind="validator")}


def inline_validator(function):
    """Returns a validator that a worker has made: its pickle goes along with the report."""
    return {"name": _functions.name_of(function),
            "host_function": _functions.to_inline_function(_PositionalValidator(function), kind="validator")}


class _Validator:
    """Calls fn(checkpoint, **kwargs)."""

    def __init__(self, func):
        self.func = func

    def __call__(self, directory, config):
        return self.func(Checkpoint(directory), **config)


class _PositionalValidator:
    """Calls validate_fn(checkpoint, validate_config), the older form."""

    def __init__(self, func):
        self.func = func

    def __call__(self, directory, config):
        return self.func(Checkpoint(directory), config)
