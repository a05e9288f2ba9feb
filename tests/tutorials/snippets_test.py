"""Every block of code on every page is compiled, stands in an example, or says that it is no C++."""

import ast
import json
import pathlib
import re
import tomllib
import unittest

import pages

# What only C++ has at the end or at the beginning of a line.
LOOKS_LIKE_CPP = re.compile(r"(?:;|\{\{?)$|^\s*(?:#include|\.\w+ = |using namespace|tune::|train::|data::|for \()",
                            re.MULTILINE)


PARSERS = {"python": ast.parse, "json": json.loads, "toml": tomllib.loads}
BLOCKS = [block for page in pages.paths() for block in pages.blocks_of(page)]


def problem_of(block):
    """What is wrong with a block, or nothing."""
    is_tutorial = block.page.parent.name == "tutorials"
    is_compiled = block.frames or is_tutorial and block.page.stem in (*pages.PROGRAMS, *pages.EXCERPTS)
    if block.language not in pages.LANGUAGES:
        return "has no language; write ```text where it is no code"
    if block.language == "diff":
        return "" if len(block.frames) == 2 else "is a diff, which has a frame for each of its two sides"
    if block.language.startswith("cpp"):
        return "" if is_compiled else "is compiled nowhere: see tests/tutorials/pages.py"
    if block.frames:
        return "has a frame, and is no C++"
    if block.language in PARSERS:
        try:
            PARSERS[block.language](block.text)
        except (SyntaxError, ValueError) as error:
            return f"is no {block.language}: {error}"
        return ""
    return "looks like C++; write ```cpp and a frame" if LOOKS_LIKE_CPP.search(block.text) else ""


class SnippetsTest(unittest.TestCase):
    def test_each_block_is_compiled_or_says_that_it_is_no_cpp(self):
        problems = [f"{block.place()}: this block {problem_of(block)}" for block in BLOCKS if problem_of(block)]
        self.assertFalse(problems, "\n" + "\n".join(problems))

    def test_excerpts_stand_in_their_examples(self):
        for name, folders in pages.EXCERPTS.items():
            example = "".join(file.read_text(encoding="utf-8") for folder in folders
                              for file in (pages.SOURCE / "examples" / folder).glob("*.cc"))
            excerpts = [block for block in pages.blocks_of(pages.SOURCE / "docs" / "tutorials" / f"{name}.md")
                        if block.language == "cpp" and not block.frames]
            self.assertGreater(len(excerpts), 1)
            for excerpt in excerpts:
                with self.subTest(block=excerpt.place()):
                    self.assertIn(excerpt.text, example)

    def test_no_code_hides_where_it_is_not_looked_for(self):
        for page in pages.paths():
            rest = pages.text_without_blocks(page)
            with self.subTest(page=page.name):
                self.assertNotRegex(rest, r"(?m)^\s*(```|~~~)", "a fence begins and ends at the beginning of a line")
                indented = re.findall(r"(?m)^\n((?: {4}.*\n)+)", rest)
                self.assertFalse([text for text in indented if LOOKS_LIKE_CPP.search(text)], "write ```cpp and a frame")
                self.assertNotIn("<!-- frame:", rest, "a frame stands right before its block")

    def test_every_tutorial_is_tested_and_listed(self):
        tutorials = {page.stem for page in pages.paths() if page.parent.name == "tutorials"} - {"README"}
        self.assertEqual(tutorials, {*pages.PROGRAMS, *pages.EXCERPTS, *pages.PROGRAMS_IN_PYTHON})
        listed = (pages.SOURCE / "docs" / "tutorials" / "README.md").read_text(encoding="utf-8")
        self.assertEqual([name for name in sorted(tutorials) if f"({name}.md)" not in listed], [])

    def test_every_frame_is_used(self):
        used = {frame for block in BLOCKS for frame in block.frames}
        frames = {path.stem for path in (pathlib.Path(__file__).parent / "frames").glob("*.cc")}
        self.assertEqual(frames, used)

    def test_links_lead_to_files(self):
        for page in pages.paths():
            for link in re.findall(r"\]\(([^)#]+)", pages.text_without_blocks(page)):
                with self.subTest(page=page.name, link=link):
                    self.assertTrue("://" in link or (page.parent / link).exists())


if __name__ == "__main__":
    unittest.main()
