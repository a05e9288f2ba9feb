"""What a request to Ray has reserved before it fails is given back. Ray itself is a stand-in here; tests/cluster/ray_test.py has
the real one."""

import concurrent.futures
import errno
import json
import os
import pathlib
import queue
import socket
import sys
import types
import unittest
import unittest.mock

SOURCE = pathlib.Path(os.environ.get("CADRE_SOURCE", pathlib.Path(__file__).parents[2]))
LAUNCHER = SOURCE / "src" / "engine" / "cluster" / "ray_launcher.py"


def load_launcher():
    """Returns the launcher's module, which is a program, without running it."""
    text = LAUNCHER.read_text(encoding="utf-8")
    assert text.endswith("\nmain()\n")
    module = types.ModuleType("ray_launcher")
    exec(compile(text.removesuffix("main()\n"), str(LAUNCHER), "exec"), module.__dict__)
    return module


class Reference:
    def __init__(self):
        self.result = concurrent.futures.Future()

    def future(self):
        return self.result


class Actor:
    def __init__(self, ray):
        ray.fail_in_turn("actor")
        self.calls = []
        self.start = types.SimpleNamespace(remote=lambda launch: self.call(ray, "start"))
        self.wait = types.SimpleNamespace(remote=lambda: self.call(ray, "wait"))

    def call(self, ray, what):
        ray.fail_in_turn(what)
        self.calls.append(Reference())
        return self.calls[-1]


class Ray:
    """Keeps what is reserved and what runs. `fails`: what fails, and at which time."""

    def __init__(self, **fails):
        self.fails = fails
        self.reserved = []
        self.running = []

    def fail_in_turn(self, what):
        if what in self.fails:
            self.fails[what] -= 1
            if self.fails[what] == 0:
                raise RuntimeError(f"{what} fails")

    def placement_group(self, bundles, **_):
        self.fail_in_turn("group")
        self.reserved.append(object())
        return self.reserved[-1]

    def options(self, **_):
        return self

    def remote(self):
        self.running.append(Actor(self))
        return self.running[-1]

    def kill(self, actor, no_restart):
        if actor in self.running:
            self.running.remove(actor)
            for call in actor.calls:
                call.result.set_exception(RuntimeError("the actor was killed"))

    def modules(self):
        group = types.SimpleNamespace(placement_group=self.placement_group, remove_placement_group=self.reserved.remove)
        strategies = types.SimpleNamespace(PlacementGroupSchedulingStrategy=lambda handle, index: (handle, index))
        return {"ray": self, "ray.util": types.SimpleNamespace(), "ray.util.placement_group": group,
                "ray.util.scheduling_strategies": strategies}


class RequestTest(unittest.TestCase):
    def request(self, ray, together=False):
        """Returns what is said of a request for three nodes."""
        here, there = socket.socketpair()
        self.addCleanup(here.close)
        self.addCleanup(there.close)
        self.enterContext(unittest.mock.patch.dict(sys.modules, ray.modules()))
        self.launcher = load_launcher().Launcher(there, {"outlives": False, "address": ""})
        self.launcher.ray = self.launcher.agent_class = ray
        self.launcher.obey({"order": "request", "request": 1, "ordinals": [0, 1, 2], "together": together, "strategy": "PACK",
                            "cpus": 1, "gpus": 0, "memory": 0, "accelerator_type": "", "resources": {}, "variables": {},
                            "command": ["agent"], "directory": "", "log": ""})
        self.handle_ends()
        here.settimeout(0)
        try:
            return [json.loads(line) for line in here.recv(65536).decode().splitlines()]
        except BlockingIOError:
            return []

    def handle_ends(self):
        while True:
            try:
                what, place, future = self.launcher.inbox.get_nowait()
            except queue.Empty:
                return
            {"started": self.launcher.started, "ended": self.launcher.ended}[what](place, future)

    def expect_nothing_left(self, ray):
        self.assertEqual((ray.reserved, ray.running, self.launcher.groups, self.launcher.places), ([], [], [], {}))

    def test_what_fails_gives_all_back(self):
        for what in ("group", "actor", "start", "wait"):
            for turn in (1, 2, 3):
                with self.subTest(what=what, turn=turn):
                    ray = Ray(**{what: turn})
                    said = self.request(ray)
                    self.assertEqual(said[0], {"event": "refused", "request": 1, "reason": f"{what} fails"})
                    self.expect_nothing_left(ray)

    def test_nodes_that_come_together_are_given_back_together(self):
        for what in ("actor", "start", "wait"):
            with self.subTest(what=what):
                ray = Ray(**{what: 2})
                self.assertEqual(self.request(ray, together=True)[0]["reason"], f"{what} fails")
                self.expect_nothing_left(ray)

    def test_what_does_not_fail_stays_until_it_is_released(self):
        for together, groups in ((False, 3), (True, 1)):
            with self.subTest(together=together):
                ray = Ray()
                self.assertEqual(self.request(ray, together), [])
                self.assertEqual((len(ray.reserved), len(ray.running)), (groups, 3))
                for ordinal in range(3):
                    self.launcher.obey({"order": "release", "request": 1, "ordinal": ordinal})
                self.handle_ends()
                self.expect_nothing_left(ray)


class ListenTest(unittest.TestCase):
    def test_a_controller_is_admitted_after_one_for_which_there_was_no_descriptor(self):
        here, there = socket.socketpair()
        self.addCleanup(here.close)
        self.addCleanup(there.close)
        accept = socket.socket.accept
        faults = [OSError(errno.EMFILE, os.strerror(errno.EMFILE))]

        def accept_in_turn(listener):
            if faults:
                raise faults.pop()
            return accept(listener)
        module = load_launcher()
        module.LOOKS_SOON_S = 0.01
        self.enterContext(unittest.mock.patch.dict(os.environ, {module.MARK: "the mark"}))
        self.enterContext(unittest.mock.patch.object(socket.socket, "accept", accept_in_turn))
        launcher = module.Launcher(there, {"outlives": True, "address": ""})
        controller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(controller.close)
        controller.connect(f"\0cadre-ray-{os.getpid()}")
        controller.sendall(json.dumps({"mark": "the mark"}).encode() + b"\n")
        what, connection, _ = launcher.inbox.get(timeout=60)
        self.addCleanup(connection.close)
        self.assertEqual(what, "came")
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main()
