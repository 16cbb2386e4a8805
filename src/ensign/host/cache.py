"""The content-addressed cache: what was fetched and built, under the hash of all that led to it.

An entry is a folder `entries/KIND-KEY` with `meta.json` and whatever its maker put there. It is
made under a temporary name and renamed, so it is there whole or not at all. Whoever uses an entry
holds a shared lock on its folder, whoever makes one an exclusive lock on the temporary folder;
the kernel drops a lock with its process. So what is unlocked may be evicted or removed.

What is used is what was put in: an entry's hashes are recorded when it is made (`seal`), and looked
at before its first use by a `Cache`. One that differs is moved to `quarantine`, and made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import platformdirs

from ensign.host.clock import Clock, SystemClock
from ensign.host.entry import (
    OWN_FILES,
    USED,
    Contents,
    Entry,
    Facts,
    Quarantine,
    contents_of,
    difference,
    finish,
    read_meta,
    size_of,
)
from ensign.host.files import (
    DISK_FULL,
    locked,
    remove_tree,
    storage_errors,
    tree_size_bytes,
    try_lock,
    write_atomically,
)
from ensign.host.signals import signals_deferred
from ensign.model.errors import InputError, StorageFailed
from ensign.model.quoting import visible
from ensign.model.units import format_size

DEFAULT_LIMIT_BYTES = 10 * 2**30

Fill = Callable[[Path], Facts]
F = TypeVar("F")
_TRIES = 3

_MOST_LEFT = 10
_TAG = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Made by ensign; everything here can be made again. 'ensign clean' empties it.\n"
)


def cache_folder(env: Mapping[str, str]) -> Path:
    """`$ENSIGN_CACHE`, or the user's cache folder for ensign."""
    named = env.get("ENSIGN_CACHE")
    return Path(named).absolute() if named else platformdirs.user_cache_path("ensign")


def key_of(inputs: object) -> str:
    """SHA-256 of the canonical JSON of all inputs, in hexadecimal."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _as_they_are(facts: Facts) -> Facts:
    return facts


@dataclass(frozen=True, slots=True)
class _Stored:
    folder: Path
    used_unix_s: float
    size_bytes: int


class Cache:
    """A cache folder, open for one study; entries that were got or made stay until `close`.

    InputError where the folder cannot be one, StorageFailed where its disk is full.
    """

    def __init__(
        self,
        folder: Path,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        clock: Clock | None = None,
    ) -> None:
        self.folder = folder
        self._limit_bytes = limit_bytes
        self._clock = clock or SystemClock()
        self._held: dict[Path, int] = {}
        self._sealed: dict[Path, Contents] = {}
        self._quarantine = Quarantine(folder / "quarantine")
        self._lock = threading.Lock()
        self._left: list[str] = []
        with _usable(folder):
            for name in ("entries", "temporary", "logs"):
                (folder / name).mkdir(parents=True, exist_ok=True)
            if not (folder / "CACHEDIR.TAG").exists():
                write_atomically(folder / "CACHEDIR.TAG", _TAG.encode())
            self._remove_unlocked()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all entries, then evict the least recently used beyond the size limit."""
        with self._lock:
            for descriptor in self._held.values():
                os.close(descriptor)
            self._held.clear()
            self._sealed.clear()
        self.evict()

    @overload
    def get(self, kind: str, key: str, *, pinned: str = "") -> Entry[Facts] | None: ...
    @overload
    def get(
        self, kind: str, key: str, read: Callable[[Facts], F], *, pinned: str = ""
    ) -> Entry[F] | None: ...
    def get(
        self,
        kind: str,
        key: str,
        read: Callable[[Facts], object] = _as_they_are,
        *,
        pinned: str = "",
    ) -> Entry[Any] | None:
        """Return the entry, held until `close`; None if it is not there.

        One that is damaged is not there: `read`, which makes its facts of their JSON, raises
        ValueError, or what it holds is not what was put in (`replaced` says so); what is made in
        its place replaces it. `pinned` names what in it must have the key as its hash, whatever is
        recorded.
        """
        folder = self._place(kind, key)
        if not self._hold(folder):
            return None
        meta = read_meta(folder, read)
        if meta is None:
            self._release(folder)
            return None
        contents = {**meta.contents, pinned: key} if pinned else meta.contents
        if not self._is_sealed(folder, contents):
            return None
        with suppress(OSError):
            now = self._clock.unix_s()
            os.utime(folder / USED, (now, now))
        return Entry(kind, key, folder, meta.facts, meta.size_bytes, contents)

    def recheck(self, kind: str) -> bool:
        """True if all entries of a kind that are in use still hold what they held at first.

        Those that do not are gone from the cache, as if `get` had found it.
        """
        with self._lock:
            own = [path for path in self._sealed if path.name.startswith(f"{kind}-")]
        sealed = [self._is_sealed(path, again=True) for path in own]
        return all(sealed)

    def quarantine(self, folder: Path, what: str) -> None:
        """Move an entry out of use; `replaced` tells. StorageFailed."""
        self._release(folder)
        with locked(self.folder / "lock"):
            self._quarantine.take(folder, what)

    def replaced(self) -> tuple[str, ...]:
        """Entries moved out of use since this was asked last, in sentences."""
        return self._quarantine.said()

    @overload
    def facts(self, kind: str, key: str) -> Facts | None: ...
    @overload
    def facts(self, kind: str, key: str, read: Callable[[Facts], F]) -> F | None: ...
    def facts(
        self, kind: str, key: str, read: Callable[[Facts], object] = _as_they_are
    ) -> object | None:
        """Return what was recorded of an entry, which is no use of it; None if it is not there."""
        meta = read_meta(self._place(kind, key), read)
        return None if meta is None else meta.facts

    @overload
    def make(self, kind: str, key: str, fill: Fill) -> Entry[Facts]: ...
    @overload
    def make(self, kind: str, key: str, fill: Fill, read: Callable[[Facts], F]) -> Entry[F]: ...
    def make(
        self, kind: str, key: str, fill: Fill, read: Callable[[Facts], object] = _as_they_are
    ) -> Entry[Any]:
        """Make an entry: `fill` puts files into a new folder and returns the facts to record.

        Whatever `fill` raises leaves no entry behind. If another ensign made the same entry
        meanwhile, that one is kept and returned.
        """
        with self.temporary() as work:
            folder = work / "entry"
            folder.mkdir()
            facts = dict(fill(folder))
            contents = finish(folder, kind, key, facts)
            now = self._clock.unix_s()
            os.utime(folder / USED, (now, now))
            place = self._place(kind, key)
            for _ in range(_TRIES):  # another ensign's may be there, and damaged
                is_new = self._put(folder, place, read)
                if is_new:
                    with self._lock:
                        self._sealed[place] = contents
                entry = self.get(kind, key, read)
                if entry is not None:
                    return entry
                if is_new:
                    break
        raise StorageFailed(f"what was just written to {place} cannot be read: is its disk sound?")

    def _put(self, folder: Path, place: Path, read: Callable[[Facts], object]) -> bool:
        """Move a new entry to its place, held from then on; False where there is one already."""
        with locked(self.folder / "lock"):
            if place.exists() and read_meta(place, read) is None:
                remove_tree(place)
            is_new = not place.exists()
            if is_new:
                folder.rename(place)
            self._hold(place)
        return is_new

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """Lend a folder on the cache's disk; it is removed at the end, or by the next opening."""
        work = self.folder / "temporary" / f"{os.getpid()}-{secrets.token_hex(6)}"
        with ExitStack() as stack:
            with storage_errors(work), locked(self.folder / "lock"), signals_deferred():
                work.mkdir(0o700)
                stack.callback(_given_back, work, try_lock(work, shared=False))
            with storage_errors(work):
                yield work

    def recall(self, question: str) -> str | None:
        """Return what `remember` was told under that key: a hint, nothing vouches for it."""
        try:
            return (self.folder / "memory" / question).read_text()
        except (OSError, UnicodeDecodeError):
            return None

    def remember(self, question: str, answer: str) -> None:
        """Keep a small fact, such as the result of a probe, under a key from `key_of`."""
        (self.folder / "memory").mkdir(exist_ok=True)
        write_atomically(self.folder / "memory" / question, answer.encode())

    def evict(self, limit_bytes: int | None = None) -> int:
        """Remove the least recently used entries beyond the limit, never one that is in use.

        Returns the bytes freed.
        """
        limit = self._limit_bytes if limit_bytes is None else limit_bytes
        stored = sorted(self._stored(), key=lambda stored: stored.used_unix_s)
        total = sum(item.size_bytes for item in stored)
        freed = 0
        for item in stored:
            if total - freed <= limit:
                break
            freed += self._remove(item)
        return freed

    def clean(self, older_than_s: float | None = None) -> int:
        """Remove all entries, or those not used for so long; not those in use. Bytes freed.

        StorageFailed, after all else is removed, where some of it could not be.
        """
        now = self._clock.unix_s()
        freed = 0
        self._left.clear()
        for stored in self._stored():
            if older_than_s is None or now - stored.used_unix_s > older_than_s:
                freed += self._remove(stored)
        if older_than_s is None:
            for name in ("logs", "memory", "quarantine"):
                if (self.folder / name).exists():
                    freed += tree_size_bytes(self.folder / name)
                    self._left += remove_tree(self.folder / name)
            self._remove_unlocked(unreadable=True)
            with suppress(OSError):
                (self.folder / "logs").mkdir(exist_ok=True)
        if self._left:
            names = "\n".join(map(visible, self._left[:_MOST_LEFT]))
            raise StorageFailed(
                f"freed {format_size(freed)}, but some of the cache could not be removed:\n{names}"
            )
        return freed

    def size_bytes(self) -> int:
        """Add up what all entries take."""
        return sum(stored.size_bytes for stored in self._stored())

    def _place(self, kind: str, key: str) -> Path:
        return self.folder / "entries" / f"{kind}-{key}"

    def _hold(self, folder: Path) -> bool:
        with self._lock:
            if folder in self._held:
                return True
            try:
                descriptor = try_lock(folder, shared=True)
            except FileNotFoundError:
                return False
            if descriptor is None:
                return False  # it is being evicted
            try:
                same = os.path.samestat(os.fstat(descriptor), folder.stat())
            except FileNotFoundError:
                same = False
            if same:
                self._held[folder] = descriptor
            else:
                os.close(descriptor)
            return same

    def _is_sealed(
        self, folder: Path, expected: Contents | None = None, *, again: bool = False
    ) -> bool:
        """True if an entry holds what it should, looked at once unless `again`; else it is gone."""
        with self._lock:
            first = self._sealed.get(folder)
        if first is not None and expected not in (None, first):
            self.quarantine(folder, "what is recorded of it was changed")
            return False
        if first is not None and not again:
            return True
        expected = first or expected or {}
        try:
            what = difference(folder, expected, contents_of(folder, OWN_FILES))
        except OSError as error:
            what = error.strerror or str(error)
        if what:
            self.quarantine(folder, what)
            return False
        with self._lock:
            self._sealed[folder] = dict(expected)
        return True

    def _release(self, folder: Path) -> None:
        with self._lock:
            self._sealed.pop(folder, None)
            descriptor = self._held.pop(folder, None)
            if descriptor is not None:
                os.close(descriptor)

    def _stored(self) -> list[_Stored]:
        stored = []
        for folder in (self.folder / "entries").iterdir():
            try:
                size_bytes = size_of(folder)
                used_unix_s = (folder / USED).stat().st_mtime
            except (OSError, ValueError, KeyError, TypeError):
                size_bytes, used_unix_s = 0, 0.0
            stored.append(_Stored(folder, used_unix_s, size_bytes))
        return stored

    def _remove(self, stored: _Stored) -> int:
        descriptor = None
        try:
            descriptor = try_lock(stored.folder, shared=False)
            if descriptor is None:
                return 0
            doomed = self.folder / "temporary" / f"evicted-{secrets.token_hex(6)}"
            with locked(self.folder / "lock"):
                stored.folder.rename(doomed)
        except FileNotFoundError:
            return 0
        except (OSError, StorageFailed):
            doomed = stored.folder  # no folder, or one without permissions: nobody can be using it
        try:
            self._left += remove_tree(doomed)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return stored.size_bytes

    def _remove_unlocked(self, *, unreadable: bool = False) -> None:
        """Remove what dead processes left under temporary names; also what cannot be opened."""
        with locked(self.folder / "lock"):
            for left in (self.folder / "temporary").iterdir():
                try:
                    descriptor = try_lock(left, shared=False)
                except OSError:
                    if unreadable:
                        self._left += remove_tree(left)
                    continue
                if descriptor is not None:
                    self._left += remove_tree(left)
                    os.close(descriptor)


def _given_back(work: Path, descriptor: int | None) -> None:
    with signals_deferred():
        remove_tree(work)
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def _usable(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, StorageFailed) as error:
        refusal = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(refusal, OSError) or refusal.errno in DISK_FULL:
            with storage_errors(folder):
                raise
        raise InputError(
            f"cannot use the cache folder {folder}: {refusal.strerror}; "
            "ENSIGN_CACHE=FOLDER names another one"
        ) from error
