"""Signals that ask ensign to stop: they end what runs, not the saving of what was measured."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_as_keyboard_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP do what Ctrl-C does. One that is ignored (nohup) stays ignored."""
    with _handlers(_interrupt):
        yield


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Keeps Ctrl-C and its like until the end of a short block that must not be cut off.

    Only the main thread is ever interrupted, so in any other this does nothing.
    """
    arrived: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        del frame
        arrived.append(number)

    try:
        with _handlers(remember):
            yield
    finally:
        for number in arrived:
            signal.raise_signal(number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise KeyboardInterrupt


@contextmanager
def _handlers(handler: object) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: old
        for number in _STOPPING
        if (old := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    for number in before:
        signal.signal(number, handler)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
