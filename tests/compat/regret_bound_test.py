"""A RegretBoundTerminator's bound is the formula's, and ends a search where Optuna's Terminator does."""

import functools
import json
import math
import os
import pathlib
import subprocess
import unittest
import warnings

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.terminator import (CrossValidationErrorEvaluator, MedianErrorEvaluator, RegretBoundEvaluator,
                               StaticErrorEvaluator, Terminator)

TOOL = pathlib.Path(os.environ["CADRE_BIN"]) / "regret_bound_tool"
SPACE = {
    "x": {"type": "uniform", "lower": -2, "upper": 3, "q": 0},
    "lr": {"type": "loguniform", "lower": 1e-5, "upper": 1, "q": 0},
    "layers": {"type": "randint", "lower": 1, "upper": 7, "q": 0},
    "act": {"type": "choice", "options": [{"type": "constant", "value": "relu"}, {"type": "constant", "value": "tanh"}]},
}
DISTRIBUTIONS = {
    "x": FloatDistribution(-2, 3),
    "lr": FloatDistribution(1e-5, 1, log=True),
    "layers": IntDistribution(1, 6),
    "act": CategoricalDistribution(["relu", "tanh"]),
}
CHOICE = 3  # index of the feature
FOLDS = 5


def drawn(rng, width):
    """Returns a config, near the best one if `width` is small."""
    near = lambda middle, half: middle + half * width * rng.uniform(-1, 1)
    return {"x": float(np.clip(near(1, 2), -2, 3)), "lr": float(10 ** np.clip(near(-3, 2), -5, 0)),
            "layers": int(np.clip(round(near(3, 3)), 1, 6)), "act": "relu" if rng.uniform() > width / 2 else "tanh"}


def trial(rng, width, noise):
    """Returns a config and a result: the mean of the scores of a cross-validation."""
    config = drawn(rng, width)
    loss = ((config["x"] - 1) ** 2 / 4 + abs(math.log10(config["lr"]) + 3) ** 2 / 9 + abs(config["layers"] - 3) / 10
            + (0.2 if config["act"] == "tanh" else 0))
    scores = [loss + noise * rng.normal() for _ in range(FOLDS)]
    return {"config": config, "result": {"loss": float(np.mean(scores)), "score": -float(np.mean(scores)),
                                         "cv_scores": scores}}


def search(seed, count=60, noise=0.02):
    """Returns trials that come closer to the best config."""
    rng = np.random.default_rng(seed)
    return [trial(rng, max(0.15, 1 - number / 40), noise) for number in range(count)]


def answers(trials, error, seed=1, metric="loss", mode="min", **options):
    """Returns the answers of regret_bound_tool.cc after each trial."""
    stopper = {"type": "RegretBoundTerminator", "metric": metric, "mode": mode, "error": error, **options}
    lines = [{"param_space": SPACE, "stopper": stopper, "seed": seed}, *trials]
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run([TOOL], input=asked, capture_output=True, text=True, check=True, timeout=200)
    return [json.loads(line) for line in done.stdout.splitlines()]


def study_of(trials, metric="loss", direction="minimize"):
    study = optuna.create_study(direction=direction)
    for one in trials:
        study.add_trial(optuna.trial.create_trial(
            params=one["config"], distributions=DISTRIBUTIONS, value=one["result"][metric],
            system_attrs={"terminator:cv_scores": one["result"]["cv_scores"]}))
    return study


def static(constant):
    return {"type": "StaticError", "constant": constant}


@functools.cache
def undecided(seed):
    """Returns the trials of a search and the answers to them."""
    trials = search(seed)
    return trials, answers(trials, static(1e-9))


class Model:
    """The Gaussian process of an answer, by numpy: a Matern 5/2 kernel of points, with the choice as a category."""

    def __init__(self, answer):
        self.points, self.values = np.array(answer["points"]), np.array(answer["values"])
        self.weights, self.variance = np.exp(answer["kernel"][:-1]), np.exp(answer["kernel"][-1])
        noisy = self.covariances(self.points) + np.exp(answer["log_noise"]) * np.eye(len(self.points))
        self.inverse, self.beta = np.linalg.inv(noisy), answer["beta"]

    def covariances(self, points):
        squared = 0
        for feature, weight in enumerate(self.weights):
            difference = points[:, None, feature] - self.points[None, :, feature]
            squared = squared + weight * (difference != 0 if feature == CHOICE else difference ** 2)
        r = np.sqrt(5 * squared)
        return self.variance * (1 + r + r ** 2 / 3) * np.exp(-r)

    def bounds(self, points):
        """Returns lower and upper confidence bounds."""
        covariances = self.covariances(points)
        means = covariances @ self.inverse @ self.values
        variances = np.maximum(0, self.variance - np.einsum("ij,jk,ik->i", covariances, self.inverse, covariances))
        return means - np.sqrt(self.beta * variances), means + np.sqrt(self.beta * variances)


def features(point):
    """Returns a point's features: the option of the choice, and numbers as they are."""
    return [[*point[:CHOICE], math.floor(2 * point[CHOICE])]]


class RegretBoundTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")

    def test_the_bound_is_that_of_the_formula_for_the_same_kernel(self):
        rng = np.random.default_rng(0)
        anywhere = rng.uniform(size=(20000, 4))
        anywhere[:, 2] = (np.floor(6 * anywhere[:, 2]) + 0.5) / 6  # layers
        anywhere[:, CHOICE] = np.floor(2 * anywhere[:, CHOICE])
        for seed in range(3):
            trials, told = undecided(seed)
            self.assertEqual(len(told), len(trials))
            for count in (1, 2, 19, 20, 21, 45, 60):
                with self.subTest(seed=seed, trials=count):
                    answer = told[count - 1]
                    losses = sorted(one["result"]["loss"] for one in trials[:count])
                    top = losses[:min(max(count // 2, 20), count)]
                    self.assertEqual(len(answer["values"]), len(top))
                    scale = max(1e-10, np.std(top))
                    np.testing.assert_allclose(sorted(answer["values"]), (top - np.mean(top)) / scale, atol=1e-9)
                    beta = 2 * np.log(4 * len(top) ** 2 * np.pi ** 2 / 6 / 0.1) / 5
                    self.assertAlmostEqual(answer["beta"], beta, places=12)
                    model = Model(answer)
                    lower, upper = model.bounds(model.points)
                    lowest = min(lower.min(), model.bounds(np.array(features(answer["lowest"])))[0].min())
                    self.assertLess(abs(answer["bound"] - scale * (upper.min() - lowest)), 1e-6 * scale)
                    self.assertGreater(model.bounds(anywhere)[0].min(), lowest - 0.01)  # no random point is lower

    def test_the_bound_is_about_optunas(self):
        """The kernels are fitted to nearly the same; with many trials the fits may end in different optima."""
        for seed in range(3):
            trials, told = undecided(seed)
            for count, most in (20, 1.15), (40, 1.15), (60, 2):
                theirs = RegretBoundEvaluator(seed=0).evaluate(study_of(trials[:count]).trials, StudyDirection.MINIMIZE)
                with self.subTest(seed=seed, trials=count, ours=told[count - 1]["bound"], theirs=theirs):
                    self.assertLess(abs(math.log(told[count - 1]["bound"] / theirs)), math.log(most))

    def test_clear_cases_are_decided_as_by_optuna(self):
        for seed in range(2):
            trials, bound = undecided(seed)[0][:40], undecided(seed)[1][39]["bound"]
            for constant in (bound / 2, 2 * bound):
                terminator = Terminator(RegretBoundEvaluator(seed=0), StaticErrorEvaluator(constant))
                theirs = terminator.should_terminate(study_of(trials))
                ours = answers(trials, static(constant))[-1]["reason"]
                self.assertEqual(ours is not None, theirs)
                self.assertEqual(theirs, constant > bound)
                # The same experiment the other way round.
                theirs = terminator.should_terminate(study_of(trials, "score", "maximize"))
                ours = answers(trials, static(constant), metric="score", mode="max")[-1]["reason"]
                self.assertEqual(ours is not None, theirs)

    def test_too_few_trials_decide_nothing(self):
        trials = search(1, count=25)
        told = answers(trials, static(1e9), min_n_trials=22)
        self.assertEqual([one["reason"] is not None for one in told], [number >= 22 for number in range(1, 26)])
        for count in (21, 22):
            terminator = Terminator(RegretBoundEvaluator(seed=0), StaticErrorEvaluator(1e9), min_n_trials=22)
            self.assertEqual(terminator.should_terminate(study_of(trials[:count])), count >= 22)

    def test_the_error_of_a_cross_validation_is_optunas(self):
        decided = set()
        for noise in (0.002, 0.1, 1.0):
            trials = search(4, count=45, noise=noise)
            for count, answer in enumerate(answers(trials, {"type": "CrossValidationError", "scores": "cv_scores"}), 1):
                if count < 20:
                    self.assertIsNone(answer["reason"])
                    continue
                error = CrossValidationErrorEvaluator().evaluate(study_of(trials[:count]).trials, StudyDirection.MINIMIZE)
                self.assertEqual(answer["reason"] is not None, answer["bound"] < error)
                decided.add(answer["reason"] is not None)
                if answer["reason"] is not None:
                    self.assertIn(f"the error of an evaluation, {error:.4g}", answer["reason"])
        self.assertEqual(decided, {True, False})
        # Without the best trial's scores nothing is known.
        del trials[min(range(45), key=lambda number: trials[number]["result"]["loss"])]["result"]["cv_scores"]
        self.assertIsNone(answers(trials, {"type": "CrossValidationError", "scores": "cv_scores"})[-1]["reason"])

    def test_the_error_by_the_median_is_optunas_of_our_bounds(self):
        trials = search(5, count=45)

        class OurBounds(optuna.terminator.BaseImprovementEvaluator):
            """Cadre's bounds of the trials after the tenth."""

            bounds = [one["bound"] for one in answers(trials[10:], static(1e-9))]

            def evaluate(self, some, direction):
                return self.bounds[len(some) - 1]

        decided = set()
        for ratio in (0.01, 0.5, 0.8, 2.0):
            error = MedianErrorEvaluator(OurBounds(), threshold_ratio=ratio).evaluate(
                study_of(trials).trials, StudyDirection.MINIMIZE)
            told = answers(trials, {"type": "MedianError", "threshold_ratio": ratio})
            for count, answer in enumerate(told, 1):
                ends = count >= 30 and answer["bound"] < error
                self.assertEqual(answer["reason"] is not None, ends, (ratio, count, answer["bound"], error))
                if count >= 30:
                    decided.add(ends)
        self.assertEqual(decided, {True, False})


if __name__ == "__main__":
    unittest.main()
