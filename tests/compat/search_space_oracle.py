"""A model of search spaces: the configs of all trials, the parts that are shown, and the exploration of a value.

Written from the descriptions (the headers of Cadre, docs/formats.md, "Random streams", docs/from-ray-tune.md for the
differences from Ray Tune, and Ray Tune's own behaviour for the rest), not from the C++ code.

A space is a dictionary of entries, an entry a list:

    ["constant", value]   ["space", {key: entry}]   ["items", [entry]]   ["grid", [entry]]   ["options", [entry]] (a choice)
    ["function", name]    of FUNCTIONS below: sample_from
    ["uniform" | "loguniform" | "randint" | "lograndint", lower, upper], ["quniform" and so on, lower, upper, q]
    ["randn", mean, sd], ["qrandn", mean, sd, q], ["choice" | "ordinal", [value]]
"""

import copy
import itertools
import math
import re
from fractions import Fraction

import xxhash

SEARCH_SPACE, EXPLOIT, EXPLORE = 1, 2, 3  # purposes of streams
INTEGERS = ("randint", "lograndint", "qrandint", "qlograndint")
NUMBERS = (*INTEGERS, "uniform", "loguniform", "quniform", "qloguniform", "randn", "qrandn")
MISSING = object()


# ---- Random numbers

def philox(counter, key):
    """Computes Philox4x32-10: returns four words for a counter of four words and a key of two."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        left, right = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (right >> 32) ^ c1 ^ k0, right & 0xFFFFFFFF, (left >> 32) ^ c3 ^ k1, left & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


class Stream:
    """The random numbers of a trial for one purpose, beginning at an index."""

    def __init__(self, seed, trial, purpose, index=0):
        self.key = (seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF)
        self.trial, self.purpose, self.index = trial, purpose, index

    def uniform(self):
        words = philox((self.index & 0xFFFFFFFF, self.index >> 32, self.trial, self.purpose), self.key)
        self.index = (self.index + 1) % 2**64
        return ((words[1] << 32 | words[0]) >> 11) * 2.0**-53

    def below(self, n):
        return math.floor(self.uniform() * n)

    def normal(self):
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())


# ---- Functions of the program, the same as in pbt_decisions_tool

FUNCTIONS = {
    "ten_times_uniform": lambda config, stream: 10 * stream.uniform(),
    "number_of_keys": lambda config, stream: len(config),
}


def mark(config, stream):
    """The custom_explore_fn."""
    return {**config, "mark": stream.below(1000)}


# ---- Domains

def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def exact(number):
    """Returns the number as it was written: 0.1 is a tenth."""
    return Fraction(repr(number))


def multiples(lower, upper, q):
    """Returns the first and the last k with lower <= k * q <= upper."""
    return math.ceil(exact(lower) / exact(q)), math.floor(exact(upper) / exact(q))


def multiple(k, q):
    return k * q if isinstance(q, int) else float(k * exact(q))


def draw_log(lower, upper, stream):
    return math.exp(math.log(lower) + stream.uniform() * (math.log(upper) - math.log(lower)))


def draw(domain, stream):
    kind, *words = domain
    if kind in ("choice", "ordinal", "list"):
        return words[0][stream.below(len(words[0]))]
    if kind in ("randn", "qrandn"):
        value = words[0] + words[1] * stream.normal()
        return value if kind == "randn" else float(multiple(round(value / words[2]), words[2]))
    if len(words) == 3:
        lower, upper, q = words
        first, last = multiples(lower, upper, q)
        if kind in ("quniform", "qrandint"):
            k = first + stream.below(last - first + 1)
        else:  # from half a step below the first one to half a step above the last one
            k = max(first, min(round(draw_log(first - 0.5, last + 0.5, stream)), last))
        return multiple(k, q) if kind in INTEGERS else float(multiple(k, q))
    low, high = words
    if kind == "randint":
        return low + stream.below(high - low)
    if kind == "lograndint":
        return max(low, min(math.floor(draw_log(low, high, stream)), high - 1))
    value = low + stream.uniform() * (high - low) if kind == "uniform" else draw_log(low, high, stream)
    return max(float(low), min(value, math.nextafter(high, low)))


def range_of(domain):
    """Returns (least, greatest, q or None), both ends included."""
    kind, low, high, *q = domain
    if kind in ("randn", "qrandn"):
        return -math.inf, math.inf, q[0] if q else None
    if q:
        first, last = multiples(low, high, q[0])
        return multiple(first, q[0]), multiple(last, q[0]), q[0]
    return low, high - 1 if kind in INTEGERS else high, None


# ---- Exploring

def position(options, value):
    """Returns the index of a value in a list, None if it is missing; a bool is no number."""
    for index, option in enumerate(options):
        if option == value and isinstance(option, bool) == isinstance(value, bool):
            return index
    return None


def reflect(value, low, high):
    """Reflects the value at the bounds until it is inside."""
    if low >= high:
        return float(low)
    way = math.fmod(abs(value - low), 2 * (high - low))
    return low + min(way, 2 * (high - low) - way)


def keep_inside(domain, value, bounds):
    """Moves the value into the domain, to a multiple of its q; an int stays an int."""
    low, high, q = range_of(domain)
    new = float(value)
    if not low <= new <= high and bounds == "clip":
        new = float(max(low, min(new, high)))
    elif not low <= new <= high and bounds == "reflect":
        if "log" not in domain[0]:
            new = reflect(new, low, high)
        else:
            new = math.exp(reflect(math.log(new), math.log(low), math.log(high))) if new > 0 else float(low)
    if q is not None and math.isfinite(new):
        new = float(multiple(round(new / q), q))
    if isinstance(value, float):
        return new
    if new == value:
        return value
    if bounds == "unbounded":
        return round(new)
    least, greatest = (-math.inf, math.inf) if math.isinf(low) else (math.ceil(low), math.floor(high))
    return max(least, min(round(new), greatest)) if least <= greatest else round(new)


def to_integer(number):
    """Returns the nearest integer within 2^62."""
    return round(max(-(2.0**62), min(number, 2.0**62)))


def scale(value, factor, step):
    """Multiplies the value by the factor; changes it by one step at least, if there are steps."""
    new = value * factor
    if step and factor != 1 and math.isfinite(new) and round(new / step) == round(value / step):
        new = value + step if (factor > 1) == (value >= 0) else value - step
    return new if isinstance(value, float) else to_integer(new)


class Explorer:
    """Changes the config of a donor. `pbt` are the scheduler's settings."""

    def __init__(self, pbt, donor, stream):
        self.pbt, self.donor, self.stream, self.operations = pbt, donor, stream, {}

    def explore(self, config, mutations, path=""):
        config = copy.deepcopy(config)
        for key, mutation in mutations.items():
            if key not in config:
                continue  # the option that the donor has of a conditional space lacks the key
            if mutation[0] == "nested":
                if isinstance(config[key], dict):
                    config[key] = self.explore(config[key], mutation[1], f"{path}{key}/")
            elif mutation[0] in NUMBERS:
                config[key], self.operations[path + key] = self._number(config[key], mutation)
            elif mutation[0] == "function":
                config[key], self.operations[path + key] = self._function(config[key], FUNCTIONS[mutation[1]])
            else:
                config[key], self.operations[path + key] = self._neighbour(config[key], mutation)
        return config

    def customize(self, config):
        custom = mark(config, self.stream)
        for key, value in custom.items():
            if key not in config or config[key] != value:
                self.operations[key] = "custom_explore_fn"
        return custom

    def _resamples(self):
        return self.stream.uniform() < self.pbt["resample_probability"]

    def _factor(self):
        return float(self.pbt["perturbation_factors"][self.stream.below(2)])

    def _neighbour(self, old, mutation):
        options = mutation[1]
        here = position(options, old)
        if self._resamples() or here is None:
            return draw(mutation, self.stream), "resample"
        side = self.stream.below(2)
        there = max(0, min(here + (-1, 1)[side], len(options) - 1))
        return options[there], f"shift {('left', 'right')[side]}" + (" (noop)" if there == here else "")

    @staticmethod
    def _of_type(old, new):
        if is_number(old) and is_number(new):
            return float(new) if isinstance(old, float) else to_integer(new)
        return new

    def _number(self, old, mutation):
        if self._resamples() or not is_number(old):
            return keep_inside(mutation, self._of_type(old, draw(mutation, self.stream)), "clip"), "resample"
        factor, q = self._factor(), range_of(mutation)[2]
        step = q or 0 if isinstance(old, float) else max(q or 0, 1)
        return keep_inside(mutation, scale(old, factor, step), self.pbt["bounds"]), f"* {factor!r}"

    def _function(self, old, function):
        if self._resamples() or not is_number(old):
            return self._of_type(old, function(self.donor, self.stream)), "resample"
        factor = self._factor()
        return scale(old, factor, 0 if isinstance(old, float) else 1), f"* {factor!r}"


# ---- Configs of trials

def join(path, key):
    return f"{path}/{key}" if path else str(key)


def given(point, path):
    """Returns a point's value at a path, or MISSING."""
    if path in point:
        return point[path]
    head, slash, rest = path.partition("/")
    return given(point[head], rest) if slash and isinstance(point.get(head), dict) else MISSING


def combinations(entry, path, point):
    """Returns the entry with each combination of its grids' options, in order: the first grid by path varies fastest.
    Grids inside a grid's options belong to that grid."""
    kind, content = entry[0], entry[1]
    if kind != "space" and given(point, path) is not MISSING:
        return [entry]
    if kind == "grid":
        return [["chosen", settled] for option in content for settled in combinations(option, path, point)]
    if kind == "items":
        return [["items", list(reversed(items))] for items in
                itertools.product(*(combinations(item, path, point) for item in reversed(content)))]
    if kind == "space":
        keys = sorted(content, reverse=True)
        product = itertools.product(*(combinations(content[key], join(path, key), point) for key in keys))
        return [["space", {key: settled[keys.index(key)] for key in content}] for settled in product]
    return [entry]


class Call:
    """A function that is yet to be called, and the place of its random numbers."""

    def __init__(self, name, place):
        self.function, self.place = FUNCTIONS[name], place


class Variant:
    """The config of one trial, and the paths that vary."""

    def __init__(self, space, point, seed, stream_number):
        self.point, self.seed, self.stream_number, self.varied = point, seed, stream_number, set()
        self.config = self._settle(space, "", "")
        while self._call_first(self.config):
            pass
        self.sampled = {}
        self._collect(self.config, "", False)

    def _settle(self, entry, path, place):
        kind, content = entry[0], entry[1]
        if kind == "space":
            return {key: self._settle(item, join(path, key), join(place, key)) for key, item in content.items()}
        if given(self.point, path) is not MISSING:
            self.varied.add(path)
            return copy.deepcopy(given(self.point, path))
        if kind == "constant":
            return copy.deepcopy(content)
        if kind == "items":
            return [self._settle(item, path, join(place, index)) for index, item in enumerate(content)]
        self.varied.add(path)
        if kind == "function":
            return Call(content, place)
        if kind == "chosen":
            return self._settle(content, path, place + "/option")
        stream = self._stream(place)
        if kind == "options":
            return self._settle(content[stream.below(len(content))], path, place + "/option")
        return draw(entry, stream)

    def _stream(self, place):
        return Stream(self.seed, self.stream_number, SEARCH_SPACE, xxhash.xxh3_64_intdigest(place.encode()))

    def _call_first(self, part):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(value, Call):
                part[key] = value.function(self._without_calls(self.config), self._stream(value.place))
                return True
            if isinstance(value, (dict, list)) and self._call_first(value):
                return True
        return False

    def _without_calls(self, part):
        if isinstance(part, dict):
            return {key: self._without_calls(value) for key, value in part.items() if not isinstance(value, Call)}
        if isinstance(part, list):
            return [self._without_calls(value) for value in part if not isinstance(value, Call)]
        return part

    def _collect(self, entries, path, inside):
        for key, value in entries.items():
            name = join(path, key)
            varies = inside or name in self.varied
            if isinstance(value, dict) and value:
                self._collect(value, name, varies)
            elif varies:
                self.sampled[name] = value


def beginning_of_replay(space, config, complete=False):
    """Replaces entries by the replayed config's values. Keys that it lacks stay, except in a nested space."""
    settled = {}
    for key, entry in space.items():
        if key not in config:
            if not complete:
                settled[key] = entry
        elif entry[0] == "constant":
            settled[key] = ["constant", config[key]]
        elif entry[0] == "space" and isinstance(config[key], dict):
            settled[key] = ["space", beginning_of_replay(entry[1], config[key], True)]
        else:
            settled[key] = ["choice", [config[key]]]  # still counts as varying, with this value
    return settled | {key: ["constant", value] for key, value in config.items() if key not in space}


def variants(settings):
    """Returns all trials of an experiment, in order."""
    space, seed, constant = ["space", settings["space"]], settings["seed"], settings["constant_grid_search"]
    points = settings["points"]
    samples = points + [{}] * max(0, settings["num_samples"] - len(points))
    made = []
    for sample, point in enumerate(samples):
        for combination in combinations(space, "", point):
            made.append(Variant(combination, point, seed, sample if constant else len(made)))
    return made


def number_text(value):
    return f"{value:.4f}" if value == 0 or not abs(value) < 0.01 else f"{value:.3g}"


def tag_of(index, sampled):
    def clean(text):
        return re.sub("[^a-zA-Z0-9_-]+", "_", text).strip("_")

    by_path = sorted(((path.split("/"), value) for path, value in sampled.items()), key=lambda item: item[0])
    words = [clean(path[-1]) + "=" + (number_text(value) if isinstance(value, float) else clean(str(value)))
             for path, value in by_path]
    return f"{index}_{','.join(words)}" if words else str(index)
