"""A bundle gives back what was put in, or says in one line why not."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ensign.model.errors import InputError
from ensign.store.bundle import BundleLimits, is_bundle, pack, unpack

MEMBERS = {
    "s.toml": b'name = "s"\n',
    ".ensign/s/study.json": b"{}\n" * 50,
    ".ensign/s/trials/k/0000-a.csv.gz": bytes(range(256)),
}


def packed(**members: bytes) -> bytes:
    return pack("s.toml", "0.1.0", MEMBERS | members)


def rebuilt(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The same archive with some members changed by somebody who keeps the manifest."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[bytes], str]:
    def complaint(data: bytes) -> str:
        path, target = tmp_path / "b.zip", tmp_path / "out"
        path.write_bytes(data)
        target.mkdir()
        with pytest.raises(InputError) as caught:
            unpack(path, target)
        assert "\n" not in str(caught.value)
        assert "b.zip" in str(caught.value)
        assert {each.name for each in tmp_path.iterdir()} == {"b.zip", "out"}
        return str(caught.value)

    return complaint


def test_what_was_put_in_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "b.zip"
    path.write_bytes(packed())
    manifest = unpack(path, tmp_path / "out")
    assert (manifest.study, manifest.ensign) == ("s.toml", "0.1.0")
    for name, data in MEMBERS.items():
        assert (tmp_path / "out" / name).read_bytes() == data


def test_equal_files_give_equal_bytes_whatever_their_order() -> None:
    assert pack("s.toml", "0.1.0", dict(reversed(MEMBERS.items()))) == packed()


def test_a_bundle_is_known_by_its_bytes_and_where_they_are_damaged_by_its_name(
    tmp_path: Path,
) -> None:
    for name, data, expected in (
        ("a.toml", b'name = "a"', False),
        ("renamed", packed(), True),
        ("cut.zip", b"", True),
    ):
        (tmp_path / name).write_bytes(data)
        assert is_bundle(tmp_path / name) is expected
    assert not is_bundle(tmp_path / "missing.toml")


@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_a_bundle_that_was_cut_off(refused: Callable[[bytes], str], part: float) -> None:
    data = packed()
    assert "not a complete bundle" in refused(data[: int(len(data) * part)])


def test_any_flipped_byte_of_a_trial_is_noticed(refused: Callable[[bytes], str]) -> None:
    data = bytearray(packed())
    at = bytes(data).index(bytes(range(200)))
    data[at + 5] ^= 1
    assert "not a complete bundle" in refused(bytes(data))


def test_a_member_that_was_replaced_added_or_removed(refused: Callable[[bytes], str]) -> None:
    name = ".ensign/s/study.json"

    def replace(members: dict[str, bytes]) -> None:
        members[name] = members[name].replace(b"{", b"[")

    assert f"'{name}' is not what its manifest says" in refused(rebuilt(packed(), replace))


@pytest.mark.parametrize("removed", ["s.toml", ".ensign/s/study.json"])
def test_a_member_that_is_missing(refused: Callable[[bytes], str], removed: str) -> None:
    text = refused(rebuilt(packed(), lambda members: members.pop(removed)))  # type: ignore[arg-type]
    assert f"'{removed}' is not what its manifest says" in text


def test_a_member_that_the_manifest_does_not_know(refused: Callable[[bytes], str]) -> None:
    assert "'more'" in refused(rebuilt(packed(), lambda members: members.update(more=b"x")))


@pytest.mark.parametrize(
    "name", ["../out.toml", "/elsewhere/x", "a/../../x", "a\\..\\x", "a//b", "a\nb"]
)
def test_no_name_leads_out_of_the_folder(refused: Callable[[bytes], str], name: str) -> None:
    assert "lead out of its folder" in refused(packed(**{name: b"x"}))


@pytest.mark.parametrize(("schema", "way_out"), [(1, "use the older one"), (3, "use a newer one")])
def test_a_bundle_of_another_schema_names_the_version_that_made_it(
    refused: Callable[[bytes], str], schema: int, way_out: str
) -> None:
    def other(members: dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        members["manifest.json"] = json.dumps(
            {"schema_version": schema, "ensign": "9.0", "new": manifest}
        ).encode()

    text = refused(rebuilt(packed(), other))
    assert f"schema {schema}" in text
    assert "9.0" in text
    assert way_out in text


@pytest.mark.parametrize("manifest", [b"{", b"[]", b"{}", b'{"schema_version": "x"}'])
def test_a_broken_manifest(refused: Callable[[bytes], str], manifest: bytes) -> None:
    data = rebuilt(packed(), lambda members: members.update({"manifest.json": manifest}))
    assert "manifest.json cannot be read" in refused(data)


def test_a_zip_of_something_else(refused: Callable[[bytes], str]) -> None:
    data = rebuilt(packed(), lambda members: members.pop("manifest.json"))  # type: ignore[arg-type]
    assert "no bundle of ensign" in refused(data)


@pytest.mark.parametrize(
    "limits",
    [BundleLimits(members=2), BundleLimits(member_bytes=200), BundleLimits(size_bytes=400)],
)
def test_sizes_are_judged_before_unpacking(tmp_path: Path, limits: BundleLimits) -> None:
    path, target = tmp_path / "b.zip", tmp_path / "out"
    path.write_bytes(packed())
    with pytest.raises(InputError, match="is refused: it would unpack to 3 files"):
        unpack(path, target, limits)
    assert not target.exists()
