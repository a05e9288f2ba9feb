"""Opens pages in a headless Chromium, for tests of what they show."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["CADRE_BIN"])
CHROMIUM = os.environ.get("CADRE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
SKIPPED = 77
DEADLINE_MS = 120_000  # against hangs, on a machine that does other things too


def skip_unless_there():
    """Ends the program as skipped if there is no browser; for the main of a test."""
    reason = None if CHROMIUM else "there is no Chromium; `make setup` with the group tests installs it"
    try:
        import playwright  # noqa: F401
    except ImportError:
        reason = "there is no Playwright in this Python; `make setup` with the group tests installs it"
    if reason:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)


def cadre(*arguments, code=0):
    """Runs the program; returns its standard output, or its messages if it fails."""
    done = subprocess.run([BIN / "cadre", *map(str, arguments)], capture_output=True, timeout=120,
                          env=os.environ | {"COLUMNS": "80", "LC_ALL": "C.UTF-8"})
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return (done.stdout if code == 0 else done.stderr).decode()


def make(storage, kind, name=None, *settings):
    """Makes an experiment; returns its directory."""
    name = name or kind
    subprocess.run([BIN / "report_tool", storage, kind, name, *map(str, settings)], check=True, timeout=240,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return pathlib.Path(storage) / name


class PageTest(unittest.TestCase):
    """Has a folder for experiments, `storage`, and a browser. A page that says anything on its console fails its test."""

    @classmethod
    def setUpClass(cls):
        from playwright.sync_api import sync_playwright
        cls.temporary = tempfile.TemporaryDirectory()
        cls.storage = pathlib.Path(cls.temporary.name)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.temporary.cleanup()

    def report(self, *experiments, name="report", code=0):
        """Makes a report; returns its file."""
        file = self.storage / f"{name}.html"
        cadre("report", *experiments, "-o", file, code=code)
        return file

    @contextlib.contextmanager
    def page(self, file, width=1280, height=900, dark=False):
        """Opens a page without network. What it says on its console, and what it asks for, must be nothing."""
        context = self.browser.new_context(viewport={"width": width, "height": height}, offline=True,
                                           color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.set_default_timeout(DEADLINE_MS)
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
        page.goto(file.as_uri())
        try:
            wait_until(page, "document.querySelector('#page')?.dataset.ready !== undefined || document.readyState === 'complete'")
            self.assertEqual(said, [])
            yield page
        finally:
            self.assertEqual(said, [])
            self.assertEqual([url for url in asked if not url.startswith(("file:", "data:"))], [])
            context.close()

    def keep_screenshot(self, page, name):
        """Keeps a picture of the whole page where CADRE_SCREENSHOTS says."""
        folder = os.environ.get("CADRE_SCREENSHOTS")
        if not folder:
            return
        show_all(page)
        page.screenshot(path=pathlib.Path(folder) / f"{name}.png", full_page=True)


def wait_until(page, condition):
    """Waits until an expression of JavaScript is true. The page allows no eval, which Playwright's own function needs."""
    until = time.monotonic() + DEADLINE_MS / 1000
    while not page.evaluate(f"() => ({condition})"):
        assert time.monotonic() < until, condition
        page.wait_for_timeout(10)


def show_all(page):
    """Makes the window as high as the page, so that all pictures are drawn, and waits until they are."""
    size = page.viewport_size
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": size["width"], "height": min(height, 12_000)})
    wait_until(page, "Array.from(document.querySelectorAll('.chart')).every((chart) => "
                     "!chart.checkVisibility() || chart.dataset.lines !== undefined)")


def data(page, selector):
    """Returns the data attributes of an element."""
    return page.eval_on_selector(selector, "(element) => ({...element.dataset})")
