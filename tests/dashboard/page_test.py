"""The pages of `cadre dashboard` in a browser, against what other commands print."""

import contextlib
import json
import shutil
import unittest

import browser
from browser import cadre, data, make, show_all, wait_until
from server import Dashboard


class DashboardTest(browser.PageTest):
    """Opens pages of a dashboard. One that says anything on its console, or asks another server, fails its test."""

    @contextlib.contextmanager
    def opened(self, url, width=1280, height=900, dark=False, may_say=lambda text: False):
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.set_default_timeout(browser.DEADLINE_MS)
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        try:
            wait_until(page, "document.querySelector('#page')?.dataset.ready !== undefined")
            yield page
        finally:
            self.assertEqual([text for text in said if not may_say(text)], [])
            own = "/".join(url.split("/")[:4]) + "/"
            self.assertEqual([one for one in asked if not one.startswith((own, "data:"))], [])
            context.close()

    def experiment(self, dashboard, name, **options):
        return self.opened(f"{dashboard.url}experiment?id={dashboard.id_of(name)}", **options)


class PageTest(DashboardTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.results = cls.storage / "results"
        cls.population = make(cls.results, "population")
        make(cls.results / "deep" / "deeper", "search", "search", 60)
        make(cls.results, "run")
        make(cls.results, "ranked_run")
        make(cls.results, "hostile")
        cls.damaged = cls.results / "damaged"
        shutil.copytree(cls.population, cls.damaged)
        with open(cls.damaged / "experiment.db", "r+b") as file:
            file.truncate(20_000)
        study = cls.results / "study"
        cadre("suggest", study, "-n", "3", "--param", "x=uniform(0, 1)", "--minimize", "loss")
        cls.dashboard = Dashboard(cls.results)

    @classmethod
    def tearDownClass(cls):
        cls.dashboard.stop()
        super().tearDownClass()

    # ---- The list

    def test_the_list_has_what_ls_prints(self):
        listed = {one["path"]: one for one in json.loads(cadre("ls", self.results, "--json"))["experiments"]}
        with self.opened(self.dashboard.url) as page:
            wait_until(page, f"document.querySelectorAll('.list tbody tr').length === {len(listed)}")
            rows = page.eval_on_selector_all(".list tbody tr", """(rows) => rows.map((row) => ({...row.dataset, path: row.querySelector("a").title, link: row.querySelector("a").textContent,
                best: row.querySelector("[data-column=best] span")?.dataset.value, text: row.textContent, last: row.querySelector(".age")?.dataset.time}))""")
            self.assertEqual({row["path"] for row in rows}, set(listed))
            for row in rows:
                one = listed[row["path"]]
                self.assertEqual(row["link"], row["name"])
                if row["name"] == "damaged":
                    self.assertEqual(row["state"], "unreadable")
                    self.assertIn("is damaged near byte", row["text"])
                    self.assertIn(one["error"][:60], row["text"])
                    continue
                self.assertEqual(row["state"], one["state"])
                if one.get("kind") != "training_run":
                    self.assertEqual(row["best"], "" if one.get("best") is None else str(one["best"]), row["name"])
                self.assertEqual(float(row["last"]), one["last_event"])
            self.assertEqual({row["name"] for row in rows}, {"population", "deep/deeper/search", "run", "ranked_run", "hostile", "damaged", "study"})
            self.assertEqual(page.locator(".list tr[data-name=run]").text_content().count("run, 10 reports"), 1)
            page.fill(".search input", "deeper")
            self.assertEqual(page.locator(".list tbody tr").count(), 1)
            page.fill(".search input", "unreadable")
            self.assertEqual(page.get_attribute(".list tbody tr", "data-name"), "damaged")
            page.fill(".search input", "")
            page.click(".list [data-column=name] button")
            names = page.eval_on_selector_all(".list tbody tr", "(rows) => rows.map((row) => row.dataset.name)")
            self.assertEqual(names, sorted(names))
            page.keyboard.press("Enter")  # the head keeps the focus
            self.assertEqual(page.eval_on_selector_all(".list tbody tr", "(rows) => rows.map((row) => row.dataset.name)"), names[::-1])

    def test_the_list_rounds_what_is_done_as_ls_does(self):
        shares = [0, 0.004, 0.005, 0.125, 0.135, 0.166, 5 / 12, 0.995, 0.996, 1]
        with self.opened(self.dashboard.url) as page:
            self.assertEqual(page.evaluate("(shares) => shares.map(cadre.percent)", shares), [round(100 * share) for share in shares])

    def test_the_list_has_the_metric_of_training_runs(self):
        with self.opened(self.dashboard.url) as page:
            def cells(name):
                wait_until(page, f"document.querySelector('.list tr[data-name={name}]')")
                return [page.text_content(f".list tr[data-name={name}] [data-column={column}]") for column in ("metric", "best")]
            last = json.loads(cadre("show", self.results / "run", "--json"))["metrics"]
            self.assertEqual(cells("run"), ["loss", f"{last['loss']:g} last"])
            self.assertEqual(cells("ranked_run"), ["validation/accuracy (max)", "0.95"])

    # ---- Side by side

    def test_marked_experiments_are_shown_side_by_side(self):
        other = make(self.results / "deep", "population", "population", 6)
        self.addCleanup(shutil.rmtree, other)
        names = "deep/population", "population"
        with self.opened(self.dashboard.url) as page:
            for name in names:
                wait_until(page, f"document.querySelector('.list tr[data-name=\"{name}\"]')")
            self.assertTrue(page.locator(".marked a").is_hidden())
            page.focus(f".list tr[data-name='{names[0]}'] input")
            page.keyboard.press("Space")
            self.assertTrue(page.locator(".marked a").is_hidden())
            page.keyboard.press("Space")
            page.keyboard.press("Space")
            page.fill(".search input", "run")  # what is marked stays, also where it is not shown
            page.fill(".search input", "")
            page.check(f".list tr[data-name='{names[1]}'] input")
            self.assertEqual(page.text_content(".marked a"), "Compare 2 experiments")
            page.click(".marked a")
            wait_until(page, "document.querySelector('.experiments')")
            rows = page.eval_on_selector_all(".experiments tbody tr", """(rows) => rows.map((row) =>
                [row.dataset.experiment, row.querySelector('[data-column=best]').dataset.value, row.querySelector('[data-column=trials]').textContent])""")
            best = [str(json.loads(cadre("best", one, "--json"))["value"]) for one in (other, self.population)]
            self.assertEqual(rows, [["deep/population", best[0], "6"], ["results/population", best[1], "12"]])
            page.locator("[role=tab]", has_text="deep/population").focus()
            page.keyboard.press("ArrowRight")
            self.assertEqual(page.locator("#panel-1 .tile[data-trials]").get_attribute("data-trials"), "12")
            show_all(page)
            self.assertEqual(page.get_attribute(".comparison .chart >> nth=0", "data-lines"), "2")
            url = page.url
            page.go_back()
            wait_until(page, "document.querySelectorAll('.list input:checked').length === 0 && document.querySelector('.list input')")
            boxes = page.locator(".list input")
            boxes.first.check()
            self.assertTrue(page.locator(".marked button").is_visible())
            page.click(".marked button")
            self.assertEqual(page.locator(".list input:checked").count(), 0)
        for width, dark in (1280, False), (1280, True), (400, False), (400, True):
            with self.opened(url, width=width, dark=dark) as page:
                show_all(page)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                self.keep_screenshot(page, f"compared-{width}-{'dark' if dark else 'light'}")

    def test_what_is_compared_is_there_or_said_to_be_gone(self):
        known = self.dashboard.id_of("population")
        for query in "id=nowhere&id=neither", "id=&id=":
            self.assertEqual(self.dashboard.request(path=f"{self.dashboard.path}experiment?{query}")[0], 404, query)
        with self.opened(f"{self.dashboard.url}experiment?id={known}&id=nowhere") as page:
            self.assertIn("It is not there any more", page.text_content("p.unreadable"))
            self.assertEqual(page.locator(".experiments tbody tr").count(), 2)
            self.assertEqual(data(page, ".live")["state"], "live")
        with self.opened(f"{self.dashboard.url}experiment?id={known}&id={self.dashboard.id_of('damaged')}") as page:
            self.assertIn("is damaged near byte", page.text_content("p.unreadable"))

    def test_several_folders_and_one_experiment_can_be_named(self):
        with Dashboard(self.results / "deep", self.population) as dashboard:
            names = {entry["name"] for entry in dashboard.listed()["experiments"].values()}
            self.assertEqual(names, {f"{self.results}/deep/deeper/search", "population"})

    def test_an_empty_folder_says_so(self):
        (self.storage / "empty").mkdir(exist_ok=True)
        with Dashboard(self.storage / "empty") as dashboard, self.opened(dashboard.url) as page:
            wait_until(page, "document.querySelector('.controls .note').textContent === 'There are no experiments yet.'")

    # ---- An experiment

    def test_an_experiment_has_what_show_prints_and_what_its_report_shows(self):
        shown = json.loads(cadre("show", self.population, "--json"))
        with self.opened(self.dashboard.url) as page:
            page.click("tr[data-name=population] a")
            wait_until(page, "document.querySelector('#page')?.dataset.ready !== undefined && document.querySelector('.tile')")
            show_all(page)
            best = json.loads(cadre("best", self.population, "--json"))
            self.assertEqual(data(page, ".tile.winner")["best"], best["trial"]["trial_id"])
            self.assertEqual(float(data(page, ".tile.winner")["value"]), best["value"])
            cells = dict(page.eval_on_selector_all(".trials tbody tr", """(rows) => rows.map((row) => [row.dataset.trial,
                Object.fromEntries(Array.from(row.querySelectorAll("td"), (cell) => [cell.dataset.column, cell.dataset.value]))])"""))
            self.assertEqual(set(cells), {trial["trial_id"] for trial in shown["trials"]})
            for trial in shown["trials"]:
                mine = cells[trial["trial_id"]]
                self.assertEqual(float(mine["config/lr"]), trial["config"]["lr"])
                self.assertEqual(float(mine["score"]), trial["metrics"]["score"])
                self.assertEqual(mine["status"], trial["status"])
            parts = page.eval_on_selector_all("main section.card", "(cards) => cards.map((card) => card.id)")
            file = self.report(self.population)
            lineage = data(page, ".lineage-chart")
        with self.page(file) as report:
            show_all(report)
            self.assertEqual(report.eval_on_selector_all("main section.card", "(cards) => cards.map((card) => card.id)"), parts)
            self.assertEqual(data(report, ".lineage-chart"), lineage)

    def test_damaged_hostile_and_other_experiments_have_pages(self):
        with self.experiment(self.dashboard, "damaged") as page:
            self.assertIn("is damaged near byte", page.text_content(".unreadable pre"))
            self.keep_screenshot(page, "damaged")
        with self.experiment(self.dashboard, "hostile") as page:
            show_all(page)
            self.assertIsNone(page.evaluate("window.broken ?? null"))
            self.assertEqual(page.locator("img, #page script").count(), 0)
        with self.experiment(self.dashboard, "run") as page:
            show_all(page)
            self.assertTrue(page.locator("#timeline-0").is_visible())
            self.keep_screenshot(page, "run")
        with self.experiment(self.dashboard, "study") as page:
            self.assertIn("none yet", page.text_content(".tile.winner"))

    def test_every_width_and_colour_scheme(self):
        for width, dark in (1280, False), (1280, True), (400, False), (400, True):
            name = f"{width}-{'dark' if dark else 'light'}"
            with self.opened(self.dashboard.url, width=width, dark=dark) as page:
                wait_until(page, "document.querySelectorAll('.list tbody tr').length === 7")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                self.keep_screenshot(page, f"list-{name}")
            with self.experiment(self.dashboard, "population", width=width, dark=dark) as page:
                show_all(page)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
                channels = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
                self.assertEqual(sum(channels) < 380, dark)
                self.keep_screenshot(page, f"experiment-{name}")

    def test_everything_has_a_name_for_people_who_do_not_see_it(self):
        for url in self.dashboard.url, f"{self.dashboard.url}experiment?id={self.dashboard.id_of('population')}":
            with self.opened(url) as page:
                nameless = page.evaluate("""() => Array.from(document.querySelectorAll("button, select, input, a, [role=group], [role=region]"))
                    .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim() || one.placeholder))
                    .map((one) => one.outerHTML.slice(0, 200))""")
                self.assertEqual(nameless, [])


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
