"""What ensign said against what is true: a confident falsehood fails the test, whatever it asked.

Ratios are costs: a variant over the baseline. 1 is the same; what is planted is three times.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from end_to_end.conftest import SOON, Done, Ensign

Json = dict[str, Any]
SAME, PLANTED = 1.0, 3.0
_EQUAL = re.compile(
    r"same bytes|no effect on the binary|[Nn]o variant differs|no program differs|same as \S+:"
)
_FAR = 2.0  # a planted ratio is told if the interval comes within this factor of it
_NEAR = 1.1  # no difference is told if the interval comes within this factor of none


@dataclass(frozen=True)
class Truth:
    """The true cost ratio of a variant, by each metric, and whether it computes."""

    cpu: float = PLANTED
    wall: float = PLANTED
    same_bytes: bool = False
    computes: bool = True

    def of(self, metric: str) -> float:
        return self.wall if metric == "wall" else self.cpu


@dataclass(frozen=True)
class Said:
    """A comparison or a report: what was printed, and the JSON, if there is any."""

    done: Done
    json: Json

    @property
    def codes(self) -> set[str]:
        return {finding["code"] for finding in self.findings}

    @property
    def findings(self) -> list[Json]:
        found: list[Json] = self.json.get("findings", [])
        return found

    @property
    def rows(self) -> list[Json]:
        """Every claim about a variant: with its ratio, interval, direction and size."""
        return [row for row in _rows(self.json) if not _is_twin(row)]

    @property
    def text(self) -> str:
        """Everything that was told to a person, without its wrapping."""
        told = " ".join([self.done.err, *(str(finding["text"]) for finding in self.findings)])
        return f"{self.done.said} {' '.join(told.split())}"

    def told(self, **variants: Truth) -> Said:
        """The planted difference of each variant has its direction and about its size."""
        assert self.done.status == 0, self.done.err
        first: dict[str, Json] = {}
        for row in self.rows:
            first.setdefault(_name(row), row)
        assert set(variants or [""]) <= set(first) | {""}, self.text
        for name, row in first.items():
            if not variants or name in variants:
                true = variants.get(name, Truth()).of(row["metric"])
                assert row["direction"] == ("slower" if true > 1 else "faster"), (row, self.text)
        return self

    def withheld(self, *reasons: str) -> Said:
        """No variant has a direction or a size, and each reason (a pattern) is named."""
        claims = [row for row in self.rows if row.get("direction", "unclear") != "unclear"]
        sizes = [row for row in self.rows if row.get("size") in ("within", "beyond")]
        assert (claims, sizes) == ([], []), self.text
        for reason in reasons:
            assert re.search(reason, self.text + " ".join(self.codes)), (reason, self.text)
        return self

    def withheld_for(self, variant: str, reason: str) -> None:
        """That variant has no direction, and the reason (a pattern) is told with its name."""
        rows = [row for row in self.rows if _name(row) == variant]
        assert all(row.get("direction", "unclear") == "unclear" for row in rows), self.text
        assert variant in self.text, self.text
        assert re.search(reason, self.text), (reason, self.text)


def _is_twin(row: Json) -> bool:
    return _name(row) == "twin" or _name(row).endswith("(twin)")


def _name(row: Json) -> str:
    return str(row.get("variant") or row.get("variant"))


def _rows(said: Json) -> Iterator[Json]:
    for part in ("comparisons", "other_metric", "suite", "suite_other_metric", "workloads"):
        for row in said.get(part, []):
            yield {"metric": said.get("experiment", {}).get("metric", "cpu"), **row}


def no_falsehood(said: Said, truths: Mapping[str, Truth]) -> Said:
    """Fails at the first claim that is against the truth (of variants that are not named: ours)."""
    for row in said.rows:
        truth = truths.get(_name(row)) or truths[""]
        _check_row(row, truth.of(str(row["metric"])), said)
    if not any(truth.same_bytes for truth in truths.values()):
        assert "same-bytes" not in said.codes, said.text
        assert not _EQUAL.search(said.text), said.text
    if any(truth.computes for truth in truths.values()):
        assert "sleeping" not in said.text, said.text
    assert "Traceback" not in said.done.err, said.done.err
    return said


def _check_row(row: Json, true: float, said: Said) -> None:
    if row.get("withheld"):
        assert row["direction"] == "unclear", said.text
        return
    low, high = row["low"], row["high"]
    bounds = (0.0 if low is None else low, float("inf") if high is None else high)
    claimed = (row.get("direction", "unclear"), row.get("size"))
    about = f"truly {true} times: {row}\n{said.text}"
    slack = _NEAR if true == SAME else _FAR
    # Starting, and waiting for a CPU on a busy machine, is the same for all: it hides a part.
    hidden = 1.0 if row["metric"] == "wall" else true
    assert bounds[0] <= max(true, hidden) * slack, about
    assert bounds[1] >= min(true, hidden) / slack, about
    if true == SAME:
        return
    assert claimed[0] in ("unclear", "slower" if true > 1 else "faster"), about
    assert claimed[1] != "within", about


def compared(ensign: Ensign, *argv: str, truth: Truth | None = None, **others: Truth) -> Said:
    """`ensign compare` with those arguments; `others` are truths of named variants."""
    export = ensign.folder / "out.json"
    export.unlink(missing_ok=True)
    timed = () if {"--budget", "--precision"} & set(argv) else SOON
    done = ensign("compare", *argv, *timed, "--export-json", "out.json")
    return no_falsehood(Said(done, _read(export)), {"": truth or Truth(), **others})


def studied(ensign: Ensign, truth: Truth | None = None, **others: Truth) -> Said:
    """`ensign run` of `study.toml`, and what the report says then, if there is one."""
    done = ensign("run", "study.toml")
    export = ensign.folder / "report.json"
    reported = ensign("report", "study.toml", "--json", "report.json")
    assert done.status != 0 or reported.status == 0, reported.err
    return no_falsehood(Said(done, _read(export)), {"": truth or Truth(), **others})


def _read(export: Path) -> Json:
    if not export.exists():
        return {}
    said: Json = json.loads(export.read_text())
    return said
