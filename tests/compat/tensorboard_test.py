"""TensorBoard reads an experiment's event files: its own loader, and the back end of its HPARAMS tab."""

import json
import math
import unittest

from experiment import ExperimentTest
from tensorboard import context
from tensorboard.backend.event_processing import data_provider, event_accumulator, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, get_experiment, list_session_groups
from tensorboard.plugins.histogram import metadata as histogram_metadata
from tensorboard.plugins.scalar import metadata as scalar_metadata

SKIPPED = {"config", "pid", "timestamp", "time_total_s", "training_iteration"}
EVERYTHING = {event_accumulator.SCALARS: 0, event_accumulator.HISTOGRAMS: 0, event_accumulator.TENSORS: 0}


def flat(row, prefix=""):
    for key, value in row.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}/")
        else:
            yield prefix + key, value


class TensorBoardTest(ExperimentTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        multiplexer = plugin_event_multiplexer.EventMultiplexer(size_guidance=EVERYTHING,
                                                                tensor_size_guidance={"scalars": 0, "histograms": 0})
        multiplexer.AddRunsFromDirectory(str(cls.experiment))
        multiplexer.Reload()
        cls.provider = data_provider.MultiplexerDataProvider(multiplexer, str(cls.experiment))

    def test_a_trial_has_one_file_named_as_others_name_theirs(self):
        for trial in self.trials:
            (file,) = trial.glob("events.out.tfevents.*")
            self.assertRegex(file.name, r"^events\.out\.tfevents\.\d{10}\.[\w.-]+$")

    def test_scalars_are_the_numbers_of_result_json(self):
        for trial in self.trials:
            events = event_accumulator.EventAccumulator(str(trial), EVERYTHING)
            events.Reload()
            expected = {}
            for row in self.rows(trial):
                for key, value in flat(row):
                    if key in SKIPPED or key.startswith("config/") or not isinstance(value, (bool, int, float)):
                        continue
                    if not math.isnan(value):
                        expected.setdefault(f"ray/tune/{key}", []).append((row["training_iteration"], value))
            self.assertEqual(set(events.Tags()["scalars"]), set(expected))
            self.assertIn("ray/tune/done", expected)
            self.assertIn("ray/tune/eval/loss", expected)
            for tag, points in expected.items():
                shown = events.Scalars(tag)
                self.assertEqual([event.step for event in shown], [step for step, _ in points])
                for event, (_, value) in zip(shown, points):
                    self.assertAlmostEqual(event.value, value, delta=abs(value) * 1e-7)

    def test_wall_times_are_those_of_the_results(self):
        for trial in self.trials:
            events = event_accumulator.EventAccumulator(str(trial), EVERYTHING)
            events.Reload()
            times = [event.wall_time for event in events.Scalars("ray/tune/score")]
            self.assertEqual(times, sorted(times))
            for time, row in zip(times, self.rows(trial)):
                self.assertLess(abs(time - row["timestamp"]), 60)

    def test_a_list_of_numbers_is_a_histogram(self):
        for trial in self.trials:
            events = event_accumulator.EventAccumulator(str(trial), EVERYTHING)
            events.Reload()
            self.assertEqual(events.Tags()["histograms"], ["ray/tune/weights"])
            rows = self.rows(trial)
            shown = events.Histograms("ray/tune/weights")
            self.assertEqual(len(shown), len(rows))
            for event, row in zip(shown, rows):
                histogram, numbers = event.histogram_value, row["weights"]
                self.assertEqual((histogram.min, histogram.max, histogram.num), (min(numbers), max(numbers), 4))
                self.assertAlmostEqual(histogram.sum, sum(numbers))
                self.assertAlmostEqual(histogram.sum_squares, sum(number * number for number in numbers))
                self.assertEqual(sum(histogram.bucket), 4)

    def test_the_pages_back_ends_have_every_run(self):
        names = {trial.name for trial in self.trials}
        for plugin, tag, list_series in (
                (scalar_metadata.PLUGIN_NAME, "ray/tune/score", self.provider.list_scalars),
                (histogram_metadata.PLUGIN_NAME, "ray/tune/weights", self.provider.list_tensors)):
            runs = list_series(context.RequestContext(), experiment_id="", plugin_name=plugin)
            self.assertEqual({run for run, tags in runs.items() if tag in tags}, names)

    def test_the_hparams_tab_shows_all_trials_with_their_last_config_and_score(self):
        request_context = context.RequestContext()
        hparams = backend_context.Context(base_plugin.TBContext(data_provider=self.provider))
        request = api_pb2.ListSessionGroupsRequest(
            slice_size=100, allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING])
        groups = list_session_groups.Handler(request_context, hparams, "", request).run().session_groups
        self.assertEqual({group.name for group in groups}, {trial.name[:5] for trial in self.trials})
        for group in groups:
            (trial,) = [trial for trial in self.trials if trial.name.startswith(group.name)]
            (session,) = group.sessions
            self.assertEqual(session.name, trial.name)
            self.assertEqual(session.status, api_pb2.STATUS_SUCCESS)
            self.assertLess(session.start_time_secs, session.end_time_secs)
            params = json.loads((trial / "params.json").read_text())
            self.assertEqual({name: value.number_value for name, value in group.hparams.items()}, {"lr": params["lr"]})
            last = {value.name.tag: value for value in group.metric_values}
            row = self.rows(trial)[-1]
            self.assertAlmostEqual(last["ray/tune/score"].value, row["score"], delta=1e-6)
            self.assertEqual(last["ray/tune/score"].training_step, row["training_iteration"])
            self.assertEqual(last["ray/tune/done"].value, 1)

    def test_the_hparams_tab_has_a_column_for_each_parameter_and_metric(self):
        hparams = backend_context.Context(base_plugin.TBContext(data_provider=self.provider))
        handler = get_experiment.Handler(context.RequestContext(), hparams, "", api_pb2.GetExperimentRequest())
        experiment = handler.run()
        self.assertEqual([(info.name, info.type) for info in experiment.hparam_infos],
                         [("lr", api_pb2.DATA_TYPE_FLOAT64)])
        tags = {info.name.tag for info in experiment.metric_infos}
        self.assertLessEqual({"ray/tune/score", "ray/tune/eval/loss", "ray/tune/late"}, tags)
        self.assertNotIn("ray/tune/pid", tags)


if __name__ == "__main__":
    unittest.main()
