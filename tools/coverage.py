"""Reports which lines of src/ and include/ the tests reach: by folder on the terminal, line by line as HTML.

    tools/coverage.py <build folder>     built with the preset "coverage"; profiles/*.profraw in it are those of a test run
"""
import collections
import json
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
WANTED_PERCENT = 80  # files below are listed


def tool(name):
    return f"{name}-19"


def programs(build):
    return [str(path) for path in sorted((build / "bin").iterdir()) if path.is_file() and path.suffix != ".so"]


def merged_profile(build):
    raw = [str(path) for path in sorted((build / "profiles").glob("*.profraw"))]
    if not raw:
        sys.exit(f"coverage: no profiles in {build / 'profiles'}; run the tests first: make coverage")
    merged = build / "tests.profdata"
    # A program that no test has started to its end may have left a file without counters.
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "--failure-mode=all", *raw, "-o", str(merged)], check=True)
    return merged


def llvm_cov(command, build, profile, *options):
    first, *others = programs(build)
    objects = [option for program in others for option in ("-object", program)]
    return [tool("llvm-cov"), command, first, *objects, f"-instr-profile={profile}", *options,
            str(SOURCE / "src"), str(SOURCE / "include")]


def line_counts(build, profile):
    """(lines, reached lines) by file, with paths below the checkout."""
    report = subprocess.run(llvm_cov("export", build, profile, "-summary-only"), check=True, capture_output=True)
    files = json.loads(report.stdout)["data"][0]["files"]
    return {str(pathlib.Path(file["filename"]).relative_to(SOURCE)): (lines["count"], lines["covered"])
            for file in files for lines in [file["summary"]["lines"]]}


def percent(count, covered):
    return 100 * covered / count if count else 100


def print_table(title, rows):
    print(f"\n{title:40} {'lines':>7} {'reached':>8}")
    for name, (count, covered) in rows:
        print(f"{name:40} {count:7} {percent(count, covered):7.1f}%")


def main():
    build = pathlib.Path(sys.argv[1])
    profile = merged_profile(build)
    files = line_counts(build, profile)
    folders = collections.defaultdict(lambda: (0, 0))
    for path, counts in files.items():
        for folder in (str(pathlib.PurePath(path).parent), "all"):
            folders[folder] = tuple(map(sum, zip(folders[folder], counts)))
    print_table("folder", sorted(folders.items(), key=lambda row: (row[0] == "all", row[0])))
    low = [(path, counts) for path, counts in files.items() if percent(*counts) < WANTED_PERCENT]
    if low:
        print_table(f"files below {WANTED_PERCENT} %", sorted(low, key=lambda row: percent(*row[1])))
    subprocess.run(llvm_cov("show", build, profile, "-format=html", f"-output-dir={build / 'report'}"), check=True)
    print(f"\nline by line: {build / 'report/index.html'}")


if __name__ == "__main__":
    main()
