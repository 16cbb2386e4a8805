"""Whatever a server, a repository or an address does, fetching ends, and runs nothing of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from build_fixtures import cache
from ensign.host.cache import Cache
from ensign.model.errors import InputError
from ensign.model.study_source import ArchiveSource, GitSource, PathSource, Source
from ensign.sources.archive import download
from ensign.sources.downloads import FetchLimits
from ensign.sources.obtain import SourcePorts, obtain
from real_processes import PlainProcesses

__all__ = ["cache"]

Talk = Callable[[ssl.SSLSocket, int], None]
_OK = b"HTTP/1.1 200 OK\r\n"


@dataclass
class Server:
    url: str
    context: ssl.SSLContext
    requests: list[bytes]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[Talk], Server]]:
    """A server that speaks TLS, and then whatever it likes."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl for a certificate")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    argv += ["-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext"]
    argv += ["subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(argv, check=True, capture_output=True)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate, key)
    listener = socket.create_server(("localhost", 0))
    over = threading.Event()

    def start(talk: Talk) -> Server:
        port = listener.getsockname()[1]
        url = f"https://localhost:{port}/a.tar"
        server = Server(url, ssl.create_default_context(cafile=str(certificate)), [])

        def run() -> None:
            while not over.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection, own.wrap_socket(connection, server_side=True) as stream:
                        server.requests.append(stream.recv(10_000))
                        talk(stream, len(server.requests))

        threading.Thread(target=run, daemon=True).start()
        return server

    yield start
    over.set()
    listener.close()


LITTLE = FetchLimits(10_000, 2.0)


def refused(server: Server, target: Path, limits: FetchLimits = LITTLE) -> str:
    with pytest.raises(InputError) as caught:
        download(server.url, target, limits, server.context)
    assert not list(target.parent.glob("archive*"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_whole_is_taken(serve: Callable[[Talk], Server], tmp_path: Path) -> None:
    server = serve(lambda stream, _: stream.sendall(_OK + b"Content-Length: 3\r\n\r\nabc"))
    download(server.url, tmp_path / "archive", FetchLimits(10, 60.0), server.context)
    assert (tmp_path / "archive").read_bytes() == b"abc"
    assert b"uthorization" not in server.requests[0]
    assert b"ookie" not in server.requests[0]


def drip(data: bytes) -> Talk:
    def talk(stream: ssl.SSLSocket, _: int) -> None:
        give_up = time.monotonic() + 60
        stream.sendall(data)
        while time.monotonic() < give_up:
            stream.sendall(b"x")
            time.sleep(0.05)

    return talk


@pytest.mark.parametrize(
    "data",
    [b"", b"HTTP/1.1 200 OK\r\nA: ", _OK + b"Content-Length: 9000\r\n\r\n"],
    ids=["silence", "header", "body"],
)
def test_a_drip_ends(serve: Callable[[Talk], Server], tmp_path: Path, data: bytes) -> None:
    began = time.monotonic()
    said = refused(serve(drip(data)), tmp_path / "archive")
    assert "was not there after 2" in said or data == b""
    assert time.monotonic() - began < 50


def flood(stream: ssl.SSLSocket, _: int) -> None:
    stream.sendall(_OK + b"\r\n")
    with suppress(OSError):
        while True:
            stream.sendall(bytes(1 << 16))


def test_a_flood_ends_and_a_large_file_is_not_begun(
    serve: Callable[[Talk], Server], tmp_path: Path
) -> None:
    limits = FetchLimits(100_000, 60.0)
    assert "'source.limit' allows" in refused(serve(flood), tmp_path / "archive", limits)


def test_a_length_that_is_too_large_or_a_lie(
    serve: Callable[[Talk], Server], tmp_path: Path
) -> None:
    lengths = {1: b"100000000", 2: b"1000", 3: b"9" * 5000}

    def talk(stream: ssl.SSLSocket, number: int) -> None:
        stream.sendall(_OK + b"Content-Length: " + lengths[number] + b"\r\n\r\nabc")

    server = serve(talk)
    assert "'source.limit' allows" in refused(server, tmp_path / "archive")
    assert "ended after 3 of 1000 bytes" in refused(server, tmp_path / "archive")
    assert refused(server, tmp_path / "archive")


@pytest.mark.parametrize(
    "where", [b"http://localhost/a", b"file:///etc/passwd", b"ftp://localhost/", b"data:,x"]
)
def test_a_redirect_leads_to_https_alone(
    serve: Callable[[Talk], Server], tmp_path: Path, where: bytes
) -> None:
    server = serve(
        lambda stream, _: stream.sendall(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + where + b"\r\n\r\n"
        )
    )
    said = refused(server, tmp_path / "archive")
    assert "not https" in said or "is not allowed" in said


def test_redirects_without_end(serve: Callable[[Talk], Server], tmp_path: Path) -> None:
    server = serve(
        lambda stream, number: stream.sendall(
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /%d\r\n\r\n" % number
        )
    )
    refused(server, tmp_path / "archive", FetchLimits(10, 60.0))
    assert len(server.requests) < 10


def test_a_certificate_that_nobody_vouches_for(
    serve: Callable[[Talk], Server], tmp_path: Path
) -> None:
    server = serve(lambda stream, _: stream.sendall(_OK + b"\r\n"))
    server.context = ssl.create_default_context()
    assert "certificate" in refused(server, tmp_path / "archive")


def fetched(source: Source, tmp_path: Path, cache: Cache, **env: str) -> Path:
    ports = SourcePorts(PlainProcesses(), cache, {**os.environ, **env})
    return obtain(source, tmp_path / "study.toml", ports, update_lock=True).tree


@pytest.mark.parametrize("url", ["/dev/zero", "file:///dev/zero", "pipe"])
def test_an_archive_without_an_end(tmp_path: Path, cache: Cache, url: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is not there"):
        fetched(ArchiveSource(kind="archive", url=url, sha256="0" * 64), tmp_path, cache)


def test_a_limit_of_the_study(tmp_path: Path, cache: Cache) -> None:
    data = bytes(5000)
    (tmp_path / "a.tar").write_bytes(data)
    source = ArchiveSource(
        kind="archive", url="a.tar", sha256=hashlib.sha256(data).hexdigest(), limit="4kB"
    )
    with pytest.raises(InputError, match=r"is larger than .*'source.limit' allows"):
        fetched(source, tmp_path, cache)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = tmp_path / "repository"
    path.mkdir()
    git(path, "init", "--quiet", "--initial-branch=main")
    (path / "main.c").write_text("int main(void) { return 0; }\n")
    git(path, "add", ".")
    git(path, "commit", "--quiet", "-m", "one")
    return path


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    argv = ["git", "-C", str(folder), *identity, "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def source_of(repository: Path, commit: str = "main") -> GitSource:
    return GitSource(kind="git", url=str(repository), commit=commit)


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c touch% {}",
        "fd::3",
        "git://localhost/x",
        "http://localhost/x",
        "ftp://localhost/",
    ],
)
def test_a_transport_that_runs_programs_or_proves_nothing(
    tmp_path: Path, cache: Cache, url: str
) -> None:
    source = GitSource(kind="git", url=url.format(tmp_path / "ran"), commit="main")
    with pytest.raises(InputError, match="only https, ssh and file"):
        fetched(source, tmp_path, cache)
    assert not (tmp_path / "ran").exists()


def test_hooks_filters_and_configuration_run_nothing(
    tmp_path: Path, cache: Cache, repository: Path
) -> None:
    """Neither the user's, which files of the repository set off, nor those of a template."""
    touch = f"touch {tmp_path / 'ran'}"
    template = tmp_path / "template" / "hooks"
    template.mkdir(parents=True)
    for name in ("post-checkout", "reference-transaction", "fsmonitor-watchman"):
        (template / name).write_text(f"#!/bin/sh\n{touch}\n")
        (template / name).chmod(0o755)
    (tmp_path / "gitconfig").write_text(
        f'[filter "lfs"]\n smudge = {touch}; cat\n process = {touch}\n required = true\n'
        f"[core]\n fsmonitor = {touch}\n hooksPath = {template}\n autocrlf = true\n"
        f"[init]\n templateDir = {template.parent}\n[submodule]\n recurse = true\n"
    )
    (repository / ".gitattributes").write_text("*.c filter=lfs\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "attributes")
    tree = fetched(
        source_of(repository), tmp_path, cache, GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig")
    )
    assert (tree / "main.c").read_bytes() == b"int main(void) { return 0; }\n"
    assert not (tmp_path / "ran").exists()


def test_a_folder_of_a_stranger_runs_nothing_when_it_is_listed(
    tmp_path: Path, cache: Cache, repository: Path
) -> None:
    ran = tmp_path / "ran"
    with (repository / ".git/config").open("a") as config:
        config.write(f"[core]\n fsmonitor = touch {ran}\n untrackedCache = true\n")
    (repository / ".gitignore").write_text("*.o\n")
    (repository / "a.o").write_text("")
    tree = fetched(PathSource(kind="path", path="repository"), tmp_path, cache)
    assert not (tree / "a.o").exists()
    assert not ran.exists()


def test_submodules_are_not_fetched(tmp_path: Path, cache: Cache, repository: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    git(secret, "init", "--quiet", "--initial-branch=main")
    (secret / "s.c").write_text("")
    git(secret, "add", ".")
    git(secret, "commit", "--quiet", "-m", "s")
    git(repository, "submodule", "--quiet", "add", str(secret), "sub")
    git(repository, "commit", "--quiet", "-m", "sub")
    # What the repository itself has of it is no more than the repository.
    shutil.rmtree(repository / ".git/modules")
    tree = fetched(source_of(repository), tmp_path, cache)
    assert list((tree / "sub").iterdir()) == []


def test_a_link_to_what_has_no_end_is_a_link(
    tmp_path: Path, cache: Cache, repository: Path
) -> None:
    (repository / "zero.c").symlink_to("/dev/zero")
    (repository / "up.c").symlink_to("../../../../etc/passwd")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "links")
    tree = fetched(source_of(repository), tmp_path, cache)
    assert (tree / "zero.c").is_symlink()


@pytest.mark.parametrize("commit", ["no such", "main^{tree}", "main:main.c", "x;touch ran"])
def test_a_commit_that_is_none(tmp_path: Path, cache: Cache, repository: Path, commit: str) -> None:
    with pytest.raises(InputError, match="has no commit, tag or branch"):
        fetched(source_of(repository, commit), tmp_path, cache)


def test_a_lock_file_of_a_stranger_pins_no_option(
    tmp_path: Path, cache: Cache, repository: Path
) -> None:
    fetched(source_of(repository), tmp_path, cache)
    lock = tmp_path / "study.lock.json"
    commit = git(repository, "rev-parse", "HEAD")
    lock.write_text(lock.read_text().replace(commit, f"--output={tmp_path / 'ran'}"))
    cache.clean()
    cache.close()
    cache.clean()
    ports = SourcePorts(PlainProcesses(), cache, dict(os.environ))
    with pytest.raises(InputError, match="pins a commit that is none"):
        obtain(source_of(repository), tmp_path / "study.toml", ports, update_lock=False)
    assert not (tmp_path / "ran").exists()


def test_another_repository_of_the_environment_is_none_of_it(
    tmp_path: Path, cache: Cache, repository: Path
) -> None:
    tree = fetched(source_of(repository), tmp_path, cache, GIT_DIR="/nowhere", GIT_INDEX_FILE="/x")
    assert (tree / "main.c").exists()
