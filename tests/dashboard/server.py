"""Starts `cadre dashboard` and talks to it."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import time
import urllib.parse

BIN = pathlib.Path(os.environ["CADRE_BIN"])
DEADLINE_S = 120  # against hangs, on a machine that does other things too


def wait_until(condition, what="the condition"):
    until = time.monotonic() + DEADLINE_S
    while not (value := condition()):
        assert time.monotonic() < until, f"{what} did not come"
        time.sleep(0.02)
    return value


class Dashboard:
    """A running dashboard. `url` ends with a slash."""

    def __init__(self, *arguments, wrapper=()):
        self.process = subprocess.Popen([*wrapper, BIN / "cadre", "dashboard", "--interval", "0.2", *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        assert self.url, self.process.stderr.read()
        parts = urllib.parse.urlsplit(self.url)
        self.host, self.port, self.path = parts.hostname, parts.port, parts.path

    def request(self, method="GET", path=None, headers=(), body=None):
        """Returns status, headers in small letters and body. `headers` replace those with the same name."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_S)
        own = dict(headers)
        connection.putrequest(method, self.path if path is None else path, skip_host="Host" in own, skip_accept_encoding=True)
        for name, value in own.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        with contextlib.closing(connection):
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def events(self, query=""):
        """Yields the events of a stream as (name, id, data)."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=DEADLINE_S)
        with contextlib.closing(connection):
            connection.request("GET", f"{self.path}events{query}")
            answer = connection.getresponse()
            assert answer.status == 200, answer.status
            event = {}
            for line in answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                else:
                    yield event.get("event"), event.get("id"), json.loads(event["data"])
                    event = {}

    def listed(self):
        """Returns the list of experiments, once all have been read."""
        for event, _, data in self.events():
            if event == "document" and data["complete"]:
                return data
            if event == "change":  # begins anew with the whole document
                return self.listed()
        raise AssertionError("the stream has ended")

    def id_of(self, name):
        """Returns the id of an experiment, once it is listed."""
        return wait_until(lambda: next((id for id, entry in self.listed()["experiments"].items() if entry["name"] == name), None), name)

    def stop(self, with_signal=signal.SIGTERM):
        """Returns the exit code."""
        self.process.send_signal(with_signal)
        code = self.process.wait(DEADLINE_S)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.stop()
