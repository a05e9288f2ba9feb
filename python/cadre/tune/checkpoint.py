"""Directories of state from which training goes on."""

import contextlib
import json
import os
import shutil
import tempfile

from cadre import _core

_METADATA_FILE = ".user_metadata.json"  # .metadata.json, as Ray calls it, is what Cadre knows of a checkpoint


class Checkpoint:
    """A directory. One that was reported belongs to the experiment and never changes."""

    def __init__(self, path, filesystem=None):
        if filesystem is not None:
            raise TypeError("a checkpoint is a directory on a local disk; an experiment's storage_path may be a URI")
        self.path = os.fspath(path)

    @classmethod
    def from_directory(cls, path):
        """Returns a checkpoint of a directory, which is copied when it is reported."""
        return cls(path)

    @contextlib.contextmanager
    def as_directory(self):
        """Gives the path of the directory, to be read. Brings it to this machine if it is a checkpoint of the run that is
        not here."""
        self._bring()
        yield self.path

    def to_directory(self, path=None):
        """Copies the files into a directory, by default a new temporary one, and returns its path."""
        self._bring()
        path = tempfile.mkdtemp(prefix="checkpoint_") if path is None else os.fspath(path)
        shutil.copytree(self.path, path, dirs_exist_ok=True)
        return path

    def get_metadata(self):
        """Returns the dictionary that set_metadata() has written; empty if there is none."""
        self._bring()
        try:
            with open(os.path.join(self.path, _METADATA_FILE), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return {}

    def set_metadata(self, metadata):
        """Writes a dictionary that goes with the files. For a checkpoint that is not reported yet."""
        with open(os.path.join(self.path, _METADATA_FILE), "w", encoding="utf-8") as file:
            json.dump(metadata, file)

    def update_metadata(self, metadata):
        """Adds entries to the dictionary."""
        self.set_metadata({**self.get_metadata(), **metadata})

    def _bring(self):
        if not os.path.isdir(self.path):
            _core.bring_checkpoint(self.path)

    def __eq__(self, other):
        return isinstance(other, Checkpoint) and other.path == self.path

    def __hash__(self):
        return hash(self.path)

    def __repr__(self):
        return f"Checkpoint(path={self.path})"
