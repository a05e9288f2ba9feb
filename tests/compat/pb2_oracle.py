"""A model of Population Based Bandits, beside pbt_oracle.py.

Written from the paper (https://arxiv.org/abs/2002.02518), Ray Tune's pb2.py, and the comments of Cadre's header and of
the differences in docs/from-ray-tune.md. The trials that exploit, and their donors, are those of pbt_oracle.py. The model
does not choose hyper-parameters, because a maximum that is searched for is not the same in two programs: it asks for the
program's and judges them. What it judges is appended to `judgements`.
"""

import functools
import math

import numpy

from pbt_oracle import Oracle, number
from search_space_oracle import INTEGERS, exact, keep_inside, multiple, multiples, range_of

MOST_ROWS = 200
SHARE_JUDGED = 0.3  # of the choices, because judging takes longer than choosing
USUAL_RATE = -math.log(1 - 0.1) / 2


# ---- Hyper-parameters as coordinates

def flat(entries, path=""):
    """Returns the domains of mutations, by path."""
    domains = {}
    for key, entry in entries.items():
        if entry[0] == "nested":
            domains |= flat(entry[1], f"{path}{key}/")
        else:
            domains[path + key] = entry
    return domains


def value_at(config, path):
    for key in path.split("/"):
        config = config[key]
    return config


def cells(domain):
    """Returns the values of a discrete domain and the ends of their cells; None for a continuum."""
    return cells_of(tuple(domain))


@functools.lru_cache
def cells_of(domain):
    kind, low, high, *q = domain
    if q:
        first, last = multiples(low, high, q[0])
        ks = range(first, last + 1)
        values = [float(multiple(k, q[0])) for k in ks]
    elif kind in INTEGERS:
        values = list(range(low, high))
    else:
        return None
    if kind == "lograndint" and not q:
        ends = [math.log(value / low) / math.log(high / low) for value in [*values, high]]
    else:
        ends = [i / len(values) for i in range(len(values) + 1)]
    return numpy.array(values), numpy.array(ends)


def coordinate(domain, value):
    value = keep_inside(domain, float(value), "clip")
    if discrete := cells(domain):
        values, ends = discrete
        place = abs(values - value).argmin()
        return (ends[place] + ends[place + 1]) / 2
    kind, low, high = domain
    place = math.log(value / low) / math.log(high / low) if kind == "loguniform" else (value - low) / (high - low)
    return min(place, 1 - 2**-53)


def settle(domain, places):
    """Returns the middles of the cells of coordinates."""
    if discrete := cells(domain):
        ends = discrete[1]
        cell = numpy.clip(numpy.searchsorted(ends, places, side="right") - 1, 0, len(ends) - 2)
        return (ends[cell] + ends[cell + 1]) / 2
    return places


# ---- The Gaussian process

def covariances(a, b, scale, rate, variance):
    distances = ((a[:, None, 1:] - b[None, :, 1:])**2).sum(axis=2)
    ages = abs(a[:, None, 0] - b[None, :, 0])
    return variance * numpy.exp(-scale * distances / 2 - rate * ages)


def log_density(logarithms, points, values):
    """Returns the logarithm of the likelihood times the priors, but for a constant."""
    scale, rate, variance, noise = numpy.exp(logarithms)
    if noise < 1e-7:
        return -math.inf
    matrix = covariances(points, points, scale, rate, variance) + noise * numpy.eye(len(values))
    sign, determinant = numpy.linalg.slogdet(matrix)
    if sign <= 0:
        return -math.inf
    likelihood = -0.5 * (determinant + values @ numpy.linalg.solve(matrix, values))
    return (likelihood - 0.1 * (scale + 1 / scale) - (math.log(rate / USUAL_RATE))**2 / 2 + math.log(variance) - variance
            + 0.1 * math.log(noise) - 30 * noise)


class Bound:
    """The upper confidence bound by the hyper-parameters, with all else fixed."""

    def __init__(self, points, values, pending, fixed, logarithms):
        scale, rate, self.variance, noise = numpy.exp(logarithms)
        self.covariances = lambda a, b: covariances(a, b, scale, rate, self.variance)
        self.points, self.fixed = points, fixed
        matrix = self.covariances(points, points) + noise * numpy.eye(len(points))
        self.weights = numpy.linalg.solve(matrix, values)
        self.known = numpy.vstack([points, *pending]) if pending else points
        self.inverse = numpy.linalg.inv(self.covariances(self.known, self.known) + noise * numpy.eye(len(self.known)))
        self.width = math.sqrt(0.2 + max(0, math.log(0.4 * len(values))))

    def __call__(self, places):
        rows = numpy.hstack([numpy.tile(self.fixed, (len(places), 1)), places])
        mean = self.covariances(rows, self.points) @ self.weights
        near = self.covariances(rows, self.known)
        variance = self.variance - ((near @ self.inverse) * near).sum(axis=1)
        return mean + self.width * numpy.sqrt(numpy.maximum(variance, 1e-12))


def climb(function, start, width, tries, rng):
    """Returns the highest value of a function of many points that it finds around `start`, in ever smaller steps."""
    best, value = start, function(start[None, :])[0]
    for step in width * 0.5**numpy.arange(14):
        tried = best + step * rng.standard_normal((tries, len(start)))
        values = function(tried)
        if values.max() > value:
            best, value = tried[values.argmax()], values.max()
    return value


def maximum(bound, domains, rng):
    """Returns the highest value among many random points, and near the best of them."""
    def settled(places):
        places = numpy.clip(places, 0, 1)
        for i, domain in enumerate(domains):
            places[:, i] = settle(domain, places[:, i])
        return bound(places)

    places = rng.random((2000, len(domains)))
    values = settled(places)
    return max(climb(settled, start, 0.2, 60, rng) for start in places[numpy.argsort(values)[-3:]])


class Pb2Oracle(Oracle):
    """`chosen`: returns the program's config for an exploit of a trial, how it changed each key, and its kernel's
    hyper-parameters (length scale, epsilon, variance, noise); None if it has drawn the config."""

    def __init__(self, settings, chosen):
        super().__init__(settings)
        self.chosen = chosen
        self.bounds = flat(settings["mutations"])
        self.rows = []  # time and score before, growth per unit of time, coordinates
        self.starts = {}  # of trials: time, score, coordinates, chosen
        self.judgements = []
        self.rng = numpy.random.default_rng(settings["seed"] % 2**32)

    def _place(self, config):
        return [coordinate(domain, value_at(config, path)) for path, domain in self.bounds.items()]

    def _finish(self, trial, kind):
        self.starts.pop(trial.index, None)
        super()._finish(trial, kind)

    def _note_interval(self, trial, time):
        start = self.starts.pop(trial.index, None)
        if not math.isfinite(trial.last_score):
            return
        place = self._place(trial.config)
        if start and time > start[0]:
            growth = (trial.last_score - start[1]) / (time - start[0])
            self.rows = [*self.rows, (start[0], start[1], growth, place)][-MOST_ROWS:]
        self.starts[trial.index] = (time, trial.last_score, place, False)

    def _explore(self, trial, donor):
        metrics = donor.latest.metrics
        time, score = number(metrics, self.pbt["time_attr"]), number(metrics, self.pbt["metric"])
        if time is not None and score is not None and math.isfinite(time) and math.isfinite(score):
            score = score if self.pbt["mode"] == "max" else -score
        else:
            time, score = donor.last_train_time, donor.last_score
        knows = bool(self.rows) and math.isfinite(score)
        config, operations, fitted = self.chosen(trial.index)
        self._check_config(config, operations, donor.config, "bandit" if knows else "resample")
        assert (fitted is not None) == knows, (fitted, knows)
        if fitted and self.rng.random() < SHARE_JUDGED:
            self._judge(trial, time, score, config, fitted)
        self.starts.pop(trial.index, None)
        if math.isfinite(score):
            self.starts[trial.index] = (time, score, self._place(config), True)
        return config, operations

    def _check_config(self, config, operations, of_donor, operation):
        """Checks that the bounded keys have values of their domains, and all else that of the donor."""
        assert operations == dict.fromkeys(self.bounds, operation), operations
        for path, domain in self.bounds.items():
            value, old = value_at(config, path), value_at(of_donor, path)
            low, high, q = range_of(domain)
            assert type(value) is type(old) and low <= value <= high, (path, value, old)
            assert q is None or exact(value) % exact(q) == 0 or isinstance(value, int), (path, value)

        def others(entries, path=""):
            for key, value in entries.items():
                if isinstance(value, dict):
                    yield from others(value, f"{path}{key}/")
                elif path + key not in self.bounds:
                    yield path + key, value

        assert list(others(config)) == list(others(of_donor)), (config, of_donor)

    def _features(self, time, score, place):
        scores = [row[1] for row in self.rows]
        span = max(scores) - min(scores)
        scaled = (score - min(scores)) / span if span > 0 else (score - min(scores)) / 2
        return [time / self.pbt["perturbation_interval"], scaled, *place]

    def _judge(self, trial, time, score, config, fitted):
        length_scale, epsilon, variance, noise = fitted
        logarithms = numpy.log([length_scale**-2, -math.log(1 - epsilon) / 2, variance, noise])
        points = numpy.array([self._features(*row[:2], row[3]) for row in self.rows])
        growths = numpy.array([row[2] for row in self.rows])
        growths = growths / (abs(growths).max() or 1)
        growths = growths - growths.mean()
        deviation = growths.std()
        values = numpy.clip(growths / (deviation if deviation > 1e-9 else 1), -2, 2)
        pending = [numpy.array([self._features(*start[:3])]) for index, start in sorted(self.starts.items())
                   if start[3] and index != trial.index]
        fixed = numpy.array(self._features(time, score, []))
        domains = list(self.bounds.values())
        bound = Bound(points, values, pending, fixed, logarithms)
        at_chosen = bound(numpy.array([self._place(config)]))[0]
        density = log_density(logarithms, points, values)
        refit = climb(lambda some: numpy.array([log_density(one, points, values) for one in some]), logarithms, 0.3,
                      15, self.rng)
        self.judgements.append({"rows": len(self.rows), "pending": len(pending),
                                "missed_bound": maximum(bound, domains, self.rng) - at_chosen,
                                "missed_density": refit - density})
