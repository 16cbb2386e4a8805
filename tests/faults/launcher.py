"""Starts `ensign` again and again without loading its libraries anew: a process that forks.

It reads a line of JSON for each call and answers with two: `{"pid": …}` when it was started,
`{"status": …}` when it ended. Everything that such a call leaves behind stays below this process.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

_SUBREAPER = 36


def load() -> None:
    """Everything of ensign, and the libraries that it imports late."""
    import ensign  # noqa: PLC0415

    for module in pkgutil.walk_packages(ensign.__path__, "ensign."):
        importlib.import_module(module.name)


def become(call: dict[str, Any]) -> None:
    """The process of that call: its group, folder, environment, output and faults."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if call["group"]:
        (Path(call["group"]) / "cgroup.procs").write_text("0")
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["env"])
    streams = [(0, os.devnull, os.O_RDONLY)]
    streams += [(n, call[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND) for n, name in _OUTPUTS]
    for stream, name, flags in streams:
        descriptor = os.open(name, flags, 0o644)
        os.dup2(descriptor, stream)
        os.close(descriptor)
    sys.argv = ["ensign", *call["argv"]]
    if call["user"] is not None:
        os.setgroups(())
        os.setgid(call["user"])
        os.setuid(call["user"])


_OUTPUTS = ((1, "out"), (2, "err"))


def _jumping(by_s: float) -> None:
    """The time of day is another one at each tenth look; other clocks go on as they do."""
    looks, shift_s = 0, 0.0
    now = time.time

    def jumped() -> float:
        nonlocal looks, shift_s
        looks += 1
        shift_s += by_s if looks % _LOOKS == 0 else 0.0
        return now() + shift_s

    time.time = jumped
    time.time_ns = lambda: round(jumped() * 1e9)


_LOOKS = 10


def injected(call: dict[str, Any]) -> Any:
    """The injector at work, or None where no call is counted."""
    if call["fault"] is None:
        return None
    from faults.injection import Fault, Injector, install  # noqa: PLC0415

    log = os.open(call["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    # Out of the way of numbers that programs inherit.
    high = os.dup(log)
    os.close(log)
    os.set_inheritable(high, False)  # noqa: FBT003
    fault = Fault(**call["fault"]) if call["fault"] else None
    injector = Injector(fault, high)
    install(injector)
    return injector


def serve() -> dict[str, Any] | None:
    """The call to carry out, in its own process; None at the end of the input."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        call: dict[str, Any] = json.loads(line)
        pid = os.fork()
        if pid == 0:
            answers.close()
            return call
        answers.write(json.dumps({"pid": pid}) + "\n")
        while (ended := os.waitpid(-1, 0))[0] != pid:
            pass
        answers.write(json.dumps({"status": os.waitstatus_to_exitcode(ended[1])}) + "\n")
        _reap()
    return None


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> None:
    """Until the input ends; a forked call ends as the program `ensign` does."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a thread would not survive the fork
    load()
    call = serve()
    if call is None:
        return
    become(call)
    if call["jump_s"]:
        _jumping(call["jump_s"])
    if call["meter"] is not None:
        from faults.meter_tracing import install  # noqa: PLC0415

        install(call["meter"])
    injector = injected(call)
    from ensign.cli.main import main as ensign_main  # noqa: PLC0415

    try:
        ensign_main()
    finally:
        if injector is not None:
            injector.finish()


if __name__ == "__main__":
    main()
