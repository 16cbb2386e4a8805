"""Facts and advice of single programs, held against other tools where there are some."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ensign.model.checkup import ArtifactCheckup
from ensign.model.errors import InputError
from ensign.proof.elf import read_binary
from ensign.proof.identity import read_identity
from ensign.proof.instructions import count
from ensign.proof.loader import cache_of, libraries_of, read_cache
from ensign.report import as_artifact
from ensign.tools.doctor.advice import Offers
from ensign.tools.doctor.inspect_program import examine_process, examine_program, read_worth
from ensign.tools.doctor.running_process import read_process
from ensign.tools.doctor.unused_archives import loader_surroundings
from real_processes import PlainProcesses

ROOT = Path(__file__).parents[2]
LOADER = Path("/lib64/ld-linux-x86-64.so.2")
MAIN = (
    "#include <stdlib.h>\n#include <string.h>\n"
    "int main(int c, char **v) { char *p = malloc(c); memset(p, c, c); return p[0] - 1; }\n"
)


def built(folder: Path, *words: str, source: str = MAIN, compiler: str = "gcc-12") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "m.c").write_text(source)
    subprocess.run([compiler, "m.c", "-o", "app", *words], cwd=folder, check=True)
    return folder / "app"


def examine(path: Path) -> ArtifactCheckup:
    return examine_program(path, PlainProcesses())


def fact(found: ArtifactCheckup, name: str) -> str:
    return next(each.value for each in found.facts if each.name == name)


def practices(found: ArtifactCheckup) -> list[str]:
    return [each.practice for each in found.advice]


def test_a_program_of_c(tmp_path: Path) -> None:
    found = examine(built(tmp_path, "-g", "-O2", "-march=x86-64-v3"))
    assert fact(found, "compiler").startswith("GCC 12.")
    assert fact(found, "flags") == "-O2 (1 unit)"
    assert fact(found, "target").startswith("x86-64-v3")
    assert fact(found, "allocator") == "malloc of libc.so.6"
    assert not any(each.name == "IFUNC" for each in found.facts)  # that is perf's to say
    assert "target level" not in practices(found)
    assert {"profile first", "whole-program optimization", "profile feedback"} <= set(
        practices(found)
    )


def test_what_was_done_is_not_advised(tmp_path: Path) -> None:
    found = examine(built(tmp_path, "-g", "-O3", "-flto"))
    assert fact(found, "LTO") == "done: 1 unit was generated at the link"
    assert "whole-program optimization" not in practices(found)
    assert "-O3" not in practices(found)
    assert "always -g" not in practices(found)


def test_what_is_not_optimized_comes_early(tmp_path: Path) -> None:
    assert practices(examine(built(tmp_path, "-g")))[1] == "optimize"


def test_stripped_and_static_programs_claim_nothing(tmp_path: Path) -> None:
    found = examine(built(tmp_path, "-s", "-static"))
    assert "statically linked, stripped" in fact(found, "program")
    assert fact(found, "flags").startswith("unknown")
    assert fact(found, "libraries") == "none"
    assert fact(found, "allocator").startswith("unknown")


@pytest.mark.parametrize(
    "words",
    [
        ("-fPIE", "-pie", "-Wl,-z,relro,-z,now", "-fstack-protector-all"),
        ("-no-pie", "-Wl,-z,norelro", "-fno-stack-protector"),
        ("-Wl,-z,execstack",),
        ("-O2", "-D_FORTIFY_SOURCE=2", "-fstack-clash-protection"),
    ],
)
def test_hardening_is_what_readelf_shows(tmp_path: Path, words: tuple[str, ...]) -> None:
    path = built(tmp_path, *words)
    argv = ["readelf", "-W", "-h", "-l", "-d", "--dyn-syms", str(path)]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    stack = re.search(r"GNU_STACK .* (RWE|RW) ", shown)
    said = fact(examine(path), "hardening").partition("; not seen")[0]
    assert stack is not None
    assert ("no executable stack" in said) == (stack[1] == "RW")
    assert ("PIE" in said) == ("DYN (Position-Independent Executable" in shown)
    assert ("RELRO" in said) == ("GNU_RELRO" in shown)
    assert ("BIND_NOW" in said) == ("BIND_NOW" in shown or "Flags: NOW" in shown)
    assert ("canaries" in said) == ("__stack_chk_fail" in shown)
    assert ("FORTIFY" in said) == ("_chk@" in shown.replace("__stack_chk_fail@", ""))


@pytest.mark.parametrize("path", [Path(sys.executable).resolve(), Path("/bin/ls")])
@pytest.mark.skipif(not LOADER.exists(), reason="x86-64 alone")
def test_libraries_are_those_of_the_loader(path: Path) -> None:
    argv = [str(LOADER), "--list", str(path)]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    theirs = {
        name: str(Path(file).resolve()) for name, file in re.findall(r"(\S+) => (/\S+)", listed)
    }
    identity = read_identity(path)
    assert identity is not None
    ours = {
        each.name: str(each.path.resolve())
        for each in libraries_of(path, identity, loader_surroundings())
        if each.path is not None and not each.name.startswith("ld-linux")
    }
    assert ours == {name: file for name, file in theirs.items() if "ld-linux" not in name}


@pytest.mark.parametrize("tag", ["--enable-new-dtags", "--disable-new-dtags"])
def test_search_paths_are_followed_as_the_loader_does(tmp_path: Path, tag: str) -> None:
    for where in ("a", "b"):
        (tmp_path / where).mkdir()
        (tmp_path / where / "f.c").write_text("int f(void) { return 1; }\n")
        argv = ["gcc-12", "-shared", "-fPIC", "f.c", "-o", "libf.so"]
        subprocess.run(argv, cwd=tmp_path / where, check=True)
    source = "int f(void); int main(void) { return f(); }\n"
    origin = f"-Wl,{tag},-rpath,$ORIGIN/a"
    path = built(tmp_path / "p", "-L../a", "-lf", origin, source=source)
    path = path.rename(tmp_path / "app")
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "b")}
    argv = [str(LOADER), "--list", str(path)]
    listed = subprocess.run(argv, check=True, capture_output=True, text=True, env=env).stdout
    identity = read_identity(path)
    assert identity is not None
    surroundings = loader_surroundings()
    by = type(surroundings)((str(tmp_path / "b"),), surroundings.levels, surroundings.cache)
    found = next(each for each in libraries_of(path, identity, by) if each.name == "libf.so")
    assert found.path is not None
    assert f"libf.so => {found.path} " in listed


def test_units_are_those_of_another_reader(tmp_path: Path) -> None:
    path = built(tmp_path, "-g", "-O1", compiler="clang-19")
    dump = shutil.which("llvm-dwarfdump-19") or "/usr/lib/llvm-19/bin/llvm-dwarfdump"
    argv = [dump, "--debug-info", "--recurse-depth=0", str(path)]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    names = re.findall(r'DW_AT_name\s+\("(.*)"\)', shown)
    binary = read_binary(path)
    assert binary is not None
    assert [unit.name for unit in binary.units] == names
    assert fact(examine(path), "compiler") == f"{binary.units[0].compiler} (1 unit)"
    assert binary.units[0].compiler.removeprefix("Clang ") in shown


def test_an_archive_that_the_linker_passed_over(tmp_path: Path) -> None:
    (tmp_path / "fast.c").write_text("double sin(double x) { return x; }\n")
    for argv in (["gcc-12", "-c", "-fno-builtin", "fast.c"], ["ar", "rcs", "libfast.a", "fast.o"]):
        subprocess.run(argv, cwd=tmp_path, check=True)
    source = "#include <math.h>\nint main(int c, char **v) { return sin(c) > 1; }\n"
    slow = built(tmp_path, "-lm", "-L.", "-lfast", source=source)
    found = examine(tmp_path)
    [text] = [each.text for each in found.findings if each.code == "archive-passed-over"]
    assert text == "libfast.a defines sin, but the program takes it from libm.so.6"
    built(tmp_path, "-L.", "-lfast", "-lm", source=source)
    assert slow.exists()
    assert "archive-passed-over" not in [each.code for each in examine(tmp_path).findings]


def test_a_running_program_and_what_was_replaced_under_it(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text("int f(void) { return 1; }\n")
    argv = ["gcc-12", "-shared", "-fPIC", "f.c", "-o", "libf.so"]
    subprocess.run(argv, cwd=tmp_path, check=True)
    source = (
        "#include <stdio.h>\nint f(void);\n"
        'int main(void) { puts(f() ? "on" : ""); fflush(stdout); getchar(); return 0; }\n'
    )
    path = built(tmp_path, "-L.", "-lf", "-Wl,-rpath,$ORIGIN", source=source)
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = examine_process(process.pid, PlainProcesses())
        assert "libf.so" in fact(found, "mapped")
        assert "file-replaced" not in [each.code for each in found.findings]
        (tmp_path / "libf.so").unlink()
        path.unlink()
        found = examine_process(process.pid, PlainProcesses())
        process.communicate(b"\n", timeout=60)
    texts = " ".join(each.text for each in found.findings if each.code == "file-replaced")
    assert "libf.so was deleted or replaced" in texts
    assert found.path == str(path)
    assert "PATH=" not in as_artifact.as_json(found)


def test_no_process_is_one_line() -> None:
    with pytest.raises(InputError, match="there is no process"):
        read_process(2**30)


def test_a_list_of_compile_commands(tmp_path: Path) -> None:
    file = tmp_path / "compile_commands.json"
    command = {"directory": str(tmp_path), "file": "a.c", "command": "cc -O0 -c a.c"}
    file.write_text(json.dumps([command]))
    assert "unoptimized" in [each.code for each in examine(file).findings]
    for text in ("[]", "{", '{"a": 1}', "[3]"):
        file.write_text(text)
        with pytest.raises(InputError):
            examine(file)


def told(path: Path) -> str:
    """What the user sees: a page, or one line."""
    try:
        return as_artifact.terminal(examine(path), details=True)
    except InputError as error:
        return str(error).splitlines()[0]


def test_two_hundred_corruptions_of_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Compilers need not be asked two hundred times.
    monkeypatch.setattr("ensign.tools.doctor.inspect_program._offers", lambda *_: Offers())
    kinds = (("-g", "-O2"), ("-s", "-gdwarf-4"), ("-g", "-gz"), ("-g", "-c"), ("-shared", "-fPIC"))
    good = [built(tmp_path, *words).read_bytes() for words in kinds]
    chance = random.Random(15)  # noqa: S311
    bad = tmp_path / "bad"
    for number in range(200):
        data = bytearray(good[number % len(good)])
        for _ in range(chance.randint(1, 30)):
            near = len(data) if chance.random() < 0.5 else 1024
            data[chance.randrange(near)] = chance.randrange(256)
        bad.write_bytes(data[: chance.choice((len(data), chance.randrange(1, len(data))))])
        said = told(bad)
        assert said.strip()


def test_what_practices_were_worth_stands_in_the_results() -> None:
    raw = json.loads((ROOT / "src/ensign/tools/doctor/worth.json").read_text())
    assert set(raw) == set(read_worth())
    for each in itertools.chain.from_iterable(raw.values()):
        text = " ".join((ROOT / each["source"]).read_text().split())
        for quote in each["quotes"]:
            assert quote in text, quote
        for figure in re.findall(r"[+−]?\d+\.\d+ %", each["worth"]):
            assert figure.removeprefix("+") in " ".join(each["quotes"]), figure


def test_instructions_are_counted() -> None:
    found = count(
        [
            ("mulsd", "xmm0, xmm1"),
            ("addsd", "xmm2, xmm0"),
            ("jne", "0x10"),
            ("jmp", "0x20"),
            ("vfmadd231sd", "xmm0, xmm1, xmm2"),
            ("or", "qword ptr [rsp], 0"),
            ("vaddps", "ymm0, ymm1, ymm2"),
            ("mulsd", "xmm5, xmm1"),
            ("addsd", "xmm6, xmm7"),
        ]
    )
    assert (found.read, found.pairs, found.fused) == (9, 1, 1)
    assert (found.wide, found.probes) == (1, 1)


def test_a_damaged_cache_of_the_loader_says_less(tmp_path: Path) -> None:
    assert "libc.so.6" in read_cache()
    good = Path("/etc/ld.so.cache").read_bytes()
    chance = random.Random(3)  # noqa: S311
    for _ in range(50):
        data = bytearray(good[: chance.randrange(len(good))])
        for _ in range(20):
            if data:
                data[chance.randrange(min(len(data), 4096))] = chance.randrange(256)
        cache_of(bytes(data))
    assert read_cache(tmp_path / "none") == {}


def test_pages_for_people_are_narrow_and_safe(tmp_path: Path) -> None:
    found = examine(built(tmp_path, "-g", "-O2"))
    short = as_artifact.terminal(found, 80)
    words_too_long = [line for line in short.splitlines() if len(line) > 80 and "/" not in line]
    assert words_too_long == []
    assert "price:" not in short
    assert "ensign compare" in as_artifact.terminal(found, 80, details=True)
    assert as_artifact.markdown(found).startswith("## ")
