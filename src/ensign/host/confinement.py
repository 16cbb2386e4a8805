"""A confined process tree's view of the machine, as arguments of bubblewrap. Pure.

`confined_view` finds out what to show; `confinement_probe` whether it works here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

INSIDE = "/ensign"  # where binds go that have no place of their own on the machine
HOSTNAME = "ensign"
SCRATCH_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or folder of the machine at a place of the view; read-only unless `writable`."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link at a place of the view."""

    place: str
    target: str


@dataclass(frozen=True, slots=True)
class InnerRoot:
    """Another root directory within a view, at its own place, for programs that enter it.

    Of `place` the `entries` are shown read-only, and `links` made; `begun` are empty folders, and
    `binds` have their targets in it. It has its own `/proc`, `/dev` and scratch places.
    """

    place: str
    entries: tuple[str, ...]
    links: tuple[Link, ...] = ()
    scratch: tuple[str, ...] = ()
    begun: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()


@dataclass(frozen=True, slots=True)
class View:
    """All that a confined process tree sees.

    `entries` of the machine's root (or of another `root` directory) are shown read-only, `links` in
    it made anew. `hidden` places
    are there, but empty and read-only; `scratch` places are empty, and take `scratch_bytes` each.
    Both must be there on the machine. `begun` of the hidden ones are there in any case, for whoever
    begins there. `binds` lie over all that, the deeper one over the other.
    Process numbers, IPC, host name and, without `network`, the network are its own; so are control
    groups, unless `cgroups` are the machine's.
    `unset` are names of variables that it does not get. `ends_with_parent` kills the whole tree
    with the process that started it. `without_capabilities` is for root that is no host's root.
    Into `inner_roots` the meter has its programs enter: it keeps the right to that.
    """

    entries: tuple[str, ...]
    links: tuple[Link, ...] = ()
    hidden: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()
    begun: tuple[str, ...] = ()
    cwd: str = "/"
    network: bool = False
    unset: tuple[str, ...] = ()
    scratch_bytes: int = SCRATCH_BYTES
    ends_with_parent: bool = True
    without_capabilities: bool = False
    cgroups: bool = False
    root: str = "/"
    inner_roots: tuple[InnerRoot, ...] = ()


def bubblewrap_argv(program: str, view: View) -> tuple[str, ...]:
    """Words before a command, for it to see that view alone."""
    return (
        program,
        *_root(view),
        *_mounts(view),
        *_namespaces(view),
        "--chdir",
        view.cwd,
        "--",
    )


def _root(view: View) -> Iterable[str]:
    for entry in view.entries:
        if entry not in (*view.hidden, *view.scratch):
            yield from ("--ro-bind", f"{view.root.rstrip('/')}{entry}", entry)
    yield from ("--proc", "/proc", "--dev", "/dev")


def _mounts(view: View) -> Iterable[str]:
    """Parents before what lies in them; what a user owns of it is made read-only at the end."""
    empty = dict.fromkeys(view.hidden, "0755") | dict.fromkeys(view.scratch, "1777")
    binds = {bind.target: bind for bind in view.binds}
    empty = {place: mode for place, mode in empty.items() if place not in binds}
    made: list[str] = []
    for place in sorted({*empty, *binds}, key=_depth):
        bind = binds.get(place)
        if bind is not None:
            yield from _way_to(place, made, empty, view)
            yield from _bind(bind, view, made)
        elif _is_of_root(place, view):
            yield from ("--dir", place)
        elif covering(place, made) not in empty or place in view.scratch:
            size = str(view.scratch_bytes)
            yield from ("--perms", empty[place], "--size", size, "--tmpfs", place)
        else:
            continue
        made.append(place)
    for place in (path for path in view.begun if path not in made):
        yield from (*_way_to(place, made, empty, view), "--dir", place)
    for link in view.links:
        yield from ("--symlink", link.target, link.place)
    for root in view.inner_roots:
        yield from _inner_root(root, str(view.scratch_bytes))
    hidden = (place for place in made if place in view.hidden and place not in binds)
    read_only = (place for place in hidden if not _is_of_root(place, view))
    for place in (*read_only, "/dev", "/"):
        yield from ("--remount-ro", place)


def _inner_root(root: InnerRoot, size: str) -> Iterable[str]:
    """Its own files first, then what is made anew, then what lies over that."""
    place = root.place
    yield from ("--perms", "0755", "--size", size, "--tmpfs", place)
    for entry in root.entries:
        yield from ("--ro-bind", f"{place}{entry}", f"{place}{entry}")
    yield from ("--proc", f"{place}/proc", "--dev", f"{place}/dev")
    yield from ("--ro-bind-try", "/sys", f"{place}/sys")
    for path in root.scratch:
        yield from ("--perms", "1777", "--size", size, "--tmpfs", f"{place}{path}")
    made: list[str] = []
    for folder in root.begun:
        yield from (*_way_within(root, folder, made), "--dir", f"{place}{folder}")
    for bind in sorted(root.binds, key=lambda bind: _depth(bind.target)):
        yield from _way_within(root, bind.target, made)
        made.append(bind.target)
        option = "--bind" if bind.writable else "--ro-bind"
        yield from (option, bind.source, f"{place}{bind.target}")
    for link in root.links:
        yield from _way_within(root, link.place, made)
        yield from ("--symlink", link.target, f"{place}{link.place}")
    yield from ("--remount-ro", f"{place}/dev", "--remount-ro", place)


def _way_within(root: InnerRoot, target: str, made: list[str]) -> Iterable[str]:
    """Folders that anybody may enter, but for those of binds, which are there."""
    for folder in reversed(PurePosixPath(target).parents):
        here = str(folder)
        if here not in ("/", *root.scratch) and covering(here, made) is None:
            yield from ("--dir", f"{root.place}{here}")


def _is_of_root(place: str, view: View) -> bool:
    """True if it is a folder of `/`, which is made anew anyway and read-only in the end."""
    return place not in view.scratch and str(PurePosixPath(place).parent) == "/"


def _way_to(place: str, made: list[str], empty: Collection[str], view: View) -> Iterable[str]:
    """Folders that anybody may enter, down to a place in an empty one."""
    over = covering(place, made)
    of_root = covering(place, view.entries) is None and view.root != "/"
    if over is None and (of_root or place.startswith(f"{INSIDE}/")):
        over = "/"
    elif over is None or over not in empty:
        return
    for folder in reversed(PurePosixPath(place).parents):
        if folder.is_relative_to(over) and str(folder) != over:
            yield from ("--dir", str(folder))


def _bind(bind: Bind, view: View, made: list[str]) -> Iterable[str]:
    if not bind.writable and _is_shown(bind, view, made):
        return
    yield from ("--bind" if bind.writable else "--ro-bind", bind.source, bind.target)


def _is_shown(bind: Bind, view: View, made: list[str]) -> bool:
    """True if it is at its place already, and read-only."""
    over = covering(bind.target, made)
    if over is None:
        here = bind.source == bind.target and view.root == "/"
        return here and covering(bind.target, view.entries) is not None
    above = next((each for each in view.binds if each.target == over), None)
    if above is None or above.writable:
        return False
    inside = PurePosixPath(bind.target).relative_to(over)
    return str(PurePosixPath(above.source) / inside) == bind.source


def _namespaces(view: View) -> Iterable[str]:
    yield from ("--unshare-pid", "--unshare-ipc", "--unshare-uts")
    if not view.cgroups:
        yield "--unshare-cgroup-try"
    if not view.network:
        yield "--unshare-net"
    yield from ("--hostname", HOSTNAME, "--new-session")
    if view.ends_with_parent:
        yield "--die-with-parent"
    if view.without_capabilities:
        yield from ("--cap-drop", "ALL")
    if view.inner_roots:
        yield from ("--cap-add", "CAP_SYS_CHROOT")
    for name in view.unset:
        yield from ("--unsetenv", name)


def _depth(place: str) -> tuple[int, str]:
    return len(PurePosixPath(place).parts), place


def covering(place: str, made: Collection[str]) -> str | None:
    """The deepest of these places in which it lies, or which it is."""
    path = PurePosixPath(place)
    return next((str(parent) for parent in (path, *path.parents) if str(parent) in made), None)
