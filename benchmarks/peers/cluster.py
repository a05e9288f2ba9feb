#!/usr/bin/env python3
"""Runs the same programs on the nodes of a Ray cluster and on Cadre's, in turns: nodes are namespaces of this machine, with
networks of their own. Prints the lines of both, and the ratios of Ray to Cadre.

    cluster.py <build folder> [--nodes 2 4] [--runs N] [--only REGEX]

Needs root, and ray[tune], which tools/setup.sh installs. cluster_ready_s is Ray's start on all nodes; Cadre has nothing to
start before a program: its agents are in program_to_first_trial_s. cut_to_next_step_s is the time from the cut of a trial's
node until it reports on another one, with the defaults of both.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests" / "cluster"))
import ray_rig  # noqa: E402: found there
import rig  # noqa: E402

PROGRAM = pathlib.Path(__file__).with_name("cluster_program.py")
WORKLOADS = ["first-trial", "empty-trials", "reports", "pbt", "train-start", "moved"]
DEADLINE_S = 300
CPUS = 2  # of each node


class Peer:
    """A cluster with what programs on it need."""

    def __init__(self, cluster, name, variables):
        self.cluster = cluster
        self.name = name
        self.variables = variables

    def folder(self, workload):
        folder = self.cluster.directory / workload
        folder.mkdir(exist_ok=True)
        return folder

    def start(self, workload):
        command = [sys.executable, PROGRAM, self.name, workload, self.folder(workload), repr(time.time())]
        with open(self.folder(workload) / "errors", "wb") as errors:
            return self.cluster.start("ctl", command, env=self.variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=errors, text=True, cwd=self.cluster.directory)

    def finish(self, process, workload):
        output, _ = process.communicate(timeout=DEADLINE_S)
        if process.returncode != 0:
            errors = (self.folder(workload) / "errors").read_text(errors="replace")
            sys.exit(f"cluster: {workload} on {self.name} failed with {process.returncode}: {output}\n{errors[-3000:]}")
        line = next(json.loads(line) for line in reversed(output.splitlines()) if line.startswith("{"))
        if line.get("errors"):
            sys.exit(f"cluster: {line['errors']} trials of {workload} on {self.name} have failed")
        return line

    def run(self, workload):
        process = self.start(workload)
        if workload != "moved":
            return self.finish(process, workload)
        file = self.folder(workload) / "noted"
        rig.wait_until(lambda: file.exists() and file.read_text().count("\n") >= 10, "the trial has begun", DEADLINE_S)
        _, host = json.loads(file.read_text().splitlines()[-1])
        cut = time.time()
        self.cluster.cut(host)
        line = self.finish(process, workload)
        self.cluster.heal(host)
        noted = [json.loads(one) for one in file.read_text().splitlines()]
        return line | {"cut_to_next_step_s": min(moment for moment, where in noted if where != host) - cut}


def measure(name, nodes, build, workloads):
    """Returns the figures of one peer."""
    begun = time.time()
    with ray_rig.RayRig(nodes, CPUS, further={}) if name == "ray" else rig.Rig(nodes, slurm=False) as cluster:
        figures = {"cluster_ready_s": time.time() - begun} if name == "ray" else {}
        variables = {"CADRE_BENCH_NODES": str(nodes)}
        if name == "cadre":
            file = cluster.directory / "cluster.json"
            file.write_text(json.dumps({
                "engine": "commands", "commands": {"submit": [str(cluster.remote_shell()), "{host}", "sh"]},
                "groups": [{"name": "nodes", "nodes": nodes, "options": {"hosts": ", ".join(cluster.nodes)}}]}), encoding="utf-8")
            variables |= {"CADRE_CLUSTER": str(file), "PYTHONPATH": str(build / "python")}
        peer = Peer(cluster, name, variables)
        for workload in workloads:
            figures |= {key: value for key, value in peer.run(workload).items() if key.endswith("_s")}
        return figures


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="the build folder")
    parser.add_argument("--nodes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--runs", type=int, default=2, help="of everything, of both in turns")
    parser.add_argument("--only", default="", help="regular expression for the workloads to run")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if reason := rig.missing(slurm=False):
        print(f"cluster: skipped: {reason}", file=sys.stderr)
        return
    workloads = [workload for workload in WORKLOADS if re.search(arguments.only, workload)]
    for nodes in arguments.nodes:
        lines = {"ray": [], "cadre": []}
        for attempt in range(arguments.runs):
            for name in lines if attempt % 2 == 0 else reversed(lines):  # each begins in every other attempt
                lines[name].append(measure(name, nodes, arguments.build.resolve(), workloads))
                print(json.dumps({"peer": name, "nodes": nodes} | lines[name][-1]), flush=True)
        for figure in lines["ray"][0]:
            ray, cadre = (statistics.median(line.get(figure, float("nan")) for line in of_peer) for of_peer in lines.values())
            print(json.dumps({"nodes": nodes, "figure": figure, "ray": ray, "cadre": None if cadre != cadre else cadre,
                              "ratio": None if cadre != cadre else ray / cadre}), flush=True)


if __name__ == "__main__":
    os.environ.pop("OMP_NUM_THREADS", None)
    main()
