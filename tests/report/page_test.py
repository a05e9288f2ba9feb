"""The pages of `cadre report`, in a browser: what they show is what `cadre show --json` and others say."""

import csv
import io
import json
import math
import pathlib
import unittest

import browser
from browser import cadre, data, make, show_all, wait_until


def values(page, column):
    """Returns the exact values of a column of the table of trials, as texts by trial."""
    return dict(page.eval_on_selector_all(".trials tbody tr", """(rows, column) => rows.map((row) =>
        [row.dataset.trial, row.querySelector(`td[data-column="${CSS.escape(column)}"]`)?.dataset.value])""", column))


def same(text, value):
    """Returns true if a text of the page is a value of JSON."""
    if value is None:
        return text == ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = float(text)
        return math.isnan(number) and math.isnan(value) or number == value
    return text == (value if isinstance(value, str) else json.dumps(value))


def id_of(tag):
    """Returns the id of a trial, whose tag is "3_lr=0.1"."""
    return f"{int(tag.split('_')[0]):05}"


class ReportTest(browser.PageTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.population = make(cls.storage, "population")
        cls.search = make(cls.storage, "search", "search", 60)
        cls.training_run = make(cls.storage, "run")
        cls.shown = json.loads(cadre("show", cls.population, "--json"))
        cls.trials = {trial["trial_id"]: trial for trial in cls.shown["trials"]}

    # ---- What it shows agrees with the store

    def test_the_summary_is_that_of_the_store(self):
        best = json.loads(cadre("best", self.population, "--json"))
        with self.page(self.report(self.population)) as page:
            tile = data(page, ".tile.winner")
            self.assertEqual((tile["best"], tile["metric"], tile["mode"]), (best["trial_id"], best["metric"], best["mode"]))
            self.assertEqual(float(tile["value"]), best["value"])
            self.assertEqual(data(page, ".tile[data-trials]")["trials"], str(len(self.trials)))
            config = page.eval_on_selector_all("[data-config-of] dt", "(names) => names.map((name) => [name.textContent, "
                                               "name.nextElementSibling.firstElementChild.dataset.value])")
            for key, value in config:
                self.assertTrue(same(value, best["trial"]["config"][key]), key)
            self.assertEqual({key for key, _ in config}, {"lr", "momentum", "act"})
            text = page.text_content("#summary-0")
            for part in ("PopulationBasedTraining", "score", "finished", "higher is better", str(self.population)):
                self.assertIn(part, text)

    def test_the_table_has_every_trial_with_its_exact_values(self):
        with self.page(self.report(self.population)) as page:
            for column, value_of in {
                    "status": lambda trial: trial["status"], "score": lambda trial: trial["metrics"]["score"],
                    "eval/loss": lambda trial: trial["metrics"]["eval"]["loss"],
                    "late": lambda trial: trial["metrics"]["late"],
                    "config/lr": lambda trial: trial["config"]["lr"], "config/act": lambda trial: trial["config"]["act"],
                    "training_iteration": lambda trial: trial["metrics"]["training_iteration"],
                    "exploits": lambda trial: len(trial["exploits"])}.items():
                shown = values(page, column)
                self.assertEqual(set(shown), set(self.trials))
                for trial_id, trial in self.trials.items():
                    self.assertTrue(same(shown[trial_id], value_of(trial)), (column, trial_id, shown[trial_id]))

    def test_sorted_and_searched_trials(self):
        with self.page(self.report(self.population)) as page:
            rows = lambda: page.eval_on_selector_all(".trials tbody tr", "(rows) => rows.map((row) => row.dataset.trial)")
            ranked = sorted(self.trials, key=lambda one: -self.trials[one]["metrics"]["score"])
            self.assertEqual(rows(), ranked)
            page.click('.trials th[data-column="config/lr"] button')
            by_lr = sorted(self.trials, key=lambda one: self.trials[one]["config"]["lr"])
            self.assertEqual(rows(), by_lr)
            page.click('.trials th[data-column="config/lr"] button')
            self.assertEqual([self.trials[one]["config"]["lr"] for one in rows()],
                             [self.trials[one]["config"]["lr"] for one in reversed(by_lr)])
            self.assertEqual(page.get_attribute('.trials th[data-column="config/lr"]', "aria-sort"), "descending")
            limit = self.trials[by_lr[4]]["config"]["lr"]
            page.fill(".search input", f"lr < {limit} relu")
            wanted = {one for one, trial in self.trials.items()
                      if trial["config"]["lr"] < limit and trial["config"]["act"] == "relu"}
            self.assertEqual(set(rows()), wanted)
            self.assertLess(len(wanted), len(self.trials))
            page.fill(".search input", by_lr[0])
            self.assertIn(by_lr[0], rows())
            page.fill(".search input", "no such thing")
            self.assertEqual(rows(), [])

    def test_curves_are_all_results(self):
        exported = list(csv.DictReader(io.StringIO(cadre("export", self.population, "--all"))))
        with self.page(self.report(self.population)) as page:
            for name in "score", "eval/loss", "late", "time_total_s", "config/lr":
                shown = page.evaluate("""(name) => { const experiment = new cadre.Experiment(cadre.documentsOfPage()[0], 0);
                    return experiment.trials.id.map((id, trial) => [id, Array.from(experiment.series(trial, name) ?? [],
                        (number) => (Number.isFinite(number) ? number : null))]); }""", name)
                for trial_id, numbers in shown:
                    rows = [row for row in exported if row["trial_id"] == trial_id]
                    self.assertEqual(len(numbers), len(rows), (name, trial_id))
                    for number, row in zip(numbers, rows):
                        wanted = float(row[name] or "nan")
                        if math.isfinite(wanted):
                            self.assertAlmostEqual(number, wanted, delta=abs(wanted) * 1e-6)
                        else:
                            self.assertIsNone(number)

    def test_any_column_can_be_drawn_on_any_axis(self):
        with self.page(self.report(self.population)) as page:
            choice = lambda label: page.locator(".curves label.choice", has_text=label).first.locator("select")
            self.assertLessEqual({"score", "eval/loss", "late", "config/lr", "config/momentum", "time_total_s"},
                                 set(choice("metric").locator("option").evaluate_all("(options) => options.map((one) => one.value)")))
            chart = page.locator(".curves .chart")
            for metric in "eval/loss", "config/lr", "late":
                choice("metric").select_option(metric)
                self.assertEqual(page.get_attribute("#curves-0", "data-metric"), metric)
                self.assertGreaterEqual(int(chart.get_attribute("data-lines")), len(self.trials))
            choice("by").select_option("time_total_s")
            choice("show").select_option("max")
            for toggle in "log x", "log y":
                page.locator(".curves label.toggle", has_text=toggle).click()
            choice("colour").select_option("config/lr")
            self.assertEqual(int(chart.get_attribute("data-lines")), len(self.trials))

    def test_a_column_of_texts_and_numbers_has_a_place_for_each(self):
        with self.page(self.report(self.search)) as page:
            places = page.evaluate("""() => {
                const axis = cadre.textAxis({column: () => ({cells: ["b", 8, null, "a", 16, 8]})}, "config/width");
                return [0, 1, 2, 3, 4, 5].map((trial) => Math.round(axis.value(trial))); }""")
            self.assertTrue(math.isnan(places.pop(2)))
            self.assertEqual(places, [1, 2, 0, 3, 2])
            self.assertIsNone(page.evaluate("cadre.textAxis({column: () => ({cells: [1, null]})}, 'config/width')"))

    def test_the_winners_ancestry_is_that_of_its_exploits(self):
        best = json.loads(cadre("best", self.population, "--json"))["trial_id"]
        exploits = [json.loads(line) for line in (self.population / "pbt_global.txt").read_text().splitlines()]
        # From the last exploit backwards: the donor, as it was then. One that had saved nothing since an exploit of its
        # own gave on the checkpoint that it had got.
        path, values_of_lr, at, before = [], [], math.inf, len(exploits)
        trial = best
        while True:
            own = [number for number, exploit in enumerate(exploits[:before]) if id_of(exploit[0]) == trial]
            exploit = exploits[own[-1]] if own else None
            if exploit is None or exploit[3] < at:
                path.insert(0, trial)
                values_of_lr.insert(0, exploit[5]["lr"] if exploit else self.trials[trial]["drawn_config"]["lr"])
            if exploit is None:
                break
            trial, at, before = id_of(exploit[1]), exploit[3], own[-1]
        with self.page(self.report(self.population)) as page:
            lineage = data(page, ".lineage-chart")
            self.assertEqual(lineage["winner"], best)
            self.assertEqual(lineage["ancestry"].split(), path)
            schedule = data(page, '[data-schedule="lr"]')["winnerValues"].split()
            self.assertEqual([float(value) for value in schedule], values_of_lr)
            self.assertEqual(page.locator("[data-schedule]").count(), 3)
            self.assertEqual(page.locator(".steps li").count(), len(path))

    def test_brushes_leave_the_trials_within_them_everywhere(self):
        with self.page(self.report(self.search)) as page:
            show_all(page)
            trials = json.loads(cadre("show", self.search, "--json"))["trials"]
            strip = page.locator('.axis[data-axis="config/width"] .axis-strip')
            box = strip.bounding_box()
            page.mouse.move(box["x"] + 16, box["y"] + 1)
            page.mouse.down()
            page.mouse.move(box["x"] + 16, box["y"] + box["height"] / 2, steps=4)
            page.mouse.up()
            bar = page.locator(".filter-bar")
            bar.wait_for()
            widths = [trial["config"]["width"] for trial in trials]
            middle = (min(widths) + max(widths)) / 2
            wanted = sum(width >= middle for width in widths)
            wait_until(page, f"Math.abs(parseInt(document.querySelector('.filter-bar span').textContent) - {wanted}) <= 2")
            left = int(bar.text_content().split()[0])
            rows = page.eval_on_selector_all(".trials tbody tr", "(rows) => rows.map((row) => row.dataset.trial)")
            self.assertEqual(len(rows), min(left, 50))
            self.assertEqual(int(page.get_attribute(".parallel-box", "data-lines")), left)
            self.assertEqual(int(page.get_attribute(".curves .chart", "data-lines")), left)
            bar.locator("button").click()
            self.assertTrue(bar.is_hidden())
            self.assertEqual(int(page.get_attribute(".parallel-box", "data-lines")), len(trials))
            # The same by keys.
            page.focus('.axis[data-axis="config/width"] .axis-name')
            page.keyboard.press("ArrowUp")
            bar.wait_for()
            page.keyboard.press("Escape")
            wait_until(page, "document.querySelector('.filter-bar').hidden")

    def test_a_pointer_that_is_cancelled_brushes_no_more(self):
        with self.page(self.report(self.search)) as page:
            show_all(page)
            self.assertTrue(page.evaluate("""() => {
                const strip = document.querySelector('.axis[data-axis="config/width"] .axis-strip'), box = strip.getBoundingClientRect();
                strip.setPointerCapture = () => {};  // knows only pointers of the browser
                const send = (name, share) => strip.dispatchEvent(new PointerEvent(name, {bubbles: true, clientX: box.left, clientY: box.top + share * box.height}));
                send("pointerdown", 0.2);
                send("pointercancel", 0.2);
                send("pointermove", 0.8);
                return box.height > 0 && strip.querySelector(".brush").hidden; }"""))

    def test_importances_are_those_of_the_command(self):
        told = json.loads(cadre("importance", self.search, "--json"))["importances"]
        with self.page(self.report(self.search)) as page:
            shown = page.eval_on_selector_all(".bars tr", "(rows) => rows.map((row) => [row.dataset.key, +row.dataset.value])")
            self.assertEqual(shown, [[one["key"], one["importance"]] for one in told])
        with self.page(self.report(self.population)) as page:
            self.assertIn("exploits have changed", page.text_content("#importance-0"))

    def test_the_pareto_front_is_that_of_the_command(self):
        with self.page(self.report(self.search)) as page:
            for modes in ("min", "min"), ("max", "min"), ("min", "max"):
                selects = page.locator("#pareto-0 select")
                for at, choice in enumerate(("latency", modes[0], "loss", modes[1])):
                    selects.nth(at).select_option(choice)
                told = json.loads(cadre("best", self.search, "--pareto", f"latency:{modes[0]},loss:{modes[1]}", "--json"))
                self.assertEqual(data(page, "#pareto-0")["front"].split(), [one["trial_id"] for one in told["front"]])

    def test_failures_have_their_last_lines(self):
        failed = [trial for trial in json.loads(cadre("show", self.search, "--json"))["trials"] if trial["status"] == "ERROR"]
        self.assertGreater(len(failed), 2)
        with self.page(self.report(self.search)) as page:
            groups = page.eval_on_selector_all(".failure", "(all) => all.map((one) => one.dataset.trials.split(' '))")
            self.assertEqual(groups, [[trial["trial_id"] for trial in failed]])
            first = page.text_content(f'.failure pre[data-trial="{failed[0]["trial_id"]}"]')
            self.assertEqual(first, (pathlib.Path(failed[0]["path"]) / "error.txt").read_text())

    def test_failures_of_python_are_grouped_by_the_exception_and_not_by_the_title_of_the_traceback(self):
        title = "Traceback (most recent call last):"
        lines = f'{title}\n  File "a.py", line 3, in train\nKeyError: 1\n'
        again = "\nDuring handling of the above exception, another exception occurred:\n\n"
        with self.page(self.report(self.search)) as page:
            for error, reason in (("", ""), ("\nno memory\nbye", "no memory"), (lines, "KeyError: 1"),
                                  ("Attempt 2: " + lines, "Attempt 2: KeyError: 1"), (title, title),
                                  (lines + again + lines.replace("KeyError: 1", "OSError: full\nof it"), "OSError: full")):
                self.assertEqual(page.evaluate("(error) => cadre.reasonLine(error)", error), reason)

    def test_checkpoints_have_paths_to_copy(self):
        kept = {one["path"] for trial in self.trials.values() for one in trial["best_checkpoints"]}
        with self.page(self.report(self.population)) as page:
            shown = []
            while True:
                shown += page.eval_on_selector_all("#checkpoints-0 tbody tr", "(rows) => rows.map((row) => row.dataset.path)")
                following = page.locator("#checkpoints-0 .pages button", has_text="Next")
                if not following.is_visible() or following.is_disabled():
                    break
                following.click()
            self.assertEqual(set(shown), kept)
            self.assertEqual(len(shown), len(kept))
            page.evaluate("() => { window.copied = []; cadre.copy = async (text) => { copied.push(text); return true; }; }")
            button = page.locator("#checkpoints-0 .copy").first
            button.click()
            self.assertEqual(page.evaluate("copied"), [button.get_attribute("data-copy")])
            self.assertIn(button.get_attribute("data-copy"), kept)

    def test_a_chart_that_was_removed_does_not_listen(self):
        with self.page(self.report(self.population)) as page:
            self.assertEqual(page.evaluate("""() => {
                const selection = new cadre.Selection({}), group = new Set();
                const chart = new cadre.Chart(document.createElement("div"),
                    {label: "", height: 10, x: {}, y: {}, lines: () => [], selection, group});
                let calls = 0;
                chart.drawOverlay = () => { calls += 1; };
                selection.hover(1);
                const before = [calls, group.size];
                chart.remove();
                selection.hover(2);
                return [before, [calls, group.size]];
            }"""), [[1, 1], [1, 0]])

    def test_a_training_run_has_its_timeline_validations_and_failures(self):
        shown = json.loads(cadre("show", self.training_run, "--json"))
        with self.page(self.report(self.training_run)) as page:
            spans = dict(page.eval_on_selector_all(".track[data-lane]", "(all) => all.map((one) => [one.dataset.lane, +one.dataset.spans])"))
            self.assertEqual(spans["training"], 2)
            self.assertGreaterEqual(spans["validations"], 10)
            self.assertEqual(page.locator(".reports i").count() >= shown["reports"], True)
            rows = page.eval_on_selector_all("#checkpoints-0 tbody tr", "(rows) => rows.map((row) => [row.dataset.path, "
                                             "row.querySelector('[data-column^=validation]').dataset.value, row.textContent])")
            for (path, accuracy, text), kept in zip(rows, shown["checkpoints"], strict=True):
                self.assertEqual(path, kept["path"])
                self.assertTrue(same(accuracy, kept["validation_metrics"].get("accuracy")))
                self.assertIn(kept["status"], text)
                self.assertIn(kept["validation_error"].split("\n")[0], text)
            self.assertIn("out of luck", page.text_content("#failures-0 pre"))
            names = page.locator(".curves select").first.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
            self.assertIn("validation/accuracy", names)
            self.keep_screenshot(page, "run")

    def test_another_experiment_in_the_place_of_one_is_shown_anew(self):
        with self.page(self.report(self.population, self.search, name="replaced")) as page:
            shown = page.evaluate("""() => {
                const [one, other] = cadre.documentsOfPage();
                const experiment = new cadre.Experiment(one, 9), host = cadre.element("div");
                document.querySelector("main").append(host);
                const view = cadre.buildExperiment(host, experiment);
                const parameter = host.querySelector(".scatter select");
                parameter.value = "config/momentum";  // the other one has none
                parameter.dispatchEvent(new Event("change"));
                view.update(() => {
                  experiment.setDocument(other);
                  return new Set(Object.keys(other));
                });
                return [host.querySelector("#curves-9").dataset.metric, host.querySelector(".scatter select").value,
                    host.querySelectorAll(".scatter, .trials.card").length]; }""")
            self.assertIn(shown[1], {"config/lr", "config/width", "config/model/kind"})
            self.assertEqual((shown[0], shown[2]), ("loss", 2))

    def test_the_dialog_about_a_trial_that_is_not_there_any_more_is_closed(self):
        with self.page(self.report(self.search)) as page:
            is_open = page.evaluate("""() => {
                const [one] = cadre.documentsOfPage();
                const experiment = new cadre.Experiment(one, 9), host = cadre.element("div");
                document.querySelector("main").append(host);
                const view = cadre.buildExperiment(host, experiment), dialog = host.querySelector("dialog");
                host.querySelector(".trials tbody button").click();
                const states = [dialog.open];
                for (const first of ["", "other-"]) {  // the same trials, then others
                  view.update(() => {
                    experiment.setDocument({...one, trials: {...one.trials, id: one.trials.id.map((id) => first + id)}});
                    return new Set(["trials"]);
                  });
                  states.push(dialog.open);
                }
                return states; }""")
            self.assertEqual(is_open, [True, True, False])

    def test_characters_that_nobody_sees_are_shown_as_codes(self):
        with self.page(self.report(self.search)) as page:
            for hidden in "\x1b", "\x9b", "\u00ad", "\u061c", "\u180e", "\u200b", "\u202e", "\u206a", "\ufeff", "\ufffa", "\U000e0041":
                self.assertEqual(page.evaluate("(text) => cadre.printable(text)", f"a{hidden}b"), f"a\\u{ord(hidden):04x}b")
            for shown in "a\tb\nc", "caf\u00e9 \u8a71 \U0001f600 \ufffd":
                self.assertEqual(page.evaluate("(text) => cadre.printable(text)", shown), shown)

    def test_a_seed_is_shown_whole(self):
        with self.page(self.report(self.search)) as page:
            shown = page.evaluate("[1234567890, -4294967295, 0.123456789].map(cadre.cellText)")
            self.assertEqual(shown, ["1234567890", "-4294967295", "0.123457"])

    # ---- It can be used

    def test_zoom_by_pointer_and_keys(self):
        with self.page(self.report(self.population)) as page:
            over = page.locator(".curves .u-over")
            over.scroll_into_view_if_needed()
            box = over.bounding_box()
            page.mouse.move(box["x"] + 100, box["y"] + 50)
            page.mouse.down()
            page.mouse.move(box["x"] + 400, box["y"] + 52, steps=5)
            page.mouse.up()
            zoom = lambda: page.get_attribute(".curves .chart", "data-zoom")
            low, high = json.loads(zoom())["x"]
            self.assertTrue(1 < low < high < 24, (low, high))
            page.locator(".curves button", has_text="Reset zoom").click()
            self.assertEqual(zoom(), "")
            page.focus(".curves .chart")
            page.keyboard.press("+")
            narrow = json.loads(zoom())["x"]
            page.keyboard.press("ArrowRight")
            self.assertGreater(json.loads(zoom())["x"][0], narrow[0])
            page.keyboard.press("0")
            self.assertEqual(zoom(), "")

    def test_a_chart_is_released_by_a_finger_that_scrolls_on(self):
        with self.page(self.report(self.population)) as page:
            pressed = page.evaluate("""async () => {
                const host = cadre.element("div"), pressed = [];
                document.querySelector("main").append(host);
                const chart = new cadre.Chart(host, {label: "scrolled over", height: 200, x: {}, y: {}, lines: () => []});
                for (const end of ["pointerup", "pointercancel"]) {
                  chart.root.dispatchEvent(new PointerEvent("pointerdown", {bubbles: true}));
                  pressed.push(chart.isPressed);
                  window.dispatchEvent(new PointerEvent(end));
                  await new Promise((resolve) => setTimeout(resolve));
                  pressed.push(chart.isPressed);
                }
                return pressed; }""")
            self.assertEqual(pressed, [True, False, True, False])

    def test_keys_go_through_trials_and_open_them(self):
        ranked = sorted(self.trials, key=lambda one: -self.trials[one]["metrics"]["score"])
        with self.page(self.report(self.population)) as page:
            page.focus(".curves .chart")
            page.keyboard.press("ArrowDown")
            page.keyboard.press("ArrowDown")
            self.assertIn(f"trial {ranked[1]}", page.text_content("[aria-live].off-screen"))
            page.keyboard.press("Enter")
            dialog = page.locator("dialog[open]")
            self.assertIn(f"Trial {ranked[1]}", dialog.text_content())
            self.assertIn(self.trials[ranked[1]]["path"], dialog.text_content())
            page.keyboard.press("Escape")
            self.assertEqual(page.locator("dialog[open]").count(), 0)

    def test_the_trial_under_the_pointer_is_named(self):
        with self.page(self.report(self.population)) as page:
            over = page.locator(".curves .u-over")
            over.scroll_into_view_if_needed()
            box = over.bounding_box()
            for y in range(5, int(box["height"]), 6):  # somewhere there is a curve
                page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + y)
                if page.locator(".curves .tip").is_visible():
                    break
            tip = page.locator(".curves .tip").text_content()
            trial_id = next(one for one in self.trials if f"trial {one}" in tip)
            self.assertIn(f"{self.trials[trial_id]['config']['lr']:.6g}"[:5], tip)
            self.assertNotEqual(page.get_attribute(".lineage .chart", "data-hovered"), "")

    def test_every_width_and_colour_scheme(self):
        file = self.report(self.population, name="population")
        for width, dark in (1280, False), (1280, True), (400, False), (400, True):
            with self.page(file, width=width, dark=dark) as page:
                show_all(page)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                channels = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
                self.assertEqual(sum(channels) < 380, dark)
                self.keep_screenshot(page, f"population-{width}-{'dark' if dark else 'light'}")

    def test_everything_has_a_name_for_people_who_do_not_see_it(self):
        with self.page(self.report(self.population)) as page:
            nameless = page.evaluate("""() => Array.from(document.querySelectorAll("button, select, input, [role=group], [role=region]"))
                .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim()))
                .map((one) => one.outerHTML.slice(0, 200))""")
            self.assertEqual(nameless, [])

    def test_pictures_follow_the_colour_scheme(self):
        with self.page(self.report(self.population)) as page:
            show_all(page)
            pictures = "['.curves canvas', '.parallel-box canvas'].map((one) => document.querySelector(one).toDataURL())"
            page.evaluate(f"() => {{ window.light = {pictures}; }}")
            page.emulate_media(color_scheme="dark")
            wait_until(page, f"{pictures}.every((picture, at) => picture !== light[at])")

    # ---- Several experiments

    def test_experiments_are_compared(self):
        other = make(self.storage, "population", "other", 6)
        with self.page(self.report(self.population, other, self.training_run, name="compared")) as page:
            rows = page.eval_on_selector_all(".experiments tbody tr", """(rows) => rows.map((row) =>
                [row.dataset.experiment, row.querySelector('[data-column=best]').dataset.value])""")
            best = [json.loads(cadre("best", one, "--json"))["value"] for one in (self.population, other)]
            self.assertEqual([name for name, _ in rows], ["population", "other", "run"])
            self.assertEqual([float(value) for _, value in rows[:2]], best)
            self.assertEqual(page.locator("[role=tab]").count(), 3)
            page.locator("[role=tab]", has_text="other").click()
            self.assertEqual(page.locator("#panel-1 .tile[data-trials]").get_attribute("data-trials"), "6")
            page.keyboard.press("ArrowRight")
            self.assertTrue(page.locator("#panel-2 #timeline-2").is_visible())
            self.keep_screenshot(page, "compared")

    def test_twelve_experiments_are_told_apart_in_one_picture(self):
        with self.page(self.report(self.population)) as page:
            swatches, lines = page.evaluate("""() => {
                const host = cadre.element("div");
                document.querySelector("main").append(host);
                const Chart = cadre.Chart, charts = [];
                cadre.Chart = class extends Chart { constructor(...all) { super(...all); charts.push(this); } };
                cadre.buildComparison(host, Array.from({length: 12}, (_, index) => new cadre.Experiment(cadre.documentsOfPage()[0], index)));
                return [Array.from(host.querySelectorAll(".experiments .swatch"), (one) => one.style.background),
                    charts[0].options.lines().map(({color, dash}) => `${color} ${dash}`)]; }""")
            self.assertEqual([len(swatches), len(set(swatches))], [12, 12])
            self.assertEqual([len(lines), len(set(lines))], [12, 12])

    def test_a_comparison_has_another_axis_when_the_experiment_with_its_own_is_gone(self):
        with self.page(self.report(self.population, self.search, name="gone")) as page:
            shown = page.evaluate("""() => {
                const [one, other] = cadre.documentsOfPage(), host = cadre.element("div");
                one.curves.names = one.curves.names.map((name) => (name === "late" ? "env_steps" : name));
                document.querySelector("main").append(host);
                const experiments = [one, other].map((document, index) => new cadre.Experiment(document, index));
                const view = cadre.buildComparison(host, experiments);
                const [metric, , by] = host.querySelectorAll(".comparison-curves select");
                const shown = [];
                for (const [select, value] of [[metric, "config/lr"], [by, "env_steps"]]) {
                  select.value = value;
                  select.dispatchEvent(new Event("change"));
                  shown.push(select.value);
                }
                view.update([() => {
                  experiments[0].setDocument({kind: "unreadable", name: "population", reason: "It is not there any more."});
                  return new Set(["kind"]);
                }, null]);
                return [...shown, by.value]; }""")
            self.assertEqual(shown, ["config/lr", "env_steps", "training_iteration"])


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
