"""Shows the ends of what the failed tests of the last run of ctest have printed, below all else, where it is found:

    show_failures.py <build folder>
"""

import pathlib
import re
import sys

LINES = 60


def main():
    log = (pathlib.Path(sys.argv[1]) / "Testing" / "Temporary" / "LastTest.log").read_text(errors="replace")
    for section in re.split(r"^\d+/\d+ Testing: ", log, flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("\n")
        output, _, end = text.partition("\nOutput:\n")[2].rpartition("\n<end of output>\n")
        if "Test Failed." in end or "Test timeout" in text or "Test not run" in text:
            print(f"==== {name}", *output.splitlines()[1:][-LINES:], sep="\n", flush=True)


if __name__ == "__main__":
    main()
