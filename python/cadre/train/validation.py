"""Validation of checkpoints beside training."""

import contextlib
import functools
import types
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Optional

from cadre import _functions, _values
from cadre.tune.checkpoint import Checkpoint
from cadre.tune.trainable import _stored_bundle


@dataclass
class ValidationTaskConfig:
    """Arguments of one validation, and resources where they differ from those of the ValidationConfig."""

    fn_kwargs: Optional[Dict[str, Any]] = None  # further arguments of the function
    timeout_s: Optional[float] = None  # default: none
    ray_remote_kwargs: Optional[Dict[str, Any]] = None  # num_cpus, num_gpus, resources, accelerator_type, label_selector

    def __post_init__(self):
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"ValidationTaskConfig: timeout_s is {self.timeout_s}; it must be above 0")
        self._resources()

    def _resources(self):
        """Returns the stored form of the resources; None: those of the ValidationConfig."""
        if self.ray_remote_kwargs is None:
            return None
        others = dict(self.ray_remote_kwargs)
        resources = _take_resources(others, 1)
        if others:
            raise ValueError(f"ValidationTaskConfig: ray_remote_kwargs has {', '.join(others)}; known are {_RESOURCES}")
        return resources


@dataclass
class ValidationConfig:
    """The validator of a run: fn(checkpoint, **fn_kwargs) returns metrics, in a process of its own."""

    fn: Callable
    task_config: ValidationTaskConfig = field(default_factory=ValidationTaskConfig)
    ray_remote_kwargs: Optional[Dict[str, Any]] = None
    # num_cpus, num_gpus, resources, accelerator_type, label_selector, max_retries

    def __post_init__(self):
        self.task_config = self.task_config or ValidationTaskConfig()

    def _stored(self, workers):
        """Returns the stored form. workers: bundles for the workers of a trainer in the function, for which it waits
        without a CPU of its own unless num_cpus says otherwise."""
        others = dict(self.ray_remote_kwargs or {})
        resources = _take_resources(others, 0 if workers else 1)
        if self.task_config.ray_remote_kwargs is not None:
            resources = self.task_config._resources()
        stored = {"function": stored_validator(self.fn), "config": _values.encode(dict(self.task_config.fn_kwargs or {})),
                  "resources": resources, "timeout": self.task_config.timeout_s, **stored_workers(workers)}
        if (max_retries := others.pop("max_retries", None)) is not None:
            stored["max_retries"] = max_retries
        if others:
            raise ValueError(f"ValidationConfig: ray_remote_kwargs has {', '.join(others)}; known are {_RESOURCES} and "
                             "max_retries")
        return stored


_RESOURCES = "num_cpus, num_gpus, resources, accelerator_type, label_selector"


def _take_resources(options, cpus):
    """Removes the resources from options of Ray's remote(); returns their stored form. None says nothing, as there. cpus:
    where num_cpus is not said."""
    amounts = {"CPU": options.pop("num_cpus", None), "GPU": options.pop("num_gpus", None)}
    custom = options.pop("resources", None) or {}
    bundle = _stored_bundle({"CPU": cpus if amounts["CPU"] is None else amounts["CPU"], "GPU": amounts["GPU"] or 0, **custom})
    for theirs, ours in (("accelerator_type", "accelerator_type"), ("label_selector", "labels")):
        if chosen := options.pop(theirs, None):
            bundle[ours] = chosen
    return bundle


def stored_workers(bundles):
    """Returns the entry of a validation's options that has bundles for workers of its own; none without bundles."""
    return {"workers": {"bundles": bundles, "strategy": "pack"}} if bundles else {}


def makes_trainer(function):
    """Returns true if a function names a class of trainers, itself or in functions and classes of its module that it
    names. A validation has the resources of its workers from its start on, so they must be known before it runs."""
    function = _unwrapped(function)
    return _names_trainer(function, getattr(function, "__module__", None), set())


def _unwrapped(value):
    while isinstance(value, (functools.partial, types.MethodType)):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    return value


def _names_trainer(value, module, visited):
    from cadre.train.trainer import DataParallelTrainer

    value = _unwrapped(value)
    if isinstance(value, type) and issubclass(value, DataParallelTrainer):
        return True
    if id(value) in visited or getattr(value, "__module__", None) != module:
        return False
    visited.add(id(value))
    if isinstance(value, types.FunctionType):
        named = _names_in(value.__code__)
        return bool(_TRAINERS & named) or any(_names_trainer(one, module, visited) for one in _callables_of(value, named))
    members = vars(value if isinstance(value, type) else type(value)).values()
    return any(_names_trainer(one, module, visited) for one in members if isinstance(one, types.FunctionType))


def _callables_of(function, names):
    """Returns what a function can call: of its globals those with these names, and of its closure all."""
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # a variable without a value yet
            found.append(cell.cell_contents)
    return [one for one in found if callable(one)]


_TRAINERS = {"DataParallelTrainer", "TorchTrainer"}  # as they are named where a function imports them itself


def _names_in(code):
    """Returns the names of globals and attributes in the code of a function and of those within it."""
    inner = [_names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


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
