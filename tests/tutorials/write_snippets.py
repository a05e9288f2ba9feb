"""Writes the snippets of all pages, each in its frame, as C++: write_snippets.py target-folder

There are four files, by what the frames include: snippets.cc, snippets_data.cc, snippets_torch.cc, and
snippets_data_torch.cc. Every snippet is in a namespace of its own. Compilers name its place on the page.
"""

import pathlib
import re
import sys

import pages

FRAMES = pathlib.Path(__file__).parent / "frames"
MARK = "// SNIPPET"
GROUPS = ("snippets", "snippets_data", "snippets_torch", "snippets_data_torch")
INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)


def group_of(code):
    """The file for code, by what it includes."""
    if "<cadre/data_torch.h>" in code:
        return "snippets_data_torch"
    if re.search(r"<(cadre/(train_)?torch\.h|(cadre/)?torch/.*)>", code):
        return "snippets_torch"
    return "snippets_data" if "<cadre/data.h>" in code else "snippets"


def versions_of(block):
    """Pairs of a frame's name and the code that it is for."""
    if block.language != "diff":
        return [(frame, block.text) for frame in block.frames]
    lines = block.text.splitlines(keepends=True)
    # A line that is not in this version stays as an empty one, so that the numbers of lines are right.
    return [(frame, "".join(line[1:] if line[0] in (" ", sign) else "\n" for line in lines))
            for frame, sign in zip(block.frames, "-+")]


def framed(block, frame, code, number):
    """Includes, and a namespace with the code in its frame."""
    path = FRAMES / f"{frame}.cc"
    before, mark, after = path.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError(f"{path} has no line {MARK}")
    includes = INCLUDE.findall(before) + INCLUDE.findall(code)
    after_line = before.count("\n") + 2
    text = (f"namespace snippet_{number} {{\n#line 1 \"{path}\"\n{INCLUDE.sub('', before)}\n"
            f"#line {block.line} \"{block.page}\"\n{INCLUDE.sub('', code)}"
            f"#line {after_line} \"{path}\"\n{after.lstrip(chr(10))}}}  // namespace snippet_{number}\n")
    return includes, text


def write(folder):
    includes = {group: [] for group in GROUPS}
    texts = {group: [] for group in GROUPS}
    number = 0
    for page in pages.paths():
        for block in pages.blocks_of(page):
            for frame, code in versions_of(block):
                number += 1
                needed, text = framed(block, frame, code, number)
                group = group_of("\n".join(needed))
                includes[group] += needed
                texts[group].append(text)
    for group in GROUPS:
        lines = [*dict.fromkeys(includes[group]), "", *texts[group]]
        (folder / f"{group}.cc").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
