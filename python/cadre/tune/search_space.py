"""Search spaces: what configs are drawn from."""

from __future__ import annotations

import inspect
import random
from dataclasses import dataclass
from typing import Any, Callable, Iterable

from cadre import _functions, _values


class Domain:
    """What a value is drawn from. Made by uniform(), choice() and the others below."""

    def __init__(self, kind, sample, **members):
        self._kind = kind
        self._sample = sample
        self._members = members

    def sample(self, config: Any = None, size: int = 1, random_state=None) -> Any:
        """Returns a value or, with a size above 1, a list of values, of this process's generator `random`, or of
        random_state: a seed, a random.Random, or a generator of numpy's, which seeds one. Trials get their values from the
        experiment's own generators. config: the argument of a function of sample_from(), or a list with one for each
        value; other domains ignore it."""
        generator = random if random_state is None else random_state
        if not isinstance(generator, random.Random) and generator is not random:
            generator = random.Random(random_state.random() if hasattr(random_state, "random") else int(random_state))
        values = [self._sample(generator) for _ in range(size)]
        return values[0] if size == 1 else values

    def _stored(self):
        return {"type": self._kind, **self._members}

    def __repr__(self):
        return f"{self._kind}({', '.join(f'{key}={value!r}' for key, value in self._members.items())})"


def _rounded(value, q):
    return round(value / q) * q if q else value


def _logarithmic(generator, lower, upper):
    from math import exp, log

    return exp(generator.uniform(log(lower), log(upper)))


def uniform(lower: float, upper: float) -> Domain:
    """Returns a number from lower to upper, all equally likely."""
    return quniform(lower, upper, 0)


def quniform(lower: float, upper: float, q: float) -> Domain:
    """Returns the same, rounded to multiples of q."""
    return Domain("uniform", lambda generator: _rounded(generator.uniform(lower, upper), q), lower=lower, upper=upper, q=q)


def loguniform(lower: float, upper: float, base: float = 10) -> Domain:
    """Returns a number from lower to upper, both above 0, whose logarithms are equally likely. The base changes nothing."""
    del base
    return qloguniform(lower, upper, 0)


def qloguniform(lower: float, upper: float, q: float, base: float = 10) -> Domain:
    """Returns the same, rounded to multiples of q."""
    del base
    return Domain("loguniform", lambda generator: _rounded(_logarithmic(generator, lower, upper), q), lower=lower,
                  upper=upper, q=q)


def randn(mean: float = 0.0, sd: float = 1.0) -> Domain:
    """Returns a normally distributed number."""
    return qrandn(mean, sd, 0)


def qrandn(mean: float, sd: float, q: float) -> Domain:
    """Returns the same, rounded to multiples of q."""
    return Domain("randn", lambda generator: _rounded(generator.gauss(mean, sd), q), mean=mean, sd=sd, q=q)


def randint(lower: int, upper: int) -> Domain:
    """Returns an integer from lower to upper - 1, all equally likely."""
    return Domain("randint", lambda generator: generator.randrange(lower, upper), lower=lower, upper=upper, q=0)


def qrandint(lower: int, upper: int, q: int = 1) -> Domain:
    """Returns a multiple of q from lower to upper, which is included."""
    return Domain("randint", lambda generator: _rounded(generator.randint(lower, upper), q), lower=lower, upper=upper, q=q)


def lograndint(lower: int, upper: int, base: float = 10) -> Domain:
    """Returns an integer from lower to upper - 1 whose logarithms are equally likely. The base changes nothing."""
    del base
    return Domain("lograndint", lambda generator: int(_logarithmic(generator, lower, upper)), lower=lower, upper=upper, q=0)


def qlograndint(lower: int, upper: int, q: int, base: float = 10) -> Domain:
    """Returns a multiple of q from lower to upper, which is included, whose logarithms are equally likely."""
    del base
    return Domain("lograndint", lambda generator: _rounded(int(_logarithmic(generator, lower, upper)), q), lower=lower,
                  upper=upper, q=q)


def choice(categories: Iterable[Any]) -> Domain:
    """Returns one of these, all equally likely; an entry may be a domain or a nested space itself."""
    options = list(categories)
    return _Choice("choice", lambda generator: generator.choice(options), options=options)


class _Choice(Domain):
    def _stored(self):
        return {"type": "choice", "options": stored_entries(self._members["options"])}


class Function(Domain):
    """A value that a function of the program returns: sample_from()."""

    def __init__(self, function):
        super().__init__("sample_from", None, function=_functions.name_of(function))
        self.function = function

    def sample(self, config: Any = None, size: int = 1, random_state=None) -> Any:
        del random_state
        configs = config if isinstance(config, list) else [config or {}] * size
        values = [_WithSpec(self.function)(configs[number]) for number in range(size)]
        return values[0] if size == 1 else values

    def _stored(self):
        call = _functions.to_host_function(_WithSpec(self.function))
        return {"type": "sample_from", "function": _functions.name_of(self.function), "host_function": call}


def sample_from(function: Callable[..., Any]) -> Domain:
    """Returns what the function returns, which is called with the config so far, in the process of the Tuner, once for
    each trial, after all other values were drawn. It may return something else each time: a restore takes the config
    from the store. A function of Ray Tune that reads spec.config gets such an object, and one without parameters
    nothing."""
    return Function(function)


def grid_search(values: Iterable[Any]) -> dict[str, list[Any]]:
    """Returns a grid: one trial for each of the values, in each sample."""
    return {"grid_search": list(values)}


class Config(dict):
    """A config whose entries are attributes too, as functions for Ray Tune read them: config["lr"], spec.config.lr."""

    def __getattr__(self, name):
        if name == "config" and "config" not in self:
            return self
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(name) from None
        return Config(value) if isinstance(value, dict) else value


@dataclass
class _WithSpec:
    """Calls a function with a config in the form that both kinds of functions read, or a function without parameters."""

    func: object

    def __call__(self, config):
        return self.func(Config(config)) if _takes_config(self.func) else self.func()


def _takes_config(function):
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of a function in C
        return True
    try:
        signature.bind({})
    except TypeError:
        return False
    return True


def stored_space(space):
    """Returns a space of Ray's form in the form in which it is stored."""
    return {key: stored_entry(entry) for key, entry in space.items()}


def stored_entries(entries):
    return [stored_entry(entry) for entry in entries]


def stored_entry(entry):
    if isinstance(entry, Domain):
        return entry._stored()
    if isinstance(entry, dict) and set(entry) == {"grid_search"}:
        return {"type": "grid_search", "options": stored_entries(entry["grid_search"])}
    if isinstance(entry, dict) and (has_domains(entry) or _may_be_space(entry)):
        return {"type": "space", "entries": stored_space(entry)}
    if isinstance(entry, (list, tuple)) and any(has_domains(item) for item in entry):
        return {"type": "list", "items": stored_entries(entry)}
    return {"type": "constant", "value": _values.encode(entry)}


def _may_be_space(entry):
    """Returns true for constants that mutations can reach one by one."""
    return entry and all(type(key) is str and key and "/" not in key for key in entry)


def has_domains(entry, but=()):
    """Returns true for an entry that is drawn, or that holds one; classes of domains in `but` do not count."""
    if isinstance(entry, Domain):
        return not isinstance(entry, but)
    if isinstance(entry, dict):
        return set(entry) == {"grid_search"} or any(has_domains(item, but) for item in entry.values())
    return isinstance(entry, (list, tuple)) and any(has_domains(item, but) for item in entry)
