"""The same programs with Ray and with Cadre: what they observe is the same (tests/python/both)."""

import json
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent / "both"
# Where Cadre is different on purpose: docs/python.md says why.
DIFFERENT = {"case_a_config_is_the_trials_own"}


def facts(which, module, folder, environment):
    file = folder / f"{which}.json"
    done = subprocess.run([sys.executable, FOLDER / "run_cases.py", which, module, file], env=environment, cwd=folder,
                          capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads(file.read_text())


def agree(with_ray, with_cadre):
    """Returns true for equal facts, and for an error that a program for Ray catches."""
    if isinstance(with_ray, dict) and isinstance(with_cadre, dict) and "raised" in with_ray and "raised" in with_cadre:
        return with_ray["raised"][0] in with_cadre["raised"]
    return with_ray == with_cadre


@pytest.mark.parametrize("module", sorted(file.stem for file in FOLDER.glob("*_cases.py") if file.stem != "run_cases"))
def test_programs_observe_the_same(module, programs, tmp_path):
    with_ray = facts("ray", module, tmp_path, programs.environment)
    with_cadre = facts("cadre", module, tmp_path, programs.environment)
    assert list(with_ray) == list(with_cadre) and len(with_ray) >= 10
    wrong = {case: f"Ray: {with_ray[case]} Cadre: {with_cadre[case]}" for case in with_ray
             if case not in DIFFERENT and not agree(with_ray[case], with_cadre[case])}
    assert wrong == {}
