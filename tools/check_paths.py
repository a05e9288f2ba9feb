#!/usr/bin/env python3
"""Fails when a document names a source file that does not exist, or a README of src/ does not list a file of its folder.

    check_paths.py <checkout>
"""

import pathlib
import re
import sys

# `tune/trial.{h,cc}`, `worker.cc`, `tools/check_paths.py`: in backquotes, with an extension of sources.
NAMED = re.compile(r"`((?:[\w.]+/)*\w+\.(?:\{h,cc\}|h|cc|capnp|py))`")
# Folders that paths in documents are relative to, beside the document's own.
ROOTS = (".", "src", "include", "include/cadre", "tests", "tests/fuzz")
SOURCES = (".h", ".cc", ".capnp")
FOREIGN = "/gloo_declarations/"  # its README's row names the folder
GENERATED = {"cadre/version.h"}


def files_named(text):
    for match in NAMED.finditer(text):
        name = match.group(1)
        yield from ([name.replace("{h,cc}", "h"), name.replace("{h,cc}", "cc")] if "{" in name else [name])


def missing_files(checkout, document, names_of_sources):
    """Names in the document of files that do not exist. A name without a folder may be that of a file in any folder."""
    for name in files_named(document.read_text(encoding="utf-8")):
        places = [document.parent, *(checkout / root for root in ROOTS)]
        if name in GENERATED or any((place / name).exists() for place in places):
            continue
        if "/" not in name and name in names_of_sources:
            continue
        yield name


def files_not_listed(folder):
    """Sources of a folder, or of folders below it that have no README, that no name in the README stands for."""
    readme = folder / "README.md"
    listed = set(files_named(readme.read_text(encoding="utf-8")))
    for file in sorted(folder.rglob("*")):
        has_own_readme = any((parent / "README.md").exists() for parent in file.parents if folder in parent.parents)
        if file.suffix in SOURCES and FOREIGN not in file.as_posix() and not has_own_readme and file.relative_to(folder).as_posix() not in listed:
            yield file.relative_to(folder).as_posix()


def main(arguments):
    if len(arguments) != 1:
        print("usage: check_paths.py <checkout>", file=sys.stderr)
        return 2
    checkout = pathlib.Path(arguments[0])
    folders = [checkout / name for name in ("src", "include", "python", "examples", "tests", "benchmarks", "tools")]
    names_of_sources = {file.name for folder in folders for file in folder.rglob("*") if file.suffix in (*SOURCES, ".py")}
    documents = [*checkout.glob("*.md"), *(checkout / "docs").rglob("*.md")]
    documents += [file for folder in folders for file in folder.rglob("README.md")]
    documents = sorted(document for document in documents if document.name != "CHANGELOG.md")
    faults = [f"{document.relative_to(checkout)}: there is no file {name}" for document in documents
              for name in missing_files(checkout, document, names_of_sources)]
    for readme in sorted((checkout / "src").rglob("README.md")):
        if readme.parent != checkout / "src":
            faults += [f"{readme.relative_to(checkout)} does not list {name}" for name in files_not_listed(readme.parent)]
    if not documents:
        faults.append(f"no documents in {checkout.resolve()}")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"check_paths: {len(documents)} documents, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
