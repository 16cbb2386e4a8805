"""One input given to one target, within limits; what must not happen has a name."""

from __future__ import annotations

import resource
import shutil
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from ensign.model.errors import InputError

MOST_CPU_S = 1.0
MOST_MEMORY_BYTES = 512 << 20
_PACKAGE = "/ensign/"


@dataclass(frozen=True, slots=True)
class Target:
    """A parser of others' bytes; `run` gets them and an empty folder. It may refuse them.

    `kind` is their form, for the mutator: bytes, text, json, toml, lines or zip; `corpus` is the
    target whose inputs it takes, where it has none of its own.
    """

    name: str
    run: Callable[[bytes, Path], object]
    kind: str = "bytes"
    refused: tuple[type[Exception], ...] = (InputError,)
    corpus: str = ""

    @property
    def inputs(self) -> str:
        """The folder of its inputs in the corpus."""
        return self.corpus or self.name


@dataclass(frozen=True, slots=True)
class Fault:
    """What must not happen. Faults of one `key` have one cause, most likely."""

    key: str
    text: str


class HangError(BaseException):
    """Too much CPU time; no parser may catch that."""


def limit_memory() -> None:
    """From now on this process may take so much more."""
    with Path("/proc/self/statm").open() as file:
        now_bytes = int(file.read().split()[0]) * resource.getpagesize()
    most = now_bytes + MOST_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def attempt(
    target: Target, data: bytes, folder: Path, most_cpu_s: float = MOST_CPU_S
) -> Fault | None:
    """None where the input was read or refused."""
    try:
        with _within(most_cpu_s):
            target.run(data, folder)
    except target.refused as error:
        return _wordy(error)
    except HangError as error:
        return _fault(f"more than {most_cpu_s:g} s of CPU time", error)
    except BaseException as error:  # noqa: BLE001  # whatever it is, it is a finding
        return _fault(type(error).__name__, error)
    finally:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    return None


def _wordy(error: Exception) -> Fault | None:
    """A refusal is for people: short, and printable."""
    text = str(error)
    lines = text.split("\n")
    if len(lines) > 10 or max(map(len, lines)) > 2000:
        return _fault("a refusal too long to be read", error)
    return None


def _fault(what: str, error: BaseException) -> Fault:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _PACKAGE in frame.filename]
    frame = (own or frames)[-1]
    where = f"{Path(frame.filename).name}:{frame.name}"
    text = "".join(traceback.format_exception(error))[-4000:]
    return Fault(f"{what} in {where}", text)


@contextmanager
def _within(cpu_s: float) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
