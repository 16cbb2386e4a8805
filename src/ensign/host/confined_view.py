"""Parts of this machine for a confined process tree: read-only, without what is private."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from ensign.host.confinement import INSIDE, Bind, Link, View, covering
from ensign.host.files import is_file, is_folder
from ensign.host.foreign_files import UnprivilegedUser
from ensign.host.root_directory import inner_root, lies_in, root_view

_ROOT = Path("/")
_OWN = frozenset({INSIDE, "/proc", "/dev"})
_PRIVATE = ("/root", "/home", "/run", "/mnt", "/media", "/srv")
# Empty also where the home folder itself is shown because somebody asked for that.
_CREDENTIALS = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".password-store",
    ".local/share/keyrings",
)  # fmt: skip
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # these are made anew
# A home folder that is one of these, as a container's may be, is shown.
_SYSTEM = re.compile(r"/|/(bin|boot|dev|etc|lib\w*|nix|opt|proc|sbin|sys|usr|var)(/(bin|lib))?")
_OF_PREFIX = re.compile(
    r"s?bin|libx?\d*|libexec|include|shims|versions|toolchains|installs|plugins|sysroot|"
    r"[\w.]+-[\w.-]*(linux|elf|eabi)[\w.-]*"
)
_FILES_OF_PREFIX = ("pyvenv.cfg", "version")
_RUSTUP = ".rustup"
# Without the last one it would make that, and fails where it may not.
_OF_RUSTUP = ("toolchains", "settings.toml", "update-hashes")
_SOCKETS = Path("/proc/net/unix")
_OF_SHARE = re.compile(r"(aclocal|autoconf|automake|cmake|pkgconfig|pipx|uv)([-\d.].*)?")
_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "shims"})
_CGROUPS = Path("/sys/fs/cgroup")
_MOST_LINKS = 40
_MOST_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class ConfinementRequest:
    """Needs of a process tree.

    `path` is its PATH. Programs of private places are shown with the folders of their prefix:
    those on PATH and `programs`. `read` and `write` are shown at their places, `binds` elsewhere.
    `hidden` is private besides what always is, and so are the folders `begun`, in which programs
    begin all the same. `home` is the home folder of who started ensign.
    `root` is another root directory, which is seen instead of the machine: with it `binds`, and of
    `read` and `write` what lies in none of its folders.
    `cgroups`: who starts programs in there makes control groups of the machine for them.
    `inner_roots` are root directories that single programs enter, which the `meter` starts: they
    see what is shown here at places that are not of that system itself.
    """

    path: str
    home: str = ""
    programs: tuple[Path, ...] = ()
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    binds: tuple[Bind, ...] = ()
    hidden: tuple[Path, ...] = ()
    begun: tuple[Path, ...] = ()
    cwd: str = "/"
    network: bool = False
    unset: tuple[str, ...] = ()
    ends_with_parent: bool = True
    cgroups: bool = False
    root: Path | None = None
    inner_roots: tuple[Path, ...] = ()
    meter: Path | None = None


def confined_view(request: ConfinementRequest, user: UnprivilegedUser | None) -> View:
    """The view for a request; `user` is who it is for, None for who started ensign."""
    if request.root is not None:
        return _view_of_root(request, request.root)
    entries, links = _entries_of_root()
    showing = _Showing(user, _private_places(request), _real(_SCRATCH))
    showing.links.update(links)
    for path in request.read:
        showing.show(path)
    for path in (*request.write, *((_CGROUPS,) if request.cgroups else ())):
        showing.show(path, writable=True)
    for folder in filter(os.path.isabs, request.path.split(os.pathsep)):
        showing.show_programs(Path(folder))
    for program in request.programs:
        showing.show_programs(program.parent)
        showing.show(program)
    for place in (*map(str, request.begun), *(bind.target for bind in request.binds)):
        showing.open_way(Path(place))
    showing.close_sockets()
    placed = {bind.target: bind for bind in request.binds}
    view = View(
        entries=entries,
        links=tuple(showing.visible_links()),
        hidden=tuple(sorted(showing.hidden)),
        scratch=tuple(sorted(showing.scratch)),
        binds=tuple((showing.binds | placed).values()),
        begun=tuple(sorted(_real(map(str, request.begun)) & showing.hidden)),
        cwd=request.cwd,
        network=request.network,
        unset=request.unset,
        ends_with_parent=request.ends_with_parent,
        cgroups=request.cgroups,
    )
    if request.meter is None:
        return view
    begun = _real(map(str, request.begun))
    inner = (inner_root(root, view, begun, request.meter) for root in request.inner_roots)
    return replace(view, inner_roots=tuple(inner))


def _view_of_root(request: ConfinementRequest, root: Path) -> View:
    asked = dict.fromkeys(request.read, False) | dict.fromkeys(request.write, True)
    binds = [
        Bind(str(path), str(path), writable)
        for path, writable in asked.items()
        if path.exists() and not lies_in(root, str(path))
    ]
    plain = View(
        entries=(),
        cwd=request.cwd,
        network=request.network,
        unset=request.unset,
        ends_with_parent=request.ends_with_parent,
        cgroups=request.cgroups,
    )
    return root_view(root, (*binds, *request.binds), plain)


def is_someones_home(path: Path, home: str) -> bool:
    """True if it is a home folder, or a place where those or other private things are kept."""
    kept = {*_PRIVATE, *_SCRATCH, home}
    around = any(Path(text).is_relative_to(path) for text in kept if text)
    return around or str(path.parent) == "/home"


def rustup_home(path: str) -> str:
    """The folder of Rust's toolchains, where a PATH leads to them by way of rustup; else empty."""
    for folder in map(Path, filter(os.path.isabs, path.split(os.pathsep))):
        home = folder.parent.parent / _RUSTUP
        if is_file(folder / "rustup") and is_folder(home / "toolchains"):
            return str(home)
    return ""


def _listening() -> Iterator[Path]:
    """Sockets that are files, of this network; what the kernel cannot say is passed over."""
    try:
        lines = _SOCKETS.read_bytes().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        name = os.fsdecode(line.split(maxsplit=7)[7]) if line.count(b"/") else ""
        path = Path(name)
        with suppress(OSError, ValueError):
            if path.is_absolute() and path.is_socket():
                yield Path(os.path.realpath(path))


def _entries_of_root() -> tuple[tuple[str, ...], dict[str, Link]]:
    entries: list[str] = []
    links: dict[str, Link] = {}
    for path in sorted(_ROOT.iterdir()):
        if str(path) in _OWN:
            continue
        if path.is_symlink():
            links[str(path)] = Link(str(path), str(path.readlink()))
        elif is_folder(path) or is_file(path):
            entries.append(str(path))
    return tuple(entries), links


def _private_places(request: ConfinementRequest) -> set[str]:
    homes = ("/root", *filter(None, [request.home]))
    credentials = (f"{home}/{name}" for home in homes for name in _CREDENTIALS)
    wanted = (
        *_PRIVATE,
        request.home,
        *credentials,
        *map(str, request.hidden),
        *map(str, request.begun),
    )
    return {path for path in _real(wanted) if not _SYSTEM.fullmatch(path)}


def _real(paths: Iterable[str]) -> set[str]:
    there = (os.path.realpath(path) for path in paths if Path(path).is_absolute())
    return {each for each in there if is_folder(Path(each))}


@dataclass
class _Showing:
    user: UnprivilegedUser | None
    hidden: set[str]
    scratch: set[str]
    binds: dict[str, Bind] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    prefixes: set[Path] = field(default_factory=set)

    def show(self, path: Path, *, writable: bool = False) -> None:
        """Show a file or folder at its place, with the links on the way; nothing if it is gone."""
        real = self._follow(path)
        if real is None or real == _ROOT or any(real.is_relative_to(folder) for folder in _OWN):
            return
        self.open_way(real)
        if not writable and is_folder(real) and not self._may(real, 5):
            self._show_entries(real)
        elif writable or str(real) not in self.binds:
            self.binds[str(real)] = Bind(str(real), str(real), writable)

    def show_programs(self, folder: Path) -> None:
        """Show a folder of programs, and what belongs to them in the folders beside it."""
        real = self._follow(folder)
        if real is None or not is_folder(real) or real in self.prefixes:
            return
        if not self._is_private(real):
            return
        self.prefixes.add(real)
        self.show(folder)
        names = [entry.name for entry in _entries(real)]
        if real.name in _PROGRAM_FOLDERS:
            for path in _beside(real, names):
                self.show(path)
        for name in names:
            path = real / name
            if path.is_symlink():
                self._show_target(path)
        if "rustup" in names:
            for name in _OF_RUSTUP:
                self.show(real.parent.parent / _RUSTUP / name)

    def close_sockets(self) -> None:
        """Put nothing in the place of sockets that programs of the machine listen on."""
        for path in _listening():
            if not self._is_private(path):
                self.binds.setdefault(str(path), Bind(os.devnull, str(path)))

    def visible_links(self) -> Iterator[Link]:
        """Links at places that are empty but for what is shown; elsewhere they are there."""
        places = {*self.hidden, *self.scratch, *self.binds}
        for link in self.links.values():
            folder = Path(link.place).parent
            over = covering(str(folder), places)
            in_root = folder == _ROOT
            if link.place not in places and (in_root or (over and over not in self.binds)):
                yield link

    def _show_target(self, path: Path) -> None:
        """Show what a link to a program leads to."""
        target = self._follow(path)
        if target is None or not self._is_private(target):
            return
        if target.parent.name in _PROGRAM_FOLDERS:
            self.show_programs(target.parent)
        self.show(target)

    def _show_entries(self, folder: Path) -> None:
        """Show what may be read in a folder that its owner alone may enter."""
        self.hidden.add(str(folder))
        for path in _entries(folder):
            if path.is_symlink():
                self._follow(path)
            elif str(path) in self.hidden:
                continue
            elif (is_folder(path) and self._may(path, 5)) or (is_file(path) and self._may(path, 4)):
                self.binds.setdefault(str(path), Bind(str(path), str(path)))

    def open_way(self, real: Path) -> None:
        """Let the user come to it, where a folder on the way is its owner's alone."""
        for above in reversed(real.parents):
            if not is_folder(above):
                return  # a place that is the view's own
            if not self._may(above, 1) and str(above) not in self.scratch:
                self.hidden.add(str(above))

    def _may(self, path: Path, bits: int) -> bool:
        return self.user is None or self.user.may(path.stat(), bits)

    def _is_private(self, real: Path) -> bool:
        if covering(str(real), self.hidden | self.scratch) is not None:
            return True
        return not all(self._may(above, 1) for above in real.parents)

    def _follow(self, path: Path) -> Path | None:
        """The real path; links on the way are kept. None where nothing is there."""
        done, waiting = _ROOT, list(reversed(path.absolute().parts[1:]))
        left = _MOST_LINKS
        while waiting:
            part = waiting.pop()
            here = done.parent if part == ".." else done / part
            try:
                status = here.lstat()
                if not stat.S_ISLNK(status.st_mode):
                    done = here
                    continue
                target = here.readlink()
            except OSError:
                return None
            left -= 1
            if left < 0:
                return None
            self.links[str(here)] = Link(str(here), str(target))
            if target.is_absolute():
                done = _ROOT
            waiting += reversed(target.parts[target.is_absolute() :])
        return done


def _beside(folder: Path, programs: list[str]) -> Iterator[Path]:
    """Parts of X that programs of a folder such as `X/bin` need: no other files, nothing hidden."""
    named = tuple(program for program in programs if len(program) > 1)
    for path in _entries(folder.parent):
        if path.name == "share":
            for entry in _entries(path):
                if _OF_SHARE.fullmatch(entry.name) or _belongs(entry.name, named):
                    yield entry
            continue
        is_wanted = _OF_PREFIX.fullmatch(path.name) if is_folder(path) else _is_file_of_prefix(path)
        if is_wanted:
            yield path


def _is_file_of_prefix(path: Path) -> bool:
    return path.name in _FILES_OF_PREFIX and is_file(path)


def _belongs(name: str, programs: tuple[str, ...]) -> bool:
    return any(name == program or name.startswith(f"{program}-") for program in programs)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:_MOST_ENTRIES]
    except OSError:
        return []
