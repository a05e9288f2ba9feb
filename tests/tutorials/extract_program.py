"""Writes the C++ of a tutorial page: extract_program.py page.md program.cc

The ```cpp blocks follow each other; a ```cpp-before block goes before the `int main` of the block that it follows.
"""

import pathlib
import re
import sys


def program_of(page):
    program = ""
    for kind, block in re.findall(r"^```(cpp|cpp-before)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        if kind == "cpp":
            program += block + "\n"
        else:
            before, main, after = program.rpartition("int main(")
            program = f"{before}{block}\n{main}{after}"
    return program


if __name__ == "__main__":
    source, target = map(pathlib.Path, sys.argv[1:])
    target.write_text(program_of(source.read_text(encoding="utf-8")), encoding="utf-8")
