"""Pages and requests that stop, pause and enqueue: `cadre dashboard --allow-control`."""

import concurrent.futures
import contextlib
import json
import os
import shutil
import signal
import subprocess
import unittest

import browser
import server
from browser import BIN, cadre, make, show_all, wait_until
from live_test import Running
from page_test import DashboardTest
from server import Dashboard

PAUSE = b'{"do": "pause"}'


class ControlTest(DashboardTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.results = cls.storage / "results"
        cls.results.mkdir()
        cls.running = Running(cls.results / "here", 3, 12, "fifo=1")
        cls.running.__enter__()
        cls.directory = cls.results / "here" / "experiment"
        cls.ended = make(cls.results, "population", "ended", 4)
        make(cls.results, "run")
        cls.dashboard = Dashboard(cls.results, "--allow-control")
        cls.id = cls.dashboard.id_of("here/experiment")

    @classmethod
    def tearDownClass(cls):
        cls.dashboard.stop()
        cls.running.__exit__()
        super().tearDownClass()

    def post(self, body, id=None, headers=None, dashboard=None, path=None):
        """Returns the status and the document that answers, or its text if it is none."""
        dashboard = dashboard or self.dashboard
        own = {"Origin": f"http://{dashboard.host}:{dashboard.port}", "Content-Type": "application/json"}
        headers = {name: value for name, value in (own | (headers or {})).items() if value is not None}
        headers.setdefault("Host", f"{dashboard.host}:{dashboard.port}")
        status, _, text = dashboard.request(
            "POST", path or f"{dashboard.path}control?id={id or self.id}", headers, body
        )
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode()

    def is_paused(self):
        return json.loads(cadre("show", self.directory, "--json"))["experiment"]["is_paused"]

    def resume(self):
        if self.is_paused():
            cadre("resume", self.directory)

    # ---- Requests

    def test_a_request_is_carried_out_and_answered(self):
        self.addCleanup(self.resume)
        self.assertEqual(self.post(PAUSE), (200, {"message": "trials stop at their next report"}))
        self.assertTrue(self.is_paused())
        status, answer = self.post(PAUSE)
        self.assertEqual((status, answer), (409, {"error": "the experiment is paused already"}))
        self.assertEqual(
            self.post(b'{"do": "resume"}', headers={"Content-Type": "Application/JSON; charset=utf-8"})[0], 200
        )
        self.assertFalse(self.is_paused())
        # Browsers that send no Origin say where a request comes from.
        self.assertEqual(
            self.post(b'{"do": "resume"}', headers={"Origin": None, "Sec-Fetch-Site": "same-origin"}),
            (409, {"error": "the experiment is not paused"}),
        )

    def test_whoever_is_no_page_of_the_dashboard_is_refused(self):
        port = self.dashboard.port
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": None},
            {"Origin": f"http://127.0.0.1:{port + 1}"},
            {"Origin": None, "Sec-Fetch-Site": "cross-site"},
            {"Origin": None, "Sec-Fetch-Site": "same-site"},
            {"Origin": None, "Sec-Fetch-Site": "none"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Host": f"evil.example:{port}"},
            {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        ):
            status, answer = self.post(PAUSE, headers=headers)
            self.assertEqual(status, 403, headers)
            self.assertTrue(answer["error"], headers)
        for type in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/jsonp",
            "",
            None,
        ):
            status, answer = self.post(PAUSE, headers={"Content-Type": type})
            self.assertEqual(status, 415, type)
            self.assertIn("application/json", answer["error"])
        status, answer = self.post(PAUSE, path=f"/{'0' * 32}/control?id={self.id}")
        self.assertEqual(status, 403)
        self.assertIn("Open the whole address", answer["error"])
        self.assertFalse(self.is_paused())
        # A page of another origin is not told that it may ask.
        status, headers, _ = self.dashboard.request(
            "OPTIONS", f"{self.dashboard.path}control?id={self.id}", {"Access-Control-Request-Method": "POST"}
        )
        self.assertEqual((status, headers["allow"]), (405, "POST"))
        self.assertFalse([name for name in headers if name.startswith("access-control-")])

    def test_only_requests_are_carried_out_and_only_by_post(self):
        for body in b"", b"{", b"[1]", b'"pause"', b'{"do": "pause"} x', b"\xff", b"[" * 1000:
            status, answer = self.post(body)
            self.assertEqual(status, 400, body)
            self.assertTrue(answer["error"])
        for body in (
            b"{}",
            b'{"do": "jump"}',
            b'{"do": 1}',
            b'{"do": "pause", "trial": "00001"}',
            b'{"do": "stop", "trial": 1}',
            b'{"do": "enqueue"}',
            b'{"do": "enqueue", "values": [1]}',
            b'{"do": "stop", "trial": "00001", "all": true}',
            b'{"trial": "00001"}',
        ):
            status, answer = self.post(body)
            self.assertEqual(status, 409, (body, answer))
            self.assertTrue(answer["error"])
        status, answer = self.post(b'{"do": "enqueue", "values": {"lr": 7, "nothing": 1}}')
        self.assertEqual(status, 409)
        self.assertIn("param_space has no such key", answer["error"])
        self.assertIn("7 is not in uniform(0.01, 1.0)", answer["error"])
        self.assertIn('no trial "00099"', self.post(b'{"do": "stop", "trial": "00099"}')[1]["error"])
        self.assertEqual(self.post(PAUSE, id="0" * 16)[0], 404)
        self.assertEqual(self.post(PAUSE, id=f"..%2f{self.directory}")[0], 404)
        for method in "GET", "HEAD", "PUT", "DELETE":
            status, headers, _ = self.dashboard.request(method, f"{self.dashboard.path}control?id={self.id}")
            self.assertEqual((status, headers["allow"]), (405, "POST"), method)
        for path in "", "events", "experiment", "scripts/control.js", "control/":
            status, headers, _ = self.dashboard.request(
                "POST", f"{self.dashboard.path}{path}?id={self.id}", {"Content-Type": "application/json"}, PAUSE
            )
            self.assertEqual((status, headers["allow"]), (405, "GET, HEAD"), path)
        self.assertFalse(self.is_paused())

    def test_a_body_that_is_too_long_is_refused_and_one_that_never_ends_is_dropped(self):
        long = b'{"do": "pause", "x": "' + b"x" * 70_000 + b'"}'
        self.assertEqual(self.post(long)[0], 413)
        head = f"POST {self.dashboard.path}control?id={self.id} HTTP/1.1\r\nHost: localhost\r\n"
        chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
        from access_test import raw

        self.assertIn(
            b" 413 ",
            raw(self.dashboard, chunked + b"10000\r\n" + b"x" * 65536 + b"\r\n1\r\nx\r\n0\r\n\r\n").split(b"\r\n")[0],
        )
        begun = f"{head}Content-Length: 20\r\n\r\n{{".encode()
        self.assertNotIn(b" 200 ", raw(self.dashboard, begun, close=False))
        self.assertEqual(self.post(b'{"do": "enqueue", "values": {"x": "' + b"x" * 65_000 + b'"}}')[0], 409)
        self.assertEqual(self.dashboard.request()[0], 200)

    def test_what_cannot_be_asked_says_so(self):
        status, answer = self.post(PAUSE, id=self.dashboard.id_of("ended"))
        self.assertEqual(
            (status, answer["error"]), (409, f"nothing runs in {self.ended}: only what runs can be asked for something")
        )
        status, answer = self.post(PAUSE, id=self.dashboard.id_of("run"))
        self.assertEqual(status, 409)
        self.assertIn("is a training run", answer["error"])
        # A folder in which nothing can be written, also for root.
        requests = self.directory / ".requests"
        shutil.rmtree(requests, ignore_errors=True)
        requests.write_text("")
        self.addCleanup(requests.unlink, missing_ok=True)
        status, answer = self.post(PAUSE)
        self.assertEqual(status, 503)
        self.assertIn(str(requests), answer["error"])
        requests.unlink()
        if os.geteuid() != 0:
            self.directory.chmod(0o500)
            self.addCleanup(self.directory.chmod, 0o700)
            self.assertEqual(self.post(PAUSE)[0], 503)

    def test_a_published_copy_cannot_be_asked(self):
        home = self.storage / "home"
        home.mkdir()
        subprocess.run(
            [BIN / "report_tool", f"file://{self.storage}/published", "population", "mine", "4"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(home)},
        )
        with Dashboard(f"file://{self.storage}/published", "--allow-control") as dashboard:
            status, answer = self.post(PAUSE, id=dashboard.id_of("mine"), dashboard=dashboard)
            self.assertEqual(status, 409)
            self.assertIn("is a published copy", answer["error"])

    def test_nobody_waits_for_an_experiment_that_does_not_answer(self):
        self.running.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.running.process.send_signal, signal.SIGCONT)
        with concurrent.futures.ThreadPoolExecutor(20) as threads:
            answers = [threads.submit(self.post, PAUSE) for _ in range(18)]
            status, answer = next(concurrent.futures.as_completed(answers)).result()
            self.assertEqual(status, 503)
            self.assertIn("16 requests wait", answer["error"])
            self.assertEqual(self.dashboard.request()[0], 200)  # meanwhile
            self.assertIn(
                "here/experiment", {entry["name"] for entry in self.dashboard.listed()["experiments"].values()}
            )
            self.assertFalse(all(one.done() for one in answers))
            waited = [one.result() for one in answers if "16 requests" not in one.result()[1]["error"]]
        self.assertEqual(len(waited), 16)
        for status, answer in waited:
            self.assertEqual(status, 503)
            self.assertIn(f"the controller is busy in {self.directory}", answer["error"])
            self.assertIn("nothing was changed", answer["error"])
        self.running.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.post(b'{"do": "resume"}'), (409, {"error": "the experiment is not paused"}))

    def test_a_dashboard_that_ends_withdraws_what_waits(self):
        self.running.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.running.process.send_signal, signal.SIGCONT)
        dashboard = Dashboard(self.results, "--allow-control")
        dashboard.id_of("here/experiment")  # waits until it has been found
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            asked = thread.submit(self.post, PAUSE, None, None, dashboard)
            server.wait_until(lambda: list((self.directory / ".requests").glob("*.json")), "the request")
            self.assertEqual(dashboard.stop(), 0)
            self.assertIsNotNone(asked.exception())
        self.assertEqual(list((self.directory / ".requests").glob("*.json")), [])

    def test_without_the_option_nothing_can_be_asked(self):
        with Dashboard(self.results) as dashboard, self.experiment(dashboard, "here/experiment") as page:
            status, headers, _ = dashboard.request(
                "POST", f"{dashboard.path}control?id={self.id}", {"Content-Type": "application/json"}, PAUSE
            )
            self.assertEqual((status, headers["allow"]), (405, "GET, HEAD"))
            self.assertEqual(dashboard.request(path=f"{dashboard.path}control?id={self.id}")[0], 404)
            self.assertEqual(dashboard.request(path=f"{dashboard.path}scripts/control.js")[0], 404)
            show_all(page)
            self.assertEqual(page.locator("#control-0").count(), 0)
            page.locator(".trials tbody button").first.click()
            self.assertEqual(page.locator("dialog[open] .danger").count(), 0)

    # ---- Pages

    def test_an_experiment_is_paused_and_resumed_with_the_keyboard(self):
        self.addCleanup(self.resume)
        with self.experiment(self.dashboard, "here/experiment") as page, self.opened(self.dashboard.url) as front:
            show_all(page)
            page.focus("#control-0 button >> nth=0")
            page.keyboard.press("Enter")
            wait_until(
                page, "document.querySelector('#control-0 .said').textContent === 'Trials stop at their next report.'"
            )
            wait_until(
                page,
                "document.activeElement.textContent === 'Resume' && "
                "document.querySelector('.state').textContent === 'paused'",
            )
            wait_until(
                front,
                "document.querySelector('tr[data-name=\"here/experiment\"] [data-column=state]').textContent "
                "=== 'paused'",
            )
            self.assertTrue(self.is_paused())
            cadre("resume", self.directory)  # by another hand, before the page knows of it
            wait_until(page, "document.querySelector('#control-0 button').textContent === 'Pause'")
            wait_until(page, "document.querySelector('.state').textContent === 'running'")

    def test_a_trial_is_added_with_values_that_the_experiment_checks(self):
        with self.experiment(self.dashboard, "here/experiment", may_say=lambda text: "409 (Conflict)" in text) as page:
            show_all(page)
            page.click("#control-0 button >> text=Add a trial")
            best = json.loads(cadre("best", self.directory, "--json"))
            self.assertEqual(json.loads(page.input_value("dialog textarea")), {"lr": best["trial"]["config"]["lr"]})
            self.assertEqual(page.evaluate("document.activeElement.tagName"), "TEXTAREA")
            said = "document.querySelector('dialog .said')"
            for text, reason in (
                ("{", "JSON"),
                ("[0.1]", 'Write an object, as in {"lr": 0.1}.'),
                ('{"lr": 7}', "7 is not in uniform(0.01, 1.0)"),
                ('{"a<b>": 1}', "no such key"),
            ):
                page.fill("dialog textarea", text)
                page.click("dialog button >> text=Enqueue")
                wait_until(
                    page, f"{said}.dataset.outcome === 'refused' && {said}.textContent.includes({json.dumps(reason)})"
                )
            self.keep_screenshot(page, "enqueue-refused")
            page.fill("dialog textarea", '{"lr": 0.25}')
            page.click("dialog button >> text=Enqueue")
            wait_until(page, f"{said}.textContent === 'The next trial has these values.'")
            self.assertEqual(page.evaluate("document.activeElement.textContent"), "Close")
            page.keyboard.press("Enter")
            wait_until(page, "!document.querySelector('dialog.ask')")
            self.assertEqual(page.evaluate("document.activeElement.textContent"), "Add a trial \u2026")

    def test_the_control_section_in_every_width_and_colour_scheme(self):
        for width, dark in (1280, False), (1280, True), (400, False), (400, True):
            with self.experiment(self.dashboard, "here/experiment", width=width, dark=dark) as page:
                show_all(page)
                self.keep_screenshot(page, f"control-{width}-{'dark' if dark else 'light'}")
                page.click("#control-0 .danger")
                self.assertLessEqual(
                    page.evaluate("document.querySelector('dialog.ask').getBoundingClientRect().right"), width
                )
                page.set_viewport_size({"width": width, "height": 600})
                if folder := os.environ.get("CADRE_SCREENSHOTS"):
                    page.screenshot(path=f"{folder}/stop-{width}-{'dark' if dark else 'light'}.png")
        with self.experiment(self.dashboard, "ended") as page:
            show_all(page)
            self.assertEqual(page.locator("#control-0").count(), 0)
            page.locator(".trials tbody button").first.click()
            self.assertEqual(page.locator("dialog[open] .danger").count(), 0)

    def test_a_trial_and_then_all_are_stopped_after_a_question(self):
        with (
            Running(self.results / "other", 3, 12, "fifo=1") as running,
            Dashboard(self.results / "other", "--allow-control") as dashboard,
            self.experiment(dashboard, "experiment") as page,
        ):
            show_all(page)
            page.click(".trials tbody tr[data-trial='00002'] button")
            page.click("dialog.details .danger")
            self.assertEqual(page.evaluate("document.activeElement.textContent"), "Cancel")
            page.keyboard.press("Escape")
            wait_until(page, "!document.querySelector('dialog.ask')")
            page.keyboard.press("Enter")  # the focus is at the button again
            page.click("dialog.ask .danger")
            wait_until(
                page,
                "document.querySelector('dialog.ask .said').textContent === 'Trial 00002 stops at its next report.'",
            )
            page.keyboard.press("Enter")
            page.keyboard.press("Escape")
            wait_until(page, "!document.querySelector('dialog[open]')")
            running.open_gate(1)
            wait_until(
                page,
                "document.querySelector(\".trials tr[data-trial='00002'] [data-column=status]\").dataset.value "
                "=== 'STOPPED'",
            )
            self.assertEqual(
                page.get_attribute(".trials tr[data-trial='00001'] [data-column=status]", "data-value"), "RUNNING"
            )
            page.focus("#control-0 .danger")
            page.keyboard.press("Space")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            wait_until(
                page,
                "document.querySelector('dialog.ask .said').textContent === 'All trials stop at their next report.'",
            )
            running.open_gate(2, 3)
            self.assertEqual(running.process.wait(server.DEADLINE_S), 0)
            wait_until(
                page,
                "document.querySelector('.state').textContent === 'finished' && !document.querySelector('#control-0')",
            )
            self.assertTrue(
                page.evaluate("document.querySelector('dialog.ask').open")
            )  # what it says is not taken away

    def test_a_question_goes_when_another_experiment_takes_the_place_of_the_one_that_it_is_about(self):
        place = self.results / "place"
        place.mkdir()
        with (
            Dashboard(place, "--allow-control") as dashboard,
            contextlib.ExitStack() as first,
        ):
            running = first.enter_context(Running(place / "one", 3, 12, "fifo=1"))
            with self.experiment(
                dashboard, "one/experiment", may_say=lambda text: "Failed to load resource" in text
            ) as page:
                show_all(page)
                page.click("#control-0 .danger")
                self.assertTrue(page.evaluate("document.querySelector('dialog.ask').open"))
                first.close()
                wait_until(page, "!document.querySelector('#control-0')")
                self.assertTrue(page.evaluate("document.querySelector('dialog.ask').open"))
                shutil.rmtree(running.storage)
                with Running(place / "one", 3, 12, "fifo=1"):
                    wait_until(page, "document.querySelector('#control-0') && !document.querySelector('dialog.ask')")


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
