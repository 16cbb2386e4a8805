from __future__ import annotations

from ensign.sources.debian import (
    Revision,
    parse_deb822,
    parse_one_line,
    parse_revisions,
    source_list,
    upstream_version,
)

DEB822 = """\
# comment
Types: deb
URIs: http://deb.debian.org/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 -----END PGP PUBLIC KEY BLOCK-----

Enabled: no
Types: deb
URIs: http://disabled.example
Suites: x
"""

ONE_LINE = """\
# deb http://old.example bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://deb.debian.org/debian bookworm main contrib # mine
deb-src http://deb.debian.org/debian bookworm main
deb cdrom:[Debian]/ bookworm main
"""

REVISIONS = """\
Package: redis
Version: 5:7.0.15-1~deb12u7
Checksums-Sha256:
 7007 1960 redis_7.0.15-1~deb12u7.dsc
 4b1d 3025940 redis_7.0.15.orig.tar.gz
 1414 45456 redis_7.0.15-1~deb12u7.debian.tar.xz
Section: database

Package: redis
Version: 5:7.0.16-1
"""


def test_keys_and_suites_of_deb822_are_kept_and_disabled_sources_not() -> None:
    text = source_list(parse_deb822(DEB822))
    assert text.startswith("Types: deb-src\nURIs: http://deb.debian.org/debian\n")
    assert "Suites: bookworm bookworm-updates\nComponents: main\n" in text
    assert "Signed-By: \n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n" in text
    assert "disabled" not in text


def test_one_line_sources_become_deb822() -> None:
    text = source_list(parse_one_line(ONE_LINE))
    first, second = text.split("\n\n")
    assert first == (
        "Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n"
        "Components: main contrib\nSigned-By: /k.gpg"
    )
    assert second.endswith("Components: main\n")


def test_revisions_have_files_and_checksums() -> None:
    first, second = parse_revisions(REVISIONS)
    assert first.version == "5:7.0.15-1~deb12u7"
    assert first.orig("4b1d") == "redis_7.0.15.orig.tar.gz"
    assert first.orig("1414") is None
    assert second.files == ()


def test_upstream_versions() -> None:
    assert upstream_version("5:7.0.15-1~deb12u7") == "7.0.15"
    assert upstream_version("2.0-rc1-3") == "2.0-rc1"
    assert upstream_version("1.2") == "1.2"


def test_a_native_package_has_one_archive() -> None:
    dsc, native = ("x_3+nmu1.dsc", "0"), ("x_3+nmu1.tar.xz", "a")
    assert Revision("x", "3+nmu1", (dsc, native)).orig("a") == "x_3+nmu1.tar.xz"
    assert upstream_version("3+nmu1") == "3+nmu1"
    files = (
        dsc,
        ("x_3.orig.tar.gz", "b"),
        ("x_3.orig.tar.gz.asc", "c"),
        ("x_3-1.debian.tar.xz", "d"),
    )
    assert Revision("x", "3-1", files).archive == ("x_3.orig.tar.gz", "b")
    assert Revision("x", "3-1", files).orig("d") is None
