"""Writes the C++ of a tutorial page: extract_program.py page.md program.cc

The ```cpp blocks follow each other; a ```cpp-before block goes before the `int main` of the block that it follows.
Blocks with a frame are left out: write_snippets.py writes those.
"""

import pathlib
import sys

from pages import blocks_of


def program_of(page):
    program = ""
    for block in blocks_of(page):
        if block.frames:
            continue
        if block.language == "cpp":
            program += block.text + "\n"
        elif block.language == "cpp-before":
            before, main, after = program.rpartition("int main(")
            program = f"{before}{block.text}\n{main}{after}"
    return program


if __name__ == "__main__":
    source, target = map(pathlib.Path, sys.argv[1:])
    target.write_text(program_of(source), encoding="utf-8")
