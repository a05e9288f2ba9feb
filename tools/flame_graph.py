#!/usr/bin/env python3
"""Draws a flame graph of what perf has recorded, as SVG that any browser shows.

    perf record -F 5000 -g --call-graph dwarf,8192 PROGRAM...
    perf script | tools/flame_graph.py --comm cadre_bench --from take_turns --title "A report" > flame.svg

A box is a function, its width the share of the samples in it and in what it calls, which lies above it. Boxes narrower than
0.3 % are left out. Source: Gregg, B.: The Flame Graph. ACM Queue 14(2), 2016.
"""

import argparse
import html
import re
import sys
import zlib

WIDTH, LINE, LEAST = 1200, 17, 0.003


def stacks(lines, comm, first):
    """Lists of function names, outermost first, from the one whose name contains `first`."""
    frames, wanted = [], False
    for line in [*lines, "\n"]:
        if line.strip() == "":
            names = frames[::-1]
            begin = next((i for i, name in enumerate(names) if first in name), None) if first else 0
            if wanted and names and begin is not None:
                yield names[begin:]
            frames, wanted = [], False
        elif not line[0].isspace():
            wanted = comm is None or line.startswith(comm)
        else:
            name = line.strip().partition(" ")[2].rpartition(" (")[0]
            frames.append(short(name))


def short(name):
    """Without arguments, offsets and namespaces that say nothing here."""
    name = re.sub(r"\+0x[0-9a-f]+$|\(.*", "", name.replace("(anonymous namespace)::", "")).strip()
    name = re.sub(r"<.*>", "<>", name)
    return re.sub(r"^(cadre::)(tune::|channel::|store::|engine::local::|base::)?", "", name) or "[unknown]"


def merge(all_stacks):
    """{"count": samples, "above": {name: the same}}"""
    root = {"count": 0, "above": {}}
    for stack in all_stacks:
        node = root
        node["count"] += 1
        for name in stack:
            node = node["above"].setdefault(name, {"count": 0, "above": {}})
            node["count"] += 1
    return root


def boxes(node, name, x, depth, total):
    """(name, x and width as shares, depth) of a node and all above it."""
    share = node["count"] / total
    if share < LEAST:
        return
    yield name, x, share, depth
    for above, child in sorted(node["above"].items(), key=lambda item: -item[1]["count"]):
        yield from boxes(child, above, x, depth + 1, total)
        x += child["count"] / total


def draw(root, title):
    found = list(boxes(root, "all", 0, 0, root["count"]))
    height = LINE * (max(box[3] for box in found) + 3)
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
           f'font-size="11"><rect width="100%" height="100%" fill="white"/>'
           f'<text x="6" y="14" font-size="14">{html.escape(title)}: {root["count"]} samples</text>')
    for name, x, share, depth in found:
        shade = zlib.crc32(name.encode()) % 60
        y = height - LINE * (depth + 1)
        letters = int(share * WIDTH / 6.3) - 1
        text = name if len(name) <= letters else name[:max(letters - 1, 0)] + "…" if letters > 3 else ""
        yield (f'<g><title>{html.escape(name)} {share:.1%}</title><rect x="{x * WIDTH:.1f}" y="{y}" '
               f'width="{share * WIDTH:.1f}" height="{LINE - 1}" rx="2" fill="rgb(250,{150 + shade},{70 + shade})"/>'
               f'<text x="{x * WIDTH + 3:.1f}" y="{y + 12}">{html.escape(text)}</text></g>')
    yield "</svg>"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comm", help="only samples of processes and threads of this name")
    parser.add_argument("--from", dest="first", help="begin at the function whose name contains this")
    parser.add_argument("--title", default="Flame graph")
    arguments = parser.parse_args()
    root = merge(stacks(sys.stdin, arguments.comm, arguments.first))
    if root["count"] == 0:
        sys.exit("flame_graph: no samples")
    print("\n".join(draw(root, arguments.title)))


if __name__ == "__main__":
    main()
