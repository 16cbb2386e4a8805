"""One constant path for every build, so that equal inputs give equal bytes; and nothing else.

With bubblewrap each build sees its own tree at `/ensign/build`, the machine read-only and without
what is private, and may run beside others. Where bubblewrap is missing or not allowed, builds take
turns in one folder of the cache, under a lock. The path is part of every key.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ensign.host.cache import Cache
from ensign.host.confined_view import ConfinementRequest
from ensign.host.confinement import INSIDE, Bind
from ensign.host.confinement_probe import Confinement
from ensign.host.files import locked, remove_tree
from ensign.host.foreign_files import UnprivilegedUser
from ensign.model.errors import InputError

# What the meter and the recorder tell those that they start, and nobody else is to see.
_OF_THE_METER = ("ENSIGN_METER", "ENSIGN_METER_SCOPE", "ENSIGN_VARIANT")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Sandbox of one stage. `tree` is to be filled; `argv` goes before each command.

    `user` is who commands run as, where that is another one: all that is in here is to be theirs.
    Commands see the folder `recorder`, but may not write to it.
    """

    tree: Path
    temporary: Path
    cwd: Path
    argv: tuple[str, ...] = ()
    user: UnprivilegedUser | None = None
    recorder: Path = field(kw_only=True)

    @property
    def folders(self) -> tuple[Path, Path]:
        """All that commands may write to."""
        return self.tree, self.temporary


class Sandboxes(Protocol):
    """Gives stages their sandboxes.

    `build_path`, `temporary_path` and `recorder_path` are what commands see.
    """

    build_path: str
    temporary_path: str
    recorder_path: str

    @property
    def concurrent(self) -> bool:
        """True if there may be several at a time."""
        ...

    @property
    def confinement(self) -> Confinement:
        """Confinement of the commands."""
        ...

    def sandbox(self) -> AbstractContextManager[Sandbox]:
        """Lend a sandbox; it is removed afterwards. Waits for its turn if not `concurrent`."""
        ...

    def for_checks(self, *read: Path) -> Sandboxes:
        """The same for commands that run what was built, and read these files and folders.

        Those that share a network take turns: what listens on a port is in the others' way.
        """
        ...

    def within(self, root: Path, path: str) -> Sandboxes:
        """The same in another root directory, with that PATH in it."""
        ...


class Bubblewrap:
    """A view of the machine of its own for each command: see `host.confinement`.

    `shown` is what is seen of the machine; trees are added.
    """

    build_path = f"{INSIDE}/build"
    temporary_path = f"{INSIDE}/scratch"
    recorder_path = f"{INSIDE}/recorder"

    def __init__(
        self,
        cache: Cache,
        confinement: Confinement,
        shown: ConfinementRequest,
        *,
        takes_turns: bool = False,
    ) -> None:
        self._cache = cache
        self._shown = shown
        self.confinement = confinement
        self.concurrent = not takes_turns

    @contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        """See `Sandboxes.sandbox`."""
        with self._cache.temporary() as folder:
            folder.chmod(0o700)
            tree, temporary, recorder = (folder / part for part in ("tree", "tmp", "recorder"))
            temporary.mkdir()
            recorder.mkdir()
            recorder.chmod(0o755)  # whatever the umask of root is
            binds = (
                Bind(str(tree), self.build_path, writable=True),
                Bind(str(temporary), self.temporary_path, writable=True),
                # Programs that count themselves write there, in a training elsewhere.
                Bind(str(temporary), str(temporary), writable=True),
                Bind(str(recorder), self.recorder_path),
            )
            request = replace(
                self._shown,
                binds=binds,
                cwd=self.build_path,
                unset=_OF_THE_METER,
                # What a command leaves running is to be named: the meter ends it.
                ends_with_parent=False,
            )
            argv = self.confinement.argv(request)
            user = self.confinement.user
            yield Sandbox(tree, temporary, folder, argv, user, recorder=recorder)

    def for_checks(self, *read: Path) -> Sandboxes:
        """See `Sandboxes.for_checks`."""
        shown = replace(self._shown, read=(*self._shown.read, *read))
        return Bubblewrap(self._cache, self.confinement, shown, takes_turns=shown.network)

    def within(self, root: Path, path: str) -> Sandboxes:
        """See `Sandboxes.within`."""
        shown = replace(self._shown, root=root, path=path, programs=())
        return Bubblewrap(self._cache, self.confinement, shown, takes_turns=not self.concurrent)


class OneFolder:
    """The same folder for each stage in turn."""

    concurrent = False

    def __init__(self, cache: Cache, confinement: Confinement) -> None:
        self._folder = cache.folder / "build"
        self.confinement = confinement
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

    def for_checks(self, *read: Path) -> Sandboxes:
        """See `Sandboxes.for_checks`: they see everything."""
        del read
        return self

    def within(self, root: Path, path: str) -> Sandboxes:
        """See `Sandboxes.within`: InputError, it cannot be entered."""
        del path
        raise InputError(f"{root} cannot be entered: {self.confinement.reason}")


def choose_sandboxes(
    cache: Cache, confinement: Confinement, shown: ConfinementRequest
) -> Sandboxes:
    """Take bubblewrap if it works here, else one folder."""
    if confinement.works:
        return Bubblewrap(cache, confinement, shown)
    return OneFolder(cache, confinement)
