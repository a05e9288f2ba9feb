"""A TCP relay that is as bad as a network: it delays, cuts connections at random, stalls, and leaves them half open.

    with relay.Relay(("127.0.0.1", port), delay_s=0.02) as between:
        connect(between.address)
        between.cut()

    relay.py --to 127.0.0.1:7000 --delay-ms 20 --cut-every-ms 10-500     # prints the address where it listens
"""

import argparse
import asyncio
import contextlib
import random
import socket
import struct
import sys
import threading

CHUNK_BYTES = 65536
MOST_CHUNKS = 256  # on their way in one direction of one connection


class _BudgetSpent(Exception):
    """As many bytes were relayed as the connection was to live for."""


class _Direction:
    """Bytes from one end of a connection to the other, each chunk `delay_s` late. `budget` is None, or has how many
    bytes of the connection are relayed before it is cut, in the middle of a chunk."""

    def __init__(self, relay, reader, writer, budget):
        self.relay = relay
        self.budget = budget
        self.reader = reader
        self.writer = writer
        self.chunks = asyncio.Queue(MOST_CHUNKS)

    async def read(self):
        loop = asyncio.get_running_loop()
        data = b"begin"
        while data:
            data = await self.reader.read(CHUNK_BYTES)
            await self.chunks.put((loop.time() + self.relay.delay_s, data))

    async def write(self):
        loop = asyncio.get_running_loop()
        while True:
            due, data = await self.chunks.get()
            await asyncio.sleep(max(0, due - loop.time()))
            await self.relay.flowing.wait()
            if not data:
                self.writer.write_eof()
                return
            if self.budget is not None:
                data = data[:self.budget[0]]
                self.budget[0] -= len(data)
            self.relay.relayed_bytes += len(data)  # before the other end can have them
            self.writer.write(data)
            await self.writer.drain()
            if self.budget == [0]:
                raise _BudgetSpent


class Relay:
    """Listens at `address` and connects on to `target`. All methods may be called from any thread.

    `cut_every_s` is (least, most): all connections are cut after random times between. `cut_after_bytes` is (least,
    most): each connection is cut after so many bytes in both directions. Of these cuts a share of `half_open` leaves the
    connection half open instead, towards a random end. A stalled relay forwards nothing and closes nothing. A connection
    that is left half open is closed towards the target only.
    """

    def __init__(self, target, listen=("127.0.0.1", 0), *, delay_s=0.0, cut_every_s=None, cut_after_bytes=None,
                 half_open=0.0, seed=0):
        self.target = target
        self.delay_s = delay_s
        self.connections = 0  # in all
        self.cuts = 0
        self.halves = 0  # connections that were left half open
        self.relayed_bytes = 0
        self.flowing = None
        self.address = None
        self._listen = listen
        self._cut_every_s = cut_every_s
        self._cut_after_bytes = cut_after_bytes
        self._half_open = half_open
        self._random = random.Random(seed)
        self._open = {}  # by task: the writers towards the client and the target, and what pumps from each of them
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        try:
            self._call(self._start())
        except BaseException:
            self._end_loop()
            raise
        return self

    def __exit__(self, *error):
        self._call(self._stop())
        self._end_loop()

    def cut(self):
        """Resets all connections, as a firewall does that has lost its state."""
        self._call(self._cut())

    def stall(self):
        self._call(self._set_flowing(False))

    def resume(self):
        self._call(self._set_flowing(True))

    def leave_half_open(self):
        """Closes all connections towards the target; clients are not told."""
        self._call(self._leave_half_open())

    def _call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    def _end_loop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _start(self):
        self.flowing = asyncio.Event()
        self.flowing.set()
        self._server = await asyncio.start_server(self._serve, *self._listen)
        self.address = self._server.sockets[0].getsockname()[:2]
        self._cutter = asyncio.ensure_future(self._cut_at_random()) if self._cut_every_s else None

    async def _stop(self):
        if self._cutter:
            self._cutter.cancel()
        self._server.close()
        tasks = list(self._open)
        await self._cut()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _set_flowing(self, flows):
        if flows:
            self.flowing.set()
        else:
            self.flowing.clear()

    async def _cut(self):
        for task in list(self._open):
            self._cut_one(task)

    def _cut_one(self, task):
        to_client, to_target, *_ = self._open[task]
        for writer in (to_client, to_target):
            self._reset(writer)
        task.cancel()
        self.cuts += 1

    def _cut_one_somehow(self, task):
        if self._random.random() < self._half_open:
            self._halve_one(task, towards_target=self._random.random() < 0.5)
        else:
            self._cut_one(task)

    async def _cut_at_random(self):
        while True:
            await asyncio.sleep(self._random.uniform(*self._cut_every_s))
            for task in list(self._open):
                self._cut_one_somehow(task)

    async def _leave_half_open(self):
        for task in list(self._open):
            self._halve_one(task, towards_target=True)

    def _halve_one(self, task, towards_target):
        to_client, to_target, from_client, from_target = self._open[task]
        for pump in from_target if towards_target else from_client:
            pump.cancel()
        self._reset(to_target if towards_target else to_client)
        self.halves += 1

    def _spent(self, task, pump):
        if task in self._open and not pump.cancelled() and isinstance(pump.exception(), _BudgetSpent):
            self._cut_one_somehow(task)

    @staticmethod
    def _reset(writer):
        with contextlib.suppress(OSError):
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def _serve(self, from_client, to_client):
        self.connections += 1
        task = asyncio.current_task()
        try:
            from_target, to_target = await asyncio.open_connection(*self.target)
        except OSError:
            self._reset(to_client)
            return
        budget = [self._random.randint(*self._cut_after_bytes)] if self._cut_after_bytes else None
        forth, back = _Direction(self, from_client, to_target, budget), _Direction(self, from_target, to_client, budget)
        pumps = [asyncio.ensure_future(pump) for pump in (forth.read(), forth.write(), back.read(), back.write())]
        for pump in (pumps[1], pumps[3]):
            pump.add_done_callback(lambda done: self._spent(task, done))
        self._open[task] = (to_client, to_target, pumps[:2], pumps[2:])
        try:
            # With one end reset its pumps fail, the others go on: the connection is half open until the client closes.
            await asyncio.gather(*pumps, return_exceptions=True)
        except asyncio.CancelledError:
            pass  # the streams of asyncio report a task that was cancelled as a fault
        finally:
            for pump in pumps:
                pump.cancel()
            del self._open[task]
            to_client.close()
            to_target.close()


def _address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def _range_s(text):
    least, _, most = text.partition("-")
    return float(least) / 1000, float(most or least) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=_address, required=True)
    parser.add_argument("--listen", type=_address, default=("127.0.0.1", 0))
    parser.add_argument("--delay-ms", type=float, default=0)
    parser.add_argument("--cut-every-ms", type=_range_s)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with Relay(given.to, given.listen, delay_s=given.delay_ms / 1000, cut_every_s=given.cut_every_ms, seed=given.seed) as relay:
        print(f"{relay.address[0]}:{relay.address[1]}", flush=True)
        sys.stdin.read()  # until the one who started it has gone


if __name__ == "__main__":
    main()
