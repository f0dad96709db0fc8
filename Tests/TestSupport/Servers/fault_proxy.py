"""A TCP proxy on loopback that fails by a seed: it cuts connections, loses replies, is slow,
stalls, and answers 500 and 503.

Usage: fault_proxy.py PORT http|ssh SEED PERCENT. PERCENT of the connections fail, each in one way, after a random number of
bytes. Prints `port NUMBER`, `ready`, and `fault KIND` for each; ends when standard input does.
"""

import random
import socket
import sys
import threading
import time

target, kind, seed, percent = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])


class Connection:
    """One connection, with the fault that its number and the seed give."""

    def __init__(self, client, number):
        chance = random.Random(seed * 1_000_003 + number)
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", target))
        for end in (client, self.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        faults = ["cut-request", "cut-reply", "lose-reply", "slow"] * 3 + ["stall"]
        faults += ["error"] * 4 if kind == "http" else []
        self.fault = chance.choice(faults) if chance.randrange(100) < percent else None
        # After so many bytes in one direction, or so many small pieces from the client, whichever is first. Small numbers are
        # as likely as large ones: in a header, in a key exchange, in the middle of a part.
        self.limit = int(2 ** (chance.uniform(0, 18) if chance.randrange(4) else chance.uniform(23, 25)))
        self.pieces = chance.randrange(1, 25 if kind == "http" else 120)
        self.pause = chance.uniform(0.001, 0.02)
        self.status = chance.choice([b"500 Internal Server Error", b"503 Slow Down"])
        threading.Thread(target=self.pump, args=(client, self.server, True), daemon=True).start()
        threading.Thread(target=self.pump, args=(self.server, client, False), daemon=True).start()

    def report(self):
        print(f"fault {self.fault}", flush=True)

    def close(self):
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pump(self, source, sink, is_request):
        moved = 0
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if is_request and len(data) < 16384:
                    self.pieces -= 1
                if self.fault and (moved + len(data) > self.limit or self.pieces <= 0):
                    if self.fault == "stall":
                        self.report()
                        time.sleep(60)
                        break
                    if self.fault == "cut-reply" and not is_request or self.fault in ("cut-request", "slow") and is_request:
                        self.report()
                        sink.sendall(data[: random.randrange(len(data))])
                        break
                    if self.fault == "lose-reply" and not is_request:
                        # The server has acted; its answer never arrives.
                        self.report()
                        break
                    if self.fault == "error" and is_request and b" HTTP/1.1\r\n" in data:
                        # Between two requests, so that the client reads it as the answer.
                        self.report()
                        self.client.sendall(
                            b"HTTP/1.1 " + self.status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                        time.sleep(0.05)
                        break
                if self.fault == "slow":
                    time.sleep(self.pause)
                sink.sendall(data)
                moved += len(data)
        except OSError:
            pass
        self.close()


def serve(listener):
    number = 0
    while True:
        client, _ = listener.accept()
        number += 1
        try:
            Connection(client, number)
        except OSError:
            client.close()


listener = socket.create_server(("127.0.0.1", 0), backlog=100)
threading.Thread(target=serve, args=(listener,), daemon=True).start()
print(f"port {listener.getsockname()[1]}", flush=True)
print("ready", flush=True)
sys.stdin.buffer.read()
