from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from ensign.host.signals import restore_signal_handlers, signals_deferred, stopped_by_signals

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPPING)
def test_any_of_them_interrupts(number: signal.Signals) -> None:
    with stopped_by_signals(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)


def test_the_second_one_changes_nothing_until_it_is_heeded_again() -> None:
    with stopped_by_signals():
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        restore_signal_handlers()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGHUP)


def test_what_was_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stopped_by_signals():
        signal.raise_signal(signal.SIGHUP)


def test_a_deferred_signal_comes_at_the_end_and_once() -> None:
    reached: list[str] = []

    def saving() -> None:
        with signals_deferred():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            reached.append("the end")

    with stopped_by_signals():
        with pytest.raises(KeyboardInterrupt):
            saving()
        signal.raise_signal(signal.SIGINT)
    assert reached


def test_an_inner_deferral_does_not_end_the_outer_one() -> None:
    reached: list[str] = []

    def outer() -> None:
        with signals_deferred():
            inner()
            reached.append("the end of the outer one")

    def inner() -> None:
        with signals_deferred():
            signal.raise_signal(signal.SIGINT)

    with stopped_by_signals(), pytest.raises(KeyboardInterrupt):
        outer()
    assert reached


def test_nothing_interrupts_the_end_of_the_program() -> None:
    with stopped_by_signals():
        pass
    for number in STOPPING:
        signal.raise_signal(number)
