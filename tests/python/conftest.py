import os
import pathlib
import subprocess
import sys

import pytest

import cadre
from cadre import tune

pytest.register_assert_rewrite("guide_programs")


@pytest.fixture(scope="session", autouse=True)
def server():
    cadre.init(num_cpus=2)
    yield
    cadre.shutdown()


@pytest.fixture
def fit(tmp_path):
    """Runs an experiment in a folder of the test's own, and returns its results."""

    def run(trainable, *, name="experiment", stop=None, callbacks=None, checkpoint_config=None, failure_config=None,
            param_space=None, verbose=0, **tune_config):
        run_config = tune.RunConfig(name=name, storage_path=str(tmp_path), verbose=verbose, stop=stop, callbacks=callbacks,
                                    checkpoint_config=checkpoint_config, failure_config=failure_config)
        return tune.Tuner(trainable, param_space=param_space, tune_config=tune.TuneConfig(**tune_config),
                          run_config=run_config).fit()

    return run


class Programs:
    """Programs of their own, in a folder of the test's."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(cadre.__file__).parent.parent)}

    def write(self, name, text):
        (self.folder / name).write_text(text)
        return [sys.executable, str(self.folder / name)]

    def run(self, text, *arguments, name="program.py", timeout=200):
        """Runs a program to its end; fails if it does."""
        done = subprocess.run([*self.write(name, text), *arguments], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=timeout)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def start(self, text, *arguments, name="program.py"):
        return subprocess.Popen([*self.write(name, text), *arguments], cwd=self.folder, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture
def programs(tmp_path):
    return Programs(tmp_path)
