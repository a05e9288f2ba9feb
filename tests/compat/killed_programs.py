"""Programs that are killed again and again and restored, and what they have left."""

import os
import random
import signal
import subprocess
import time

import torch

DEADLINE_S = 600
# Fixes the moments at which programs are killed.
SEED = int(os.environ.get("CADRE_SEED", random.SystemRandom().randrange(1_000_000)))


def finish(process):
    output, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0, output


def kill_when(process, is_time):
    """Kills the process as soon as is_time(); returns False if it ended before."""
    deadline = time.monotonic() + DEADLINE_S
    while process.poll() is None:
        if is_time():
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
            return True
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.communicate(timeout=120)
    return False


def kill_at(counts, start, count):
    """Starts a program again and again, each time with whether there is something to restore, kills it when count()
    reaches the next of the counts, and lets it end at last. Returns how often it was killed."""
    kills = 0
    for number in sorted(counts):
        kills += kill_when(start(kills > 0), lambda: count() >= number)
    finish(start(kills > 0))
    return kills


def start(program, *flags):
    return subprocess.Popen([os.path.join(os.environ["CADRE_BIN"], program), *map(str, flags)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def lines_of(files):
    return sum(len(file.read_bytes().splitlines()) for file in files)


def tensors_in(value, path=""):
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from tensors_in(part, f"{path}/{key}")


def differences(got, expected):
    """Returns the paths of all tensors in which two states differ, with what is missing in one of them."""
    got, expected = dict(tensors_in(got)), dict(tensors_in(expected))
    assert expected
    return sorted(got.keys() ^ expected.keys()) + [
        path for path, tensor in expected.items() if path in got and not torch.equal(got[path], tensor)]
