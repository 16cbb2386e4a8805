"""A server of the Redis protocol that means harm: `resp_server.py KIND PORT`.

It answers the first PING of each connection, which belongs to no drive, as a server would.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable

Behavior = Callable[[socket.socket], None]
_MUCH = 1 << 18


def _endless(head: bytes, again: bytes, pause_s: float = 0.0) -> Behavior:
    def behave(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(head)
        while True:
            connection.sendall(again)
            time.sleep(pause_s)

    return behave


def _answers(reply: bytes) -> Behavior:
    def behave(connection: socket.socket) -> None:
        while connection.recv(1 << 16):
            connection.sendall(reply)

    return behave


def _closes(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"$100\r\nabc")


def _says_nothing(connection: socket.socket) -> None:
    while connection.recv(1 << 16):
        pass


def _never_reads(connection: socket.socket) -> None:
    del connection
    time.sleep(3600)


def _speaks_first(connection: socket.socket) -> None:
    connection.sendall(b"+OK\r\n" * 1000)
    _answers(b"+OK\r\n")(connection)


BEHAVIORS: dict[str, Behavior] = {
    "drip": _endless(b"$1000000\r\n", b"x", 0.05),
    "drip-of-lines": _endless(b"+", b"x", 0.05),
    "flood": _endless(b"", b"+OK\r\n" * _MUCH),
    "flood-of-bytes": _endless(b"", b"\x00\xff\x1b]52;c;Zg==\x07" * _MUCH),
    "endless-array": _endless(b"*4000000000\r\n", b":1\r\n" * _MUCH),
    "array-too-large": _answers(b"*9223372036854775807\r\n"),
    "deep-nesting": _endless(b"", b"*1\r\n" * _MUCH),
    "endless-push": _endless(b"", b">2\r\n+message\r\n+x\r\n" * _MUCH),
    "drip-of-pushes": _endless(b"", b">2\r\n+message\r\n+x\r\n", 0.05),
    "endless-line": _endless(b"-", b"ERR " * _MUCH),
    "wrong-type": _answers(b":1\r\n"),
    "error": _answers(b"-ERR \x1b]0;title\x07\x1b[2J of mine\r\n"),
    "huge-length": _answers(b"$9223372036854775807\r\n"),
    "large-length": _answers(b"$4000000000\r\n"),
    "negative-length": _answers(b"$-2\r\n"),
    "negative-array": _answers(b"*-7\r\n"),
    "no-digits": _answers(b"$\r\n"),
    "many-digits": _endless(b"$", b"0" * _MUCH),
    "closes-in-a-reply": _closes,
    "says-nothing": _says_nothing,
    "never-reads": _never_reads,
    "speaks-first": _speaks_first,
}


def _serve(kind: str, connection: socket.socket) -> None:
    # The client leaves, or is ended.
    with connection, contextlib.suppress(OSError):
        if kind not in ("never-reads", "speaks-first"):
            connection.recv(len(b"*1\r\n$4\r\nPING\r\n"), socket.MSG_PEEK | socket.MSG_WAITALL)
            if connection.recv(1 << 10, socket.MSG_PEEK).startswith(b"*1\r\n$4\r\nPING\r\n"):
                connection.recv(len(b"*1\r\n$4\r\nPING\r\n"))
                connection.sendall(b"+PONG\r\n")
        BEHAVIORS[kind](connection)


def main() -> None:
    """Serves until it is killed; `slow-accept` and `never-accepts` are the listener's own."""
    kind, port = sys.argv[1], int(sys.argv[2])
    with socket.create_server(("127.0.0.1", port), backlog=1) as listener:
        sys.stdout.write(f"port {listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while kind == "never-accepts":
            time.sleep(3600)
        while True:
            connection, _ = listener.accept()
            if kind == "slow-accept":
                time.sleep(0.2)
            behaves = "says-nothing" if kind == "slow-accept" else kind
            threading.Thread(target=_serve, args=(behaves, connection), daemon=True).start()


main()
