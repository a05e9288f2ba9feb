"""Runs the cases of a module, and writes what each has observed as JSON.

    run_cases.py ray|cadre <module> <file> [<case>...]

A case is a function case_*(folder) against Ray's public API, which returns facts: values that JSON has. An exception is a
fact too: the classes by which a program would catch it, Python's and those of ray.tune and ray.train.
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
            return {"raised": [name for kind in type(error).__mro__ for name in names_of(kind)]}


def names_of(kind):
    """Returns the names of a class of Python's or of Ray's public API."""
    from ray import train, tune

    if kind.__module__ == "builtins":
        return [kind.__name__]
    return sorted({name for module in (train, tune) for name in module.__all__ if getattr(module, name) is kind})


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
