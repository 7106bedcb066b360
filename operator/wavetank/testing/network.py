"""A way to a server that can be made to freeze or to break."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class Road:
    """Carries bytes between clients and one server."""

    port: int = 0
    """Where clients come in, on this machine."""
    passed: int = 0
    """Connections so far."""
    _frozen: set[int] = field(default_factory=set)
    _writers: dict[int, list[asyncio.StreamWriter]] = field(default_factory=dict)
    _closed: bool = False

    def freeze(self) -> None:
        """Let nothing more through on connections that are open; new ones work.

        So does a load balancer that forgets a connection: neither side is told.
        """
        self._frozen |= set(self._writers)

    def close(self) -> None:
        """Break all connections, and every new one."""
        self._closed = True
        for writers in self._writers.values():
            for writer in writers:
                writer.transport.abort()

    def open(self) -> None:
        """Let new connections through again."""
        self._closed = False

    async def carry(
        self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Carry one connection to its end."""
        if self._closed:
            writer.transport.abort()
            return
        self.passed += 1
        number = self.passed
        far_reader, far_writer = await asyncio.open_connection(host, port)
        self._writers[number] = [writer, far_writer]
        await asyncio.gather(
            self._pass_on(number, reader, far_writer), self._pass_on(number, far_reader, writer)
        )
        self._writers.pop(number, None)

    async def _pass_on(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await reader.read(2**16):
                if number in self._frozen:
                    await asyncio.Event().wait()
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def road_to(host: str, port: int) -> AsyncIterator[Road]:
    """Give a road to a server while the block runs."""
    road = Road()
    tasks: set[asyncio.Task[None]] = set()

    async def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            tasks.add(task)
        await road.carry(host, port, reader, writer)

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    road.port = server.sockets[0].getsockname()[1]
    try:
        yield road
    finally:
        server.close()
        road.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
