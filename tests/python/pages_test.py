"""The Python in the pages: it compiles, and what it imports exists. The programs of tutorials print what these say."""

import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests" / "tutorials"))

import pages  # noqa: E402  of that folder

TUTORIALS = [ROOT / "docs" / "tutorials" / f"{name}.md" for name in pages.PROGRAMS_IN_PYTHON]
PAGES = [ROOT / "README.md", ROOT / "docs" / "python.md", *TUTORIALS]
BLOCKS = [(path.name, number, block) for path in PAGES
          for number, block in enumerate(re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL))]


@pytest.mark.parametrize("page, number, block", BLOCKS, ids=[f"{page}-{number}" for page, number, _ in BLOCKS])
def test_a_block_compiles_and_finds_what_it_imports(page, number, block):
    imports = [node for node in ast.parse(block).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    exec(compile(ast.Module(imports, []), f"{page} {number}", "exec"), {})


def test_the_programs_of_the_first_page_run(programs, tmp_path):
    text = next(block for page, _, block in BLOCKS if page == "README.md")
    assert "'lr'" in programs.run(text.replace("num_samples=20", "num_samples=3")).stdout
    done = programs.run("from cadre.tune.examples.pbt_function import main; main()", "--storage-path", str(tmp_path))
    assert float(re.search(r"reached ([\d.]+) of 1.2", done.stdout).group(1)) > 0.9


@pytest.mark.parametrize("page", TUTORIALS, ids=pages.PROGRAMS_IN_PYTHON)
def test_the_programs_of_a_tutorial_print_what_it_says(programs, tmp_path, page):
    for block in pages.blocks_of(page):
        if block.language == "python":
            programs.write(re.match(r"# (\w+\.py)\n", block.text)[1], block.text)
    path = os.pathsep.join([os.environ["CADRE_BIN"], str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    commands = pages.commands_of(page)
    assert len(commands) > 5
    for command, expected in commands:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, timeout=200,
                              env={**programs.environment, "PATH": path, "LC_ALL": "C.UTF-8"}, check=False)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        assert pages.pattern_of(expected).fullmatch(done.stdout), f"$ {command}\nprinted:\n{done.stdout}\nnot:\n{expected}"
