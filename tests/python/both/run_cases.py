"""Runs the cases of a module, and writes what each has observed as JSON.

    run_cases.py ray|cadre <module> <file> [<case>...]

A case is a function case_*(folder) against Ray's public API, which returns facts: values that JSON has. An exception is a
fact too: the classes of Python's by which a program would catch it.
"""

import importlib
import json
import os
import pathlib
import sys
import tempfile
import traceback


def facts_of(case):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return json.loads(json.dumps(case(folder), sort_keys=True))
        except Exception as error:
            if os.environ.get("SHOW"):
                traceback.print_exc()
            return {"raised": [kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins"]}


def main():
    which, name, file, *wanted = sys.argv[1:]
    sys.path.insert(0, str(pathlib.Path(__file__).parent))
    if which == "cadre":
        from cadre.compat import ray as compat

        compat.install()
    import ray

    ray.init("local", num_cpus=2, **({"include_dashboard": False, "log_to_driver": False} if which == "ray" else {}))
    module = importlib.import_module(name)
    facts = {}
    for case in list(vars(module).values()):
        if getattr(case, "__name__", "").startswith("case_") and (not wanted or case.__name__ in wanted):
            facts[case.__name__] = facts_of(case)
            print(case.__name__, facts[case.__name__], file=sys.stderr, flush=True)
    pathlib.Path(file).write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n")
    ray.shutdown()


if __name__ == "__main__":
    main()
