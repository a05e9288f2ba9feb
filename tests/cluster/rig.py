"""A cluster on this machine for tests: a control node and compute nodes on a bridge, each with a network, an address, a
host name and mounts of its own, and a real Slurm on them.

    with rig.Rig(nodes=2) as cluster:
        cluster.run("ctl", ["srun", "--nodes=2", "hostname"])
        cluster.cut("n1", seconds=3)

Everything lives in one PID namespace: when its first process ends, the kernel ends all others, and networks and mounts go
with them. That process ends when the pipe to this one closes, so nothing is left of a test that is killed. Needs root.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(os.environ.get("CADRE_SOURCE", pathlib.Path(__file__).parents[2]))
# Slurm as tools/install_slurm.sh unpacks it; where it is installed, that folder has only what is not.
SLURM = pathlib.Path(os.environ.get("CADRE_SLURM", SOURCE / ".setup" / "slurm"))
SKIPPED = 77
PROGRAMS = ["ip", "tc", "nft", "ping", "nsenter", "unshare"]
PROGRAMS_OF_SLURM = ["slurmctld", "slurmd", "srun", "sbatch", "munged"]
CONTROL = "ctl"
LONGEST_COMM = 15  # of a program's name, which the kernel cuts
DEADLINE_S = 120
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The first process of the cluster. Arguments: the cluster's folder, a folder to lay over /usr or "", folders that each
# compute node has for itself (with : between), and the names of compute nodes.
CLUSTER = r"""
set -e
directory="$1" overlay="$2" private="$3"
shift 3
# Mounted by hand: --mount-proc of unshare would also be seen by this cluster only, but not by older util-linux.
[ -z "$overlay" ] || mount -t overlay overlay -o "lowerdir=$overlay:/usr" /usr
mount --bind "$directory/hosts" /etc/hosts
hostname ctl
ip link set lo up
ip link add br0 type bridge
ip addr add 10.91.0.1/24 dev br0
ip link set br0 up
number=0
for node in "$@"; do
  number=$((number + 1))
  unshare --net --uts --mount sh -ec '
    directory="$1" private="$2" node="$3"
    hostname "$node"
    ip link set lo up
    IFS=:
    for folder in $private; do mount -t tmpfs tmpfs "$folder"; done
    : >"$directory/$node.made"
    exec sleep infinity' sh "$directory" "$private" "$node" </dev/null &
  pid=$!
  while [ ! -e "$directory/$node.made" ]; do kill -0 $pid; sleep 0.01; done
  ip link add "v$number" type veth peer name eth0 netns $pid
  ip link set "v$number" master br0
  ip link set "v$number" up
  nsenter --target $pid --net ip addr add "10.91.0.$((10 + number))/24" dev eth0
  nsenter --target $pid --net ip link set eth0 up
  echo "$node $pid"
done
echo "ready $$"
trap '' CHLD # the kernel reaps whom a daemon leaves behind
exec cat >/dev/null
"""

# What is told apart by `missing`: the first line that fails.
PROBE = r"""
try() { what="$1"; shift; "$@" >/dev/null 2>"$errors" || { echo "$what: $(head -n 1 "$errors")"; exit 1; }; }
errors="$1" overlay="$2"
shift 2
[ -z "$overlay" ] || try "overlay file systems" mount -t overlay overlay -o "lowerdir=$overlay:/usr" /usr
for program in "$@"; do
  try "the program $program (make setup unpacks it)" sh -c "command -v $program || { echo 'not found' >&2; false; }"
done
try "network bridges" ip link add br0 type bridge
try "pairs of network devices" ip link add v1 type veth peer name v2
try "packet filters" nft add table inet probe
"""

# As with ssh, what it has started does not end with it.
REMOTE_SHELL = """#!/bin/sh
case "$1" in
{hosts}
  *) echo "remote: there is no host $1" >&2; exit 255 ;;
esac
shift
exec 3<&0
nsenter --target "$node" --net --uts --mount -- setsid "$@" <&3 3<&- &
exec 3<&-
wait $!
"""


class RigError(Exception):
    """The cluster cannot be made, or a command in it failed."""


def overlay():
    folder = SLURM / "usr"
    return str(folder) if folder.is_dir() else ""


def environment(variables=None):
    """Returns this process's environment without a Slurm that it may run in, and with `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH", "SQUEUE", "SRUN"))}
    return kept | {"PATH": PATH} | (variables or {})


def missing(slurm=True):
    """Returns what this machine lacks for a cluster, in a sentence; None if nothing."""
    programs = [*(PROGRAMS_OF_SLURM if slurm else []), *PROGRAMS]
    if os.geteuid() != 0:
        return "a cluster of namespaces needs root"
    if shutil.which("unshare", path=PATH) is None:
        return "the program unshare is missing"
    with tempfile.NamedTemporaryFile() as errors:
        command = ["unshare", "--fork", "--pid", "--mount", "--net", "--uts", "--mount-proc", "sh", "-c", PROBE, "sh",
                   errors.name, overlay(), *programs]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    if done.returncode != 0:
        return f"this machine lacks {done.stdout.strip()}" if done.stdout else f"no namespaces: {done.stderr.strip()}"
    if not _keeps_root():
        return "a cluster's commands would run outside of this chroot, which needs a root of its own (pivot_root)"
    return None


def _keeps_root():
    """Returns whether a command that enters another process's namespace of mounts has this process's root: in a chroot
    it has that of the namespace, and with it somebody else's files."""
    with subprocess.Popen(["unshare", "--mount", "cat"], stdin=subprocess.PIPE, env=environment()) as holder:
        here = os.readlink("/proc/self/ns/mnt")
        wait_until(lambda: os.readlink(f"/proc/{holder.pid}/ns/mnt") != here, "a namespace of mounts is made")
        there = subprocess.run(["nsenter", "--target", str(holder.pid), "--mount", "stat", "--format=%d:%i", "/"],
                               env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=False).stdout
    root = os.stat("/")
    return there.strip() == f"{root.st_dev}:{root.st_ino}"


def wait_until(condition, what, deadline_s=DEADLINE_S):
    """Returns the first true value of `condition`. Leaves most of the time to others: to ask may take some."""
    begin = asked = time.monotonic()
    while not (value := condition()):
        now = time.monotonic()
        if now - begin > deadline_s:
            raise RigError(f"{what}: not within {deadline_s} s")
        time.sleep(min(max(0.02, 2 * (now - asked)), 1))
        asked = time.monotonic()
    return value


class Rig:
    """Compute nodes n1, n2, ... at 10.91.0.11, .12, ... and the control node ctl at 10.91.0.1.

    `partitions` has options by name, `gpus` has (type, count) by node, `features` text by node. `private` are folders
    in which each compute node has an empty file system of its own. `settings` are further lines of slurm.conf.
    """

    def __init__(self, nodes=2, *, slurm=True, cpus=4, partitions=None, gpus=None, features=None, slurmd_timeout_s=20,
                 private=(), settings=""):
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.slurm = slurm
        self._cpus = cpus
        self._partitions = partitions or {"all": "Default=YES"}
        self._gpus = gpus or {}
        self._features = features or {}
        self._slurmd_timeout_s = slurmd_timeout_s
        self._private = private
        self._settings = settings
        self._pids = {}
        self._daemons = []
        self.directory = None
        self._cluster = None

    def __enter__(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="cadre_rig_"))
        self.directory.chmod(0o755)
        try:
            self._make_nodes()
            if self.slurm:
                self._start_slurm()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Ends every process of the cluster and removes its folder."""
        if self._cluster is not None:
            self._cluster.stdin.close()  # ends the first process, and so all
            self._cluster.stdout.close()
            self._cluster.wait(DEADLINE_S)
            for daemon in self._daemons:
                daemon.wait(DEADLINE_S)
            self._cluster = None
        shutil.rmtree(self.directory, ignore_errors=True)

    # Nodes and commands

    def address(self, node):
        return "10.91.0.1" if node == CONTROL else f"10.91.0.{10 + int(node[1:])}"

    def command(self, node, command):
        """Returns the command line that runs a command on a node."""
        enter = [shutil.which("nsenter", path=PATH), "--target", str(self._pids[node]), "--net", "--uts", "--mount", "--pid", f"--wd={os.getcwd()}"]
        return [*enter, "--", *map(str, command)]

    def environment(self, variables=None):
        return environment({"SLURM_CONF": str(self.directory / "slurm.conf")} | (variables or {}))

    def inner_pid(self, node):
        """Returns the id, as processes of the cluster see it, of one whose namespaces are those of the node."""
        status = pathlib.Path(f"/proc/{self._pids[node]}/status").read_text()
        return int(status.partition("NSpid:")[2].split("\n")[0].split()[-1])

    def remote_shell(self):
        """Returns the path of a program for commands of the cluster that runs a command on a node, as ssh does: its
        arguments are the node's name and the command."""
        script = self.directory / "remote"
        hosts = "\n".join(f"  {node}) node={self.inner_pid(node)} ;;" for node in self.nodes)
        script.write_text(REMOTE_SHELL.format(hosts=hosts), encoding="utf-8")
        script.chmod(0o755)
        return script

    def start(self, node, command, env=None, **options):
        """Starts a command on a node; returns its subprocess.Popen. `processes` finds what it starts."""
        return subprocess.Popen(self.command(node, command), env=self.environment(env), **options)

    def run(self, node, command, env=None, check=True, timeout=DEADLINE_S, **options):
        """Runs a command on a node; returns its subprocess.CompletedProcess, with text."""
        try:
            done = subprocess.run(self.command(node, command), env=self.environment(env), capture_output=True, text=True,
                                  timeout=timeout, check=False, **options)
        except subprocess.TimeoutExpired as late:  # whose text has not what was printed
            printed = "".join(text.decode(errors="replace") for text in (late.stdout, late.stderr) if text)
            raise RigError(f"{command} on {node} has not ended in {timeout} s: {printed[-4000:]}") from late
        if check and done.returncode != 0:
            raise RigError(f"{command} on {node} ended with {done.returncode}: {done.stderr or done.stdout}")
        return done

    def processes(self, name=None, node=None):
        """Returns the ids of processes of the cluster, as this process sees them. `name` is that of a program."""
        cluster = self._namespace(self._pids[CONTROL], "pid")
        network = self._namespace(self._pids[node], "net") if node else None
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):  # it has ended
                if (name is None or name[:LONGEST_COMM] == (entry / "comm").read_text().strip()) \
                        and self._namespace(entry.name, "pid") == cluster \
                        and network in (None, self._namespace(entry.name, "net")):
                    found.append(int(entry.name))
        return sorted(found)

    def kill(self, name, node=None, signal_number=signal.SIGKILL, may_be_none=False):
        """Sends a signal to processes by name, on one node or all, and waits for their end; returns how many there
        were. Waits for the first one, unless there may be none."""
        killed = self.processes(name, node)
        if not may_be_none:
            killed = wait_until(lambda: self.processes(name, node), f"a process {name} runs on {node or 'any node'}")
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_number)
        wait_until(lambda: not set(killed) & set(self.processes(name, node)), f"{name} on {node or 'any node'} ends")
        return len(killed)

    # The network

    def cut(self, node, seconds=None):
        """Drops everything from and to a node; for `seconds`, or until `heal`."""
        self._filter(node, "cut", "")
        if seconds is not None:
            healed = ["sh", "-c", f"sleep {seconds}; nft delete table inet cut"]
            self._daemons.append(self.start(node, healed, stderr=subprocess.DEVNULL))

    def loss(self, node, percent):
        """Drops packets from and to a node at random."""
        self._filter(node, "loss", f"numgen random mod 100 < {percent}")

    def heal(self, node):
        """Ends `cut`, `loss` and `bandwidth` of a node."""
        for table in ("cut", "loss"):
            self.run(node, ["nft", "delete", "table", "inet", table], check=False)
        self.run(node, ["tc", "qdisc", "del", "dev", "eth0", "root"], check=False)

    def bandwidth(self, node, rate):
        """Limits what a node sends; `rate` as tc writes it: "10mbit"."""
        self.run(node, ["tc", "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "32kbit",
                        "latency", "400ms"])

    # Slurm

    def start_slurmctld(self):
        self._start_daemon(CONTROL, "slurmctld")

    def start_slurmd(self, node):
        self._start_daemon(node, "slurmd")

    def idle_nodes(self):
        done = self.run(CONTROL, ["sinfo", "--noheader", "--Node", "--states=idle", "--format=%N"], check=False)
        return sorted(set(done.stdout.split()))

    def wait_idle(self):
        """Waits until all nodes are idle."""
        try:
            wait_until(lambda: self.idle_nodes() == self.nodes, "all nodes are idle")
        except RigError as error:
            logs = [f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in sorted(self.directory.glob("*.log"))]
            raise RigError("\n".join([str(error), *logs])) from None

    # Private

    @staticmethod
    def _namespace(pid, kind):
        return os.readlink(f"/proc/{pid}/ns/{kind}")

    def _make_nodes(self):
        addresses = [f"{self.address(node)} {node}" for node in [CONTROL, *self.nodes]]
        (self.directory / "hosts").write_text("\n".join(["127.0.0.1 localhost", *addresses, ""]), encoding="utf-8")
        (self.directory / "errors").touch()
        # The outer shell is not in the namespace: it removes the folder when the cluster has ended.
        guarded = 'directory="$1"; shift; "$@" 2>"$directory/errors"; rm -rf -- "$directory"'
        command = ["unshare", "--fork", "--kill-child", "--pid", "--mount", "--net", "--uts", "--mount-proc", "sh", "-c", CLUSTER,
                   "sh", str(self.directory), overlay(), ":".join(map(str, self._private)), *self.nodes]
        self._cluster = subprocess.Popen(["sh", "-c", guarded, "sh", str(self.directory), *command], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, env=environment(), start_new_session=True)
        inner = {}
        for line in self._cluster.stdout:
            node, _, pid = line.strip().partition(" ")
            inner[CONTROL if node == "ready" else node] = int(pid)
            if node == "ready":
                break
        if CONTROL not in inner:
            raise RigError("the nodes cannot be made (missing() may say why)")
        self._pids = self._outer_pids(inner)

    def _outer_pids(self, inner):
        """Returns the ids that processes of the cluster have here, by those that they have there."""
        [first] = pathlib.Path(f"/proc/{self._unshare_pid()}/task/{self._unshare_pid()}/children").read_text().split()
        self._pids = {CONTROL: int(first)}
        outer = {}
        for pid in self.processes():
            with contextlib.suppress(OSError):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                outer[int(status.partition("NSpid:")[2].split("\n")[0].split()[-1])] = pid
        return {node: outer[pid] for node, pid in inner.items()}

    def _unshare_pid(self):
        return pathlib.Path(f"/proc/{self._cluster.pid}/task/{self._cluster.pid}/children").read_text().split()[0]

    def _filter(self, node, table, condition):
        rules = [f"table inet {table}", f"delete table inet {table}", f"table inet {table} {{"]
        for chain, device in (("input", "iifname"), ("output", "oifname")):
            rules.append(f"chain {chain} {{ type filter hook {chain} priority 0; {device} eth0 {condition} drop; }}")
        self.run(node, ["nft", "-f", "-"], input="\n".join([*rules, "}", ""]))

    def _start_daemon(self, node, name, *arguments):
        with open(self.directory / f"{name}-{node}.log", "ab") as log:
            self._daemons.append(self.start(node, [name, "-D", "-f", self.directory / "slurm.conf", *arguments],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True))

    def _start_slurm(self):
        (self.directory / "slurm.conf").write_text(self._slurm_conf(), encoding="utf-8")
        (self.directory / "gres.conf").write_text(self._gres_conf(), encoding="utf-8")
        (self.directory / "state").mkdir()
        key = self.directory / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        with open(self.directory / "munged.log", "wb") as log:
            files = [f"--{name}-file={self.directory}/munge.{name}" for name in ("key", "pid", "seed")]
            munged = ["munged", "--foreground", "--force", *files, f"--socket={self.directory}/munge.sock", "--num-threads=2"]
            self._daemons.append(self.start(CONTROL, munged, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        wait_until((self.directory / "munge.sock").exists, "munged listens")
        self.start_slurmctld()
        for node in self.nodes:
            self.start_slurmd(node)
        self.wait_idle()

    def _gres_conf(self):
        lines = []
        for node, (kind, count) in self._gpus.items():
            for number in range(count):
                device = self.directory / f"gpu-{node}-{number}"
                os.mknod(device, 0o666 | 0o020000, os.makedev(1, 3))
                lines.append(f"NodeName={node} Name=gpu Type={kind} File={device}")
        return "\n".join([*lines, ""])

    def _slurm_conf(self):
        directory = self.directory
        lines = [
            "ClusterName=rig", f"SlurmctldHost={CONTROL}({self.address(CONTROL)})", "SlurmUser=root", "SlurmdUser=root",
            "AuthType=auth/munge", f"AuthInfo=socket={directory}/munge.sock", "CredType=cred/munge", "MpiDefault=none",
            "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none", "JobAcctGatherType=jobacct_gather/none",
            "AccountingStorageType=accounting_storage/none", "JobCompType=jobcomp/none",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=2,bf_interval=2",
            "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU", "GresTypes=gpu",
            f"StateSaveLocation={directory}/state", f"SlurmdSpoolDir={directory}/spool-%n",
            f"SlurmctldPidFile={directory}/slurmctld.pid", f"SlurmdPidFile={directory}/slurmd-%n.pid",
            f"SlurmdTimeout={self._slurmd_timeout_s}", "SlurmctldTimeout=20", "InactiveLimit=0", "KillWait=2", "WaitTime=0",
            "MinJobAge=60", "ReturnToService=2", "SlurmdParameters=config_overrides",
            "LaunchParameters=use_interactive_step", "PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE", "JobRequeue=1",
        ]
        for node in self.nodes:
            gres = "Gres=gpu:{}:{}".format(*self._gpus[node]) if node in self._gpus else ""
            feature = f"Feature={self._features[node]}" if node in self._features else ""
            lines.append(f"NodeName={node} NodeHostname={node} NodeAddr={self.address(node)} CPUs={self._cpus} RealMemory=2000 "
                         f"{gres} {feature} State=UNKNOWN")
        for name, options in self._partitions.items():
            nodes = "" if "Nodes=" in options else f"Nodes={','.join(self.nodes)}"
            lines.append(f"PartitionName={name} {nodes} MaxTime=INFINITE State=UP {options}")
        return "\n".join([*lines, self._settings, ""])


def start_for(test, cluster, command, **variables):
    """Starts a command on the control node, in the cluster's folder, with pipes for its output; it ends with the test.
    Returns its subprocess.Popen."""
    process = cluster.start("ctl", command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            cwd=cluster.directory)
    for act in (process.stdout.close, process.stderr.close, process.wait, process.kill):
        test.addCleanup(act)
    return process


def skip_unless_there(slurm=True):
    """Ends the program as skipped if this machine cannot have a cluster; for the main of a test."""
    if reason := missing(slurm):
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(SKIPPED)
