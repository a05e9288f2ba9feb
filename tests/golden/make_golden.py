"""Makes <name>.tar.gz beside this file from runs of golden_tool: make_golden.py <golden_tool> store|published <name>

Of each kind one run is finished and another one was killed half-way. outcomes.json has the output of the tool.
"""

import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time


def is_half_way(directory, is_published):
    """Returns True if a trial or rank 0 has made twelve of 24 steps, or if more than twelve rows are published."""
    if is_published:
        published = directory / "published.json"
        segments = json.loads(published.read_text())["published"]["segments"] if published.exists() else []
        return bool(segments) and segments[-1]["position"]["sequence"] > 12
    files = [directory / "result.json", *directory.glob("*/result.json")]
    return any(len(file.read_text().splitlines()) >= 12 for file in files if file.exists())


def run(tool, kind, storage, environment):
    return subprocess.run([tool, kind, storage], check=True, capture_output=True, env=environment, timeout=60).stdout


def kill_half_way(tool, kind, storage, directory, environment):
    is_published = storage.startswith("file://")
    process = subprocess.Popen([tool, kind, storage], env=environment)
    while not is_half_way(directory, is_published):
        assert process.poll() is None, "it has ended before"
        time.sleep(0.002)
    process.kill()
    process.wait()
    time.sleep(1)  # until its workers have ended


def main(tool, place, name):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        outcomes = {}
        for kind in ("experiment", "training"):
            for end in ("finished", "interrupted"):
                files = folder / "golden" / end
                environment = os.environ | {"HOME": str(folder / "home" / end)}
                storage = str(files) if place == "store" else f"file://{files}"
                if end == "finished":
                    outcomes[kind] = float(run(tool, kind, storage, environment).split()[-1])
                else:
                    kill_half_way(tool, kind, storage, files / kind, environment)
        if not (folder / "golden/finished/training").exists():
            del outcomes["training"]
        (folder / "golden/outcomes.json").write_text(json.dumps(outcomes) + "\n")
        with tarfile.open(pathlib.Path(__file__).parent / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(folder / "golden", arcname=".")


main(*sys.argv[1:])
