"""Random settings of experiments for pbt_decisions_test.py: search spaces, mutations, schedulers.

    {"seed", "num_samples", "slots", "space": {key: entry}, "points", "constant_grid_search", "mutations": {key: entry},
     "pbt": {...}, "replay": null or {"initial_config", "changes": [{"change_at", "config"}]}, "stop", "num_to_keep",
     "score_attribute", "score_order"}

search_space_oracle.py describes entries. A mutation may also be ["list", values] or ["nested", {key: mutation}].
"""

import math

from search_space_oracle import given, variants

MOST_TRIALS = 14
NAMES = ["lr", "wd", "momentum", "act", "Layers", "a", "a-b", "batch size", "x.y", "é"]


# ---- Domains

def random_options(rng):
    return rng.choice([["relu", "tanh", "gelu"], ["a b", "é!", "_c_", "", "a_ b"], [1, "one", 2.5, None], [True, 3, 0.5],
                       [3, 1, 4, 1, 5], [0.1], [32, 64, 128, 256], [False, 0, 1, 2], [0, 1.0, 3.0, 5, 32.0],
                       [[1, 2], [True, None], ["ü", 0.5, 1e-05], []], [{}, {"a": 1}, {"a": {"b": 2.0}}]])


def random_reals(rng):
    kind = rng.choice(["uniform", "loguniform", "randn", "quniform", "qloguniform", "qrandn"])
    if "randn" in kind:
        domain = [kind, rng.choice([-1.5, 0, 0.5, 3]), rng.choice([0.1, 1, 2.5])]
        return domain + [rng.choice([0.1, 0.5, 1, 0.3])] * (kind[0] == "q")
    low = rng.choice([0.0001, 0.001, 0.3]) if "log" in kind else rng.choice([-2.5, -0.5, 0, 0.001, 0.3])
    domain = [kind, low, low + rng.choice([0.5, 1, 9.5])]
    return domain + [rng.choice([0.1, 0.05, 0.25, 0.3])] * (kind[0] == "q")


def random_reals_with_an_integer(rng):
    while True:
        domain = random_reals(rng)
        if "q" not in domain[0] and ("randn" in domain[0] or math.ceil(domain[1]) <= math.floor(domain[2])):
            return domain


def random_integers(rng):
    kind = rng.choice(["randint", "randint", "lograndint", "qrandint", "qlograndint"])
    low = rng.choice([1, 2, 7, 100] if "log" in kind else [-9, -1, 0, 1, 2, 100])
    if kind[0] == "q":
        return [kind, low, low + rng.choice([5, 9, 100]), rng.choice([1, 2, 3, 5])]
    return [kind, low, low + rng.choice([1, 2, 5, 100])]


# ---- Spaces

def random_variable(rng):
    """Returns the entry that a value is drawn from and its mutation; None: it is not mutated."""
    kind = rng.randrange(15)
    if kind <= 2:
        return random_reals(rng), random_reals(rng)
    if kind <= 4:
        return random_integers(rng), random_integers(rng)
    if kind == 5:  # integers in a real domain
        return random_integers(rng), ["uniform", rng.choice([-3.5, 0.5, 1, 1.5]), rng.choice([2.5, 3.5, 7, 50.0])]
    if kind == 6:  # reals in an integer domain
        return random_reals(rng), random_integers(rng)
    if kind <= 8:
        options = random_options(rng)
        others = rng.choice([options, options, random_options(rng)])
        return ([rng.choice(["choice", "ordinal"]), options], [rng.choice(["choice", "ordinal", "list"]), others])
    if kind == 9:  # possibly no number, or an integer, in a domain of numbers
        options = [option for option in random_options(rng) if not isinstance(option, dict)] or [1]
        return ["choice", options], rng.choice([random_reals_with_an_integer, random_integers])(rng)
    if kind == 10:
        numbers = rng.choice([random_reals, random_integers])(rng)
        return numbers, ["function", rng.choice(["ten_times_uniform", "number_of_keys"])]
    if kind == 11:
        return ["function", rng.choice(["ten_times_uniform", "number_of_keys"])], random_reals(rng)
    if kind == 12:
        return ["items", random_items(rng)], rng.choice([None, ["list", [[1, 2], [3, 4]]]])
    constant = rng.choice([5, 0.5, 0, -1, 1, True, None, "text", [1, 2]])
    options = rng.choice([None, ["list", random_options(rng)], random_integers(rng)])
    return ["constant", constant], options


def random_items(rng):
    return [rng.choice([random_reals(rng), random_integers(rng), ["choice", random_options(rng)], ["constant", 1],
                        ["items", [random_reals(rng), ["constant", "x"]]], ["function", "number_of_keys"],
                        ["space", {"in": random_reals(rng)}]]) for _ in range(rng.randint(1, 3))]


def random_alternatives(rng, depth, grids):
    """Returns entries of a choice or a grid, including nested spaces, and mutations of keys that some of these have."""
    entries, mutations, keys = [], {}, set()
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.6:
            space, inner = random_space(rng, depth + 1, grids)
            entries.append(["space", space])
            for key, mutation in inner.items():
                if key not in keys and rng.random() < 0.7:
                    mutations[key] = mutation
            keys |= set(space)
        else:
            entries.append(rng.choice([["constant", rng.choice(["off", 1, None, 2.5])], random_reals(rng),
                                       ["options", [["constant", "x"], random_integers(rng)]],
                                       ["items", random_items(rng)]]))
    if not any(entry[0] == "space" for entry in entries):
        return entries, None
    return entries, ["nested", mutations] if mutations else None


def random_space(rng, depth=0, grids=True):
    space, mutations = {}, {}
    for name in rng.sample(NAMES, rng.randint(1, 5 if depth == 0 else 2)):
        kind = rng.random()
        if depth < 2 and kind < 0.15:
            inner_space, inner_mutations = random_space(rng, depth + 1, grids)
            space[name], mutations[name] = ["space", inner_space], ["nested", inner_mutations]
        elif depth < 2 and kind < 0.25:
            options, mutation = random_alternatives(rng, depth, False)
            space[name] = ["options", options]
            if mutation:
                mutations[name] = mutation
        elif grids and kind < 0.35:
            options, mutation = random_alternatives(rng, depth, depth == 0)
            space[name] = ["grid", options]
            if mutation:
                mutations[name] = mutation
        else:
            space[name], mutation = random_variable(rng)
            if mutation is not None:
                mutations[name] = mutation
    return space, mutations


def random_mutations(rng, space, mutations):
    """Returns some of the mutations, at least one."""
    mutations = dict(rng.sample(list(mutations.items()), rng.randint(1, len(mutations)))) if mutations else {}
    if not mutations:
        space["width"], mutations["width"] = ["randint", 1, 9], ["randint", 1, 9]
    return mutations


# ---- Points to evaluate

def paths_of(space, path=""):
    for key, entry in space.items():
        name = f"{path}/{key}" if path else key
        if entry[0] == "space":
            yield from paths_of(entry[1], name)
        else:
            yield name, entry


def random_point(rng, space, examples):
    """Returns some values of a trial that the space itself has made, by path."""
    config = rng.choice(examples).config
    return {path: given(config, path) for path, entry in paths_of(space)
            if rng.random() < 0.4 and not contains_function(entry) and given(config, path) != []}


def contains_function(entry):
    if entry[0] == "space":
        return any(map(contains_function, entry[1].values()))
    return entry[0] == "function" or entry[0] in ("items", "options", "grid") and any(map(contains_function, entry[1]))


# ---- Experiments

def random_population(rng):
    """Returns the part of the settings that determines the trials."""
    while True:
        space, mutations = random_space(rng)
        mutations = random_mutations(rng, space, mutations)
        settings = {"seed": rng.choice([rng.randrange(10), rng.randrange(-(2**63), 2**63)]), "space": space,
                    "num_samples": rng.randint(1, 12), "points": [], "constant_grid_search": rng.random() < 0.3}
        examples = variants(settings | {"num_samples": 1})
        if len(examples) > MOST_TRIALS:
            continue
        settings["num_samples"] = rng.randint(1, MOST_TRIALS // len(examples))
        if rng.random() < 0.3:
            settings["points"] = [random_point(rng, space, examples) for _ in range(rng.randint(1, 3))]
        trials = len(variants(settings))
        if trials <= MOST_TRIALS:
            return settings | {"mutations": mutations}, trials


def random_replay(rng, population):
    """Returns a schedule of configs as the space makes them, with some keys added or missing."""
    def config():
        made = rng.choice(configs)
        made = {key: value for key, value in made.items() if rng.random() < 0.9}
        return made | ({"new": rng.choice([1, "two", [3]])} if rng.random() < 0.2 else {})

    configs = [variant.config for variant in variants(population | {"num_samples": 10, "points": []})]
    change_at, changes = 0, []
    for _ in range(rng.randint(0, 6)):
        change_at += rng.choice([0, 1, 2, 5, 10])
        changes.append({"change_at": change_at, "config": config()})
    return {"initial_config": config(), "changes": changes}


def random_settings(rng):
    population, trials = random_population(rng)
    metric = rng.choice(["score", "score", "eval/score"])
    interval = rng.choice([1, 2, 2.5, 5, 0.1, 0.3])
    bounds = rng.choice(["clip", "clip", "reflect", "unbounded"])
    stop = {}
    if rng.random() < 0.7:
        stop["training_iteration"] = rng.choice([5, 50, 50])
    if rng.random() < 0.3:
        stop[metric] = rng.choice([0.95, 6])
    settings = population | {
        "slots": rng.choice([trials, rng.randint(1, trials), trials + 3]),
        "pbt": {
            "time_attr": rng.choice(["training_iteration", "training_iteration", "seconds", "clock/seconds"]),
            "metric": metric,
            "mode": rng.choice(["max", "min"]),
            "perturbation_interval": interval,
            "burn_in_period": rng.choice([0, 0, interval, 3.5, 10]),
            "quantile_fraction": rng.choice([0, 0.1, 0.25, 0.25, 0.3, 0.5, 0.5, rng.random() / 2]),
            "resample_probability": rng.choice([0, 0.25, 0.25, 0.5, 1]),
            # Large factors only with "clip": otherwise integers would exceed 64 bits.
            "perturbation_factors": rng.choice([[1.2, 0.8], [1.2, 0.8], [0.5, 1.5], [3.0, 0.3]] + [
                [10.0, 0.1], [1e7, 1e-5], [1e300, 1.0]] * (bounds == "clip")),
            "bounds": bounds,
            "custom": rng.random() < 0.15,
            "require_attrs": rng.random() < 0.5,
            "synch": rng.random() < 0.4,
        },
        "replay": None,
        "stop": stop,
        "num_to_keep": rng.choice([None, 1, 1, 2, 3]),
        "score_attribute": rng.choice([None, metric, "loss"]),
        "score_order": rng.choice(["max", "min"]),
    }
    if settings["score_attribute"] == metric:  # a metric has one direction
        settings["score_order"] = settings["pbt"]["mode"]
    if rng.random() < 0.15 and len(variants(population | {"num_samples": 1, "points": []})) == 1:
        settings |= {"num_samples": 1, "points": [], "replay": random_replay(rng, population)}
    return settings
