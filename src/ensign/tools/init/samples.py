"""Files that programs are tried on: those of the tree, and under which name they are read."""

from __future__ import annotations

from pathlib import Path

from ensign.tools.init.attempts import Sample
from ensign.tools.init.made_samples import made_content

# What an attempt reads if its sample is repeated; the study has it under the same name.
INPUT_FILE = "ensign-input"
_MUCH_LARGER = 8
_NOT_SAMPLES = ("debian/", "ensign.toml", "ensign.lock.json")


def samples_of(files: dict[str, int], most: int) -> tuple[Sample, ...]:
    """Files of the source to be read: the largest of each kind for tests, then of the others."""
    best: dict[tuple[str, bool], tuple[bool, int, str]] = {}
    for name, size in files.items():
        if name.startswith(_NOT_SAMPLES):
            continue
        known = (is_for_tests(name), size, name)
        kind = (Path(name).suffix, known[0])
        best[kind] = max(best.get(kind, known), known)
    # The largest of all only where those for tests are small beside it.
    chosen = [
        sample
        for (suffix, for_tests), sample in best.items()
        if for_tests or sample[1] > _MUCH_LARGER * best.get((suffix, True), (True, 0, ""))[1]
    ]
    return tuple(Sample(name, size) for _, size, name in sorted(chosen, reverse=True)[:most])


def is_for_tests(name: str) -> bool:
    """True if a file of the source is there to be read by tests, by its path."""
    return any(word in name.lower() for word in ("test", "example", "sample", "data", "bench"))


def content_of(source: Path, sample: Sample) -> bytes:
    """Copies of a sample together."""
    if sample.made:
        return made_content(sample.made, sample.copies)
    return (sample.content or (source / sample.path).read_bytes()) * sample.copies


def given_name(sample: Sample) -> str:
    """Path of a sample, relative to the source."""
    return sample.path if sample.is_file else f"{INPUT_FILE}{sample.suffix}"
