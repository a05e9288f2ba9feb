"""Experiments."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, Iterable, Mapping

from cadre import _core, _driver, _functions, _notebook, _runs
from cadre.tune._callbacks import CallbackList
from cadre.tune.config import PublishConfig, RunConfig, TuneConfig, refuse_filesystem, stored_options
from cadre.tune.result_grid import ResultGrid
from cadre.tune.trainable import stored_trainable

if TYPE_CHECKING:
    from cadre.tune.callback import Callback
    from cadre.tune.config import Extension, ResumeConfig


class Tuner:
    """An experiment: trials of a trainable, with configs of a space."""

    def __init__(self, trainable: Any = None, *, param_space: Mapping[str, Any] | None = None,
                 tune_config: TuneConfig | None = None, run_config: RunConfig | None = None,
                 _restored: Any = None) -> None:
        """Checks all options; raises InvalidArgument, a ValueError, that names every error, and TypeError for objects of
        a wrong type. Writes nothing.

        trainable: a function of the config, or a class that derives from Trainable; with_parameters() and
        with_resources() add to it. param_space: a dictionary of domains, grids, constants, lists and dictionaries.
        """
        self._tuner = _restored
        self._place = "", ""
        self._publish = None
        self._description = None
        self._restored_from: str | None = None
        self._raises = False
        self._live = None  # the table of a notebook
        if _restored is not None:
            return
        _driver.init_if_needed()
        run_config = run_config or RunConfig()
        tune_config = tune_config or TuneConfig()
        _warn_of_unused(tune_config, run_config)
        # Holds the functions' objects until they are files of the experiment.
        self._description = {"trainable": stored_trainable(trainable),
                             **stored_options(param_space, tune_config, run_config)}
        callbacks = list(run_config.callbacks or [])
        if _notebook.is_notebook() and run_config.verbose > 0:
            metric, mode = _objective(tune_config)
            self._live = _notebook.LiveTrials(metric, mode, run_config.progress_reporter)
            callbacks.append(self._live)
        self._callbacks = CallbackList(callbacks)
        hooks = self._callbacks.hooks
        self._raises = run_config.failure_config.fail_fast == "raise"
        storage_path = _runs.folder_of(run_config.storage_path)
        self._place = storage_path, run_config.name or ""
        self._publish = run_config.publish_config._stored()
        self._tuner = _core.make_tuner(self._description, run_config.name or "", storage_path, "fail",
                                       self._publish, self._callbacks if hooks else None, hooks)

    @classmethod
    def restore(cls, path: str | os.PathLike[str], trainable: Any = None, resume_unfinished: bool = True,
                resume_errored: bool = False, restart_errored: bool = False, param_space=None, storage_filesystem=None,
                _resume_config: ResumeConfig | None = None, *, callbacks: Iterable[Callback] | None = None,
                extend: Extension | None = None, publish_config: PublishConfig | None = None) -> Tuner:
        """Returns a Tuner that continues the interrupted experiment in a directory or at a URI: trials that had not
        ended run again from their latest checkpoint. The experiment has its functions, so this program need not have
        them. A `trainable` takes the place of the experiment's until fit() returns, for one that was changed. The space
        is the experiment's.

        resume_errored, restart_errored: trials that failed go on from their latest checkpoint, or begin anew;
        _resume_config says the same in Ray's form. extend: an Extension, of an experiment that goes on with other
        options, also after its end. FailureConfig(fail_fast="raise") is not kept: fit() returns the errors of trials in the
        results. publish_config: a PublishConfig, for a URI. Raises NotFound if there is no
        experiment, CadreError if it is damaged or being run, InvalidArgument for a storage_filesystem and for
        resume_unfinished=False, which has no meaning here.
        """
        del param_space
        refuse_filesystem("Tuner.restore", storage_filesystem)
        if not resume_unfinished:
            raise _core.InvalidArgument("Tuner.restore: resume_unfinished is False, but trials that have not ended always "
                                        "go on from their latest checkpoint; leave it out, or call get_results() in the "
                                        "place of fit(), which runs nothing")
        if _resume_config is not None:
            options = _resume_config._restore_options()
            resume_errored, restart_errored = options["resume_errored"], options["restart_errored"]
        _driver.init_if_needed()
        function = None if trainable is None else stored_trainable(trainable)["host_function"]
        place = _runs.place_of(path)
        callbacks = list(callbacks or [])
        live = None
        results = None
        if (_notebook.is_notebook() or extend is not None) and cls.can_restore(place, publish_config=publish_config):
            results = _core.read_results(place)
        extension = {}
        if extend is not None:
            extension = extend._stored(results and results.metric or None, results and results.mode)
        if results is not None and _notebook.is_notebook():
            live = _notebook.LiveTrials(results.metric or None, results.mode)
            callbacks.append(live)
        listed = CallbackList(callbacks)
        tuner = cls(_restored=_core.restore_tuner(
            place, function, resume_errored, restart_errored, False, extension, (publish_config or PublishConfig())._stored(),
            listed if listed.hooks else None, listed.hooks))
        tuner._description = extension
        tuner._restored_from = place
        tuner._live = live
        return tuner

    @classmethod
    def can_restore(cls, path: str | os.PathLike[str], storage_filesystem=None, *,
                    publish_config: PublishConfig | None = None) -> bool:
        """Returns true if a directory or URI holds an experiment. Raises InvalidArgument for a storage_filesystem."""
        refuse_filesystem("Tuner.can_restore", storage_filesystem)
        return _core.can_restore(_runs.place_of(path), (publish_config or PublishConfig())._stored())

    def fit(self) -> ResultGrid:
        """Runs the experiment to its end and returns the results of all trials. A trial that fails does not raise: its
        error is in the results, unless FailureConfig.fail_fast is "raise". Ctrl-C ends the experiment early: trials stop at
        their next report, everything is saved, and the results so far are returned; a second Ctrl-C ends the program. Called
        in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            raise _core.InvalidArgument("fit() was called in another thread than the main one")
        _move_aside(*self._place, self._publish)
        try:
            with _notebook.shown(self._live):
                results = self._tuner.fit(takes_signals=_runs.prepare_for_fit())
        finally:
            _functions.forget_after_fit()
        if results.is_interrupted:
            print(f"cadre: the experiment was interrupted, and everything that was reported is saved. "
                  f"Tuner.restore({results.experiment_path!r}) goes on with it.", file=sys.stderr)
        grid = ResultGrid(results, self._description)
        if self._raises and grid.errors:
            raise grid.errors[0]
        return grid

    def get_results(self) -> ResultGrid:
        """Returns the results so far of a restored experiment, without running it."""
        if self._restored_from is None:
            raise _core.InvalidArgument("get_results() is for a restored experiment; fit() returns the results of another one")
        return ResultGrid(_core.read_results(self._restored_from))


def _move_aside(folder, name, publish):
    """Renames an experiment of the same name, so that a program may be run twice. Leaves alone what is no experiment, is
    not on a local disk, or is being run: fit() says so. Raises InvalidArgument for one in an object storage."""
    path = _runs.path_of(folder, name)
    if name and _runs.is_uri(path) and _core.can_restore(path, publish):
        _runs.refuse_existing(path, f'Tuner.restore("{path}").fit() goes on with it')
    if not name or not os.path.isfile(os.path.join(path, "experiment.db")) or _core.read_results(path).state == "running":
        return
    _runs.move_aside(path, "experiment")


def _objective(tune_config):
    """Returns the metric and the mode of an experiment, which its scheduler may have instead; None for what is unknown."""
    of_scheduler = getattr(tune_config.scheduler, "_members", {})
    return tune_config.metric or of_scheduler.get("metric"), tune_config.mode or of_scheduler.get("mode")


def _warn_of_unused(tune_config, run_config):
    for owner, names in ((tune_config, ("trial_name_creator", "trial_dirname_creator")),
                         (run_config, ("sync_config",))):
        for name in names:
            if getattr(owner, name) is not None:
                warnings.warn(f"{type(owner).__name__}.{name} has no meaning here", stacklevel=3)
