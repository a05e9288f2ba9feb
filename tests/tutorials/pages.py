"""The pages that people read, and the blocks of code on them.

Each C++ block is one of these:

* part of a program: all ```cpp blocks of a page in PROGRAMS make one program (extract_program.py);
* an excerpt of an example, on a page in EXCERPTS;
* a snippet with a frame. `<!-- frame: NAME -->` on the line before the block names a file of frames/, in which the
  block takes the place of the line `// SNIPPET`. So a page shows two lines, and these compile. A ```diff block has two
  frames, for the code before and after the change.

Each block of Python on a page in PROGRAMS_IN_PYTHON is a program, in the file that its first line names
(tests/python/pages_test.py).

The other blocks say what they are: ```sh, ```cmake, ```json, ```text, ```python, ```svg.
"""

import dataclasses
import pathlib
import re

SOURCE = pathlib.Path(__file__).resolve().parents[2]

# Tutorials that are a program, in series: those of one series go on with the results of the page before.
SERIES = (("first",), ("schedulers",), ("searchers",), ("pbt", "replay", "reading"), ("debugging",), ("cluster",), ("storage",), ("datasets",))
PROGRAMS = tuple(name for series in SERIES for name in series)
# Tutorials about examples, and the folders of these in examples/.
EXCERPTS = {
    "dcgan": ("dcgan_mnist", "models"),
    "checkpoints": ("checkpoint_mechanisms",),
    "distributed": ("fashion_mnist_train",),
    "tune_and_train": ("pbt_distributed",),
    "validation": ("async_validation",),
    "real_training": ("resnet_fashion",),
}
# Tutorials in Python.
PROGRAMS_IN_PYTHON = ("first_in_python",)
LANGUAGES = ("cpp", "cpp-before", "diff", "sh", "cmake", "json", "toml", "text", "python")

BLOCK = re.compile(r"(?:^<!-- frame: ([^\n]*?) -->\n)?^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int  # of its first line of code
    language: str
    frames: list
    text: str

    def place(self):
        return f"{self.page.relative_to(SOURCE)}:{self.line}"


def paths():
    return [SOURCE / "README.md", *sorted(SOURCE.glob("docs/*.md")), *sorted(SOURCE.glob("docs/tutorials/*.md"))]


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start(3)) + 1, match[2], (match[1] or "").split(), match[3])
        for match in BLOCK.finditer(text)
    ]


def commands_of(page):
    """Pairs of a command and the text that it is to print: in a ```sh block a line that begins with "$ " is a command, and
    the lines after it are its output."""
    commands = []
    for block in blocks_of(page):
        for line in block.text.splitlines(keepends=True) if block.language == "sh" else ():
            if line.startswith("$ "):
                commands.append([line[2:].strip(), ""])
            else:
                commands[-1][1] += line
    return commands


def pattern_of(expected):
    """The pattern of what a command prints. "…" stands for any text, on a line of its own for any lines."""
    lines = []
    for line in expected.splitlines():
        lines.append("(?:.*\n)*" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n")
    return re.compile("".join(lines))


def text_without_blocks(page):
    return BLOCK.sub("", page.read_text(encoding="utf-8"))
