"""Patches of the study's own, applied to what was fetched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ensign.host.files import copy_tree, file_sha256
from ensign.model.errors import InputError
from ensign.model.study_source import Source
from ensign.sources.fetched import Fetched, Fetcher, last_line


def request_of(source: Source, study: Path) -> dict[str, object]:
    """The source as it is asked for, with the content of its patches: what a lock file pins.

    InputError where a patch is not there.
    """
    request = source.model_dump(mode="json", exclude={"apply", "limit"})
    if not request.get("ignored", True):
        del request["ignored"]  # locks were written before there was such a key
    if request.get("crates") is None:
        request.pop("crates", None)
    return {**request, "apply": dict(_hashes(source, study))} if source.apply else request


def _hashes(source: Source, study: Path) -> Mapping[str, str]:
    found = {}
    for name in source.apply:
        path = study.parent / name
        if not path.is_file():
            raise InputError(f"source.apply: there is no patch {path}")
        found[name] = file_sha256(path)
    return found


def patched(source: Source, fetched: Fetched, fetcher: Fetcher) -> Fetched:
    """The tree with the study's patches, in their order; InputError where one does not fit."""
    if not source.apply:
        return fetched
    tree = fetcher.work / "patched"
    copy_tree(fetched.tree, tree, fetched.exclude)
    for name in source.apply:
        path = (fetcher.study.parent / name).resolve()
        outcome = fetcher.run(
            "patch", "--batch", "--forward", "--no-backup-if-mismatch", "--fuzz=0", "-p1",
            "-d", str(tree), "-i", str(path),
        )  # fmt: skip
        if outcome.reason == "not-found":
            raise InputError("source.apply needs patch; run 'apt-get install patch'")
        if not outcome.ok:
            raise InputError(f"the patch {name} does not fit the source: {last_line(outcome)}")
    return replace(fetched, tree=tree, exclude=())
