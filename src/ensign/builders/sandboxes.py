"""One constant path for every build, so that equal inputs give equal bytes.

With bubblewrap each build sees its own tree at `/ensign/build` and may run beside others: the root
is made anew from binds of what is in `/`. Where bubblewrap is missing or not allowed, builds take
turns in one folder of the cache, under a lock. The path is part of every key.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ensign.host.cache import Cache
from ensign.host.files import locked, remove_tree
from ensign.host.processes import Processes, ProcessRequest

_INSIDE = "/ensign"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where one stage is built. `tree` is to be filled; `argv` goes before each command.

    Commands see the folder `recorder`, but may not write to it.
    """

    tree: Path
    temporary: Path
    cwd: Path
    argv: tuple[str, ...] = ()
    recorder: Path = field(kw_only=True)


class Sandboxes(Protocol):
    """Gives stages their sandboxes.

    `build_path`, `temporary_path` and `recorder_path` are what commands see.
    """

    build_path: str
    temporary_path: str
    recorder_path: str
    concurrent: bool

    def sandbox(self) -> AbstractContextManager[Sandbox]:
        """Lend a sandbox; it is removed afterwards. Waits for its turn if not `concurrent`."""
        ...


class Bubblewrap:
    """A mount namespace for each command."""

    build_path = f"{_INSIDE}/build"
    temporary_path = f"{_INSIDE}/scratch"
    recorder_path = f"{_INSIDE}/recorder"
    concurrent = True

    def __init__(self, cache: Cache, program: str) -> None:
        self._cache = cache
        self._program = program

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        """See `Sandboxes.sandbox`."""
        with self._cache.temporary() as folder:
            tree, temporary, recorder = (folder / each for each in ("tree", "tmp", "recorder"))
            temporary.mkdir()
            recorder.mkdir()
            argv = self._argv(tree, temporary, recorder)
            yield Sandbox(tree, temporary, folder, argv, recorder=recorder)

    def _argv(self, tree: Path, temporary: Path, recorder: Path) -> tuple[str, ...]:
        argv = [self._program]
        for entry in sorted(Path("/").iterdir()):
            if str(entry) == _INSIDE:
                continue
            if entry.is_symlink():
                argv += ["--symlink", str(entry.readlink()), str(entry)]
            else:
                argv += ["--dev-bind", str(entry), str(entry)]
        argv += ["--bind", str(tree), self.build_path]
        argv += ["--bind", str(temporary), self.temporary_path]
        argv += ["--ro-bind", str(recorder), self.recorder_path]
        argv += ["--unshare-uts", "--hostname", "ensign", "--die-with-parent"]
        return (*argv, "--chdir", self.build_path, "--")


class OneFolder:
    """The same folder for each stage in turn."""

    concurrent = False

    def __init__(self, cache: Cache) -> None:
        self._folder = cache.folder / "build"
        self.build_path = str(self._folder / "build")
        self.temporary_path = str(self._folder / "tmp")
        self.recorder_path = str(self._folder / "recorder")
        self._folder.mkdir(exist_ok=True)

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        """See `Sandboxes.sandbox`."""
        tree, temporary = Path(self.build_path), Path(self.temporary_path)
        recorder = Path(self.recorder_path)
        with locked(self._folder / "lock"):
            for left in (tree, temporary, recorder):
                remove_tree(left)
            temporary.mkdir()
            recorder.mkdir()
            try:
                yield Sandbox(tree, temporary, tree, recorder=recorder)
            finally:
                for left in (tree, temporary, recorder):
                    remove_tree(left)


class Alone:
    """The sandboxes of another kind, each with a loopback of its own where there is no network.

    Commands that share a network take turns: what listens on a port is in the others' way.
    """

    def __init__(self, sandboxes: Sandboxes, *, network: bool) -> None:
        self._sandboxes = sandboxes
        self._network = network
        self.build_path = sandboxes.build_path
        self.temporary_path = sandboxes.temporary_path
        self.recorder_path = sandboxes.recorder_path
        self.concurrent = sandboxes.concurrent and not network

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        """See `Sandboxes.sandbox`."""
        with self._sandboxes.sandbox() as sandbox:
            if self._network or not sandbox.argv:
                yield sandbox
            else:
                yield replace(sandbox, argv=(*sandbox.argv[:-1], "--unshare-net", sandbox.argv[-1]))

    def works(self, sandbox: Sandbox, processes: Processes) -> bool:
        """Whether commands can be run so in a sandbox whose tree is there."""
        return bool(sandbox.argv) and _runs(sandbox, processes)


def choose_sandboxes(cache: Cache, processes: Processes) -> Sandboxes:
    """Take bubblewrap if it works here, else one folder."""
    program = shutil.which("bwrap")
    if program is None:
        return OneFolder(cache)
    bubblewrap = Bubblewrap(cache, program)
    with bubblewrap.sandbox() as sandbox:
        sandbox.tree.mkdir()
        return bubblewrap if _runs(sandbox, processes) else OneFolder(cache)


def _runs(sandbox: Sandbox, processes: Processes) -> bool:
    env = {"PATH": os.environ.get("PATH", os.defpath)}
    request = ProcessRequest((*sandbox.argv, "true"), env, sandbox.cwd, deadline_ns=10**10)
    return processes.run(request).ok
