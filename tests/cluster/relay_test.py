"""The relay of the tests: what it does to connections."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import unittest

import relay

DEADLINE_S = 120


class EchoServer:
    """Sends back what it gets; `ended` counts connections that have ended."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = self.socket.getsockname()
        self.ended = 0
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.socket.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._echo, args=(self.socket.accept()[0],), daemon=True).start()

    def _echo(self, connection):
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                connection.sendall(data)
        self.ended += 1


class RelayTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(EchoServer())

    def connect(self, between):
        return self.enterContext(socket.create_connection(between.address, timeout=DEADLINE_S))

    def echo(self, connection, data=b"x"):
        connection.sendall(data)
        received = b""
        while len(received) < len(data):
            chunk = connection.recv(65536)
            if not chunk:
                raise ConnectionError("the connection has ended")
            received += chunk
        return received

    def test_bytes_arrive_in_order(self):
        with relay.Relay(self.server.address) as between:
            data = os.urandom(1 << 18)
            self.assertEqual(self.echo(self.connect(between), data), data)
            self.assertEqual(between.relayed_bytes, 2 * len(data))

    def test_each_way_takes_the_delay(self):
        with relay.Relay(self.server.address, delay_s=0.05) as between:
            connection = self.connect(between)
            begin = time.monotonic()
            self.echo(connection)
            self.assertGreaterEqual(time.monotonic() - begin, 0.1)

    def test_the_end_of_a_stream_is_forwarded(self):
        with relay.Relay(self.server.address) as between:
            connection = self.connect(between)
            connection.sendall(b"last")
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(connection.recv(4), b"last")
            self.assertEqual(connection.recv(1), b"")

    def test_a_cut_resets_both_ends(self):
        with relay.Relay(self.server.address) as between:
            connection = self.connect(between)
            self.echo(connection)
            between.cut()
            with self.assertRaises(ConnectionResetError):
                connection.recv(1)
            self.wait_until(lambda: self.server.ended == 1)
            self.echo(self.connect(between))

    def test_connections_are_cut_at_random(self):
        with relay.Relay(self.server.address, cut_every_s=(0.001, 0.01)) as between:
            for _ in range(3):
                with self.assertRaises(ConnectionError):
                    connection = self.connect(between)
                    while self.echo(connection) == b"x":
                        pass
            self.assertGreaterEqual(between.cuts, 3)

    def test_a_stalled_relay_forwards_nothing_until_it_resumes(self):
        with relay.Relay(self.server.address) as between:
            connection = self.connect(between)
            self.echo(connection)
            between.stall()
            connection.settimeout(0.2)
            connection.sendall(b"x")
            with self.assertRaises(TimeoutError):
                connection.recv(1)
            between.resume()
            connection.settimeout(DEADLINE_S)
            self.assertEqual(connection.recv(1), b"x")

    def test_a_half_open_connection_has_lost_its_target_and_does_not_say_so(self):
        with relay.Relay(self.server.address) as between:
            connection = self.connect(between)
            self.echo(connection)
            between.leave_half_open()
            self.wait_until(lambda: self.server.ended == 1)
            connection.settimeout(0.2)
            connection.sendall(b"x")
            with self.assertRaises(TimeoutError):
                connection.recv(1)

    def test_a_target_that_is_not_there_resets_the_connection(self):
        with socket.create_server(("127.0.0.1", 0)) as nobody:
            address = nobody.getsockname()
        with relay.Relay(address) as between, self.assertRaises(ConnectionError):
            self.echo(self.connect(between))

    def test_it_is_a_program_too(self):
        command = [sys.executable, str(pathlib.Path(relay.__file__)), "--to", "{}:{}".format(*self.server.address),
                   "--delay-ms", "1", "--cut-every-ms", "60000-90000"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
            host, _, port = program.stdout.readline().strip().rpartition(":")
            with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as connection:
                self.assertEqual(self.echo(connection), b"x")
            program.stdin.close()
            self.assertEqual(program.wait(DEADLINE_S), 0)

    def wait_until(self, condition):
        begin = time.monotonic()
        while not condition():
            self.assertLess(time.monotonic() - begin, DEADLINE_S)
            time.sleep(0.01)


if __name__ == "__main__":
    unittest.main()
