"""Archives by address or path, pinned by checksum."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from functools import partial
from pathlib import Path
from typing import IO, Any

from ensign.host.files import file_sha256, storage_errors
from ensign.model.errors import InputError
from ensign.model.quoting import quoted
from ensign.model.study_source import ArchiveSource
from ensign.model.units import format_duration
from ensign.sources.downloads import Fetched, Fetcher, FetchLimits, last_line, too_large
from ensign.sources.unpack import unpack

_SILENCE_S = 60
_CHUNK_BYTES = 1 << 18
_FAILED = (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, OSError, ValueError)


def fetch_archive(source: ArchiveSource, fetcher: Fetcher) -> Fetched:
    """Fetch, check and unpack an archive. InputError if it is not what the checksum says."""
    file = fetch_file(source.url, source.sha256, fetcher)
    tree = fetcher.work / "tree"
    unpack(file, tree, source.strip, source.url)
    return Fetched(tree)


def fetch_file(url: str, sha256: str, fetcher: Fetcher) -> Path:
    """A file of that content in the cache. InputError if it is not what the checksum says."""
    file = fetcher.cached_download(sha256)
    if file is not None:
        return file
    file = fetcher.work / (Path(urllib.parse.urlsplit(url).path).name or "archive")
    _get(url, fetcher, file)
    check_sha256(file, sha256, url)
    return fetcher.keep_download(sha256, file)


def check_sha256(file: Path, wanted: str, title: str) -> None:
    """InputError if a file has another SHA-256."""
    sha256 = file_sha256(file)
    if sha256 != wanted:
        raise InputError(f"{title} has the SHA-256 {sha256}, but the study wants {wanted}")


def _get(url: str, fetcher: Fetcher, target: Path) -> None:
    scheme = urllib.parse.urlsplit(url).scheme
    if scheme == "https":
        download(url, target, fetcher.limits)
        return
    if scheme not in ("", "file"):
        raise InputError(f"{url}: only https and file addresses, and paths, can be fetched")
    path = Path(urllib.request.url2pathname(urllib.parse.urlsplit(url).path)) if scheme else None
    path = path or fetcher.study.parent / url
    if not path.is_file():  # a device has no end, a pipe no beginning
        raise InputError(f"the archive {path} is not there")
    if path.stat().st_size > fetcher.limits.size_bytes:
        raise too_large(str(path), fetcher.limits)
    with storage_errors(target):
        shutil.copyfile(path, target)


def download(
    url: str, target: Path, limits: FetchLimits, context: ssl.SSLContext | None = None
) -> None:
    """Write what is at an https address to a file. InputError where it cannot be had.

    It is larger than the limit, say, takes longer, or leads to another kind of address. `context`
    says whom to trust, None whom the system trusts.
    """
    part = target.with_name(f"{target.name}.part")
    deadline = _Deadline(limits.total_s)
    opener = urllib.request.build_opener(_OnlyHttps(), _Https(deadline, context))
    request = urllib.request.Request(url, headers={"User-Agent": "ensign"})  # noqa: S310  # https
    try:
        with (
            deadline.running(),
            opener.open(request, timeout=_SILENCE_S) as reply,
            storage_errors(part),
            part.open("wb") as file,
        ):
            _copy(reply, file, url, limits)
        deadline.require()
    except _FAILED as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        part.unlink(missing_ok=True)
        if deadline.passed:
            took = format_duration(limits.total_s * 1e9)
            raise InputError(f"cannot fetch {url}: it was not there after {took}") from None
        reason = str(getattr(error, "reason", error)).strip() or type(error).__name__
        raise InputError(f"cannot fetch {url}: {quoted(reason.splitlines()[0])[1:-1]}") from error
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    part.rename(target)


def _copy(reply: Any, file: IO[bytes], url: str, limits: FetchLimits) -> None:
    length = reply.headers.get("Content-Length") or ""
    if length.isdecimal() and int(length[:20]) > limits.size_bytes:
        raise too_large(url, limits)
    size_bytes = 0
    while data := reply.read1(_CHUNK_BYTES):
        size_bytes += len(data)
        if size_bytes > limits.size_bytes:
            raise too_large(url, limits)
        file.write(data)
    if length.isdecimal() and size_bytes != int(length[:20]):
        raise ConnectionError(f"it ended after {size_bytes} of {length[:20]} bytes")


class _Deadline:
    """Cuts all connections off when the time is over, in the middle of a header, too."""

    def __init__(self, total_s: float) -> None:
        self._total_s = total_s
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self.passed = False

    def watch(self, connection: socket.socket) -> None:
        """End this one with the others."""
        with self._lock:
            self._sockets.append(connection)
            if self.passed:
                self._cut()

    def require(self) -> None:
        """TimeoutError where the time is over: a header that was cut off looks like a whole one."""
        if self.passed:
            raise TimeoutError

    @contextmanager
    def running(self) -> Iterator[None]:
        """The time begins; all connections are closed at the end."""
        timer = threading.Timer(self._total_s, self._pass)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            for socket_ in self._sockets:  # those of redirects, too, which nobody reads to the end
                socket_.close()

    def _pass(self) -> None:
        with self._lock:
            self.passed = True
            self._cut()

    def _cut(self) -> None:
        for socket_ in self._sockets:
            with suppress(OSError):
                # Not that of TLS, which would wait for the other side.
                socket.socket.shutdown(socket_, socket.SHUT_RDWR)


class _Connection(http.client.HTTPSConnection):
    def __init__(self, *arguments: Any, deadline: _Deadline, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline = deadline
        connect: Callable[..., socket.socket] = socket.create_connection
        self._create_connection = partial(_watched, connect, deadline)

    def connect(self) -> None:
        super().connect()
        self._deadline.watch(self.sock)


def _watched(
    connect: Callable[..., socket.socket], deadline: _Deadline, *arguments: Any, **options: Any
) -> socket.socket:
    connection = connect(*arguments, **options)
    deadline.watch(connection)
    return connection


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, deadline: _Deadline, context: ssl.SSLContext | None) -> None:
        self._trusted = context or ssl.create_default_context()
        super().__init__(context=self._trusted)
        self._deadline = deadline

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """As the base class, over connections that are watched."""
        connection = partial(_Connection, deadline=self._deadline)
        reply: http.client.HTTPResponse = self.do_open(
            connection,
            req,
            context=self._trusted,
        )
        return reply


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    max_redirections = 5

    def redirect_request(  # as the base class
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Follow to https alone; nothing of the first request but its address goes along."""
        if urllib.parse.urlsplit(newurl).scheme != "https":
            fp.close()
            raise urllib.error.URLError(f"it leads to {newurl[:200]!r}, which is not https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def fetch_wheel(package: str, version: str, sha256: str, fetcher: Fetcher) -> Path:
    """The wheel of that checksum, from the cache where it is. InputError if it cannot be had.

    pip downloads it, so that the user's own index and proxies are used.
    """
    file = fetcher.cached_download(sha256)
    if file is not None:
        return file
    pinned = f"{package}=={version}"
    options = ("--no-deps", "--only-binary", ":all:", "--disable-pip-version-check", "--quiet")
    outcome = fetcher.run(
        sys.executable, "-m", "pip", "download", *options, "--dest", str(fetcher.work), pinned
    )
    if not outcome.ok:
        raise InputError(f"cannot fetch {pinned}: {last_line(outcome)}")
    wheels = sorted(fetcher.work.glob("*.whl"))
    if len(wheels) != 1:
        raise InputError(f"cannot fetch {pinned}: pip left {len(wheels)} wheels")
    check_sha256(wheels[0], sha256, pinned)
    return fetcher.keep_download(sha256, wheels[0])
