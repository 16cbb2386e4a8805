"""A Debian source package from its rules to a change of them."""

from __future__ import annotations

import json
import shutil

import pytest

from end_to_end.conftest import SOURCES, Ensign
from end_to_end.small_study import ANYWAY, BATCH, write_study

# As packages without debhelper are: flags from dpkg-buildflags, a compiler by its own name.
_RULES = """\
#!/usr/bin/make -f
export DEB_CFLAGS_MAINT_APPEND = -DWORK=1
include /usr/share/dpkg/buildflags.mk
build build-arch:
	test "$(filter nocheck,$(DEB_BUILD_OPTIONS))" = nocheck
	test -n "$(DEB_HOST_MULTIARCH)"
	gcc $(CPPFLAGS) $(CFLAGS) -c spin.c
	gcc -o spin spin.o $(LDFLAGS)
"""
_CONTROL = """\
Source: spin
Maintainer: Nobody <nobody@example.org>
Build-Depends: {depends}

Package: spin
Architecture: any
Description: spins
"""
_CHANGES = (
    ('commands = [["sh", "-c", "{cc} {cflags} -DWORK=1 -o spin spin.c {ldflags}"]]',
     'system = "debian"'),
)  # fmt: skip


def write_package(ensign: Ensign, rules: str = _RULES, depends: str = "dpkg-dev") -> None:
    source = ensign.folder / "source"
    (source / "debian").mkdir(parents=True)
    shutil.copy(SOURCES / "spin.c", source)
    (source / "debian/rules").write_text(rules)
    (source / "debian/control").write_text(_CONTROL.format(depends=depends))


def test_a_package_is_built_by_its_rules_and_shipped_as_a_change_of_them(ensign: Ensign) -> None:
    write_package(ensign)
    write_study(ensign.folder, BATCH, *_CHANGES)
    done = ensign("run", "study.toml", "--json", "out.json")
    assert done.status == 0, done.err
    said = json.loads((ensign.folder / "out.json").read_text())
    first, second = said["builds"]
    assert first["loadable_sha256"] != second["loadable_sha256"]
    codes = {each["code"] for each in said["findings"] if each["severity"] == "error"}
    assert codes == set()
    # The distribution's hardening is there, as nobody asked for another.
    log = next((ensign.folder / "cache/entries").glob("program-*/calls.jsonl")).read_text()
    assert "-fstack-protector-strong" in log
    assert '"-O2", "-g", "-ffile' not in log
    done = ensign("ship", "study.toml", "gcc-12-O2", *ANYWAY, "-o", "out")
    assert done.status == 0, done.err
    assert (
        "+export DEB_CFLAGS_MAINT_APPEND += -O2\n"
        in (ensign.folder / "out/change.patch").read_text()
    )
    page = (ensign.folder / "out/pull-request.md").read_text()
    assert "dpkg-buildpackage" in page


def test_a_level_of_the_package_after_ours_is_found_out(ensign: Ensign) -> None:
    write_package(ensign, _RULES.replace("-DWORK=1", "-DWORK=1 -O3"))
    write_study(ensign.folder, BATCH, *_CHANGES)
    done = ensign("run", "study.toml")
    assert done.status == 3
    assert "-O3" in done.complaint
    by_recorder = ('system = "debian"', 'system = "debian"\nflags_by = "recorder"')
    write_study(ensign.folder, BATCH, *_CHANGES, by_recorder)
    done = ensign("run", "study.toml")
    assert done.status == 0, done.err


def test_missing_build_dependencies_are_one_line(ensign: Ensign) -> None:
    write_package(ensign, depends="no-such-package (>= 2), dpkg-dev")
    write_study(ensign.folder, BATCH, *_CHANGES)
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert "build dependencies are missing: no-such-package (>= 2); as root run" in done.complaint
    done = ensign("plan", "study.toml")
    assert done.status == 0, done.err
    assert "Missing: build dependencies: apt-get satisfy" in done.said


def test_rules_that_do_not_name_their_tests_are_told_before_a_build(ensign: Ensign) -> None:
    write_package(ensign)
    write_study(ensign.folder, BATCH, *_CHANGES)
    study = ensign.folder / "study.toml"
    study.write_text(study.read_text() + "\n[check]\npackage = true\n")
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert "'check.package' needs debian/rules that use debhelper's dh" in done.complaint
    assert not list((ensign.folder / "cache/entries").glob("program-*"))
    done = ensign("plan", "study.toml")
    assert "Missing: 'check.package' needs" in done.said


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('optimization = "-O1"', 'optimization = "-O1"'), "needs debian/control"),
        (
            ('optimization = ["-O1", "-O2"]', 'optimization = ["-O1"]\ndependencies = ["flags"]'),
            "leave out 'flags'",
        ),
    ],
)
def test_what_is_no_package_is_told(ensign: Ensign, change: tuple[str, str], expected: str) -> None:
    write_study(ensign.folder, BATCH, *_CHANGES, change)
    done = ensign("run", "study.toml")
    assert done.status == 2
    assert expected in done.complaint
