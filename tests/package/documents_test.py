"""The installed pages and examples are whole: what they name and link to is installed with them."""

import re
import unittest

from installation import InstallationTest


class DocumentsTest(InstallationTest):
    components = ("doc",)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = cls.prefix / "share" / "doc" / "cadre"

    def test_every_example_that_their_page_lists_is_there(self):
        examples = self.folder / "examples"
        rows = re.findall(r"^\| (`.*?) \|", (examples / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
        names = [name for row in rows for name in re.findall(r"`(.*?)`", row)]
        self.assertGreater(len(names), 15)
        for name in names:
            for file in [name.replace("{h,cc}", "h"), name.replace("{h,cc}", "cc")]:
                self.assertTrue((examples / file).is_file(), file)

    def test_links_lead_to_what_is_installed(self):
        links = 0
        for page in self.folder.rglob("*.md"):
            prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
            for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", prose):
                if not link.startswith(("http:", "https:")):
                    self.assertTrue((page.parent / link).exists(), f"{page}: {link}")
                    links += 1
        self.assertGreater(links, 100)


if __name__ == "__main__":
    unittest.main()
