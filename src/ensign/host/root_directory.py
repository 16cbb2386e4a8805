"""A root directory: the files of another system, read as that system would, and how it is entered.

Links in it lead to places within it. Nothing of it runs but in a sandbox that sees it alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ensign.host.confinement import INSIDE, Bind, InnerRoot, Link, View
from ensign.host.regular_file import read_regular

ROOT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
METER_INSIDE = f"{INSIDE}/ensign-meter"
_MOST_LINKS = 40
_MOST_TEXT_BYTES = 64 << 20
# Made anew, or private: a root directory may be somebody's whole machine.
_SYSTEMS_OWN = ("proc", "dev", "sys", "tmp", "run", INSIDE.strip("/"))
_PRIVATE = ("root", "home", "mnt", "media", "srv", "boot", "lost+found")
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # these are made anew


@dataclass(frozen=True, slots=True)
class RootDirectory:
    """`folder` holds it; `sha256` identifies what is in it. `name` is what the study calls it."""

    name: str
    folder: Path
    sha256: str

    def place(self, path: str) -> Path | None:
        """Path on this machine of a file or folder of it, links followed; None without one.

        A link that leads up from its root stays there, as the kernel has it.
        """
        done: list[str] = []
        waiting = list(reversed(PurePosixPath("/", path).parts[1:]))
        links = _MOST_LINKS
        while waiting:
            part = waiting.pop()
            if part == "..":
                done = done[:-1]
                continue
            here = self.folder.joinpath(*done, part)
            try:
                mode = here.lstat().st_mode
                target = os.readlink(here) if stat.S_ISLNK(mode) else ""  # noqa: PTH115
            except (OSError, ValueError):
                return None
            if not target:
                done.append(part)
                continue
            links -= 1
            if links < 0:
                return None
            parts = PurePosixPath(target).parts
            if target.startswith("/"):
                done, parts = [], parts[1:]
            waiting += reversed(parts)
        return self.folder.joinpath(*done)

    def inside(self, path: str) -> str:
        """The path of a file, links followed, as it is called within; empty without one."""
        place = self.place(path)
        return "" if place is None else f"/{place.relative_to(self.folder)}"

    def real(self, path: str) -> str:
        """As `inside`; the path itself where there is no such file."""
        return self.inside(path) or path

    def which(self, name: str, path: str = ROOT_PATH) -> str:
        """The program of that name, as it is called within; empty where there is none."""
        if "/" in name:
            return name if self._is_program(name) else ""
        places = (f"{folder}/{name}" for folder in path.split(os.pathsep) if folder)
        return next((place for place in places if self._is_program(place)), "")

    def names_in(self, folder: str) -> tuple[str, ...]:
        """Content of a folder of it; nothing where there is none."""
        place = self.place(folder)
        try:
            return () if place is None else tuple(sorted(os.listdir(place)))  # noqa: PTH208
        except OSError:
            return ()

    def text(self, path: str) -> str:
        """The text of a file; empty without one, or of a file that is larger than 64 MiB."""
        place = self.place(path)
        try:
            data = b"" if place is None else read_regular(place, _MOST_TEXT_BYTES, follow=False)
        except OSError:
            return ""
        return data.decode(errors="replace")

    def _is_program(self, path: str) -> bool:
        place = self.place(path)
        return place is not None and place.is_file() and os.access(place, os.X_OK)


def root_view(root: Path, binds: tuple[Bind, ...], view: View) -> View:
    """The view of a root directory and these binds, with the other properties of `view`."""
    entries, links, scratch = _parts(root)
    return View(
        entries=entries,
        root=str(root),
        links=links,
        scratch=scratch,
        binds=binds,
        cwd=view.cwd,
        network=view.network,
        unset=view.unset,
        ends_with_parent=view.ends_with_parent,
        cgroups=view.cgroups,
    )


def inner_root(root: Path, view: View, begun: Iterable[str], meter: Path) -> InnerRoot:
    """A root directory within a view of this machine, with what the view shows of other places.

    What lies in a folder that the root directory has itself is its own.
    """
    entries, links, scratch = _parts(root)
    binds = [
        bind
        for bind in view.binds
        if bind.source != os.devnull and not lies_in(root, bind.target) and bind.target != str(root)
    ]
    shown = {bind.target for bind in binds}
    ways = [
        link
        for link in view.links
        if not lies_in(root, link.place) and link.place not in (*shown, *(e.place for e in links))
    ]
    places = [path for path in begun if not lies_in(root, path) and path not in shown]
    binds.append(Bind(str(meter), METER_INSIDE))
    return InnerRoot(str(root), entries, (*links, *ways), scratch, tuple(places), tuple(binds))


def lies_in(root: Path, path: str) -> bool:
    """True if a path is, within a root directory, one of its own, and not this machine's."""
    parts = PurePosixPath(path).parts
    if len(parts) < 2 or parts[1] in _PRIVATE:  # noqa: PLR2004
        return len(parts) < 2  # noqa: PLR2004
    if parts[1] in ("proc", "dev", "sys"):
        return True
    return parts[1] not in _SYSTEMS_OWN and os.path.lexists(root / parts[1])


def _parts(root: Path) -> tuple[tuple[str, ...], tuple[Link, ...], tuple[str, ...]]:
    """Parts of a root directory that are shown, its links, and its places for scratch."""
    entries: list[str] = []
    links: list[Link] = []
    for path in sorted(root.iterdir()):
        if path.name in (*_SYSTEMS_OWN, *_PRIVATE):
            continue
        if path.is_symlink():
            links.append(Link(f"/{path.name}", os.readlink(path)))  # noqa: PTH115
        elif path.is_dir():
            entries.append(f"/{path.name}")
    scratch = [folder for folder in _SCRATCH if folder != "/var/tmp" or (root / "var/tmp").is_dir()]  # noqa: S108
    return tuple(entries), tuple(links), tuple(scratch)


def can_be_entered(root: Path) -> bool:
    """True if it looks like a root directory: it has programs."""
    return any((root / folder).is_dir() for folder in ("usr/bin", "bin"))
