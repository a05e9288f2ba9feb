"""What experiments and training runs share: their directories, and the beginning of fit()."""

import datetime
import os
import signal
import sys

from cadre import _core

_DEFAULT_FOLDER = "~/cadre_results"


def folder_of(storage_path):
    """Returns a storage path as the core takes it: empty for the default."""
    return place_of(storage_path) if storage_path else ""


def path_of(folder, name):
    """Returns the directory, or the URI, of an experiment or a run of this name."""
    place, question_mark, options = folder.partition("?") if is_uri(folder) else (folder, "", "")
    return os.path.join(place or os.path.expanduser(_DEFAULT_FOLDER), name) + question_mark + options


def is_uri(path):
    """Returns true if a path is the URI of a storage, such as s3://bucket/folder."""
    return "://" in path


def place_of(path):
    """Returns a path or URI that was given, as the core takes it."""
    return os.path.expanduser(os.fspath(path))


def refuse_existing(uri, how):
    """Raises InvalidArgument for what is in a storage already, where nothing is renamed. `how`: continues it."""
    raise _core.InvalidArgument(f"{uri} exists already: {how}, or give this one another name")


def move_aside(path, what):
    """Renames the directory of an experiment or a run, `what`, so that another one may have its name, and says so."""
    time = datetime.datetime.fromtimestamp(os.path.getmtime(os.path.join(path, "experiment.db")))
    first = aside = f"{path}_{time:%Y-%m-%d_%H-%M-%S}"
    number = 2
    while os.path.exists(aside):
        aside = f"{first}_{number}"
        number += 1
    os.rename(path, aside)
    print(f"cadre: the {what} that was called {os.path.basename(path)} is {os.path.basename(aside)} now", file=sys.stderr)


def prepare_for_fit():
    """Flushes what the core's output must follow. Returns true if Ctrl-C is Python's own, so that the core may take it."""
    sys.stdout.flush()
    sys.stderr.flush()
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
