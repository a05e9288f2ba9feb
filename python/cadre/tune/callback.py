"""Callbacks: methods that are called as an experiment progresses."""


class Callback:
    """Base of callbacks. All methods are called in the thread of fit(), and do nothing by default."""

    def setup(self, stop=None, num_samples=None, total_num_samples=None, **info):
        """Called first."""

    def on_step_begin(self, iteration, trials, **info):
        """Called before each turn of the controller."""

    def on_step_end(self, iteration, trials, **info):
        """Called after it."""

    def on_trial_start(self, iteration, trials, trial, **info):
        """Called when a worker of the trial starts."""

    def on_trial_restore(self, iteration, trials, trial, **info):
        """Called after that if it continues from a checkpoint."""

    def on_trial_result(self, iteration, trials, trial, result, **info):
        """Called for each result, which it may change."""

    def on_checkpoint(self, iteration, trials, trial, checkpoint, **info):
        """Called when a checkpoint of the trial is committed."""

    def on_trial_save(self, iteration, trials, trial, **info):
        """Called after that."""

    def on_trial_complete(self, iteration, trials, trial, **info):
        """Called when the trial has ended successfully."""

    def on_trial_recover(self, iteration, trials, trial, **info):
        """Called when the trial has failed and will be tried again."""

    def on_trial_error(self, iteration, trials, trial, **info):
        """Called when the trial has failed for good, also if no worker of it has started."""

    def on_experiment_end(self, trials, **info):
        """Called last."""

    def get_state(self):
        """Returns what a restore shall give to set_state(), or None."""
        return None

    def set_state(self, state):
        """Restores what get_state() has returned."""


class LoggerCallback(Callback):
    """Base of callbacks that write a log of each trial."""

    def log_trial_start(self, trial):
        """Called when a worker of the trial starts."""

    def log_trial_restore(self, trial):
        """Called if it continues from a checkpoint."""

    def log_trial_save(self, trial):
        """Called when a checkpoint was committed."""

    def log_trial_result(self, iteration, trial, result):
        """Called for each result."""

    def log_trial_end(self, trial, failed=False):
        """Called when the trial has ended; without log_trial_start() before it if no worker of it has started."""

    def on_trial_start(self, iteration, trials, trial, **info):
        self.log_trial_start(trial)

    def on_trial_restore(self, iteration, trials, trial, **info):
        self.log_trial_restore(trial)

    def on_trial_result(self, iteration, trials, trial, result, **info):
        self.log_trial_result(iteration, trial, result)

    def on_trial_save(self, iteration, trials, trial, **info):
        self.log_trial_save(trial)

    def on_trial_complete(self, iteration, trials, trial, **info):
        self.log_trial_end(trial, failed=False)

    def on_trial_error(self, iteration, trials, trial, **info):
        self.log_trial_end(trial, failed=True)
