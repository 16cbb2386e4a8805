"""Signals that ask ensign to stop: they end what runs, not the saving of what was measured."""

from __future__ import annotations

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_IMPATIENCE_S = 10.0
_PR_SET_PDEATHSIG = 1


class _Interrupter:
    """Raises KeyboardInterrupt at the first signal; those that follow soon change nothing.

    Else the second press of Ctrl-C would cut off the saving that the first one began. After ten
    seconds, or when told to heed again, the next one counts again.
    """

    def __init__(self) -> None:
        self._deaf_until_s = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        now_s = time.monotonic()
        if now_s >= self._deaf_until_s:
            self._deaf_until_s = now_s + _IMPATIENCE_S
            raise KeyboardInterrupt

    def heed_again(self) -> None:
        self._deaf_until_s = 0.0


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP do what Ctrl-C does; after the block, which ends the program, none does.

    A signal that is ignored from the start (nohup) stays ignored.
    """
    ours = _heeded()
    interrupter = _Interrupter()
    for number in ours:
        signal.signal(number, interrupter)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_IGN)


def end_with_parent() -> None:
    """Lets this process be told to stop when the one that started it is gone (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def restore_signal_handlers() -> None:
    """Lets the next signal interrupt, also soon after the one before: something may take long."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _Interrupter):
        handler.heed_again()


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Keeps Ctrl-C and its like until the end of a short block that must not be cut off.

    Only the main thread is ever interrupted, so in any other this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        del frame
        arrived.append(number)

    before = {number: signal.getsignal(number) for number in _heeded()}
    for number in before:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in arrived:
            signal.raise_signal(late)


def _heeded() -> tuple[signal.Signals, ...]:
    return tuple(
        number for number in _STOPPING if signal.getsignal(number) not in (signal.SIG_IGN, None)
    )
