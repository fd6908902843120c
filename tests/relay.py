"""A TCP relay that makes round trips longer: ``python -m tests.relay LISTEN TARGET MS`` holds bytes MS ÷ 2 each way.

The relay prints ``ready HOST:PORT``. It waits by select(2), to 50 µs: epoll's milliseconds would be too coarse.
"""

import asyncio
import selectors
import sys
from functools import partial

_CHUNK = 65_536

_ORDER_S = 1e-7
"""Time between two writes that are due at once. Without this time their order would be lost."""


async def _held(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hold_s: float) -> None:
    """Passes each piece of bytes on, after this delay."""
    loop, last_s = asyncio.get_running_loop(), 0.0
    while piece := await reader.read(_CHUNK):
        last_s = max(loop.time() + hold_s, last_s + _ORDER_S)
        loop.call_at(last_s, writer.write, piece)
    loop.call_at(max(loop.time() + hold_s, last_s + _ORDER_S), writer.close)


async def _relayed(
    target: tuple[str, int], hold_s: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Relays one connection."""
    there, back = await asyncio.open_connection(*target)
    try:
        await asyncio.gather(_held(reader, back, hold_s), _held(there, writer, hold_s))
    except ConnectionError:
        writer.close()
        back.close()


async def _serve(listen: tuple[str, int], target: tuple[str, int], hold_s: float) -> None:
    server = await asyncio.start_server(partial(_relayed, target, hold_s), *listen)
    host, port = server.sockets[0].getsockname()
    print(f"ready {host}:{port}", flush=True)
    await server.serve_forever()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selectors.SelectSelector())) as runner:
        runner.run(_serve(_address(sys.argv[1]), _address(sys.argv[2]), float(sys.argv[3]) / 2000))
