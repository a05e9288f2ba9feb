"""How much pages of `cadre dashboard` load, and how soon they are there."""

import time
import unittest

import browser
from browser import data, make, show_all, wait_until
from page_test import DashboardTest
from server import Dashboard


class SizeTest(DashboardTest):
    def test_a_page_of_an_ordinary_experiment_is_small_and_there_at_once(self):
        make(self.storage / "few", "population", "population")
        dashboard = Dashboard(self.storage / "few")
        id = dashboard.id_of("population")
        sizes = []
        context = self.browser.new_context()
        page = context.new_page()
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.dataReceived", lambda event: sizes.append(event["dataLength"]))
        page.goto(f"{dashboard.url}experiment?id={id}")
        wait_until(page, "document.querySelector('.tile')")
        paint = page.evaluate("performance.getEntriesByType('paint').map((one) => one.startTime)")
        print(f"a population of 12: {sum(sizes) / 1000:.0f} kB, first paint after {min(paint, default=0):.0f} ms")
        self.assertGreater(sum(sizes), 50_000)
        self.assertLess(sum(sizes), 1_000_000)
        context.close()
        dashboard.stop()

    def test_ten_thousand_trials_open(self):
        many = self.storage / "many"
        make(many, "search", "many", 10_000)
        with Dashboard(many) as dashboard:
            id = dashboard.id_of("many")
            begin = time.monotonic()
            with self.opened(f"{dashboard.url}experiment?id={id}") as page:
                print(f"10,000 trials are shown after {time.monotonic() - begin:.1f} s; once they are read, ", end="")
                begin = time.monotonic()
                page.reload()
                wait_until(page, "document.querySelector('#page')?.dataset.ready !== undefined")
                print(f"after {time.monotonic() - begin:.1f} s")
                self.assertEqual(data(page, ".tile[data-trials]")["trials"], "10000")
                show_all(page)
                self.assertEqual(page.get_attribute(".curves .chart", "data-lines"), "10000")


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
