"""Makes the first inputs of each target anew: small, and all made here.

    PYTHONPATH=tests python -m fuzz.seeds

What ever broke something lies beside them in `corpus/TARGET`, under the hash of its content, and
stays.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from end_to_end.small_study import BATCH, write_study
from ensign.store.bundle import pack
from ensign.store.trial_file import from_bytes, to_bytes
from fuzz.check import CORPUS
from fuzz.seed_texts import texts
from trial_slices import slices_of

SOURCE = '#include <stdio.h>\nint shared(int n) { return printf("%d", n); }\n'
MAIN = "int shared(int);\nint main(void) { return shared(3); }\n"
LINK = (
    "-nostdlib -Wl,--unresolved-symbols=ignore-all -Wl,--build-id=sha1 "
    "-Wl,-z,noseparate-code -Wl,--hash-style=gnu"
)
BUILD = f"""
alias cc="gcc-12 -ffile-prefix-map=$PWD=/src"
cc -g -O2 -c -o shared.o shared.c
cc -g -gz -O2 -c -o compressed.o shared.c
cc -O2 -frecord-gcc-switches -c -o switches.o shared.c
cc -m32 -g -O2 -c -o small.o main.c 2>/dev/null || true
cc -O2 -flto -c -o main.o main.c
cc -O2 -flto -ffat-lto-objects -c -o fat.o main.c
gcc-ar-12 rcs libshared.a shared.o main.o
gcc-ar-12 rcsT libthin.a shared.o
cc -shared -fPIC -g -O2 {LINK} -o libshared.so shared.c
cc -O2 -fPIE -pie -g {LINK} -Wl,-e,main -o program main.c shared.c -L. libshared.so
"""


def files() -> Iterator[tuple[str, str, bytes]]:
    """Target, name and bytes of each seed that compilers make."""
    with tempfile.TemporaryDirectory(prefix="seeds-") as name:
        folder = Path(name)
        (folder / "shared.c").write_text(SOURCE)
        (folder / "main.c").write_text(MAIN)
        subprocess.run(["sh", "-e", "-c", BUILD], cwd=folder, check=True)
        made = {path.name: path.read_bytes() for path in folder.iterdir()}
    for each in ("program", "libshared.so", "shared.o"):
        yield "elf", each, made[each]
    for each in ("shared.o", "compressed.o", "switches.o", "main.o", "fat.o", "small.o"):
        if each in made:
            yield "object", each, made[each]
    for each in ("libshared.a", "libthin.a"):
        yield "archive", each, made[each]
    for each in ("program", "shared.o", "libshared.a", "main.o"):
        yield "doctor", each, made[each]
    parts = {
        "compile_commands.json": json.dumps(
            [{"directory": "/src", "command": "gcc -O2 -c -o a.o a.c", "file": "a.c"}]
        ).encode(),
        "build.ninja": b"build x: C_EXECUTABLE_LINKER__x a.o | b.a\n FLAGS = -O2\n\n",
        "x.map": b"libx.a(a.o)\n",
        "a.o": made["shared.o"],
    }
    lines = [name.encode() + b"\0" + content for name, content in parts.items()]
    yield "doctor-folder", "parts", b"\0\0\n".join(lines)


def archives() -> Iterator[tuple[str, str, bytes]]:
    """Sources as they are published."""
    for ending in ("", "gz", "bz2", "xz"):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=f"w:{ending}") as tar:  # type: ignore[call-overload]
            folder = tarfile.TarInfo("x-1.0")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
            for name, text in (("x-1.0/a.c", SOURCE), ("x-1.0/configure", "#!/bin/sh\n")):
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(text), 1_700_000_000
                tar.addfile(info, io.BytesIO(text.encode()))
            for kind, target in ((tarfile.SYMTYPE, "a.c"), (tarfile.LNKTYPE, "x-1.0/a.c")):
                link = tarfile.TarInfo(f"x-1.0/link-{kind.decode()}")
                link.type, link.linkname = kind, target
                tar.addfile(link)
        yield "unpack", f"source.tar{ending and '.' + ending}", buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("x-1.0/a.c", (2024, 1, 1, 0, 0, 0)), SOURCE)
        entry = zipfile.ZipInfo("x-1.0/link", (2024, 1, 1, 0, 0, 0))
        entry.create_system, entry.external_attr = 3, 0o120777 << 16
        archive.writestr(entry, "a.c")
    yield "unpack", "source.zip", buffer.getvalue()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        place = "redis_benchmarks_specification/test-suites/memtier_benchmark-a.yml"
        archive.writestr(zipfile.ZipInfo(place, (2024, 1, 1, 0, 0, 0)), "name: a\n")
    yield "wheel", "suite.whl", buffer.getvalue()


def studies() -> Iterator[tuple[str, str, bytes]]:
    """A study and a comparison that were measured, without what says on which machine."""
    with tempfile.TemporaryDirectory(prefix="seeds-") as name:
        folder = Path(name)
        write_study(folder, BATCH)
        env = {**os.environ, "ENSIGN_CACHE": str(folder / "cache")}
        ensign = str(Path(sys.executable).parent / "ensign")
        for words in (
            ("run", "study.toml"),
            ("bundle", "study.toml"),
            ("compare", "--bundle", "compared.zip", "--budget", "2s", "sleep 0.01", "sleep 0.02"),
        ):
            subprocess.run([ensign, *words], cwd=folder, env=env, check=True, capture_output=True)
        stage = next((folder / "cache" / "entries").glob("program-*/meta.json"))
        yield "cached", "program", _bare(stage.read_bytes(), folder)
        members = {}
        with zipfile.ZipFile(folder / "study.bundle.zip") as archive:
            for each in archive.namelist():
                members[each] = _bare(archive.read(each), folder)
        del members["manifest.json"]
        yield "report", "study.zip", pack("study.toml", "0.1.0", members)
        for each, data in members.items():
            if each.endswith("study.json"):
                yield "record", "seed-1", data
            elif each.endswith("0000-long.csv.gz"):
                yield "trial", "seed-1", data
        with zipfile.ZipFile(folder / "compared.zip") as archive:
            compared = _bare(archive.read("comparison.json"), folder)
        yield "comparison", "seed-1", compared
        yield (
            "report",
            "comparison.zip",
            pack("comparison.json", "0.1.0", {"comparison.json": compared}),
        )


def _bare(data: bytes, folder: Path) -> bytes:
    if data[:2] == b"\x1f\x8b":
        return to_bytes(replace(from_bytes(data), slices=slices_of(data)[:12], findings=()))
    data = data.replace(str(folder).encode(), b"/study")
    if data[:1] != b"{":
        return data
    said = json.loads(data)
    record = said.get("record", said)
    if "machine" in record:
        record["machine"]["facts"] = [["CPU", "Invented"], ["cores", "2"]]
        record["findings"] = []
    if "trials" in said:
        said["trials"] = [each | {"findings": []} for each in said["trials"][:12]]
        said["redo"] = "ensign compare 'sleep 0.01' 'sleep 0.02'"
    return json.dumps(said, indent=1).encode()


def main() -> None:
    """Write them all."""
    for target, name, data in (*files(), *archives(), *texts(), *studies()):
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
