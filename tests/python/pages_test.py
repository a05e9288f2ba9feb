"""The Python in the pages: it compiles, and what it imports exists."""

import ast
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BLOCKS = [(path.name, number, block) for path in (ROOT / "README.md", ROOT / "docs" / "python.md")
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
