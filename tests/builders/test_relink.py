from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from ensign.builders.build import build_variants
from ensign.builders.build_results import BuildReport
from ensign.builders.forecast import outlook
from ensign.builders.layouts import Relinks
from ensign.builders.link_members import RelinkContext
from ensign.builders.relink import make_relinks
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.host.processes import Outcome, ProcessRequest
from ensign.model.calls import Output
from ensign.model.study_axes import Layouts
from ensign.model.variants import Variant
from ensign.proof.link import TreePlace
from ensign.proof.loaded_bytes import read_artifact
from recorded import recorded
from small_studies import CLANG_LTO, CLANG_O2, GCC_LTO, GCC_O2, request

MAKE = ["make", "CC={cc}", "CFLAGS={cflags}", "LDFLAGS={ldflags}", "program"]


def relinked(
    folder: Path, ports: BuildPorts, variant: Variant, layouts: Layouts, **build: object
) -> BuildReport:
    return build_variants(laid_out(folder, variant, layouts, **build), ports)


def laid_out(folder: Path, variant: Variant, layouts: Layouts, **build: object) -> BuildRequest:
    asked = request(folder, variant, **build)
    study = asked.study.model_copy(update={"layouts": layouts})
    return BuildRequest(study, asked.path, asked.variants, asked.baseline)


def functions(program: Path) -> dict[str, int]:
    with program.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        return {
            each.name: each["st_value"]
            for each in table.iter_symbols()
            if each["st_info"]["type"] == "STT_FUNC" and each["st_value"]
        }


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("variant", "how"),
    [
        (GCC_O2, "order"),
        (GCC_LTO, "order"),
        (GCC_LTO, "shuffle"),
        (CLANG_O2, "order"),
        (CLANG_O2, "shuffle"),
        (CLANG_LTO, "order"),
        (CLANG_LTO, "shuffle"),
        (replace(CLANG_LTO, name="clang-thin", lto="thin"), "order"),
        (replace(CLANG_LTO, name="clang-thin", lto="thin"), "shuffle"),
        (replace(GCC_O2, name="gcc-mold", linker="mold"), "shuffle"),
        (replace(CLANG_O2, name="clang-mold", linker="mold"), "shuffle"),
    ],
)
def test_relinks_are_the_same_program_laid_out_otherwise(
    tmp_path: Path, recording_ports: BuildPorts, variant: Variant, how: str
) -> None:
    asked = Layouts.model_validate({"count": 3, "how": how, "variants": "baseline"})
    report = relinked(tmp_path, recording_ports, variant, asked)
    result = report.results[0]
    assert "not-relinked" not in [each.code for each in report.findings], report.findings
    assert len(result.layouts) == len(result.facts.layouts) >= 2
    assert result.artifact is not None
    natural = functions(result.artifact)
    places = set()
    for path, digest in zip(result.layouts, result.facts.layouts, strict=True):
        facts = read_artifact(path)
        assert facts is not None
        assert facts.loadable_sha256 == digest != result.facts.loadable_sha256
        here = functions(path)
        assert here.keys() == natural.keys()
        places.add(tuple(here.items()))
        done = recording_ports.processes.run(ProcessRequest((str(path),)))
        original = recording_ports.processes.run(ProcessRequest((str(result.artifact),)))
        assert (done.exit, done.stdout) == (original.exit, original.stdout)
    assert len(places) == len(result.layouts)
    able = variant.compiler.startswith("clang") or variant.linker == "mold"
    shuffled = result.facts.layout_kind == "shuffled sections"
    assert shuffled == (how == "shuffle" and able)


@pytest.mark.usefixtures("project")
def test_the_baseline_of_raced_relinks_has_its_twins_too(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    report = relinked(tmp_path, recording_ports, GCC_O2, Layouts(count=2))
    assert len(set(report.results[0].facts.layouts)) == 4


@pytest.mark.usefixtures("project")
def test_relinks_ahead_are_counted_and_take_what_they_took(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    first = laid_out(tmp_path, GCC_O2, Layouts(count=2))
    before = outlook(first, recording_ports).estimate
    assert (before.relinks.waiting, before.relinks.basis) == (4, "unknown")
    assert before.relinks.wall_s is None
    build_variants(first, recording_ports)
    after = outlook(first, recording_ports).estimate
    assert (after.relinks.waiting, after.relinks.there, after.relinks.wall_s) == (0, 4, 0)
    more = outlook(laid_out(tmp_path, GCC_O2, Layouts(count=3)), recording_ports).estimate
    assert (more.relinks.waiting, more.relinks.there, more.relinks.basis) == (6, 0, "measured")
    assert more.builds.wall_s is not None
    assert more.relinks.wall_s is not None
    assert more.relinks.disk_bytes is not None
    assert 0 < more.relinks.wall_s < 6 * 60
    assert 0 < more.relinks.disk_bytes < 2**20
    both_s = more.builds.wall_s + more.relinks.wall_s
    assert both_s == pytest.approx(sum(more.seconds.values()))


@pytest.mark.usefixtures("project")
def test_a_program_changed_after_its_link_is_not_relinked(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    patch = ["sh", "-c", "printf 'changed' | dd of=program bs=1 seek=4096 conv=notrunc"]
    commands = [MAKE, patch]
    report = relinked(tmp_path, recording_ports, GCC_O2, Layouts(count=2), commands=commands)
    (finding,) = [each for each in report.findings if each.code == "not-relinked"]
    assert "changed after the link" in finding.text
    assert report.results[0].layouts == ()


@pytest.mark.usefixtures("project")
def test_without_recorded_calls_nothing_is_relinked(tmp_path: Path, ports: BuildPorts) -> None:
    report = relinked(tmp_path, ports, GCC_O2, Layouts(count=2))
    (finding,) = [each for each in report.findings if each.code == "not-relinked"]
    assert finding.subject == "gcc-O2"
    assert "not recorded" in finding.text


@pytest.mark.usefixtures("project")
def test_objects_that_are_gone_leave_the_build_as_it_is(
    tmp_path: Path, recording_ports: BuildPorts
) -> None:
    commands = [MAKE, ["rm", "main.o"]]
    report = relinked(tmp_path, recording_ports, GCC_O2, Layouts(count=2), commands=commands)
    assert report.results[0].artifact is not None
    assert [each.code for each in report.findings if "relink" in each.code] == ["not-relinked"]


@pytest.mark.usefixtures("project")
def test_bolt_orders_hot_functions_otherwise(tmp_path: Path, recording_ports: BuildPorts) -> None:
    bolt = shutil.which("llvm-bolt-19") or shutil.which("llvm-bolt")
    if bolt is None:
        pytest.skip("BOLT is not installed")
    functions_of = range(8)
    (tmp_path / "source/many.c").write_text(
        "volatile int sum;\n"
        + "".join(
            f"__attribute__((noinline)) int f{i}(int x) {{ sum += x * {i + 3}; return sum; }}\n"
            for i in functions_of
        )
        + "int main(void) { int t = 0;"
        + "".join(f" t += f{i}({i});" for i in functions_of)
        + " return t == 0; }\n"
    )
    (tmp_path / "source/p.fdata").write_text(
        "".join(f"1 main 0 1 f{i} 0 0 {100 - i}\n" for i in functions_of)
    )
    link = ["{cc}", "-O2", "-fno-reorder-blocks-and-partition", "-Wl,--emit-relocs", "many.c",
            "-o", "program"]  # fmt: skip
    lay_out = [bolt, "program", "-data=p.fdata", "-reorder-functions=cdsort", "-o", "laid-out"]
    report = relinked(
        tmp_path, recording_ports, GCC_O2, Layouts(count=2), tool_commands=[], tools={},
        dependencies=[link], commands=[lay_out, ["mv", "laid-out", "program"]],
    )  # fmt: skip
    result = report.results[0]
    assert result.artifact is not None
    assert "not-relinked" not in [each.code for each in report.findings], report.findings
    orders = set()
    for path in (result.artifact, *result.layouts):
        here = functions(path)
        orders.add(tuple(sorted((f"f{i}" for i in functions_of), key=here.__getitem__)))
        assert recording_ports.processes.run(ProcessRequest((str(path),))).exit == 0
    assert len(orders) == 5


def test_an_order_in_which_the_linker_does_not_end_is_left_out_and_told(tmp_path: Path) -> None:
    programs = iter(("/bin/false", None, "/bin/ls"))
    limits = []

    def run(argv: tuple[str, ...], limit_ns: int | None) -> Outcome:
        limits.append(limit_ns)
        made = tmp_path / "0" / Path(argv[argv.index("-o") + 1]).name
        (made.parent / "link.map").touch()
        source = next(programs) if made.name == "relinked" else "/bin/true"
        if source is None:
            return Outcome(None, None, "deadline")
        shutil.copy(source, made)
        return Outcome(0, None, "exited")

    tree = tmp_path / "tree"
    tree.mkdir()
    shutil.copy("/bin/true", tree / "program")
    argv = ("gcc", "-fuse-ld=mold", "a.o", "b.o", "-o", "program")
    made = Output("/build/program", "", 1)
    call = recorded(argv, "/build", outputs=(made,), wall_ns=2_000_000_000)
    bench = RelinkContext(
        run, [call], TreePlace(tree, "/build"), (tmp_path, "/scratch"), ("program",)
    )
    asked = Relinks("shuffle", (1, 2, 3), gcc=True, profiled=False)
    found = make_relinks(asked, bench, tmp_path / "layouts")
    assert len(found.hashes) == 2
    assert found.notes == (
        "3 relinks gave only 2 different programs",
        "the linker did not end in 1 of 3 orders",
    )
    assert limits == [None, 20_000_000_000, 20_000_000_000, 20_000_000_000]
