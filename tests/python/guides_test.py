"""Programs as Ray's guides have them, each as a script, twice with one name. guides_elsewhere_test.py has other ways."""

import re

from guide_programs import CHECKS, GUIDES, Ways, facts_of, guide, trials_of  # noqa: F401  guide is a fixture

from cadre import train, tune


def names_of(storage):
    """Returns the names of the experiments and runs in a folder."""
    return sorted(path.parent.name for path in storage.glob("*/experiment.db"))


def results_of(path):
    """Returns all results of an experiment or a run."""
    if trials_of(path):
        return [result.metrics for result in tune.Tuner.restore(str(path)).get_results()]
    return [train.Result.from_path(path).metrics]


def test_every_guide_is_run():
    assert sorted(CHECKS) == sorted(path.stem for path in GUIDES.glob("*.py"))


def test_guide_as_a_script_twice_with_one_name(programs, tmp_path, guide):
    ways = Ways(programs, guide)
    CHECKS[guide](ways.storage, facts_of(ways.script()), tmp_path)
    before = {name: results_of(ways.storage / name) for name in names_of(ways.storage)}
    CHECKS[guide](ways.storage, facts_of(ways.script()), tmp_path)
    names = names_of(ways.storage)
    for name, results in before.items():
        aside, = [other for other in names if re.fullmatch(rf"{name}_\d{{4}}-\d\d-\d\d_\d\d-\d\d-\d\d(_\d)?", other)]
        assert results_of(ways.storage / aside) == results, "the first one is as it was"
    assert len(names) == 2 * len(before)
