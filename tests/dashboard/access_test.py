"""Access to `cadre dashboard`, and how it ends."""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from server import BIN, DEADLINE_S, Dashboard, wait_until

ALL_PATHS = ["", "experiment?id=1", "events", "events?id=1", "scripts/text.js", "style.css"]


def raw(dashboard, bytes_sent, close=True):
    """Sends bytes; returns what comes until the other side closes."""
    with socket.create_connection((dashboard.host, dashboard.port), timeout=DEADLINE_S) as connection:
        received = b""
        try:
            connection.sendall(bytes_sent)
            if close:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(65536):
                received += piece
        except TimeoutError:
            raise AssertionError(f"the connection is still open after {DEADLINE_S} s") from None
        except OSError:  # it is closed already
            pass
        return received


class AccessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.results = cls.folder / "results"
        subprocess.run([BIN / "report_tool", cls.results, "population", "mine", "4"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.dashboard = Dashboard(cls.results)

    @classmethod
    def tearDownClass(cls):
        cls.dashboard.stop()
        cls.temporary.cleanup()

    # ---- Who asks

    def test_only_the_token_opens_it(self):
        token = self.dashboard.path.strip("/")
        self.assertRegex(token, "^[0-9a-f]{32}$")
        wrong = ["", "0" * 32, token[:-1], token + "0", token.upper() + "x", token[:-1] + ("0" if token[-1] != "0" else "1"), "favicon.ico"]
        for other in wrong:
            for path in ALL_PATHS:
                status, headers, body = self.dashboard.request(path=f"/{other}/{path}")
                self.assertEqual(status, 403, (other, path))
                self.assertNotIn(b"mine", body)
                self.assertNotIn(token.encode(), body)
                self.assertIn(b"Open the whole address", body)
                self.assertNotIn("script-src", headers["content-security-policy"])
        self.assertEqual(self.dashboard.request()[0], 200)
        with Dashboard(self.results) as other:
            self.assertNotEqual(other.path, self.dashboard.path)

    def test_another_host_or_origin_is_refused(self):
        port = self.dashboard.port
        for host in f"evil.example:{port}", "evil.example", f"127.0.0.1.evil.example:{port}", f"localhost.evil.example:{port}", "", "[::1].evil.example":
            for path in ALL_PATHS:
                self.assertEqual(self.dashboard.request(path=self.dashboard.path + path, headers={"Host": host})[0], 403, host)
        for host in f"127.0.0.1:{port}", f"localhost:{port}", "127.0.0.1:8000", "[::1]:8000", "localhost":
            self.assertEqual(self.dashboard.request(headers={"Host": host})[0], 200, host)
        own = f"http://127.0.0.1:{port}"
        for origin in "http://evil.example", "null", own + "1", f"https://127.0.0.1:{port}", "http://127.0.0.1:1":
            self.assertEqual(self.dashboard.request(headers={"Origin": origin})[0], 403, origin)
        self.assertEqual(self.dashboard.request(headers={"Origin": own})[0], 200)

    def test_nothing_but_get_and_head_is_answered(self):
        for method in "POST", "PUT", "DELETE", "PATCH", "OPTIONS":
            for path in ALL_PATHS:
                status, headers, _ = self.dashboard.request(method, self.dashboard.path + path, body=b"{}")
                self.assertEqual((status, headers.get("allow")), (405, "GET, HEAD"), (method, path))
        status, headers, body = self.dashboard.request("HEAD")
        self.assertEqual((status, body), (200, b""))
        self.assertEqual(self.dashboard.request("HEAD", self.dashboard.path + "events")[0], 200)
        self.assertEqual(self.dashboard.request("POST", "/", body=b"x")[0], 403)

    def test_every_answer_is_for_this_page_only(self):
        for path in ALL_PATHS:
            _, headers, _ = self.dashboard.request("HEAD", self.dashboard.path + path)
            self.assertTrue(headers["content-security-policy"].startswith("default-src 'none'"))
            if "experiment" not in path and "id" not in path:
                self.assertIn("script-src 'self'; style-src 'self'", headers["content-security-policy"])
            for name, value in {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "cache-control": "no-store",
                                "cross-origin-resource-policy": "same-origin", "x-frame-options": "DENY"}.items():
                self.assertEqual(headers[name], value, path)
            self.assertNotIn("set-cookie", headers)
            self.assertFalse([name for name in headers if name.startswith("access-control-")])

    def test_no_path_leads_to_a_file(self):
        base = self.dashboard.path
        secret = self.results / "mine" / "experiment.db"
        for path in ("../../../../../etc/passwd", "..%2f..%2f..%2fetc/passwd", "%2e%2e/%2e%2e/etc/passwd", "scripts/../../../etc/passwd", "/etc/passwd",
                     str(secret), "mine/experiment.db", "scripts/", "scripts", "third_party/uplot/LICENSE", "index.html", "experiment.html", "dashboard.html",
                     "experiment", "experiment?id=..%2fmine", f"experiment?id={secret.parent}", f"events?id={secret.parent}", "events?id=mine", "scripts/text.js%00"):
            self.assertEqual(self.dashboard.request(path=base + path)[0], 404, path)
        self.assertEqual(self.dashboard.request(path=base.rstrip("/"))[0], 308)
        self.assertEqual(self.dashboard.request(path=base + "experiment?id=" + self.dashboard.id_of("mine"))[0], 200)

    def test_it_listens_on_the_loopback_only(self):
        def listening(table):
            rows = [line.split() for line in pathlib.Path(table).read_text().splitlines()[1:]]
            return [row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == self.dashboard.port]
        self.assertEqual(listening("/proc/net/tcp"), ["0100007F"])
        self.assertEqual(listening("/proc/net/tcp6"), [])

    @unittest.skipUnless(pathlib.Path("/proc/net/if_inet6").exists(), "this machine has no IPv6")
    def test_it_listens_at_the_other_loopback_address_if_asked(self):
        with Dashboard(self.results, "--address", "::1") as dashboard:
            self.assertTrue(dashboard.url.startswith("http://[::1]:"))
            self.assertEqual(dashboard.request()[0], 200)
        self.assertIn("--address", self.refused("--address", "0.0.0.0", code=2))

    # ---- Bad input

    def refused(self, *arguments, code=1):
        done = subprocess.run([BIN / "cadre", "dashboard", *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
        return done.stderr

    def test_a_port_in_use_or_a_folder_that_is_not_there_is_said(self):
        said = self.refused(self.results, "--port", self.dashboard.port)
        self.assertIn(f"port {self.dashboard.port} of 127.0.0.1 is in use", said)
        self.assertIn("--port", said)
        self.assertIn(f"no directory {self.folder / 'nowhere'}", self.refused(self.folder / "nowhere"))
        self.assertIn("--port", self.refused("--port", "70000", code=2))
        self.assertIn("ftp", self.refused("ftp://somewhere/else"))

    def test_a_token_file_is_made_private_and_kept(self):
        file = self.folder / "token"
        with Dashboard(self.results, "--token-file", file) as dashboard:
            path = dashboard.path
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(file.read_text(), path.strip("/") + "\n")
        with Dashboard(self.results, "--token-file", file) as dashboard:
            self.assertEqual(dashboard.path, path)
        file.chmod(0o640)
        self.assertIn(f"chmod 600 {file}", self.refused(self.results, "--token-file", file))
        file.chmod(0o600)
        for text in "", "short\n", "a" * 400, "with/slash" * 4, "../" * 20:
            file.write_text(text)
            self.assertIn("holds no token", self.refused(self.results, "--token-file", file))
        self.assertIn(str(self.folder), self.refused(self.results, "--token-file", self.folder / "nowhere" / "token"))
        os.mkfifo(self.folder / "pipe", 0o600)
        self.assertIn("is not safe", self.refused(self.results, "--token-file", self.folder / "pipe"))

    # ---- Clients that are none

    def test_requests_that_are_none_are_answered_and_forgotten(self):
        long = b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for status, sent in (b"400", b"nonsense\r\n\r\n"), (b"414", long):
            line, *headers = raw(self.dashboard, sent).partition(b"\r\n\r\n")[0].split(b"\r\n")
            self.assertIn(status, line)
            for header in b"X-Content-Type-Options: nosniff", b"X-Frame-Options: DENY", b"Cache-Control: no-store":
                self.assertIn(header, headers)
        self.assertNotIn(b" 200 ", raw(self.dashboard, b"GET " + self.dashboard.path.encode() + b" HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n"))
        self.assertNotIn(b" 200 ", raw(self.dashboard, b"GET " + self.dashboard.path.encode() + b" HTTP/1.1\r\n\r\n"))
        self.assertEqual(raw(self.dashboard, b""), b"")
        self.assertEqual(self.dashboard.request()[0], 200)

    def test_a_client_that_never_ends_its_request_is_dropped(self):
        begin = time.monotonic()
        received = raw(self.dashboard, b"GET " + self.dashboard.path.encode() + b" HTTP/1.1\r\nHost: loc", close=False)
        print(f"dropped after {time.monotonic() - begin:.0f} s")
        self.assertNotIn(b" 200 ", received)

    def test_more_clients_than_it_takes_wait_and_stop_nobody(self):
        with Dashboard(self.results) as dashboard:
            stream = dashboard.events()
            next(stream)
            idle = [socket.create_connection((dashboard.host, dashboard.port), timeout=DEADLINE_S) for _ in range(100)]
            self.assertLess(len(list(pathlib.Path(f"/proc/{dashboard.process.pid}/fd").iterdir())), 64 + 30)
            self.assertEqual(dashboard.request()[0], 200)  # once the idle ones are dropped
            for one in idle:
                one.close()

    def test_a_reader_that_does_not_read_makes_no_queue(self):
        subprocess.run([BIN / "report_tool", self.folder / "slow", "search", "large", "1500"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with Dashboard(self.folder / "slow") as dashboard:
            id = dashboard.id_of("large")

            def memory():
                status = pathlib.Path(f"/proc/{dashboard.process.pid}/status").read_text()
                return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) / 1024

            next(dashboard.events(f"?id={id}"))
            before = memory()
            connections = []
            for _ in range(30):
                connection = socket.create_connection((dashboard.host, dashboard.port), timeout=DEADLINE_S)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.sendall(f"GET {dashboard.path}events?id={id} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                connections.append(connection)
            self.assertEqual(dashboard.request()[0], 200)
            print(f"{memory() - before:.1f} MiB for 30 readers that do not read")
            self.assertLess(memory() - before, 200)
            for connection in connections:
                connection.close()

    # ---- How it ends

    def test_signals_end_it_also_with_open_streams(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            dashboard = Dashboard(self.results)
            stream = dashboard.events()
            next(stream)
            begin = time.monotonic()
            self.assertEqual(dashboard.stop(number), 0)
            print(f"{number.name}: ended after {time.monotonic() - begin:.2f} s")
            with contextlib.suppress(http.client.IncompleteRead, OSError):
                list(stream)  # returns: nothing more comes

    def test_a_signal_that_is_ignored_ends_nothing(self):
        ignored = Dashboard(self.results, wrapper=["nohup"])
        ignored.process.send_signal(signal.SIGHUP)
        self.assertEqual(ignored.request()[0], 200)
        self.assertEqual(ignored.request()[0], 200)
        self.assertEqual(ignored.stop(), 0)

    def test_open_gives_the_browser_a_file_and_no_secret_on_the_command_line(self):
        bin = self.folder / "bin"
        bin.mkdir()
        opener = bin / "xdg-open"
        opener.write_text(f"#!/bin/sh\necho \"$@\" > {self.folder}/opened.part\ncat \"$1\" >> {self.folder}/opened.part\nstat -c %a \"$1\" >> {self.folder}/opened.part\nmv {self.folder}/opened.part {self.folder}/opened\n")
        opener.chmod(0o755)
        before = os.environ["PATH"]
        os.environ["PATH"] = f"{bin}:{before}"
        try:
            dashboard = Dashboard(self.results, "--open")
            with dashboard:
                opened = wait_until(lambda: (self.folder / "opened").exists() and (self.folder / "opened").read_text(), "the browser")
        finally:
            os.environ["PATH"] = before
        lines = opened.splitlines()
        self.assertNotIn(dashboard.path.strip("/"), lines[0])
        self.assertIn(dashboard.url, opened)
        self.assertEqual(lines[-1], "600")
        self.assertFalse(pathlib.Path(lines[0]).exists())
        os.environ["PATH"] = str(self.folder)
        try:
            dashboard = Dashboard(self.results, "--open")
            self.assertIn("cannot open a browser", dashboard.process.stderr.readline() + dashboard.process.stderr.readline())
            dashboard.stop()
        finally:
            os.environ["PATH"] = before


if __name__ == "__main__":
    unittest.main()
