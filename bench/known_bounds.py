"""Whether ensign names what bounds a program, where that is known.

    python bench/known_bounds.py FOLDER

Programs that compute, that need the kernel for one thing, or that wait for one thing, some of them
for processes outside of their own; each looked at as before a race. A reason that is named
and is not the true one is wrong; none at all is undecided. Results go to
`bench/results/known_bounds.md`.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from ensign.experiment.bounds import usage_findings
from ensign.experiment.pilots import CommandPilot, pilot_run
from ensign.meter.client import LocalMeter, find_meter
from ensign.meter.requests import ProcessSpec

_RESULTS = Path(__file__).parent / "results" / "known_bounds.md"
_RUNS = 3
_SOURCE = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile unsigned long sink;
static char bytes[65536];
static const char *path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int out(int flags) { return open(path, O_CREAT | O_TRUNC | O_WRONLY | flags, 0600); }
static void computes(void) { for (unsigned long i = 0; i < 100000000; i++) sink += i * i; }
static void memory(void) {
  unsigned n = 1 << 24, j = 1, *p = calloc(n, 4);
  for (int i = 0; i < 8000000; i++) { j = (j * 1103515245u + 12345) % n; sink += ++p[j]; } }
static void write_1(void) { int f = out(0); for (int i = 0; i < 400000; i++) write(f, bytes, 1); }
static void read_1(void) { int f = open("/dev/zero", O_RDONLY);
  for (int i = 0; i < 800000; i++) read(f, bytes, 1); }
static void write_64k(void) { int f = out(0);
  for (int i = 0; i < 6400; i++) pwrite(f, bytes, 65536, 65536 * (i % 64)); }
static void faults(void) { for (int i = 0; i < 20; i++) { size_t n = 16 << 20;
  char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(p, n, MADV_NOHUGEPAGE); for (size_t j = 0; j < n; j += 4096) p[j] = 1; munmap(p, n); } }
static void calls(void) { for (int i = 0; i < 1500000; i++) syscall(SYS_getppid); }
static void fsyncs(void) { int f = out(0);
  for (int i = 0; i < 1500; i++) { write(f, bytes, 100); fsync(f); } }
static void synced(void) { int f = out(O_SYNC);
  for (int i = 0; i < 1500; i++) write(f, bytes, 100); }
static void sleeps(void) { for (int i = 0; i < 60; i++) usleep(4000); }
static void polls(void) { for (int i = 0; i < 60; i++) poll(0, 0, 4); }
static void *locks(void *none) { for (int i = 0; i < 80; i++) { pthread_mutex_lock(&lock);
  usleep(500); pthread_mutex_unlock(&lock); } return none; }
static void mutex(void) { pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(t + i, 0, locks, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0); }
static void flocks(void) { int f = open(path, O_RDWR);
  for (int i = 0; i < 40; i++) { flock(f, LOCK_EX); flock(f, LOCK_UN); usleep(1); } }
static void reads(void) { int f = open(path, O_RDONLY); while (read(f, bytes, 1000) > 0); }
static int peer(void) {
  struct sockaddr_in a = {AF_INET, htons(atoi(path)), {htonl(INADDR_LOOPBACK)}};
  int s = socket(AF_INET, SOCK_STREAM, 0); return connect(s, (void *)&a, sizeof a) ? -1 : s; }
static void receives(void) { int s = peer(); while (recv(s, bytes, 1000, 0) > 0); }
static void events(void) { int s = peer(), e = epoll_create1(0);
  struct epoll_event v = {.events = EPOLLIN}; epoll_ctl(e, EPOLL_CTL_ADD, s, &v);
  do epoll_wait(e, &v, 1, -1); while (recv(s, bytes, 1000, 0) > 0); }
static void starts(void) { for (int i = 0; i < 150; i++) {
  if (!fork()) { execl("/bin/true", "true", (char *)0); _exit(1); } wait(0); } }
static void child(void) { if (!fork()) { usleep(250000); _exit(0); } wait(0); }
#define IS(name) if (!strcmp(words[1], #name)) name();
int main(int count, char **words) { path = count > 2 ? words[2] : "";
  IS(computes) IS(memory) IS(write_1) IS(read_1) IS(write_64k) IS(faults) IS(calls) IS(fsyncs)
  IS(synced) IS(sleeps) IS(polls) IS(mutex) IS(flocks) IS(reads) IS(receives) IS(events)
  IS(starts) IS(child) return 0; }
"""
# Its truth, and what must be said of it: "" where nothing may be, as it is bound by its own code,
# None where it cannot be told; what it gets.
PROGRAMS = (
    ("computes", "its own code", "", ""),
    ("memory", "memory", None, ""),
    ("write_1", "writes of 1 byte", "calls that write 1 B each", "file"),
    ("read_1", "reads of 1 byte", "calls that read 1 B each", ""),
    ("write_64k", "writes of 64 KiB", "calls that write 64.0 KiB each", "file"),
    ("faults", "page faults", "page faults)", ""),
    ("calls", "other system calls", None, ""),
    ("fsyncs", "fsync on a disk", "the disk (fsync)", "file"),
    ("synced", "writes with O_SYNC", "the disk (write)", "file"),
    ("sleeps", "a timer", "a timer (clock_nanosleep)", ""),
    ("polls", "a timer, by poll", "a timer (poll)", ""),
    ("mutex", "a lock whose holder sleeps", "a timer or a lock or another thread", ""),
    ("flocks", "a file's lock that others hold", "a lock or another thread (flock)", "lock"),
    ("reads", "a pipe from a slow process", "a pipe (read)", "pipe"),
    ("receives", "a slow peer", "a socket (recvfrom)", "peer"),
    ("events", "a slow peer, by epoll", "a file, a socket or a time (epoll_wait)", "peer"),
    ("starts", "short processes", "starting them is most of it", ""),
    ("child", "a child that sleeps", "a timer (clock_nanosleep)", ""),
)


def _forever(do: Callable[[], None]) -> None:
    def loop() -> None:
        while True:
            with suppress(OSError):
                do()

    threading.Thread(target=loop, daemon=True).start()


def _slowly(send: Callable[[bytes], object]) -> None:
    for _ in range(60):
        time.sleep(0.004)
        send(b"x" * 100)


def _pipe(path: Path) -> str:
    os.mkfifo(path)

    def feed() -> None:
        with path.open("wb", buffering=0) as file:
            _slowly(file.write)
        time.sleep(0.05)

    _forever(feed)
    return str(path)


def _lock(path: Path) -> str:
    path.touch()

    def hold() -> None:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            time.sleep(0.006)

    _forever(hold)
    return str(path)


def _peer(_path: Path) -> str:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with closing(connection):
            _slowly(connection.sendall)

    _forever(serve)
    return str(server.getsockname()[1])


_OUTSIDE: dict[str, Callable[[Path], str]] = {
    "file": str,
    "pipe": _pipe,
    "lock": _lock,
    "peer": _peer,
}


def told(argv: tuple[str, ...]) -> list[str]:
    """What is said of a command before a race, of what bounds it."""
    meter = LocalMeter(find_meter())
    process = ProcessSpec(argv)
    runs = (pilot_run(meter, argv[1], process, digest=False)[0] for _ in range(_RUNS))
    return [each.text for each in usage_findings([CommandPilot(argv[1], tuple(runs))])]


def judge(said: list[str], wanted: str | None) -> str:
    """`right`, `undecided`, or `wrong`, which is any other reason that is named."""
    if wanted and any(wanted in each for each in said):
        return "right"
    marks = ("waiting for", "kernel's (", "starts ")
    if any(mark in each for each in said for mark in marks):
        return "wrong"
    return "right" if wanted == "" else "undecided"


def main() -> None:
    """All programs, each alone."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True)
    source, program = folder / "known.c", folder / "known"
    source.write_text(_SOURCE)
    command = ["gcc-12", "-O2", "-w", "-pthread", str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    rows, counts = [], {"right": 0, "undecided": 0, "wrong": 0}
    for name, truth, wanted, needs in PROGRAMS:
        more = (_OUTSIDE[needs](folder / name),) if needs else ()
        said = told((str(program), name, *more))
        how = judge(said, wanted)
        counts[how] += 1
        rows.append(f"| `{name}` | {truth} | {'; '.join(said) or 'nothing'} | {how} |")
        print(rows[-1], flush=True)
    head = (
        f"# Known bounds\n\n`python bench/known_bounds.py FOLDER`: {counts['right']} right, "
        f"{counts['undecided']} undecided, {counts['wrong']} wrong of {len(rows)}.\n\n"
        "| program | bound by | said | |\n| --- | --- | --- | --- |\n"
    )
    _RESULTS.write_text(head + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
