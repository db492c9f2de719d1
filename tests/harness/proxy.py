"""A proxy for TCP that does what bad networks do: it cuts connections, and alters bytes."""

import asyncio
import math
import random
import socket
import struct
import threading

from harness.server import free_port

PIECE = 1 << 16


class Proxy:
    """Between two ports of 127.0.0.1; `cuts` and `flips` are shares of all connections.

    Each connection that is chosen is cut, or has one bit flipped, after a random number of bytes
    that went in one direction; small numbers are as likely as large ones.
    """

    def __init__(self, target, *, cuts=0.0, flips=0.0, seed=0, most_bytes=1 << 20):
        self.port = free_port()
        self.target = target
        self.cuts, self.flips = cuts, flips
        self.most_bytes = most_bytes
        self.random = random.Random(seed)
        self.cut_count = self.flip_count = 0
        # How long each piece waits that goes to the target.
        self.waits_seconds = 0.0
        self.loop = asyncio.new_event_loop()
        self.is_up = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.is_up.wait(10), "no proxy"
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def _run(self):
        asyncio.set_event_loop(self.loop)
        serving = asyncio.start_server(self._connection, "127.0.0.1", self.port)
        server = self.loop.run_until_complete(serving)
        self.is_up.set()
        self.loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    async def _connection(self, reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        chance = self.random.random()
        what = "cut" if chance < self.cuts else "flip" if chance < self.cuts + self.flips else None
        fault = Fault(what, self.random, self.most_bytes)
        pumps = [
            asyncio.ensure_future(self._pump(reader, to_writer, fault, 0)),
            asyncio.ensure_future(self._pump(to_reader, writer, fault, 1)),
        ]
        await asyncio.wait(pumps, return_when=fault.ends_by)
        for pump in pumps:
            pump.cancel()
        for end in (writer, to_writer):
            if fault.is_reset:
                linger = struct.pack("ii", 1, 0)
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                end.transport.abort()
            else:
                end.close()

    async def _pump(self, reader, writer, fault, direction):
        done = 0
        try:
            while piece := await reader.read(PIECE):
                if direction == 0 and self.waits_seconds:
                    await asyncio.sleep(self.waits_seconds)
                at = fault.place(direction, done, len(piece))
                if at is not None and fault.what == "cut":
                    writer.write(piece[:at])
                    await writer.drain()
                    self.cut_count += 1
                    return
                if at is not None:
                    self.flip_count += 1
                    piece = piece[:at] + bytes([piece[at] ^ 1 << at % 8]) + piece[at + 1 :]
                writer.write(piece)
                await writer.drain()
                done += len(piece)
            writer.write_eof()
        except (ConnectionError, OSError):
            return


class Fault:
    """What befalls a connection, where, and in which direction."""

    def __init__(self, what, chance, most_bytes):
        self.what = what
        self.direction = chance.randrange(2)
        self.at = int(math.exp(chance.uniform(0, math.log(most_bytes))))
        self.is_reset = what == "cut" and chance.random() < 0.5
        # A connection ends with its first direction where it is cut, else with both.
        self.ends_by = asyncio.FIRST_COMPLETED if what == "cut" else asyncio.ALL_COMPLETED

    def place(self, direction, done, count):
        """Where in the next `count` bytes after `done` it happens, if it does."""
        if self.what is None or direction != self.direction or not done <= self.at < done + count:
            return None
        return self.at - done
