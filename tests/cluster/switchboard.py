"""Relays between agents on this machine and their controller: each agent gets one of its own (tests/survival/network.h).

    with switchboard.Switchboard(folder) as board:
        start(program, env=board.variables)
        board.relay("1.0").stall()
"""

import contextlib
import pathlib
import socket
import threading

import relay


class Switchboard:
    """`options` are those of relay.Relay; the relays' random numbers are of `seed` and the name of the node, which is
    "<request>.<ordinal>". Agents of this machine are asked for by `variables`."""

    def __init__(self, folder, *, nodes=2, seed=0, **options):
        self._socket_path = pathlib.Path(folder) / "network"
        self._cluster_path = pathlib.Path(folder) / "cluster.json"
        self._cluster_path.write_text(
            '{"engine": "processes", "addresses": ["127.0.0.1"], "groups": [{"nodes": %d}], "patience": 25}' % nodes,
            encoding="utf-8")
        self._seed = seed
        self._options = options
        self._relays = {}
        self._changed = threading.Condition()
        self.variables = {"CADRE_TEST_NETWORK": str(self._socket_path), "CADRE_CLUSTER": str(self._cluster_path)}

    def __enter__(self):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(self._socket_path))
        self._socket.listen()
        threading.Thread(target=self._admit, daemon=True).start()
        return self

    def __exit__(self, *error):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for one in self._relays.values():
            one.__exit__(None, None, None)
        self._socket_path.unlink()
        self._cluster_path.unlink()

    def names(self):
        return sorted(self._relays)

    def relay(self, name, deadline_s=60):
        """Returns the relay of a node; waits for its agent."""
        with self._changed:
            if not self._changed.wait_for(lambda: name in self._relays, deadline_s):
                raise TimeoutError(f"no agent {name} has come")
            return self._relays[name]

    def _admit(self):
        with contextlib.suppress(OSError):
            while True:
                asking, _ = self._socket.accept()
                with asking, contextlib.suppress(OSError), asking.makefile("r") as lines:
                    self._answer(asking, lines.readline().split())

    def _answer(self, asking, words):
        if len(words) != 2:
            return  # it was killed
        target, name = words
        host, _, port = target.rpartition(":")
        new = relay.Relay((host, int(port)), seed=f"{self._seed} {name}", **self._options).__enter__()
        with self._changed:
            old = self._relays.pop(name, None)
            self._relays[name] = new
            self._changed.notify_all()
        if old is not None:
            old.__exit__(None, None, None)
        asking.sendall(b"%s:%d\n" % (new.address[0].encode(), new.address[1]))
