"""Directories of state from which training goes on."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from typing import Any, Iterator

from cadre import _core

_METADATA_FILE = ".user_metadata.json"  # .metadata.json, as Ray calls it, is what Cadre knows of a checkpoint


def _raise(error):
    raise error


class Checkpoint:
    """A directory. One that was reported belongs to the experiment and never changes."""

    path: str

    def __init__(self, path: str | os.PathLike[str], filesystem=None) -> None:
        if filesystem is not None:
            raise TypeError("a checkpoint is a directory on a local disk; an experiment's storage_path may be a URI")
        self.path = os.fspath(path)
        self._results = None

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """Returns a checkpoint of a directory, which is copied when it is reported."""
        return cls(path)

    @contextlib.contextmanager
    def as_directory(self) -> Iterator[str]:
        """Gives the path of a directory with the files, to be read. Files that are not on this machine, because they are in
        a storage or on another node, are brought for the time being."""
        reading = _core.read_checkpoint(self.path)
        yield reading.path

    def to_directory(self, path: str | os.PathLike[str] | None = None) -> str:
        """Copies the files into a directory, by default a new temporary one, and returns its path. The copies can be written
        to, whatever the modes of the files are."""
        path = tempfile.mkdtemp(prefix="checkpoint_") if path is None else os.fspath(path)
        with self.as_directory() as directory:
            for folder, _, names in os.walk(directory, onerror=_raise, followlinks=True):
                target = os.path.join(path, os.path.relpath(folder, directory))
                os.makedirs(target, exist_ok=True)
                for name in names:
                    shutil.copyfile(os.path.join(folder, name), os.path.join(target, name))
        return path

    def get_metadata(self) -> dict[str, Any]:
        """Returns the dictionary that set_metadata() has written; empty if there is none."""
        try:
            with self.as_directory() as directory, open(os.path.join(directory, _METADATA_FILE), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def set_metadata(self, metadata: dict[str, Any]) -> None:
        """Writes a dictionary that goes with the files. For a checkpoint that is not reported yet."""
        with open(os.path.join(self.path, _METADATA_FILE), "w", encoding="utf-8") as file:
            json.dump(metadata, file)

    def update_metadata(self, metadata: dict[str, Any]) -> None:
        """Adds entries to the dictionary."""
        self.set_metadata({**self.get_metadata(), **metadata})

    @classmethod
    def _read_from(cls, path, results):
        """Returns a checkpoint of results that were read; None without a path. It holds them, because they may be a temporary
        copy of what is in a storage."""
        if path is None:
            return None
        checkpoint = cls(path)
        checkpoint._results = results
        return checkpoint

    def __reduce__(self):
        return type(self), (self.path,)

    def __eq__(self, other):
        return isinstance(other, Checkpoint) and other.path == self.path

    def __hash__(self):
        return hash(self.path)

    def __repr__(self):
        return f"Checkpoint(path={self.path})"
