"""Pages of `cadre dashboard` that grow while experiments run."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest
import unittest.mock

import browser
import server
from browser import cadre, data, make, show_all, wait_until
from page_test import DashboardTest
from server import BIN, Dashboard


def is_lost(text):
    """Returns true if a browser says this of a server that is gone."""
    return any(one in text for one in ("net::ERR_", "Failed to load resource"))


class Running:
    """An experiment of four trials that runs, and waits at gates: let it through one after the other."""

    def __init__(self, storage, gates=3, iterations=12, *settings):
        storage.mkdir()
        self.storage = storage
        self.pipes = contextlib.ExitStack()
        for gate in range(1, gates + 1):
            os.mkfifo(storage / f"gate{gate}")
        self.process = self.start(f"gates={gates}", f"iterations={iterations}", *settings)

    def start(self, *settings):
        return subprocess.Popen([BIN / "console_tool", self.storage, "verbose=0", *settings],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.storage)

    def open_gate(self, gate, trials=4):
        """Waits until a trial is at the gate, then lets so many pass as they arrive."""
        # Open until the end: what is left in a pipe that nobody has open is lost.
        pipe = self.pipes.enter_context(open(self.storage / f"gate{gate}", "wb", buffering=0))
        pipe.write(b"x" * trials)

    def results(self):
        done = subprocess.run([BIN / "cadre", "show", self.storage / "experiment", "--json"], capture_output=True)
        return sum(trial["results"] for trial in json.loads(done.stdout)["trials"]) if done.returncode == 0 else 0

    def __enter__(self):
        server.wait_until(lambda: self.results() == 8, "two results of each trial")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.pipes.close()


class LiveTest(DashboardTest):
    def setUp(self):
        self.folder = self.storage / self.id().split(".")[-1]
        self.folder.mkdir()

    def test_pages_grow_with_a_running_experiment_and_zoom_selection_and_search_stay(self):
        with Running(self.folder / "here") as running, Dashboard(self.folder) as dashboard, \
                self.opened(dashboard.url) as front, self.experiment(dashboard, "here/experiment") as page:
            show_all(page)
            page.evaluate("window.sameDocument = true")
            iteration = "Math.max(...Array.from(document.querySelectorAll('.trials td[data-column=training_iteration]'), (cell) => Number(cell.dataset.value)))"
            wait_until(page, f"{iteration} === 2")
            self.assertIn("running", page.text_content(".state"))
            self.assertIn("17 %, 0 of 4 trials have ended", page.text_content(".tiles"))
            # Zoom, sort, search, open a trial and put the focus somewhere.
            page.focus(".curves .chart")
            page.keyboard.press("+")
            zoom = page.get_attribute(".curves .chart", "data-zoom")
            self.assertTrue(json.loads(zoom)["x"])
            page.click(".trials [data-column='id'] button")
            page.fill(".search input", "0000")
            page.select_option(".curves select >> nth=0", "loss")
            page.focus(".curves .chart")
            page.keyboard.press("+")
            zoom = page.get_attribute(".curves .chart", "data-zoom")
            page.keyboard.press("ArrowDown")
            hovered = page.get_attribute(".curves .chart", "data-hovered")
            self.assertNotEqual(hovered, "")
            before = page.evaluate("document.querySelector('#page').dataset.after")
            running.open_gate(1)
            wait_until(page, f"{iteration} === 5")
            running.open_gate(2)
            wait_until(page, f"{iteration} === 8")
            self.assertNotEqual(page.evaluate("document.querySelector('#page').dataset.after"), before)
            self.assertEqual(page.get_attribute(".curves .chart", "data-zoom"), zoom)
            self.assertEqual(page.get_attribute(".curves .chart", "data-hovered"), hovered)
            self.assertEqual(page.evaluate("document.activeElement.className"), "chart")
            self.assertEqual(page.get_attribute(".curves", "data-metric"), "loss")
            self.assertEqual(page.input_value(".search input"), "0000")
            self.assertEqual(page.get_attribute(".trials th[data-column='id']", "aria-sort"), "ascending")
            # The lineage appears with the first exploit, in its place.
            cards = page.eval_on_selector_all("main section.card", "(cards) => cards.map((card) => card.id)")
            self.assertEqual(cards.index("lineage-0"), cards.index("curves-0") + 1)
            self.keep_screenshot(page, "growing")
            # The pictures have what a page has that is opened now.
            page.keyboard.press("0")
            with self.experiment(dashboard, "here/experiment") as fresh:
                show_all(fresh)
                fresh.select_option(".curves select >> nth=0", "loss")
                for place in ".curves .chart", ".lineage-chart .chart", ".parallel-box", ".scatter .chart":
                    wait_until(page, f"document.querySelector('{place}').dataset.lines === '{fresh.get_attribute(place, 'data-lines')}'")
                self.assertEqual(data(page, ".lineage-chart"), data(fresh, ".lineage-chart"))
                lengths = "JSON.stringify(Array.from(document.querySelectorAll('[data-schedule]'), (one) => [one.dataset.schedule, one.dataset.winnerValues]))"
                self.assertEqual(page.evaluate(lengths), fresh.evaluate(lengths))
            wait_until(front, "document.querySelector('tr[data-name=\"here/experiment\"]').dataset.state === 'running'")
            running.open_gate(3)
            self.assertEqual(running.process.wait(server.DEADLINE_S), 0)
            wait_until(page, "document.querySelector('.state').textContent === 'finished'")
            wait_until(front, "document.querySelector('tr[data-name=\"here/experiment\"]').dataset.state === 'finished'")
            shown = json.loads(cadre("show", self.folder / "here" / "experiment", "--json"))
            best = json.loads(cadre("best", self.folder / "here" / "experiment", "--json"))
            wait_until(page, f"document.querySelector('.tile.winner').dataset.value === '{best['value']!r}'")
            self.assertEqual(page.evaluate(iteration), 12)
            self.assertEqual(len(shown["trials"]), page.locator(".trials tbody tr").count())
            self.assertTrue(page.evaluate("window.sameDocument"))

    def test_experiments_side_by_side_grow_and_go(self):
        with Running(self.folder / "one", 3, 12, "fifo=1") as one, Running(self.folder / "two", 3, 12, "fifo=1") as two, Dashboard(self.folder) as dashboard:
            ids = [dashboard.id_of(f"{name}/experiment") for name in ("one", "two")]
            with self.opened(f"{dashboard.url}experiment?id={ids[0]}&id={ids[1]}") as page:
                show_all(page)
                names = page.eval_on_selector_all(".experiments tbody tr", "(rows) => rows.map((row) => row.dataset.experiment)")
                self.assertEqual(names, ["one/experiment", "two/experiment"])
                page.click("#tab-1")
                page.select_option(".comparison select >> nth=0", "loss")
                page.focus(".comparison .chart >> nth=0")
                page.keyboard.press("+")
                zoom = page.get_attribute(".comparison .chart >> nth=0", "data-zoom")
                self.assertTrue(json.loads(zoom)["x"])
                best = "document.querySelectorAll('.experiments [data-column=best]')[{}].dataset.value"
                before = [page.evaluate(best.format(at)) for at in range(2)]
                iteration = "document.querySelector('#panel-1 .trials td[data-column=training_iteration]').dataset.value"
                two.open_gate(1)
                wait_until(page, f"{iteration} === '5' && {best.format(1)} !== '{before[1]}'")
                self.assertEqual(page.evaluate(best.format(0)), before[0])
                one.open_gate(1)
                wait_until(page, f"{best.format(0)} !== '{before[0]}'")
                self.assertEqual(page.get_attribute(".comparison .chart >> nth=0", "data-zoom"), zoom)
                self.assertEqual(page.evaluate("document.activeElement.className"), "chart")
                self.assertEqual(page.get_attribute("#tab-1", "aria-selected"), "true")
                page.click("#tab-0")  # its panel is made now, of what has come meanwhile
                wait_until(page, f"{iteration.replace('panel-1', 'panel-0')} === '5'")
                for running in one, two:  # catches up after both have gone on
                    running.open_gate(2)
                with self.opened(page.url) as fresh:
                    show_all(fresh)
                    wait_until(page, f"{best.format(0)} === {best.format(1)}")
                    for at in range(2):  # both pages still grow
                        until = time.monotonic() + server.DEADLINE_S
                        while page.evaluate(best.format(at)) != fresh.evaluate(best.format(at)):
                            self.assertLess(time.monotonic(), until)
                            fresh.wait_for_timeout(10)
                two.process.kill()
                two.process.wait()
                wait_until(page, "document.querySelectorAll('.experiments tbody tr')[1].textContent.includes('interrupted')")
                shutil.rmtree(self.folder / "two")
                wait_until(page, "document.querySelector('p.unreadable')?.textContent.includes('It is not there any more')")
                one.open_gate(3)
                wait_until(page, "document.querySelector('#panel-0 .state').textContent === 'finished'")
                self.keep_screenshot(page, "compared-growing")

    def test_an_experiment_that_comes_back_is_side_by_side_again(self):
        for name in "one", "two":
            make(self.folder, "population", name, 4)
        with Dashboard(self.folder) as dashboard:
            ids = [dashboard.id_of(name) for name in ("one", "two")]
            with self.opened(f"{dashboard.url}experiment?id={ids[0]}&id={ids[1]}") as page:
                (self.folder / "two").rename(self.storage / "elsewhere")
                wait_until(page, "document.querySelector('p.unreadable')?.textContent.includes('It is not there any more')")
                (self.storage / "elsewhere").rename(self.folder / "two")
                wait_until(page, "!document.querySelector('p.unreadable')")
                self.assertEqual(page.locator(".experiments [data-column=best]").count(), 2)

    def test_one_stream_has_the_changes_of_several_experiments(self):
        with Running(self.folder / "one", 3, 12, "fifo=1") as one, Running(self.folder / "two", 3, 12, "fifo=1"), Dashboard(self.folder) as dashboard:
            ids = [dashboard.id_of(f"{name}/experiment") for name in ("one", "two")]
            stream = dashboard.events(f"?id={ids[0]}&id={ids[1]}")
            known = {}
            while len(known) < 2:
                _, _, of = next(stream)
                event, last, document = next(stream)
                self.assertEqual((event, document["path"]), ("document", str(self.folder / ("one", "two")[of] / "experiment")))
                known[of] = last
            one.open_gate(1)
            of = None
            while of != 0:  # the other one's trials may only be starting
                event, _, of = next(stream)
                self.assertEqual((event, next(stream)[0]), ("of", "change"))
            # Who comes back gets what it lacks of each.
            again = dashboard.events(f"?id={ids[1]}&after={known[1]}&id={ids[0]}&after=&id=nowhere&after=")
            seen = {}
            while not {1, 2} <= set(seen):
                _, _, of = next(again)
                seen.setdefault(of, next(again)[0])
            self.assertEqual(seen.pop(0, "change"), "change")
            self.assertEqual(seen, {1: "document", 2: "gone"})

    def test_what_arrives_during_a_drag_or_while_a_trial_is_open_disturbs_neither(self):
        with Running(self.folder / "here", 3, 12, "fifo=1") as running, Dashboard(self.folder) as dashboard, self.experiment(dashboard, "here/experiment") as page:
            show_all(page)
            box = page.locator(".curves .u-over").bounding_box()
            page.mouse.move(box["x"] + box["width"] / 4, box["y"] + box["height"] / 4)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
            running.open_gate(1)
            iteration = "document.querySelector('.trials td[data-column=training_iteration]').dataset.value"
            wait_until(page, f"{iteration} === '5'")
            page.mouse.move(box["x"] + 3 * box["width"] / 4, box["y"] + box["height"] / 2, steps=4)
            page.mouse.up()
            zoom = json.loads(page.get_attribute(".curves .chart", "data-zoom"))
            # Of the iterations from 1 to 2, which were there when the drag began.
            self.assertAlmostEqual(zoom["x"][0], 1.25, delta=0.05)
            self.assertAlmostEqual(zoom["x"][1], 1.75, delta=0.05)
            page.keyboard.press("0")
            page.locator(".trials tbody button").first.click()
            dialog = "document.querySelector('dialog')"
            running.open_gate(2)
            wait_until(page, f"{dialog}.querySelector('dd').parentElement.textContent.includes('results8')")
            self.assertTrue(page.evaluate(f"{dialog}.open && {dialog}.contains(document.activeElement)"))

    def test_only_what_has_changed_is_sent(self):
        with Running(self.folder / "here", 7, 30, "fifo=1") as running, Dashboard(self.folder) as dashboard:
            for gate in range(1, 7):
                running.open_gate(gate)
                server.wait_until(lambda: running.results() == 4 * (3 * gate + 2), "the results before the next gate")
            url = f"?id={dashboard.id_of('here/experiment')}"
            stream = dashboard.events(url)
            event, first, document = next(stream)
            self.assertEqual((event, document["kind"]), ("document", "experiment"))
            whole = len(json.dumps(document))
            running.open_gate(7)
            sizes, last = [], first
            while sum(document["trials"]["results"]) < 4 * 23:
                event, last, change = next(stream)
                self.assertEqual(event, "change")
                sizes.append(len(json.dumps(change)))
                document = apply_change(document, change)
            print(f"the document has {whole} bytes, changes {sizes}")
            self.assertLess(max(sizes), whole)
            # The same as what a new reader gets, and who comes back gets only what it lacks.
            self.assertEqual(next(dashboard.events(f"{url}&after={first}"))[0], "change")
            self.assertEqual(next(dashboard.events(f"{url}&after=other-1"))[0], "document")
            _, id, fresh = next(dashboard.events(url))
            while last != id:
                _, last, change = next(stream)
                document = apply_change(document, change)
            self.assertEqual(document, fresh)

    def test_what_was_read_bit_by_bit_is_what_a_report_reads_at_once(self):
        directory = self.folder / "here" / "experiment"

        def compare(dashboard, document):
            """Waits until the dashboard has the document that a report has."""
            changing = {"read", "controller", "progress"}  # with the time that has passed
            for event, _, data in dashboard.events(f"?id={dashboard.id_of('here/experiment')}"):
                if event != "alive":
                    document = data if event == "document" else apply_change(document, data)
                shown, whole = ({key: value for key, value in one.items() if key not in changing} for one in (document, document_of_report(directory)))
                if shown == whole:
                    return document
                if event == "alive":  # nothing has come for ten seconds
                    self.assertEqual(shown, whole)
            raise AssertionError("the stream has ended")

        with Running(self.folder / "here", 7, 24) as running, Dashboard(self.folder) as dashboard:
            document = compare(dashboard, {})
            for gate in range(1, 5):  # with exploits, and checkpoints that are removed
                running.open_gate(gate)
                server.wait_until(lambda: running.results() >= 4 * (3 * gate + 2), "the results before the next gate")
                document = compare(dashboard, document)
            self.assertTrue(document["exploits"])
            running.process.kill()
            running.process.wait()
            compare(dashboard, document)
            for gate in range(1, 8):
                (running.storage / f"gate{gate}").unlink()
                (running.storage / f"gate{gate}").write_text("x")  # lets everyone through
            running.process = running.start("restore=1")
            self.assertEqual(running.process.wait(server.DEADLINE_S), 0)
            self.assertEqual(compare(dashboard, document)["state"], "finished")

    def test_a_page_reconnects_when_the_dashboard_is_killed_and_started_again(self):
        token = self.folder / "token"
        with Running(self.folder / "here") as running:
            dashboard = Dashboard(self.folder, "--token-file", token)
            with self.experiment(dashboard, "here/experiment", may_say=is_lost) as page:
                show_all(page)
                wait_until(page, "document.querySelector('.live').dataset.state === 'live'")
                page.evaluate("window.sameDocument = true")
                dashboard.stop(signal.SIGKILL)
                wait_until(page, "document.querySelector('.live').dataset.state === 'lost'")
                self.assertRegex(page.text_content(".live"), r"no connection since \d")
                self.keep_screenshot(page, "lost")
                running.open_gate(1)
                server.wait_until(lambda: running.results() == 20, "five results of each trial")
                with Dashboard(self.folder, "--token-file", token, "--port", dashboard.port) as again:
                    self.assertEqual(again.url, dashboard.url)
                    wait_until(page, "document.querySelector('.live').dataset.state === 'live'")
                    wait_until(page, "document.querySelector('.trials td[data-column=training_iteration]').dataset.value === '5'")
                    self.assertTrue(page.evaluate("window.sameDocument"))
                wait_until(page, "document.querySelector('.live').dataset.state === 'lost'")
                with Dashboard(self.folder, "--port", dashboard.port):
                    wait_until(page, "document.querySelector('.live').dataset.state === 'refused'")
                    self.assertIn("has another address", page.text_content(".live"))

    def test_what_breaks_vanishes_or_appears_stops_nothing_else(self):
        make(self.folder, "population", "good", 4)
        broken = make(self.folder, "population", "broken", 4)
        kept = self.storage / "kept.db"
        shutil.copy(broken / "experiment.db", kept)
        with Running(self.folder / "here") as running, Dashboard(self.folder) as dashboard, self.opened(dashboard.url) as front, \
                self.experiment(dashboard, "broken", may_say=lambda text: "Failed to load resource" in text) as page:
            self.assertEqual(data(page, ".tile[data-trials]")["trials"], "4")
            show_all(page)
            with open(broken / "experiment.db", "r+b") as file:
                file.truncate(9000)
            wait_until(page, "document.querySelector('.unreadable')")
            # Pictures that are gone do not draw what is no longer there.
            page.emulate_media(color_scheme="dark")
            page.evaluate("() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
            wait_until(front, "document.querySelector('tr[data-name=broken]').dataset.state === 'unreadable'")
            shutil.copy(kept, broken / "experiment.db")
            wait_until(page, "document.querySelector('.tile[data-trials]')?.dataset.trials === '4'")
            make(self.folder, "search", "new", 4)
            wait_until(front, "document.querySelector('tr[data-name=new]')?.dataset.state === 'finished'")
            running.open_gate(1)
            wait_until(front, "document.querySelector('tr[data-name=\"here/experiment\"] [data-column=done]').textContent.includes('42 %')")
            shutil.rmtree(broken)
            wait_until(page, "document.querySelector('.live').dataset.state === 'gone'")
            wait_until(front, "!document.querySelector('tr[data-name=broken]')")
            self.assertEqual(front.locator(".list tbody tr").count(), 3)
            self.keep_screenshot(front, "list-running")
            # A controller that is killed changes no file; the page says so anyway. The files are old: nothing is to be read again.
            with self.experiment(dashboard, "here/experiment") as other:
                read = other.evaluate("document.querySelector('#page').dataset.after")
                for file in (self.folder / "here" / "experiment").glob("experiment.db*"):
                    os.utime(file, (1e9, 1e9))
                wait_until(other, f"document.querySelector('#page').dataset.after !== '{read}'")
            running.process.kill()
            running.process.wait()
            wait_until(front, "document.querySelector('tr[data-name=\"here/experiment\"]').dataset.state === 'interrupted'")

    def test_a_page_that_nobody_sees_holds_no_stream_and_catches_up(self):
        with Running(self.folder / "here") as running, Dashboard(self.folder) as dashboard, self.experiment(dashboard, "here/experiment") as page, \
                self.experiment(dashboard, "here/experiment") as seen:
            hide = "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true}); document.dispatchEvent(new Event('visibilitychange')); }"
            page.evaluate(hide, True)
            running.open_gate(1)
            iteration = "document.querySelector('.trials td[data-column=training_iteration]').dataset.value"
            wait_until(seen, f"{iteration} === '5'")
            self.assertEqual(page.evaluate(iteration), "2")
            page.evaluate(hide, False)
            wait_until(page, f"{iteration} === '5'")
            self.assertEqual(page.evaluate("document.querySelector('.live').dataset.state"), "live")

    def test_a_late_answer_of_a_dashboard_that_was_gone_does_not_make_a_live_page_stale(self):
        token = self.folder / "token"
        with Running(self.folder / "here") as running:
            dashboard = Dashboard(self.folder, "--token-file", token)
            with self.experiment(dashboard, "here/experiment", may_say=is_lost) as page:
                wait_until(page, "document.querySelector('.live').dataset.state === 'live'")
                page.evaluate("() => { window.asked = []; window.fetch = () => new Promise((resolve, reject) => asked.push(reject)); }")
                dashboard.stop(signal.SIGKILL)
                wait_until(page, "asked.length === 1")
                with Dashboard(self.folder, "--token-file", token, "--port", dashboard.port):
                    page.evaluate("window.dispatchEvent(new Event('pageshow'))")
                    running.open_gate(1)
                    wait_until(page, "document.querySelector('.trials td[data-column=training_iteration]').dataset.value === '5'")
                    page.evaluate("async () => { asked[0](new TypeError('no answer')); await new Promise((resolve) => setTimeout(resolve)); }")
                    self.assertEqual(page.get_attribute(".live", "data-state"), "live")

    def test_a_page_says_since_when_it_has_heard_nothing_and_not_when_it_noticed(self):
        make(self.folder, "population", "one", 4)
        dashboard = Dashboard(self.folder)
        with self.experiment(dashboard, "one", may_say=is_lost) as page:
            wait_until(page, "document.querySelector('.live').dataset.state === 'live'")
            page.evaluate("() => { window.asked = []; window.fetch = () => new Promise((resolve, reject) => asked.push(reject)); }")
            dashboard.stop(signal.SIGKILL)
            wait_until(page, "asked.length === 1")
            # The answer to whether it is there takes an hour.
            page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_600_000; asked[0](new TypeError('no answer')); }")
            wait_until(page, "document.querySelector('.live').dataset.state === 'lost'")
            self.assertIn("(1 h ", page.text_content(".live"))

    def test_a_storage_is_looked_at_again(self):
        home = self.folder / "home"
        home.mkdir()

        def publish(name):
            subprocess.run([BIN / "report_tool", f"file://{self.folder}/published", "population", name, "4"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ | {"HOME": str(home)})
        publish("first")
        with Dashboard(f"file://{self.folder}/published") as dashboard, self.opened(dashboard.url) as front:
            wait_until(front, "document.querySelector('tr[data-name=first]')?.dataset.state === 'finished'")
            with self.experiment(dashboard, "first") as page:
                self.assertEqual(data(page, ".tile[data-trials]")["trials"], "4")
                self.assertIn(f"file://{self.folder}/published/first", page.text_content(".summary"))
            publish("second")
            wait_until(front, "document.querySelector('tr[data-name=second]')?.dataset.state === 'finished'")

    def test_a_storage_that_does_not_answer_is_said_and_keeps_its_experiments(self):
        library = BIN.parent / "src" / "object_storage"
        if not list(library.glob("libcadre_object_storage.so")) or importlib.util.find_spec("moto") is None:
            self.skipTest("there is no library for S3, or no moto")
        source = pathlib.Path(os.environ["CADRE_SOURCE"])
        (self.folder / "home").mkdir()
        storage = subprocess.Popen([sys.executable, source / "tests" / "storage" / "object_server.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True)

        def tell(command):
            storage.stdin.write(command + "\n")
            storage.stdin.flush()
            return storage.stdout.readline().strip()
        try:
            port = storage.stdout.readline().strip()
            tell("bucket bucket")
            environment = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "test",
                           "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(self.folder / "home")}
            subprocess.run([BIN / "report_tool", "s3://bucket/runs", "population", "mine", "4"], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, env=os.environ | environment | {"LD_LIBRARY_PATH": str(library)})
            with unittest.mock.patch.dict(os.environ, environment), Dashboard("s3://bucket/runs") as dashboard, \
                    self.opened(dashboard.url, may_say=is_lost) as front, self.experiment(dashboard, "mine", may_say=is_lost) as page:
                self.assertEqual(data(page, ".tile[data-trials]")["trials"], "4")
                tell("fail denied -1")
                wait_until(front, "document.querySelector('p.unreadable')?.textContent.includes('s3://bucket/runs')")
                self.assertEqual(data(front, "tr[data-name=mine]")["state"], "finished")
                self.assertEqual(data(page, ".live")["state"], "live")
                tell("well")
                wait_until(front, "!document.querySelector('p.unreadable')")
                # Nobody waits for a storage that hangs.
                tell("fail hang -1")
                self.assertEqual(dashboard.stop(), 0)
                wait_until(page, "document.querySelector('.live').dataset.state === 'lost'")
        finally:
            storage.kill()
            storage.wait()
            storage.stdin.close()
            storage.stdout.close()

    def test_a_folder_that_vanishes_is_said_and_comes_back(self):
        make(self.folder / "results", "population", "mine", 4)
        with Dashboard(self.folder / "results") as dashboard, self.opened(dashboard.url) as page:
            wait_until(page, "document.querySelector('tr[data-name=mine]')")
            (self.folder / "results").rename(self.folder / "away")
            wait_until(page, "document.querySelector('p.unreadable')?.textContent.includes('results')")
            (self.folder / "away").rename(self.folder / "results")
            wait_until(page, "document.querySelector('tr[data-name=mine]') && !document.querySelector('p.unreadable')")

    def test_what_has_not_changed_is_not_read_out_again(self):
        (self.folder / "there").mkdir()
        with Running(self.folder / "here") as running, Dashboard(self.folder / "here", self.folder / "there") as dashboard, self.opened(dashboard.url) as page:
            done = "document.querySelector('.list tbody [data-column=done]')?.textContent"
            wait_until(page, f"{done}?.includes('17 %')")
            (self.folder / "there").rmdir()
            wait_until(page, "document.querySelector('p.unreadable')?.textContent.includes('there')")
            page.evaluate("() => { window.read = [document.querySelector('p.unreadable'), document.querySelector('.controls [aria-live]').firstChild]; }")
            running.open_gate(1)
            wait_until(page, f"{done}.includes('42 %')")
            self.assertTrue(page.evaluate("read[0] === document.querySelector('p.unreadable')"))
            self.assertTrue(page.evaluate("read[1] === document.querySelector('.controls [aria-live]').firstChild"))

    def test_reading_leaves_an_experiment_as_it_is(self):
        mine = make(self.folder, "population", "mine", 4)
        names = sorted(path.name for path in mine.iterdir())
        contents = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in mine.iterdir() if path.is_file()}
        with Dashboard(self.folder) as dashboard:
            next(dashboard.events(f"?id={dashboard.id_of('mine')}"))
        self.assertEqual(sorted(path.name for path in mine.iterdir()), names)
        self.assertEqual({path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in mine.iterdir() if path.is_file()}, contents)


def document_of_report(directory):
    """The document of an experiment as `cadre report` makes it."""
    page = cadre("report", directory, "-o", "-")
    return json.loads(re.search(r'<script type="application/json" class="document">(.*?)</script>', page).group(1))


def apply_change(value, change):
    """The later state, as docs/formats.md describes changes."""
    if "=" in change:
        return change["="]
    if isinstance(value, list):
        items = value[:change.get("cut", len(value))]
        at = change.get("at", [])
        for index, one in zip(at[::2], at[1::2]):
            items[index] = apply_change(items[index], one)
        return items + change.get("add", [])
    entries = {key: one for key, one in value.items() if key not in change.get("cut", [])}
    for key, one in change.get("set", {}).items():
        entries[key] = apply_change(entries.get(key), one)
    return entries


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
