"""The pictures of `cadre plot` in a browser: every text is inside, whatever the font."""

import os
import subprocess
import unittest

import browser
from browser import BIN, cadre

# Long names, wide letters, other scripts: legends, titles and axes have them all.
TUNE = """
command = ["sh", "-c", "cadre-report loss=1 MMMMWWWW_mean_accuracy=2000000; cadre-report loss=0.0001 MMMMWWWW_mean_accuracy=1"]
name = "{name}"
storage_path = "."
metric = "loss"
mode = "min"
num_samples = {trials}
verbose = 0
[space]
MMWW_learning_rate = "loguniform(1e-6, 1)"
"größe_話題" = "choice(['話題話題話題話題', 'WWWWWWWWWWWWWWWW', 'iiiiiiiiiiii', 'mmmmmmmm'])"
"""
OUTSIDE = """([family, weight]) => {
    const svg = document.querySelector("svg"), whole = svg.getBoundingClientRect();
    svg.setAttribute("font-family", family);
    svg.setAttribute("font-weight", weight);
    return Array.from(svg.querySelectorAll("text")).filter((text) => {
        const box = text.getBoundingClientRect();
        return box.left < whole.left || box.right > whole.right || box.top < whole.top || box.bottom > whole.bottom;
    }).map((text) => text.textContent);
}"""


class PictureTest(browser.PageTest):
    def check(self, name, trials, *options):
        (self.storage / "tune.toml").write_text(TUNE.format(name=name, trials=trials))
        subprocess.run([BIN / "cadre", "tune", "tune.toml"], cwd=self.storage, check=True, timeout=120,
                       env=os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"})
        svg = cadre("plot", self.storage / name, "-o", "-", *options)
        page = self.browser.new_page()
        self.addCleanup(page.close)
        page.set_content(f"<body style='margin: 0'>{svg}</body>")
        listed = subprocess.run(["fc-list", ":", "family"], capture_output=True, text=True, check=True).stdout
        families = sorted({line.split(",")[0].strip() for line in listed.splitlines()})
        for family in [*families, "sans-serif", "serif", "monospace", "cursive", "fantasy", "system-ui"]:
            for weight in "normal", "bold":
                with self.subTest(family=family, weight=weight):
                    self.assertEqual(page.evaluate(OUTSIDE, [family, weight]), [])

    def test_a_legend_of_a_few_trials(self):
        self.check("few", 8, "--metrics", "loss,config/MMWW_learning_rate", "--title", "W" * 200)

    def test_a_legend_of_many_trials_beside_four_panels(self):
        self.check("many", 30, "--metrics", "loss,MMMMWWWW_mean_accuracy,config/MMWW_learning_rate,time_total_s", "--log", "loss")

    def test_a_pareto_front(self):
        self.check("front", 12, "--pareto", "loss,MMMMWWWW_mean_accuracy:max", "--log", "loss")


if __name__ == "__main__":
    browser.skip_unless_there()
    unittest.main()
