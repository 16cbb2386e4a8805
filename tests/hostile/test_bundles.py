"""A bundle of a stranger: what it claims is checked, what it holds harms nobody."""

from __future__ import annotations

import gzip
import io
import json
import resource
import shutil
import struct
import subprocess
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from end_to_end.conftest import Done, Ensign, ensign, finished, measured
from ensign.model.errors import InputError
from ensign.model.trials import Mode, Trial, VariantTotals
from ensign.store.bundle import pack, unpack
from ensign.store.folder import StudyFolder
from ensign.store.trial_file import from_bytes, to_bytes
from found_compilers import compilers_found_once, found_compilers

__all__ = ["compilers_found_once", "ensign", "finished", "found_compilers", "measured"]

MEMBERS = {"s.toml": b'name = "s"\n', ".ensign/s/study.json": b"{}\n"}
Change = Callable[[dict[str, bytes]], object]


def rebuilt(path: Path, change: Change, *, honest: bool = False) -> None:
    """The bundle with other files; `honest` makes the manifest anew, as its author could."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    change(members)
    if honest:
        said = json.loads(members["manifest.json"])
        said["members"] = {
            name: {"sha256": sha256(data).hexdigest(), "size_bytes": len(data)}
            for name, data in members.items()
            if not name.startswith("manifest.json")
        }
        members["manifest.json"] = json.dumps(said, indent=1, sort_keys=True).encode() + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in members.items():
            new.writestr(name, content)


def key_in(folder: Path, name: str) -> Path:
    key = folder / name
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)]
    subprocess.run(argv, check=True)
    return key


def signers(folder: Path, *keys: Path) -> Path:
    lines = [f"{key.name}@example.org {key.with_suffix('.pub').read_text()}" for key in keys]
    (folder / "signers").write_text("".join(lines))
    return folder / "signers"


def differs(done: Done) -> str:
    assert "Traceback" not in done.err
    assert done.status == 1, (done.out, done.err)
    (line,) = [line for line in done.out.splitlines() if line.startswith("DIFFERS: ")]
    return line


def complained(done: Done) -> str:
    assert done.status == 2, (done.out, done.err)
    return done.complaint


@pytest.mark.usefixtures("measured")
def test_who_signed_a_bundle_and_over_what(ensign: Ensign) -> None:
    own, other = key_in(ensign.folder, "own"), key_in(ensign.folder, "other")
    assert ensign("bundle", "study.toml", "--sign", str(own), "-o", "signed.zip").status == 0
    trusted = str(signers(ensign.folder, own))
    done = ensign("bundle", "signed.zip", "--verify", "--signers", trusted)
    assert done.status == 0, done.out
    assert "signed by 'own@example.org', with the key SHA256:" in done.out
    assert done.out.endswith("Verified: signed.zip\n")
    whose = ensign("bundle", "signed.zip", "--verify")
    assert whose.status == 0
    assert "signed with the key SHA256:" in whose.out
    assert ensign("report", "signed.zip", "--verify", "--signers", trusted).status == 0

    stranger = str(signers(ensign.folder, other))
    assert "none of" in differs(ensign("bundle", "signed.zip", "--verify", "--signers", stranger))
    assert ensign("bundle", "study.toml", "-o", "plain.zip").status == 0
    assert "is not signed" in differs(ensign("bundle", "plain.zip", "--verify"))
    assert "is not signed" in differs(
        ensign("report", "plain.zip", "--verify", "--signers", trusted)
    )
    assert ensign("report", "plain.zip", "--verify").status == 0
    assert "no key" in complained(ensign("bundle", "study.toml", "--sign", "nokey"))
    (ensign.folder / "nokey").write_text("x")
    assert "cannot sign" in complained(ensign("bundle", "study.toml", "--sign", "nokey"))
    nobody = complained(ensign("bundle", "signed.zip", "--verify", PATH="/nonexistent"))
    assert "openssh-client" in nobody
    assert "openssh-client" in complained(
        ensign("bundle", "study.toml", "--sign", str(own), PATH="/nonexistent")
    )


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    "change",
    [
        lambda members: members.update({"study.toml": members["study.toml"] + b"\n"}),
        lambda members: members.update({"manifest.json.sig": b"-----BEGIN SSH SIGNATURE-----\n"}),
        lambda members: members.update({"manifest.json.sig": b"\x00\xff" * 1000}),
        lambda members: members.update({"more.json": b"{}"}),
        lambda members: members.pop("study.lock.json"),
    ],
    ids=["study", "signature", "noise", "added", "missing"],
)
@pytest.mark.parametrize("honest", [False, True])
def test_what_was_changed_after_it_was_signed(
    ensign: Ensign, change: Change, *, honest: bool
) -> None:
    own = key_in(ensign.folder, "own")
    assert ensign("bundle", "study.toml", "--sign", str(own), "-o", "b.zip").status == 0
    rebuilt(ensign.folder / "b.zip", change, honest=honest)
    for command in (("bundle", "b.zip"), ("report", "b.zip")):
        assert "changed after" in differs(ensign(*command, "--verify"))


def edited(members: dict[str, bytes], name: str, change: Callable[[object], object]) -> None:
    said = json.loads(members[name])
    change(said)
    members[name] = json.dumps(said).encode()


def faster(said: object) -> None:
    assert isinstance(said, dict)
    said["suite"][0]["ratio"] = 0.5


@pytest.mark.usefixtures("measured")
def test_a_figure_that_does_not_follow_from_the_trials(ensign: Ensign) -> None:
    assert ensign("bundle", "study.toml", "-o", "b.zip").status == 0
    done = ensign("report", "b.zip", "--verify")
    assert done.status == 0, done.out
    assert "figures are judged anew from the trials" in done.out
    rebuilt(
        ensign.folder / "b.zip",
        lambda members: edited(members, ".ensign/small/figures.json", faster),
        honest=True,
    )
    said = differs(ensign("report", "b.zip", "--verify"))
    assert "suite[0].ratio: it says 0.5, but " in said


@pytest.mark.usefixtures("measured")
def test_a_trial_that_was_changed(ensign: Ensign) -> None:
    store = ensign.folder / ".ensign" / "small"
    trial = min(store.glob("trials/*/*.csv.gz"))
    read = from_bytes(trial.read_bytes())
    better = tuple(replace(each, cpu_ns=each.cpu_ns // 2) for each in read.variants)
    trial.write_bytes(to_bytes(replace(read, variants=(read.variants[0], *better[1:]))))
    done = ensign("report", "study.toml", "--verify")
    assert done.status == 1
    assert f"'{trial.name}' is not the trial that was raced" in done.out
    assert "it says" in done.out
    refused = complained(ensign("bundle", "study.toml"))
    assert "is not the trial that was raced" in refused
    trial.with_name("0007-short.csv.gz").write_bytes(to_bytes(read))
    again = ensign("report", "study.toml", "--verify")
    assert "'0007-short.csv.gz' was not raced here" in again.out
    assert "'0007-short.csv.gz' is the trial '0000-" in again.out
    shutil.rmtree(store)
    assert "nothing of study.toml" in complained(ensign("report", "study.toml", "--verify"))


@pytest.mark.usefixtures("measured")
def test_the_wrong_use_of_verify(ensign: Ensign) -> None:
    assert "is not a bundle" in complained(ensign("bundle", "study.toml", "--verify"))
    assert "--signers is about" in complained(
        ensign("report", "study.toml", "--verify", "--signers", "x")
    )
    assert ensign("report", "study.toml", "--verify").status == 0
    assert ensign("bundle", "study.toml", "-o", "b.zip").status == 0
    assert "is not signed" in differs(ensign("bundle", "b.zip", "--verify", "--signers", "x"))
    own = key_in(ensign.folder, "own")
    assert ensign("bundle", "study.toml", "-o", "s.zip", "--sign", str(own)).status == 0
    for signers in ("nothing", "source", "study.toml"):
        done = ensign("bundle", "s.zip", "--verify", "--signers", signers)
        assert done.status == (1 if signers == "study.toml" else 2)


def test_a_comparison_is_verified_too(ensign: Ensign) -> None:
    done = ensign("compare", "true", "sleep 0", "--runs", "3", "--bundle", "c.zip")
    assert done.status == 0, done.err
    assert ensign("report", "c.zip", "--verify").status == 0
    own = key_in(ensign.folder, "own")
    trusted = str(signers(ensign.folder, own))
    assert "bundle already" in complained(ensign("bundle", "c.zip"))
    assert ensign("bundle", "c.zip", "--sign", str(own), "-o", "signed.zip").status == 0
    for command in ("bundle", "report"):
        assert ensign(command, "signed.zip", "--verify", "--signers", trusted).status == 0
        assert ensign(command, "c.zip", "--verify", "--signers", trusted).status == 1
    assert "signed already" in complained(ensign("bundle", "signed.zip", "--sign", str(own)))

    def longer(said: object) -> None:
        assert isinstance(said, dict)
        said["trials"][0]["variants"][0]["wall_ns"] *= 3
        said["trials"][0]["variants"][0]["cpu_ns"] *= 3

    rebuilt(
        ensign.folder / "c.zip",
        lambda members: edited(members, "comparison.json", longer),
        honest=True,
    )
    assert ensign("report", "c.zip", "--verify").status == 1
    before = (ensign.folder / "c.zip").read_bytes()
    assert "not all of it follows" in complained(ensign("bundle", "c.zip", "--sign", str(own)))
    assert (ensign.folder / "c.zip").read_bytes() == before


@pytest.fixture
def refused(tmp_path: Path) -> Callable[[bytes], str]:
    def complaint(data: bytes) -> str:
        path, target = tmp_path / "b.zip", tmp_path / "out"
        path.write_bytes(data)
        target.mkdir()
        with pytest.raises(InputError) as caught:
            unpack(path, target)
        assert "\n" not in str(caught.value)
        assert {each.name for each in tmp_path.iterdir()} == {"b.zip", "out"}
        return str(caught.value)

    return complaint


def zipped(*members: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for info, data in members:
            archive.writestr(info, data)
    return buffer.getvalue()


def test_a_bomb_is_not_unpacked(refused: Callable[[bytes], str], tmp_path: Path) -> None:
    said = {"schema_version": 2, "study": "s.toml", "ensign": "0", "members": {}}
    bomb = bytes(300 << 20)
    text = refused(zipped(("manifest.json", json.dumps(said).encode()), ("s.toml", bomb)))
    assert "is refused: it would unpack to 1 files, 300.0 MiB" in text
    assert not list((tmp_path / "out").iterdir())


def test_a_size_that_is_a_lie_stops_at_what_was_told(refused: Callable[[bytes], str]) -> None:
    data = bytearray(pack("s.toml", "0", {**MEMBERS, "x": bytes(10 << 20)}))
    at = data.rindex(b"PK\x01\x02\x14\x03")  # the last file in the list
    data[at + 24 : at + 28] = struct.pack("<L", 10)
    assert refused(bytes(data))


def test_a_million_files_are_not_even_listed(refused: Callable[[bytes], str]) -> None:
    one = zipped(("a", b""))
    start = one.index(b"PK\x01\x02")
    entry = one[start : one.index(b"PK\x05\x06")]
    end = one[one.index(b"PK\x05\x06") :]
    count = 1_000_000
    listed = entry * count
    short = struct.pack("<4s4H2LH", end[:4], 0, 0, 1, 1, len(listed), start, 0)
    tracemalloc.start()
    text = refused(one[:start] + listed + short)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "lists more files than a bundle may hold" in text
    assert peak < 300 << 20


def test_links_and_names_of_other_places(refused: Callable[[bytes], str]) -> None:
    for name in ("../x", "/x", "a/../../x", "\x1b]52;c;x\x07"):
        assert "out of its folder" in refused_once(
            refused, pack("s.toml", "0", {**MEMBERS, name: b""})
        )
    link = zipfile.ZipInfo("link")
    link.create_system, link.external_attr = 3, 0o120777 << 16
    assert refused_once(refused, zipped((link, b"/etc/passwd")))


def refused_once(refused: Callable[[bytes], str], data: bytes) -> str:
    text = refused(data)
    shutil.rmtree(Path(text.split(" ")[0]).parent / "out", ignore_errors=True)
    return text


def test_a_deep_manifest(refused: Callable[[bytes], str]) -> None:
    assert "manifest.json cannot be read" in refused(
        zipped(("manifest.json", b"[" * 1_000_000), ("s.toml", b""))
    )


def test_two_files_of_one_name(refused: Callable[[bytes], str]) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("manifest.json", b"{}"), ("a", b"1"), ("a", b"2"))
    assert "two files of one name" in refused(data)


def a_trial(**changes: object) -> Trial:
    totals = VariantTotals("baseline", 10, 9, 6, 3, 2, 1000, 4096, 5, 6, 2)
    named = {each: changes.pop(each) for each in list(changes) if hasattr(totals, each)}
    return replace(
        Trial("set", 3, 9, Mode.INTERLEAVED, "cgroup", 5, 1.5, 77, 0.98, (totals,), ()),
        variants=(replace(totals, **named),),  # type: ignore[arg-type]
        **changes,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cpu_ns": -1}, "variants.0.cpu_ns: Input should be greater"),
        ({"operations": 0}, "variants.0.operations: Input should be greater"),
        ({"cpu_wait_ns": 10**30}, "a number of 31 digits"),
        ({"score": float("nan")}, "variants.0.score: Input should be a finite number"),
        ({"running_share": float("inf")}, "running_share: Input should be a finite number"),
        ({"started_unix_s": float("nan")}, "started_unix_s: Input should be a finite number"),
        ({"round_index": 10**9}, "it is of round 1,000,000,000"),
        ({"workload": "a\x1b]0;x\x07"}, "a name is"),
        ({"variant": "x" * 10_000}, "a name is"),
    ],
)
def test_a_trial_that_no_race_has(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match="not a trial") as caught:
        from_bytes(to_bytes(a_trial(**changes)))
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def trial_file(header: str, table: bytes = b"variant\nx\n") -> bytes:
    return gzip.compress(header.encode() + b"\n" + table)


@pytest.mark.parametrize("header", ["{", "[" * 100_000, "{}", "[]", '{"schema": 3}', '"x"'])
def test_a_trial_file_of_something_else(header: str) -> None:
    with pytest.raises(InputError, match="not a trial"):
        from_bytes(trial_file(header))


def test_slices_are_not_kept_however_many_there_are() -> None:
    data = to_bytes(a_trial())
    header = gzip.decompress(data).decode().partition("\n")[0]
    many = trial_file(header, b"x,1,1,1,1,False,\n" * 10_000_000)
    assert len(many) < 1 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert from_bytes(many).variants == from_bytes(data).variants
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_a_file_that_unpacks_to_more_than_any_trial_has() -> None:
    step = zlib.compressobj(wbits=31)
    data = [step.compress(bytes(1 << 20)) for _ in range(300)]
    with pytest.raises(InputError, match="larger than any trial"):
        from_bytes(b"".join([*data, step.flush()]))


def test_a_results_folder_of_a_stranger(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    for text in (b"[" * 1_000_000, b"\xff", b"[]", b'{"a": 1'):
        (tmp_path / "study.json").write_bytes(text)
        with pytest.raises(InputError, match="is damaged"):
            folder.read_json("study")
    (tmp_path / "trials/k").mkdir(parents=True)
    (tmp_path / "trials/k/x.csv.gz").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    assert folder.done("k") == frozenset()
    with pytest.raises(InputError, match="not a trial"):
        folder.trials("k")
    with (tmp_path / "trials/k/x.csv.gz").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="no trial is larger"):
        folder.trials("k")
