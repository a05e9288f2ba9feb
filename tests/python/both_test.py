"""The same programs with Ray and with Cadre: what they observe is the same (tests/python/both).

What they observe with Ray 2.60.0 is recorded in <module>.json, because that takes half an hour; each run of this test
tries two of them again, drawn at random. `run_cases.py ray <module> <module>.json` records all anew.
"""

import json
import pathlib
import random
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent / "both"
MODULES = sorted(file.stem for file in FOLDER.glob("*_cases.py") if file.stem != "run_cases")
# Where Cadre is different on purpose: docs/python.md says why.
DIFFERENT = {"case_a_config_is_the_trials_own", "case_a_number_is_no_trainable"}


def facts(which, module, programs, cases=()):
    file = programs.folder / f"{which}.json"
    done = subprocess.run([sys.executable, FOLDER / "run_cases.py", which, module, file, *cases], env=programs.environment,
                          cwd=programs.folder, capture_output=True, text=True, timeout=1000)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(file.read_text())


def recorded(module):
    return json.loads((FOLDER / f"{module}.json").read_text())


def agree(with_ray, with_cadre):
    """Returns true for equal facts, and for an error that a program for Ray catches."""
    if isinstance(with_ray, dict) and isinstance(with_cadre, dict) and "raised" in with_ray and "raised" in with_cadre:
        return with_ray["raised"][0] in with_cadre["raised"]
    return with_ray == with_cadre


@pytest.mark.parametrize("module", MODULES)
def test_programs_observe_the_same(module, programs):
    with_ray = recorded(module)
    with_cadre = facts("cadre", module, programs)
    assert sorted(with_ray) == sorted(with_cadre) and len(with_ray) >= 10
    wrong = {case: f"Ray: {with_ray[case]} Cadre: {with_cadre[case]}" for case in with_ray
             if case not in DIFFERENT and not agree(with_ray[case], with_cadre[case])}
    assert wrong == {}


@pytest.mark.parametrize("module", random.sample(MODULES, 1))
def test_what_is_recorded_is_rays(module, programs):
    known = recorded(module)
    cases = random.sample(sorted(known), 2)
    print("cases:", *cases)
    assert facts("ray", module, programs, cases) == {case: known[case] for case in cases}
