from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders.test_cargo_builds import request_of
from builders.test_relink import functions
from ensign.builders.build import build_variants
from ensign.builders.link_members import linker_words, objects_kept, used_variables
from ensign.builders.request import BuildPorts, BuildRequest
from ensign.host.processes import ProcessRequest
from ensign.model.calls import Output
from ensign.model.study_axes import Layouts
from ensign.proof.link import TreePlace
from recorded import recorded

WORDS = ("rustc", "--crate-name", "app", "app/src/main.rs", "--emit=dep-info,link", "-Copt-level=3")


_MACRO = """use proc_macro::TokenStream;
#[proc_macro]
pub fn version(_: TokenStream) -> TokenStream {
    format!("{:?}", std::env::var("CARGO_PKG_VERSION").unwrap()).parse().unwrap()
}
"""


def add_macro(source: Path) -> None:
    """A macro that reads what Cargo says of the crate, as no dependency file tells."""
    (source / "asks/src").mkdir(parents=True)
    (source / "asks/src/lib.rs").write_text(_MACRO)
    (source / "asks/Cargo.toml").write_text(
        '[package]\nname = "asks"\nversion = "0.2.0"\nedition = "2021"\n[lib]\nproc-macro = true\n'
    )
    with (source / "app/Cargo.toml").open("a") as manifest:
        manifest.write('asks = { path = "../asks" }\n')
    workspace = source / "Cargo.toml"
    workspace.write_text(workspace.read_text().replace('["app"', '["asks", "app"'))
    lock = source / "Cargo.lock"
    asks = '\n[[package]]\nname = "asks"\nversion = "0.2.0"\n'
    lock.write_text(lock.read_text().replace(' "extra",', ' "asks",\n "extra",') + asks)


@pytest.mark.parametrize("how", ["order", "shuffle"])
def test_a_program_of_rustc_is_relinked(
    tmp_path: Path, recording_ports: BuildPorts, how: str
) -> None:
    asked = request_of(tmp_path)
    add_macro(tmp_path / "source")
    main = 'fn main() {{ println!("{{}} {{}} {{}}", env!("CARGO_PKG_NAME"), version!(), {}); }}\n'
    sums = "extra::more(native::run(kern::step(std::env::args().count() as u64)))"
    (tmp_path / "source/app/src/main.rs").write_text(f"use asks::version;\n{main.format(sums)}")
    laid_out = Layouts.model_validate({"count": 3, "how": how, "variants": "baseline"})
    study = asked.study.model_copy(update={"layouts": laid_out})
    (result,) = build_variants(
        BuildRequest(study, asked.path, asked.variants, asked.baseline), recording_ports
    ).results
    assert result.artifact is not None
    assert len(result.layouts) == 3
    natural = functions(result.artifact)
    run = recording_ports.processes.run
    for path in result.layouts:
        here = functions(path)
        assert here.keys() == natural.keys()
        assert here != natural
        done, original = (run(ProcessRequest((str(each),))) for each in (path, result.artifact))
        assert (done.exit, done.stdout) == (original.exit, original.stdout)
    # What rustc and its linker did again is no call of the build.
    assert result.seen is not None
    assert not any("layouts/" in word for call in result.seen.calls for word in call.ran)


@pytest.mark.parametrize("emit", [("--emit=dep-info,link",), ("--emit", "dep-info,link")])
def test_rustc_is_told_to_keep_objects(emit: tuple[str, ...]) -> None:
    call = recorded(("rustc", "src/main.rs", *emit, "-Copt-level=3"), "/b", tool="rustc")
    assert objects_kept(call, "/s") == (
        *("rustc", "src/main.rs", "-Copt-level=3", "--emit=link", "-Csave-temps"),
        *("--print=link-args=/s/link-args", "-o", "/s/program"),
    )


def test_variables_that_a_crate_reads_are_set_again(tmp_path: Path) -> None:
    (tmp_path / "app-1.d").write_text(
        "app: src/main.rs\n\n# env-dep:OUT_DIR=/b/out\n# env-dep:ABSENT\n# env-dep:TEXT=a\\nb\n"
    )
    call = recorded(WORDS, "/b", tool="rustc", outputs=(Output("/b/app-1", "", 1),))
    call = replace(call, variables=("CARGO_MANIFEST_DIR=/b/app", "CARGO_PKG_AUTHORS=a=b", "TEXT="))
    found = used_variables(call, TreePlace(tmp_path, "/b"))
    assert found == (
        "CARGO_MANIFEST_DIR=/b/app",
        "CARGO_PKG_AUTHORS=a=b",
        "TEXT=a\nb",
        "OUT_DIR=/b/out",
    )


def test_the_linker_is_called_without_the_recorder() -> None:
    text = """LC_ALL="C" PATH="/x:/y" "/r/bin/cc" "-m64" "a b.o" "-o" "p"\n"""
    assert linker_words(text, "/r") == ("cc", "-m64", "a b.o", "-o", "p")
    assert linker_words(text, "/other")[0] == "/r/bin/cc"
    assert linker_words("", "/r") == ()
