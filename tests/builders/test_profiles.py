"""PGO and BOLT through the real tools, on a program with a hot and a cold side."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from build_fixtures import PROJECTS
from ensign.builders.build import build_variants
from ensign.builders.forecast import outlook
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.builders.training import TrainingRun
from ensign.explain.function_names import source_name
from ensign.model.errors import CommandFailed
from ensign.model.placeholders import fill_all
from ensign.model.study import Study
from ensign.model.variants import Variant
from fakes import FakeTrainer

_PLAIN = Variant("plain", "gcc-12", "-O2")


class PlainTrainer(FakeTrainer):
    """Runs the program itself, without the meter."""

    def train(self, run: TrainingRun) -> str:
        super().train(run)
        argv = fill_all(run.workload.command or (), {"artifact": str(run.program)})
        subprocess.run(argv, env={**os.environ, **dict(run.env)}, check=True, capture_output=True)
        return ""


def study(**training: object) -> Study:
    return Study.model_validate(
        {
            "name": "branchy",
            "layouts": "natural",
            "source": {"kind": "path", "path": "branchy"},
            "build": {
                "commands": [["make", "CC={cc}", "CFLAGS={cflags}", "LDFLAGS={ldflags}"]],
                "artifact": "program",
            },
            "axes": {"compiler": ["gcc-12"]},
            "baseline": {"compiler": "gcc-12"},
            "training": {
                "workloads": [{"name": "learn", "command": ["{artifact}", "5000"]}],
                **training,
            },
            "workloads": [{"name": "run", "command": ["{artifact}", "100000"]}],
        }
    )


@pytest.fixture
def trainer() -> PlainTrainer:
    return PlainTrainer()


@pytest.fixture
def training_ports(recording_ports: BuildPorts, trainer: PlainTrainer) -> BuildPorts:
    return replace(recording_ports, trainer=trainer)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(PROJECTS / "branchy", tmp_path / "branchy")
    return tmp_path


def asked(folder: Path, *variants: Variant, **training: object) -> BuildRequest:
    wanted = (_PLAIN, *variants)
    return BuildRequest(study(**training), folder / "branchy.toml", wanted, "plain")


def sizes(program: Path) -> dict[str, int]:
    with program.open("rb") as file:
        return {each.name: each["sh_size"] for each in ELFFile(file).iter_sections()}


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
@pytest.mark.parametrize("lto", ["off", "full"])
def test_a_program_is_trained_and_built_again_and_laid_out_by_bolt(
    folder: Path, training_ports: BuildPorts, trainer: PlainTrainer, compiler: str, lto: str
) -> None:
    pgo = Variant("pgo", compiler, "-O2", lto, pgo="on")
    bolt = replace(pgo, name="pgo-bolt", bolt="on")
    report = build_variants(asked(folder, pgo, bolt), training_ports)
    assert [each.facts.status for each in report.results] == ["built"] * 3, report.findings
    assert report.findings == ()
    # BOLT needs a training of its own, but not another one at the compiler.
    assert len(trainer.runs) == 2
    for result in report.results:
        assert result.artifact is not None
        out = subprocess.run([result.artifact, "10"], capture_output=True, text=True, check=True)
        assert out.stdout == "35\n"
    _, with_pgo, with_bolt = (result.facts for result in report.results)
    share = [line for line in with_pgo.evidence if line.startswith("PGO: ")]
    assert share == ["PGO: 3 of 4 functions profiled (75%)"]
    for result in report.results[1:]:
        assert list(map(source_name, result.idle)) == ["never"]
    assert not [line for line in with_pgo.evidence if line.startswith("-W")]
    assert share[0] in with_bolt.evidence
    assert any(line.startswith("BOLT: ") and "0 of" not in line for line in with_bolt.evidence)
    bolted = report.result("pgo-bolt").artifact
    assert bolted is not None
    own_facts = json.loads((bolted.parent.parent / "meta.json").read_text())["facts"]
    assert with_bolt.build_s > own_facts["build_s"]
    assert b".bolt.org.text" in bolted.read_bytes()
    # The original code stays, for functions without a profile; the hot ones are there once more.
    original = sizes(bolted)[".bolt.org.text"]
    assert original > 0
    assert with_bolt.text_bytes > original + sizes(bolted)[".text"]
    assert with_bolt.text_bytes > with_pgo.text_bytes
    calls = (bolted.parent.parent / "calls.jsonl").read_text()
    assert "-fprofile-use" in calls
    assert "-fprofile-generate" not in calls


@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
def test_what_bolt_moves_is_aligned_where_that_was_asked_for(
    folder: Path, training_ports: BuildPorts, compiler: str
) -> None:
    aligned = Variant("aligned", compiler, "-O2", pgo="on", bolt="on", alignment="loops")
    report = build_variants(asked(folder, aligned), training_ports)
    assert [each.facts.status for each in report.results] == ["built"] * 2, report.findings
    said = "\n".join(report.result("aligned").facts.evidence)
    count = re.search(r"functions aligned to 64 bytes: (\d+) of (\d+) that BOLT moved", said)
    assert count is not None, said
    assert count[1] == count[2]


def test_bolt_alone_and_nothing_is_done_twice(
    folder: Path, training_ports: BuildPorts, trainer: PlainTrainer
) -> None:
    bolt = Variant("bolt", "gcc-12", "-O2", bolt="on")
    first = build_variants(asked(folder, bolt), training_ports)
    assert [each.facts.status for each in first.results] == ["built", "built"]
    assert outlook(asked(folder, bolt), training_ports).estimate.builds.waiting == 0
    again = build_variants(asked(folder, bolt), training_ports)
    assert [each.facts.status for each in again.results] == ["cached", "cached"]
    assert len(trainer.runs) == 1
    changed = {"workloads": [{"name": "learn", "command": ["{artifact}", "6000"]}]}
    build_variants(asked(folder, bolt, **changed), training_ports)
    assert len(trainer.runs) == 2


def test_profiles_that_are_collected_independently(
    folder: Path, training_ports: BuildPorts, trainer: PlainTrainer
) -> None:
    one = Variant("pgo-p1", "clang-19", "-O2", pgo="on")
    two = replace(one, name="pgo-p2", profile=2)
    report = build_variants(asked(folder, one, two), training_ports)
    assert len(trainer.runs) == 2
    # The same training gave the same profile, and so the same program.
    assert [each.facts.said for each in report.results] == ["built", "built", "same as pgo-p1"]


@pytest.mark.parametrize(
    "variant",
    [
        Variant("trained", "gcc-12", "-O2", pgo="on"),
        Variant("trained", "clang-19", "-O2", pgo="on"),
        Variant("trained", "gcc-12", "-O2", bolt="on"),
    ],
)
def test_an_empty_profile_is_an_error_before_the_build(
    folder: Path, recording_ports: BuildPorts, variant: Variant
) -> None:
    ports = replace(recording_ports, trainer=FakeTrainer())
    report = build_variants(asked(folder, variant), ports)
    facts = report.result("trained").facts
    assert facts.status == "failed"
    assert facts.log_tail.endswith("the profile is empty: the training left no counts")
    assert "-fprofile-use" not in Path(facts.log_path).read_text()


def test_a_training_that_fails_is_told_with_its_workload(
    folder: Path, recording_ports: BuildPorts
) -> None:
    ports = replace(recording_ports, trainer=FakeTrainer("it crashed"))
    trained = Variant("trained", "gcc-12", "-O2", pgo="on")
    facts = build_variants(asked(folder, trained), ports).result("trained").facts
    assert facts.log_tail.endswith("training 'learn': it crashed")


def test_a_baseline_that_cannot_be_trained_ends_it(
    folder: Path, recording_ports: BuildPorts
) -> None:
    ports = replace(recording_ports, trainer=FakeTrainer("no"))
    baseline = Variant("plain", "gcc-12", "-O2", pgo="on")
    wanted = BuildRequest(study(), folder / "branchy.toml", (baseline,), "plain")
    with pytest.raises(CommandFailed, match="baseline plain could not be built: training 'learn'"):
        build_variants(wanted, ports)


def test_missing_tools_are_named_with_their_package(
    folder: Path, training_ports: BuildPorts, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("gcc-12", "gcc-ar-12", "gcc-ranlib-12", "gcc-nm-12", "ld", "as", "ldd", "make"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    ports = replace(training_ports, env={"PATH": str(tmp_path / "bin")})
    bolt = Variant("bolt", "gcc-12", "-O2", bolt="on")
    left_out = outlook(asked(folder, bolt), ports).left_out
    assert left_out == {"bolt": "there is no llvm-bolt; run 'apt-get install bolt-19'"}
