#!/usr/bin/env python3
"""Fails when a folder of src/ includes a layer above it, or a library that belongs to another folder.

    check_layers.py <checkout>
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')

# Which layers each folder of src/ may include, beside itself and the public headers of these layers.
CONTROL_PLANE = ["base", "storage", "store", "channel", "resources", "engine", "worker", "checkpoint", "loggers", "view", "publish",
                 "control"]
MAY_INCLUDE = {layer: CONTROL_PLANE[:index] for index, layer in enumerate(CONTROL_PLANE)}
MAY_INCLUDE |= {
    "tune": CONTROL_PLANE,
    "train": CONTROL_PLANE,
    "object_storage": ["base", "storage"],
    "table_file": ["base"],
    "tls": ["base", "channel"],
    "torch": ["base", "worker"],
    "data": [*CONTROL_PLANE, "train", "object_storage"],
    "data_torch": ["data", "torch"],
    "vision": ["torch"],
    "report": [*CONTROL_PLANE, "tune", "train"],
    "http": ["base"],
    "dashboard": ["base", "http", "report"],
    "cli": [*CONTROL_PLANE, "tune", "train", "data", "report", "http", "dashboard", "table_file"],
}
# Layers that have public headers of their own: cadre/tune.h and cadre/tune/*.h, and so on.
WITH_PUBLIC_HEADERS = ["tune", "train", "torch", "data"]

# A library, how its headers are included, and the only places where they may be.
LIBRARIES = [
    ("torch", re.compile(r"^(torch|ATen|c10|caffe2)/|^cadre/((train_|data_)?torch|vision)(\.h$|/)"),
     ["src/torch/", "src/data_torch/", "src/vision/", "include/cadre/vision", "tests/vision/", "include/cadre/torch", "include/cadre/train_torch", "include/cadre/data_torch.h",
      "examples/", "tests/torch/", "tests/torch_preload/", "tests/data_torch/", "tests/cluster/torch_", "tests/compat/torch_",
      "tests/fuzz/torch_", "tests/survival/torch_", "tests/mistakes/torch_",
      "tests/package/consumer_torch/", "tests/tutorials/frames/", "benchmarks/torch_"]),
    ("Cap'n Proto", re.compile(r"^(kj|capnp)/|\.capnp\.h$"), ["src/channel/", "src/http/"]),
    ("Arrow", re.compile(r"^(arrow|parquet)/"),
     ["src/data/", "src/object_storage/", "src/table_file/", "python/src/data/", "tests/data/", "tests/fuzz/data_", "benchmarks/torch_batch_inference.cc"]),
    ("libjpeg and libpng", re.compile(r"^(jpeglib|jerror|png)\.h$"), ["src/data/", "tests/support/image_file.h"]),
    ("toml++", re.compile(r"^toml\+\+/"), ["src/cli/"]),
    ("nanobind", re.compile(r"^(nanobind/|Python\.h$)"), ["python/src/"]),
    ("SQLite", re.compile(r"^sqlite3\.h$"), ["src/store/"]),
    ("OpenSSL", re.compile(r"^openssl/"), ["src/tls/", "src/object_storage/"]),
]


def includes_of(file):
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match.group(1)


def layer_of_include(include):
    """The layer that an include belongs to, or None where it belongs to none."""
    parts = include.split("/")
    if parts[0] == "cadre" and len(parts) > 1:
        name = parts[1].removesuffix(".h")
        return name if name in WITH_PUBLIC_HEADERS else None
    return parts[0] if parts[0] in MAY_INCLUDE and len(parts) > 1 else None


def faults_of(path, include):
    """What is wrong with one include in the file at `path` (relative to the checkout, with slashes)."""
    for library, pattern, places in LIBRARIES:
        if pattern.search(include) and not path.startswith(tuple(places)):
            yield f"{library} may be included only in {', '.join(places)}"
    folders = path.split("/")
    if folders[0] == "include":
        if layer_of_include(include) and not include.startswith(("cadre/", "torch/")):
            yield "a public header may not include a private one"
    elif folders[0] == "src" and len(folders) > 2:
        own, other = folders[1], layer_of_include(include)
        if other and other != own and other not in MAY_INCLUDE.get(own, []):
            yield f"{own} may include only {', '.join(MAY_INCLUDE.get(own, [])) or 'itself'}, not {other}"


def main(arguments):
    if len(arguments) != 1:
        print("usage: check_layers.py <checkout>", file=sys.stderr)
        return 2
    checkout = pathlib.Path(arguments[0])
    count = 0
    faults = []
    for folder in ("include", "src", "python", "examples", "tests", "benchmarks"):
        for file in sorted((checkout / folder).rglob("*")):
            if file.suffix not in (".h", ".cc"):
                continue
            count += 1
            path = file.relative_to(checkout).as_posix()
            for number, include in includes_of(file):
                faults += [f"{path}:{number}: {include}: {fault}" for fault in faults_of(path, include)]
    if count == 0:
        faults.append(f"no sources in {checkout.resolve()}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"check_layers: {count} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
