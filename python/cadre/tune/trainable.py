"""What is trained: functions and classes, their parameters and resources."""

from __future__ import annotations

import os
import pickle
from typing import Any, Iterable

from cadre import _core, _driver, _functions, _pickle, _values
from cadre.tune.session import get_context

_DICT_FILE = "_dict_checkpoint.pkl"  # the name that it has with Ray
_EMPTY_FILE = ".empty"


class Trainable:
    """Base of trainable classes: setup() makes the model, step() trains one iteration and returns its result."""

    config: dict[str, Any]

    def __init__(self, config=None, **others):
        del others
        self._begin()
        self.config = dict(config or {})
        self.setup(dict(self.config))

    def setup(self, config: dict[str, Any]) -> None:
        """Makes the model and all other state from the config. Called once, first."""

    def step(self) -> dict[str, Any]:
        """Trains one iteration and returns its metrics; `done` set to True ends the trial."""
        raise NotImplementedError(f"{type(self).__name__} has no step()")

    def save_checkpoint(self, checkpoint_dir: str) -> dict[str, Any] | None:
        """Writes the state into the directory, or returns it as a dictionary, which is pickled."""
        raise NotImplementedError

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Restores the state: from the directory, or from the dictionary if save_checkpoint() returned one."""
        raise NotImplementedError

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Switches to another config without a new process. Returns true if it can."""
        return False

    def cleanup(self) -> None:
        """Releases what the end of the process does not."""

    def stop(self) -> None:
        """Ends a trainable that is used without a Tuner: calls cleanup()."""
        self.cleanup()

    @property
    def training_iteration(self) -> int:
        """The number of iterations so far, that of the checkpoint's trial included."""
        return self._iteration

    iteration = training_iteration

    @property
    def trial_id(self) -> str:
        """The trial's id; empty without a Tuner, as are the other names."""
        return _core.trial_id()

    @property
    def trial_name(self) -> str:
        return _core.trial_name()

    @property
    def logdir(self) -> str:
        """The trial's directory."""
        return _core.trial_dir()

    @property
    def trial_resources(self) -> dict[str, float]:
        return get_context().get_trial_resources()

    def get_config(self) -> dict[str, Any]:
        """Returns the config."""
        return self.config

    def train(self) -> dict[str, Any]:
        """Trains one iteration, without a Tuner, and returns its result."""
        result = dict(self.step())
        self._iteration += 1
        result.setdefault("training_iteration", self._iteration)
        return result

    def save(self, checkpoint_dir: str | None = None) -> str:
        """Writes a checkpoint, without a Tuner, and returns its directory."""
        import tempfile

        directory = checkpoint_dir or tempfile.mkdtemp(prefix="checkpoint_")
        os.makedirs(directory, exist_ok=True)
        self._save(directory)
        return directory

    def restore(self, checkpoint_path: Any) -> None:
        """Restores what save() has written."""
        self._load(os.fspath(getattr(checkpoint_path, "path", checkpoint_path)), self._iteration)

    # ---- What a worker calls

    @classmethod
    def _make(cls):
        trainable = cls.__new__(cls)
        trainable._begin()
        return trainable

    def _begin(self):
        self.config = {}
        self._iteration = 0

    def _setup(self, config, parameters):
        self.config = _values.decode(config)
        self.setup(dict(self.config), **{name: _driver.get(reference) for name, reference in parameters.items()})

    def _step(self, iteration):
        self._iteration = iteration
        result = self.step()
        if not isinstance(result, dict):
            raise TypeError(f"step() of {type(self).__name__} returned {result!r}; it must return a dictionary")
        self._iteration += 1
        return result

    def _save(self, directory):
        returned = self.save_checkpoint(directory)
        if isinstance(returned, dict):
            with open(os.path.join(directory, _DICT_FILE), "wb") as file:
                file.write(_pickle.dumps(returned))  # it may have objects of the program's own classes
        elif not os.listdir(directory):  # a state that needs no file; a checkpoint has at least one
            with open(os.path.join(directory, _EMPTY_FILE), "wb"):
                pass

    def _load(self, directory, iteration):
        self._iteration = iteration
        file = os.path.join(directory, _DICT_FILE)
        if os.path.exists(file):
            with open(file, "rb") as opened:
                self.load_checkpoint(pickle.load(opened))
        else:
            self.load_checkpoint(directory)

    def _reset(self, config):
        config = _values.decode(config)
        if not self.reset_config(dict(config)):
            return False
        self.config = config
        return True


class _Adapted:
    """A trainable with parameters or resources."""

    def __init__(self, function, parameters, resources):
        self.function = function
        self.parameters = parameters
        self.resources = resources
        self.__name__ = _functions.name_of(function)

    def __call__(self, config):
        """Calls the function with its parameters, as programs do that wrap what with_parameters() returns."""
        return self.function(config, **self.parameters)


def with_parameters(trainable: Any, **parameters) -> Any:
    """Returns the trainable with constants for all trials: further arguments of the function, or of setup(). They are
    objects of the experiment, however large, and not part of any config."""
    adapted = _adapted(trainable)
    return _Adapted(adapted.function, {**adapted.parameters, **parameters}, adapted.resources)


def with_resources(trainable: Any, resources: Any) -> Any:
    """Returns the trainable with the resources of each trial: {"cpu": 2, "gpu": 0.5}, a PlacementGroupFactory, or a
    function of the config that returns one of these. Default without a call, or where the function returns None: what the
    class method default_resource_request(config) of a class returns, or one CPU."""
    adapted = _adapted(trainable)
    return _Adapted(adapted.function, adapted.parameters, resources)


class PlacementGroupFactory:
    """Resources in bundles: the first is for the trial's process, the others for workers that it starts."""

    def __init__(self, bundles: Iterable[dict[str, float]], strategy: str = "PACK") -> None:
        self.bundles = list(bundles)
        self.strategy = strategy


_registered: dict[str, Any] = {}


def register_trainable(name: str, trainable: Any) -> None:
    """Gives a trainable a name, by which a Tuner finds it in this process."""
    _registered[name] = trainable


def _adapted(trainable):
    """Returns a trainable, or the one that is registered by a name, with its parameters and resources."""
    if isinstance(trainable, str):
        if trainable not in _registered:
            raise _core.InvalidArgument(f"no trainable is registered as {trainable!r}; register_trainable() does that")
        trainable = _registered[trainable]
    return trainable if isinstance(trainable, _Adapted) else _Adapted(trainable, {}, None)


def stored_trainable(trainable):
    """Returns a trainable in the form in which it is stored. Raises TypeError if it is none, InvalidArgument for a
    name that is not registered."""
    adapted = _adapted(trainable)
    function = adapted.function
    if not callable(function):
        raise TypeError(f"{function!r} is no trainable: a function of the config, or a class that derives from Trainable")
    others = {}
    if isinstance(function, type):
        if not issubclass(function, Trainable):
            raise TypeError(f"the class {function.__name__} does not derive from cadre.tune.Trainable")
        others["methods"] = {name: getattr(function, name) is not getattr(Trainable, name)
                             for name in ("save_checkpoint", "load_checkpoint", "reset_config")}
    stored = {"name": _functions.name_of(function), "host_function": _functions.to_host_function(function, **others)}
    if adapted.parameters:
        stored["parameters"] = {name: _driver.put(value) for name, value in adapted.parameters.items()}
    resources = adapted.resources
    if resources is None and isinstance(function, type):
        resources = getattr(function, "default_resource_request", None)  # a class method of Ray's, of the config
    if resources is not None:
        stored.update(_stored_resources(resources))
    return stored


def _stored_resources(resources):
    if callable(resources):
        function = _functions.to_host_function(_Group(resources))
        return {"resource_function": {"function": _functions.name_of(resources), "host_function": function}}
    group = _stored_group(resources)
    return {"resources": group["bundles"][0], "more_bundles": group["bundles"][1:], "strategy": group["strategy"]}


def _stored_group(resources):
    """Returns a PlacementGroup in the form in which it is stored."""
    if isinstance(resources, PlacementGroupFactory):
        return {"bundles": [_stored_bundle(bundle) for bundle in resources.bundles],
                "strategy": resources.strategy.lower()}
    return {"bundles": [_stored_bundle(resources)], "strategy": "pack"}


def _stored_bundle(bundle):
    if not isinstance(bundle, dict):
        raise TypeError(f"resources are {bundle!r}; they must be a dictionary such as {{'cpu': 2, 'gpu': 0.5}}")
    stored = {"cpus": 0.0, "gpus": 0.0, "custom": {}}
    for name, amount in bundle.items():
        if name.startswith("accelerator_type:"):  # as in Ray: {"accelerator_type:A10G": 0.001}
            stored["accelerator_type"] = name.partition(":")[2]
        elif name.lower() in ("cpu", "gpu"):
            stored[name.lower() + "s"] = float(amount)
        else:
            stored["custom"][name] = float(amount)
    return stored


class _Group:
    """Calls a function of resources, for the core."""

    def __init__(self, func):
        self.func = func

    def __call__(self, config):
        return _stored_group(self.func(config) or {"cpu": 1})
