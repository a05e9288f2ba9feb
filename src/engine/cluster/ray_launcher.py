"""Runs agents on the nodes of a Ray cluster for a controller (ray_actors.h), which starts this program, and talks to it by
lines of JSON over the socket that is its standard input and output.

Each node is asked for by a placement group; an actor in it runs the agent as a process of its own, which ends with it.
Ray ends all of that when this program ends. It stays after its controller if it is told so, until the last agent has
ended; then the next controller finds it by its id, and proves by the mark that the agents are its own."""

import sys

sys.path[:] = [folder for folder in sys.path if folder]  # the directory in which a program runs may have a json.py

import hmac
import json
import math
import os
import queue
import signal
import socket
import struct
import threading
import time

MARK = "CADRE_RAY_LAUNCHER"
VISIBLE_DEVICES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ONEAPI_DEVICE_SELECTOR",
                   "NEURON_RT_VISIBLE_CORES", "TPU_VISIBLE_CHIPS", "HABANA_VISIBLE_MODULES", "ASCEND_RT_VISIBLE_DEVICES")
WAITS_S = 5  # between looks at what waits, and at nodes that drain
LOOKS_SOON_S = 1  # also between looks of an actor at its parent
REACHES_S = 5
LONGEST_WAIT_S = 86400  # of placement groups without a controller
MOST_TEXT = 600
MOST_SHOWN = 4

# Executed by a small interpreter on the node, which becomes the agent: arguments are settings, and the agent's command.
BECOME_AGENT = """
import ctypes, json, os, signal, sys
settings = json.loads(sys.argv[1])
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
if os.getppid() != settings["parent"]: os._exit(127)
for number in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])
try: os.setpriority(os.PRIO_PROCESS, 0, settings["nice"])
except OSError: pass
if settings["log"]:
    try: os.dup2(os.open(settings["log"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600), 2)
    except OSError: pass
try:
    if settings["directory"]: os.chdir(settings["directory"])
except OSError as error:
    sys.stderr.write(f"{settings['directory']}: {error.strerror}\\n")
    sys.stderr.flush()
    os._exit(127)
try: os.execvp(sys.argv[2], sys.argv[2:])
except OSError as error:
    sys.stderr.write(f"{sys.argv[2]}: {error.strerror}\\n")
    sys.stderr.flush()
    os._exit(127)
"""


class Refusal(Exception):
    """What is asked for cannot be had, in words for the user."""


def one_line(text, most=MOST_TEXT):
    text = " ".join(str(text).split())
    return text if len(text) <= most else text[:most] + "..."


def said(error):
    """Returns what an exception of Ray says, without the lines that name what the user does not know."""
    lines = [line for line in str(error).splitlines() if line and not line[0].isspace()]
    return one_line(" ".join(lines) or f"{type(error).__name__}")


def amount_text(amount, name):
    return f"{amount:g} {name}{'' if amount == 1 else 's'}"


def asked_text(needs, count, is_usual):
    amounts = [amount_text(needs[name], name) for name in ("CPU", "GPU") if name in needs]
    amounts[0] += " (all of one)" if is_usual else ""
    amounts += [f"{amount:g} {name}" for name, amount in needs.items() if name not in ("CPU", "GPU")]
    return f"Ray is asked for {'a node' if count == 1 else f'{count} nodes'} with {', '.join(amounts)}"


def free_amounts(free, whole):
    return ", ".join(f"{free.get(name, 0):g} of {amount_text(whole[name], name)}" for name in ("CPU", "GPU") if whole.get(name))


class CadreAgent:
    """On a node: the agent's process. It ends with the thread that has started it, and so with the actor's process."""

    def start(self, launch):
        import queue
        import threading
        import ray
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        for name in ("OMP_NUM_THREADS", "PYTHONBREAKPOINT", "SPT_NOENV"):  # which Ray sets
            environment.pop(name, None)
        given = {name: environment[name] for name in VISIBLE_DEVICES if name in environment}
        if not launch["gpus"]:
            given.setdefault("CUDA_VISIBLE_DEVICES", "")
        environment.update(launch["variables"])
        environment.update(given)
        self.raylet = os.getppid()
        settings = {"parent": os.getpid(), "nice": os.getpriority(os.PRIO_PROCESS, self.raylet),
                    "directory": launch["directory"], "log": launch["log"]}
        command = [sys.executable, "-I", "-S", "-c", BECOME_AGENT, json.dumps(settings), *launch["command"]]
        self.last_line = ""
        self.has_ended = threading.Event()
        started = queue.Queue()
        threading.Thread(target=self._run, args=[command, environment, started], daemon=True).start()
        self.process = started.get()
        if isinstance(self.process, Exception):
            raise self.process
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        return ray.get_runtime_context().get_node_id()

    def wait(self):
        """Returns how the agent has ended."""
        while not self.has_ended.wait(LOOKS_SOON_S):
            if os.getppid() != self.raylet:  # the node has left Ray, which does not end what runs there
                os._exit(1)
        code = self.process.returncode
        self.reader.join(0.5)  # processes that the agent has left behind may keep it open
        how = f"exit code {code}" if code >= 0 else f"signal {-code}"
        how = f"the agent on {os.uname().nodename} ended with {how}"
        return f"{how}: {self.last_line}" if self.last_line else how

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)

    def _run(self, command, environment, started):
        import subprocess
        try:
            process = subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, start_new_session=True)
        except Exception as error:
            started.put(error)
            return
        started.put(process)
        process.wait()
        self.has_ended.set()

    def _read(self):
        kept = b""
        while piece := os.read(self.process.stderr.fileno(), 65536):
            kept = (kept + piece)[-4096:]
            self.last_line = kept.decode(errors="replace").strip().rpartition("\n")[2][-1000:]


class Controller:
    """A connection to a controller; None after it has ended."""

    def __init__(self, connection):
        self.connection = connection

    def say(self, **event):
        try:
            if self.connection is not None:
                self.connection.sendall(json.dumps(event).encode() + b"\n")
        except OSError:  # it has ended; the reader says so
            pass


class Place:
    """A node of a request: a bundle of a placement group, and the actor there."""

    def __init__(self, request, ordinal, group):
        self.request = request
        self.ordinal = ordinal
        self.group = group
        self.index = min(group.free)
        group.free.remove(self.index)
        self.actor = None
        self.has_started = False
        self.is_released = False
        self.failure = ""  # to start an agent
        self.killed_at = math.inf  # by Ray, which may not end the agent at once
        self.node = ""
        self.ends = None  # as told

    def key(self):
        return self.request.id, self.ordinal


class Group:
    """A placement group, what each bundle has, and the bundles without an agent: Ray takes back only all of them."""

    def __init__(self, handle, kind, needs, count):
        self.handle = handle
        self.kind = kind
        self.needs = needs
        self.count = count
        self.free = set(range(count))


class Request:
    def __init__(self, order):
        self.id = order["request"]
        self.order = order
        self.asked = ""
        self.told = None  # why it waits, as told last
        self.begun = time.monotonic()


class Launcher:
    def __init__(self, connection, settings):
        self.inbox = queue.Queue()
        self.settings = settings
        self.controller = Controller(connection)
        self.ray = None
        self.places = {}
        self.groups = []
        self.unsaid = []  # events of the time without a controller
        self.is_alone_since = None
        self.next_look = math.inf
        self._read_from(connection)
        if settings["outlives"] and os.environ.get(MARK):
            self._listen()

    # Controllers

    def _read_from(self, connection):
        def read():
            try:
                for line in connection.makefile("r", encoding="utf-8"):
                    self.inbox.put(("order", connection, json.loads(line)))
            except (OSError, ValueError):
                pass
            self.inbox.put(("left", connection, None))
        threading.Thread(target=read, daemon=True).start()

    def _listen(self):
        """Waits for the controllers that come after this one; in the abstract namespace, so nothing is left of it."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(f"\0cadre-ray-{os.getpid()}")
        listener.listen(4)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                    threading.Thread(target=self._admit, args=[connection], daemon=True).start()
                except (OSError, RuntimeError):  # no descriptors or no threads for the moment
                    time.sleep(LOOKS_SOON_S)
        threading.Thread(target=accept, daemon=True).start()

    def _admit(self, connection):
        try:
            _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            connection.settimeout(REACHES_S)
            line = b""
            while not line.endswith(b"\n") and len(line) < 4096 and (piece := connection.recv(1)):
                line += piece
            mark = json.loads(line)["mark"]
            if uid == os.getuid() and hmac.compare_digest(mark.encode(), os.environ[MARK].encode()):
                connection.settimeout(None)
                self.inbox.put(("came", connection, None))
                return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            pass
        connection.close()

    def came(self, connection):
        self.controller = Controller(connection)
        self.is_alone_since = None
        self._read_from(connection)
        self.controller.say(event="ready")
        unsaid, self.unsaid = self.unsaid, []
        places = [*self.places, *((event["request"], event["ordinal"]) for event in unsaid)]
        self.controller.say(event="has", places=places)
        for event in unsaid:
            self.controller.say(**event)
        for place in self.places.values():
            place.request.told = place.ends = None
            if place.has_started:
                self.controller.say(event="started", request=place.request.id, ordinal=place.ordinal)
        self.next_look = 0

    def left(self, connection):
        if connection is not self.controller.connection:
            return
        self.controller = Controller(None)
        self.is_alone_since = time.monotonic()

    # Ray

    def connect(self):
        try:
            import ray
        except ImportError as error:
            raise Refusal(f"{sys.executable} has no Ray ({one_line(error)}): install it there, in the version of the cluster "
                          '(pip install ray), or name another Python in the option "python" of the group') from None
        given = self.settings["address"] or os.environ.get("RAY_ADDRESS", "")
        os.environ.pop("RAY_ADDRESS", None)
        where = f"at {given}" if given else "on this machine, and RAY_ADDRESS is not set"
        advice = 'start one with `ray start --head`, or say where it is in RAY_ADDRESS or the option "address" of the group'
        if given.startswith("local"):
            raise Refusal(f"a cluster is needed that is there already, and the address is {given}: {advice}")
        if given.startswith("ray://"):
            raise Refusal(f"Ray's client ({given}) is not supported: run the program on a machine of the cluster, and give its "
                          "address as host:port")
        self.expect_listener(given, advice)
        try:
            ray.init(address=given or "auto", log_to_driver=False, logging_level="ERROR", namespace="cadre")
        except ConnectionError as error:
            raise Refusal(f"there is no Ray cluster {where} ({said(error)}): {advice}") from None
        except Exception as error:  # of another version, another token; there is no common class
            raise Refusal(f"Ray does not let this program in: {one_line(error)}") from None
        self.ray = ray
        self.agent_class = ray.remote(max_restarts=0, max_task_retries=0, concurrency_groups={"control": 1})(CadreAgent)
        self.controller.say(event="ready")

    @staticmethod
    def expect_listener(address, advice):
        """Throws Refusal if nobody listens there: Ray itself would try for minutes."""
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit():
            return
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACHES_S).close()
        except OSError as error:
            raise Refusal(f"there is no Ray cluster at {address} ({error.strerror or error}): {advice}") from None

    def alive_nodes(self):
        return [node for node in self.ray.nodes() if node["Alive"]]

    def needs(self, order):
        """Returns the resources of one node."""
        needs = dict(order["resources"])
        if order["gpus"]:
            needs["GPU"] = order["gpus"]
        if order["memory"]:
            needs["memory"] = order["memory"]
        if order["accelerator_type"]:
            needs[f"accelerator_type:{order['accelerator_type']}"] = 0.001
        needs["CPU"] = order["cpus"] or self.usual_cpus(needs, len(order["ordinals"]))
        return needs

    def usual_cpus(self, needs, count):
        """Returns all CPUs of a node: as many as the smallest of the largest `count` nodes has that have the rest."""
        amounts = [node["Resources"] for node in self.alive_nodes()
                   if all(node["Resources"].get(name, 0) >= amount for name, amount in needs.items())]
        cpus = sorted((int(each["CPU"]) for each in amounts if each.get("CPU", 0) >= 1), reverse=True)
        if not cpus:
            raise Refusal("no node that Ray has now has CPUs and what else is asked, so it is not known how many a node would "
                          'have: say so in "cpus" of the group')
        return cpus[min(count, len(cpus)) - 1]

    # Orders

    def obey(self, order):
        if order["order"] == "request":
            try:
                self.request(order)
            except Refusal as refusal:
                self.controller.say(event="refused", request=order["request"], reason=str(refusal))
            except Exception as error:  # Ray's own checks
                self.controller.say(event="refused", request=order["request"], reason=said(error))
                for place in [place for key, place in self.places.items() if key[0] == order["request"]]:
                    self.release(place)
                self.remove_unused_groups()
        elif order["order"] == "release":
            if place := self.places.get((order["request"], order["ordinal"])):
                self.release(place)
        elif order["order"] == "look":
            self.next_look = 0

    def request(self, order):
        request = Request(order)
        count = len(order["ordinals"])
        groups = self.groups_for(order, f"cadre-{os.getpid()}-{request.id}")
        request.asked = asked_text(groups[0].needs, count if order["together"] else 1, not order["cpus"])
        for number, ordinal in enumerate(order["ordinals"]):
            place = Place(request, ordinal, groups[number % len(groups)])
            try:
                self.start(place, place.group.needs)
            except Exception:
                place.group.free.add(place.index)
                if place.actor is not None:
                    self.ray.kill(place.actor, no_restart=True)
                raise
            self.places[place.key()] = place
        self.next_look = min(self.next_look, time.monotonic() + LOOKS_SOON_S)

    def groups_for(self, order, name):
        """Returns a placement group for all nodes of a request that are to come together, or one for each of the others. A
        node in the place of one that has ended is the bundle that this has left."""
        from ray.util.placement_group import placement_group
        kind = [order[member] for member in ("strategy", "cpus", "gpus", "memory", "accelerator_type", "resources")]
        count = len(order["ordinals"])
        for group in self.groups:
            if order["together"] and count == 1 and group.free and group.kind == kind:
                return [group]
        needs = self.needs(order)
        if order["together"]:
            self.groups.append(Group(placement_group([needs] * count, strategy=order["strategy"], name=name), kind, needs, count))
            return self.groups[-1:]
        for ordinal in order["ordinals"]:  # each is known at once: the next one may fail
            self.groups.append(Group(placement_group([needs], name=f"{name}-{ordinal}"), kind, needs, 1))
        return self.groups[-count:]

    def start(self, place, needs):
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
        order = place.request.order
        rest = {name: amount for name, amount in needs.items()
                if name not in ("CPU", "GPU", "memory") and not name.startswith("accelerator_type:")}
        place.actor = self.agent_class.options(
            num_cpus=needs["CPU"], num_gpus=needs.get("GPU", 0), memory=needs.get("memory"), resources=rest,
            scheduling_strategy=PlacementGroupSchedulingStrategy(place.group.handle, place.index)).remote()
        variables = {**order["variables"], "CADRE_AGENT_ORDINAL": str(place.ordinal), "CADRE_AGENT_CPUS": str(needs["CPU"])}
        launch = {"variables": variables, "command": order["command"], "directory": order["directory"], "gpus": order["gpus"],
                  "log": f"{order['log']}_{place.ordinal}" if order["log"] else ""}
        self.watch(place, "started", place.actor.start.remote(launch))
        self.watch(place, "ended", place.actor.wait.remote())

    def watch(self, place, what, reference):
        reference.future().add_done_callback(lambda future: self.inbox.put((what, place, future)))

    def release(self, place):
        """Ends an agent, or an actor without one; that it has ended is told when it has."""
        if place.is_released:
            return
        place.is_released = True
        if place.has_started:
            place.actor.end.options(concurrency_group="control").remote()
            place.killed_at = time.monotonic() + REACHES_S
            self.next_look = min(self.next_look, place.killed_at)
        else:
            self.ray.kill(place.actor, no_restart=True)

    # What happens

    def started(self, place, future):
        if future.exception() is not None:
            place.failure = said(future.exception())
            self.ray.kill(place.actor, no_restart=True)  # it waits for an agent that there is not
            return
        place.has_started = True
        place.node = future.result()
        self.controller.say(event="started", request=place.request.id, ordinal=place.ordinal)

    def ended(self, place, future):
        if self.places.pop(place.key(), None) is None:
            return
        error = future.exception()
        if place.is_released:
            reason = "given back"
        elif error is not None:
            reason = f"Ray says: {place.failure or said(error)}"
        else:
            reason = future.result()
        self.remove(place)
        event = {"event": "ended", "request": place.request.id, "ordinal": place.ordinal, "reason": reason,
                 "certain": error is None}
        if self.controller.connection is None:
            self.unsaid.append(event)
        self.controller.say(**event)

    def remove(self, place):
        self.ray.kill(place.actor, no_restart=True)
        place.group.free.add(place.index)
        self.remove_unused_groups()

    def remove_unused_groups(self):
        from ray.util.placement_group import remove_placement_group
        for group in [group for group in self.groups if len(group.free) == group.count]:
            self.groups.remove(group)
            remove_placement_group(group.handle)

    # Looks

    def look(self):
        self.next_look = time.monotonic() + WAITS_S if self.places else math.inf
        for place in list(self.places.values()):
            if time.monotonic() >= place.killed_at:
                self.ray.kill(place.actor, no_restart=True)
                place.killed_at = math.inf
            if not place.has_started:
                self.tell_waiting(place)
        self.tell_ends()

    def tell_waiting(self, place):
        from ray.util.placement_group import placement_group_table
        request = place.request
        if place.is_released or placement_group_table(place.group.handle).get("state") == "CREATED":
            return
        reason = f"{request.asked}; {self.free_text()}"
        if reason != request.told:
            self.controller.say(event="queued", request=request.id, reason=reason)
        request.told = reason

    def free_text(self):
        nodes = [node for node in self.alive_nodes() if node["Resources"].get("CPU") or node["Resources"].get("GPU")]
        try:
            free = self.ray._private.state.available_resources_per_node()
            shown = [f"{node['NodeManagerHostname']} {free_amounts(free.get(node['NodeID'], {}), node['Resources'])}"
                     for node in nodes[:MOST_SHOWN]]
        except Exception:  # it is not public, and may go
            shown = [f"the cluster {free_amounts(self.ray.available_resources(), self.ray.cluster_resources())}"]
            nodes = nodes[:1]
        if not nodes:
            return "it has no node with CPUs"
        further = f", and {len(nodes) - MOST_SHOWN} more nodes" if len(nodes) > MOST_SHOWN else ""
        return f"free: {'; '.join(shown)}{further}"

    def tell_ends(self):
        """Tells when nodes end that Ray drains: for preemption, or to have fewer."""
        try:
            draining = self.ray._private.state.state.get_draining_nodes()
        except Exception:  # it is not public, and may go
            return
        for place in self.places.values():
            at_ms = draining.get(place.node) or None
            if at_ms != place.ends and place.has_started:
                seconds = None if at_ms is None else max(0.0, at_ms / 1000 - time.time())
                self.controller.say(event="ends", request=place.request.id, ordinal=place.ordinal, seconds=seconds)
                place.ends = at_ms

    # The loop

    def has_nothing_to_stay_for(self):
        if self.is_alone_since is None:
            return False
        if not self.settings["outlives"] or not self.places:
            return True
        has_waited = time.monotonic() - self.is_alone_since > LONGEST_WAIT_S
        return has_waited and not any(place.has_started for place in self.places.values())

    def run(self):
        try:
            self.connect()
        except Refusal as refusal:
            self.controller.say(event="failed", reason=str(refusal))
            return
        acts = {"order": lambda connection, order: connection is self.controller.connection and self.obey(order),
                "left": lambda connection, _: self.left(connection), "came": lambda connection, _: self.came(connection),
                "started": self.started, "ended": self.ended}
        while not self.has_nothing_to_stay_for():
            wait_s = min(max(0.0, self.next_look - time.monotonic()), 3600)
            try:
                what, first, second = self.inbox.get(timeout=wait_s)
                acts[what](first, second)
            except queue.Empty:
                pass
            if time.monotonic() >= self.next_look:
                self.look()
        self.ray.shutdown()


def main():
    # Libraries may print, and processes that Ray starts must not have the controller's socket.
    connection = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    Launcher(connection, json.loads(sys.argv[1])).run()
    os._exit(0)


main()
