"""The functions of functions.cc, for Optuna: each takes a trial."""
import csv
import functools
import math
import pathlib

PI = math.pi


def _cube(trial, dimensions, lower, upper):
    return [trial.suggest_float(f"x{i}", lower, upper) for i in range(dimensions)]


def branin(trial):
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    return (y - 5.1 / (4 * PI**2) * x**2 + 5 / PI * x - 6) ** 2 + 10 * (1 - 1 / (8 * PI)) * math.cos(x) + 10


ALPHA = (1, 1.2, 3, 3.2)
A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
P = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991),
     (2348, 1451, 3522, 2883, 3047, 6650), (4047, 8828, 8732, 5743, 1091, 381))


def hartmann6(trial):
    x = _cube(trial, 6, 0, 1)
    return -sum(ALPHA[i] * math.exp(-sum(A[i][j] * (x[j] - P[i][j] * 1e-4) ** 2 for j in range(6))) for i in range(4))


def rosenbrock10(trial):
    x = _cube(trial, 10, -5, 10)
    return sum(100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2 for i in range(9))


def ackley20(trial):
    x = _cube(trial, 20, -32.768, 32.768)
    squares, cosines = sum(one * one for one in x), sum(math.cos(2 * PI * one) for one in x)
    return -20 * math.exp(-0.2 * math.sqrt(squares / 20)) - math.exp(cosines / 20) + 20 + math.e


def network(trial):
    adam = trial.suggest_categorical("optimizer", ("adam", "sgd")) == "adam"
    value = 0 if adam else 0.3
    lr = trial.suggest_float("adam_lr" if adam else "sgd_lr", 1e-5, 1, log=True)
    value += (math.log10(lr) - (-3 if adam else -1)) ** 2
    value += 4 * ((trial.suggest_float("beta", 0.5, 1) - 0.9) if adam else
                  (trial.suggest_float("momentum", 0, 1) - 0.8)) ** 2
    value += 0.2 * abs(trial.suggest_int("layers", 1, 8) - 3)
    value += 0.1 * math.log2(trial.suggest_int("width", 8, 1024, log=True) / 128) ** 2
    return value + {"relu": 0, "gelu": 0.1, "tanh": 0.4, "sigmoid": 0.8}[
        trial.suggest_categorical("activation", ("relu", "gelu", "tanh", "sigmoid"))]


@functools.cache
def mnist_table():
    """The rows of mnist_table.csv: a dict of the configuration's texts, and the shares that are not recognised."""
    lines = pathlib.Path(__file__).resolve().with_name("mnist_table.csv").read_text().splitlines()
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    errors = [[int(row.pop(f"e{epoch}")) / 2000 for epoch in range(1, 28)] for row in rows]
    return {tuple(row.values()): error for row, error in zip(rows, errors)}


LR = ("0.0001", "0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3")


def mnist(trial):
    def ordinal(name, options):
        return options[trial.suggest_int(name, 0, len(options) - 1)]
    adam = trial.suggest_categorical("optimizer", ("adam", "sgd")) == "adam"
    lr = ordinal("adam_lr" if adam else "sgd_lr", LR)
    own = ("", ordinal("beta1", ("0.5", "0.9"))) if adam else (ordinal("momentum", ("0", "0.5", "0.9")), "")
    return mnist_table()["adam" if adam else "sgd", lr, *own, ordinal("batch_size", ("32", "128")),
                         ordinal("width", ("16", "32", "64", "128")), ordinal("layers", ("1", "2")),
                         trial.suggest_categorical("activation", ("relu", "tanh"))][-1]


FUNCTIONS = {f.__name__: f for f in (branin, hartmann6, rosenbrock10, ackley20, network, mnist)}
