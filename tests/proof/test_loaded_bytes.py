from __future__ import annotations

import subprocess
from pathlib import Path

from ensign.proof.loaded_bytes import Artifact, read_artifact

SOURCE = "int main(int argc, char **argv) { return argv[argc] != 0; }\n"


def compile_program(folder: Path, *flags: str, compiler: str = "gcc-12") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.c").write_text(SOURCE)
    for step in (["-c", "-o", "main.o", "main.c"], ["-o", "program", "main.o"]):
        subprocess.run([compiler, *flags, *step], cwd=folder, check=True, capture_output=True)
    return folder / "program"


def artifact(path: Path) -> Artifact:
    found = read_artifact(path)
    assert found is not None
    return found


def test_debug_information_and_build_id_do_not_count_code_does(tmp_path: Path) -> None:
    plain = artifact(compile_program(tmp_path / "a", "-O2"))
    debug = artifact(compile_program(tmp_path / "b", "-O2", "-g3", "-Wl,--build-id=sha1"))
    uuid = artifact(compile_program(tmp_path / "c", "-O2", "-Wl,--build-id=0x" + "ab" * 20))
    other = artifact(compile_program(tmp_path / "d", "-O0"))
    assert plain.loadable_sha256 == debug.loadable_sha256 == uuid.loadable_sha256
    assert plain.loadable_sha256 != other.loadable_sha256
    assert debug.size_bytes > plain.size_bytes
    assert 0 < plain.text_bytes < plain.size_bytes


def test_code_outside_of_text_counts(tmp_path: Path) -> None:
    before = artifact(compile_program(tmp_path / "a", "-O2"))
    apart = '-Dmain=__attribute__((section(".apart")))main'
    after = artifact(compile_program(tmp_path / "b", "-O2", apart))
    assert abs(after.text_bytes - before.text_bytes) <= 32  # alignment


def test_one_changed_byte_of_data_is_seen(tmp_path: Path) -> None:
    program = compile_program(tmp_path, "-O2")
    before = artifact(program).loadable_sha256
    data = bytearray(program.read_bytes())
    place = data.index(b"/lib64/ld-linux")
    data[place] ^= 1
    program.write_bytes(data)
    assert artifact(program).loadable_sha256 != before


def test_a_script_is_no_artifact(tmp_path: Path) -> None:
    script = tmp_path / "program"
    script.write_text("#!/bin/sh\n")
    assert read_artifact(script) is None
