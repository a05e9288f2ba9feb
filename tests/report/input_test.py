"""Reports of experiments that are hostile, damaged, large or running."""

import json
import os
import shutil
import subprocess
import time
import unittest

import browser
from browser import cadre, data, make, show_all


class InputTest(browser.PageTest):
    def test_no_name_value_or_error_breaks_the_page_or_runs(self):
        hostile = make(self.storage, "hostile")
        with self.page(self.report(hostile, "--title", "</title><script>window.broken=1</script>")) as page:
            show_all(page)
            self.assertEqual(page.title(), "</title><script>window.broken=1</script>")
            self.assertIsNone(page.evaluate("window.broken ?? null"))
            self.assertEqual(page.locator("img, #page script").count(), 0)
            shown = json.loads(cadre("show", hostile, "--json"))
            metric = shown["experiment"]["metric"]
            self.assertEqual(data(page, ".tile.winner")["metric"], metric)
            self.assertIn("onerror", metric)
            cells = dict(page.eval_on_selector_all(".trials tbody tr", """(rows) => rows.map((row) => [row.dataset.trial,
                Object.fromEntries(Array.from(row.querySelectorAll("td"), (cell) => [cell.dataset.column, cell.dataset.value]))])"""))
            for trial in shown["trials"]:
                mine = cells[trial["trial_id"]]
                self.assertEqual(mine[f"config/{metric}"], trial["config"][metric])
                self.assertEqual(mine["big"], str(2**62 + 1))
                self.assertEqual(mine["none"], "NaN")
            error = page.text_content(".failure pre")
            self.assertIn("</script><script>window.broken=1</script>", error)
            self.assertNotRegex(error, "[\x00-\x08\x0b-\x1f\u2028\u202e]")
            for choice in page.locator(".curves select").first.locator("option").all():
                page.locator(".curves select").first.select_option(choice.get_attribute("value"))
            for button in page.locator(".trials thead button").all():
                button.click()
            page.locator(".trials tbody button").first.click()
            page.keyboard.press("Escape")
            self.assertIsNone(page.evaluate("window.broken ?? null"))
            self.keep_screenshot(page, "hostile")

    def test_what_is_damaged_is_named_and_the_others_are_there(self):
        good = make(self.storage, "population", "good", 4)
        damaged = self.storage / "damaged"
        shutil.copytree(good, damaged)
        with open(damaged / "experiment.db", "r+b") as file:
            file.truncate(20_000)
        file = self.storage / "mixed.html"
        said = cadre("report", damaged, good, self.storage / "nowhere", "-o", file, code=1)
        self.assertIn(f"cadre: {damaged}: ", said)
        self.assertIn("the report has 1 of 3 experiments", said)
        with self.page(file) as page:
            notes = page.locator("p[data-unreadable]")
            self.assertEqual(notes.count(), 2)
            self.assertIn(str(damaged), notes.first.text_content())
            self.assertIn("is damaged", notes.first.text_content())
            self.assertIn("there is no experiment", notes.nth(1).text_content())
            self.assertEqual(page.locator("#panel-1 .tile[data-trials]").get_attribute("data-trials"), "4")
            self.keep_screenshot(page, "damaged")
        # A report with nothing in it is none, and an older one stays.
        before = file.read_bytes()
        self.assertIn("is damaged", cadre("report", damaged, "-o", file, code=1))
        cadre("report", damaged, damaged, "-o", file, code=1)
        self.assertEqual(file.read_bytes(), before)

    def test_the_file_is_replaced_at_once_and_stays_after_an_error(self):
        good = make(self.storage, "population", "replaced", 4)
        file = self.storage / "twice.html"
        file.write_text("older")
        os.chmod(file, 0o444)
        self.assertEqual(cadre("report", good, "-o", file).strip(), str(file))
        self.assertTrue(file.read_text().startswith("<!doctype html>"))
        self.assertTrue(cadre("report", good, "-o", "-").startswith("<!doctype html>"))
        self.assertEqual(json.loads(cadre("report", good, "-o", file, "--json")), {"file": str(file), "unreadable": 0})
        self.assertIn("nowhere", cadre("report", good, "-o", self.storage / "nowhere" / "a.html", code=1))
        self.assertEqual([path.name for path in self.storage.glob("twice.html*")], ["twice.html"])

    def test_a_study_has_a_page_before_and_after_its_first_result(self):
        study = self.storage / "study"
        cadre("suggest", study, "-n", "3", "--param", "x=uniform(0, 1)", "--minimize", "loss")
        with self.page(self.report(study)) as page:
            show_all(page)
            self.assertIn("none yet", page.text_content(".tile.winner"))
            self.assertEqual(page.locator(".legend-gradient").count(), 0)
            self.assertEqual(page.locator(".trials tbody tr").count(), 3)
        cadre("observe", study, "1", "loss=0.5")
        with self.page(self.report(study)) as page:
            show_all(page)
            self.assertEqual(data(page, ".tile.winner")["best"], "00001")
            self.assertIn("loss 0.5", page.text_content("#parallel-0 .legend-gradient"))

    def test_long_curves_keep_their_peaks_and_say_that_they_are_thinned_out(self):
        long = make(self.storage, "long")
        file = self.report(long)
        self.assertLess(file.stat().st_size, 1_000_000)
        with self.page(file) as page:
            show_all(page)
            self.assertIn("thinned out", page.text_content("[data-sampled]"))
            highest = page.evaluate("""() => { const experiment = new cadre.Experiment(cadre.documentsOfPage()[0], 0);
                return Math.max(...experiment.series(0, "value")); }""")
            self.assertEqual(highest, 100)
            self.keep_screenshot(page, "long")

    def test_a_page_of_an_ordinary_experiment_is_small(self):
        self.assertLess(self.report(make(self.storage, "population", "ordinary", 12)).stat().st_size, 500_000)

    def test_ten_thousand_trials_open_and_stay_smooth(self):
        many = make(self.storage, "search", "many", 10_000)
        file = self.report(many)
        with self.page(file) as page:
            ready = page.evaluate("performance.now()")
            print(f"10,000 trials: {file.stat().st_size / 1e6:.1f} MB, ready after {ready / 1000:.2f} s")
            self.assertLess(ready, 120_000)
            self.assertEqual(data(page, ".tile[data-trials]")["trials"], "10000")
            show_all(page)
            self.assertEqual(page.get_attribute(".curves .chart", "data-lines"), "10000")
            self.assertEqual(page.locator(".trials tbody tr").count(), 50)
            page.locator("#trials-0 .pages button", has_text="Next").click()
            self.assertIn("51 to 100 of 10", page.text_content("#trials-0 .pages-text"))
            page.fill(".search input", "ERROR")
            failed = sum(trial["status"] == "ERROR" for trial in json.loads(cadre("show", many, "--json"))["trials"])
            self.assertIn(f"{failed:,}".replace(",", "\u202f"), page.text_content("#trials-0 .controls .note"))
            self.assertIn(f"{failed:,}".replace(",", "\u202f"), page.text_content("#failures-0 .note"))
            # The middle one of the times: some of them have what else the machine did in them.
            usual = page.evaluate("""() => new Promise((resolve) => {
                const chart = document.querySelector(".curves .u-over"), box = chart.getBoundingClientRect();
                const times = [];
                const move = () => {
                  const begin = performance.now();
                  const at = {clientX: box.left + 20 + 20 * times.length, clientY: box.top + 200};
                  chart.dispatchEvent(new PointerEvent("pointermove", at));
                  times.push(performance.now() - begin);
                  if (times.length < 30) requestAnimationFrame(move); else resolve(times.sort((a, b) => a - b)[15]);
                };
                move();
              })""")
            print(f"a move of the pointer: {usual:.0f} ms")
            self.assertLess(usual, 2000)
            self.keep_screenshot(page, "many")

    def test_an_experiment_that_runs_is_shown_as_it_stands(self):
        storage = self.storage / "running"
        storage.mkdir()
        os.mkfifo(storage / "gate1")
        tool = subprocess.Popen([browser.BIN / "console_tool", storage, "verbose=0", "gates=1", "iterations=6"],
                                stdout=subprocess.DEVNULL, cwd=storage)
        try:
            until = time.monotonic() + 120
            while time.monotonic() < until:
                done = subprocess.run([browser.BIN / "cadre", "show", storage / "experiment", "--json"], capture_output=True)
                if done.returncode == 0 and sum(trial["results"] for trial in json.loads(done.stdout)["trials"]) == 8:
                    break
                time.sleep(0.05)
            with self.page(self.report(storage / "experiment", name="running")) as page:
                self.assertIn("running", page.text_content(".state"))
                self.assertEqual(page.locator(".trials tbody tr").count(), 4)
        finally:
            tool.kill()
            tool.wait()


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
