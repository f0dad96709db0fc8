"""A TCP proxy on loopback as far away as a server elsewhere: what a client sends arrives later, in its order and at full speed.

Usage: delay_proxy.py PORT MILLISECONDS. Prints `port NUMBER`, `ready`; ends when standard input does.
"""

import asyncio
import os
import sys

target, delay = int(sys.argv[1]), int(sys.argv[2]) / 1000


async def move(reader, writer, seconds):
    """Moves bytes, each piece so many seconds after it came, however many are under way."""
    pieces = asyncio.Queue(maxsize=1024)

    async def read():
        while piece := await reader.read(1 << 18):
            await pieces.put((asyncio.get_running_loop().time() + seconds, piece))
        await pieces.put((0, b""))

    reading = asyncio.create_task(read())
    try:
        while True:
            due, piece = await pieces.get()
            if not piece:
                break
            if (wait := due - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(wait)
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        reading.cancel()
        writer.close()


async def connect(reader, writer):
    try:
        there, here = await asyncio.open_connection("127.0.0.1", target, limit=1 << 20)
    except OSError:
        return writer.close()
    await asyncio.gather(move(reader, here, delay), move(there, writer, 0), return_exceptions=True)


async def main():
    server = await asyncio.start_server(connect, "127.0.0.1", 0, limit=1 << 20)
    print(f"port {server.sockets[0].getsockname()[1]}", flush=True)
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    # Connections that are still open end with the process.
    os._exit(0)


asyncio.run(main())
