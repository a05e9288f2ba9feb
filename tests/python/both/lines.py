"""Lines that the processes of a case write, in the order in which they did."""

import os
import pathlib


def write_line(folder, text):
    with open(os.path.join(folder, "lines"), "a") as file:
        file.write(text + "\n")


def lines_in(folder):
    return pathlib.Path(folder, "lines").read_text().splitlines()
