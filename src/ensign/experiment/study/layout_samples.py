"""Samples of the rounds by relink and function. Reads the programs that were raced."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ensign.experiment.study.program_layout import ProgramTree
from ensign.experiment.tracing import in_own_scratch, original_of
from ensign.model.trials import CodeSamples, SampledFile
from ensign.proof.sampled_code import CodeMap, FunctionPlace, read_code_map

# A file's name and a function's, which is empty where it has none.
Key = tuple[str, str]
NOWHERE: Key = ("", "")
_MOST_MAPS = 8


@dataclass(slots=True)
class RelinkSamples:
    """Of one relink: counts by function, and by place in it; where functions lie."""

    functions: Counter[Key] = field(default_factory=Counter)
    offsets: defaultdict[Key, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    places: dict[Key, tuple[Path, FunctionPlace]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SampleReader:
    """Finds functions in files; `trees` are those of the variants."""

    trees: Mapping[str, ProgramTree]
    _maps: dict[Path, CodeMap | None] = field(default_factory=dict)

    def read(self, artifact: str, executions: Iterable[CodeSamples]) -> RelinkSamples:
        """What executions of a relink, the program at `artifact`, were seen to do."""
        found = RelinkSamples()
        for samples in executions:
            found.functions[NOWHERE] += samples.elsewhere
            for file in samples.files:
                self._add(file, artifact, found)
        return found

    def _add(self, file: SampledFile, artifact: str, to: RelinkSamples) -> None:
        path = self._original(file, artifact)
        code = None if path is None else self._map_of(path)
        name = Path(file.path).name
        for offset, count in file.places:
            address = None if code is None else code.address_of(offset)
            found = None if code is None or address is None else code.function_at(address)
            key = (name, "" if found is None else found.name)
            to.functions[key] += count
            if path is not None and found is not None and address is not None:
                to.offsets[key][address - found.start] += count
                to.places[key] = (path, found)

    def _original(self, file: SampledFile, artifact: str) -> Path | None:
        """The file that was mapped, or what it was copied from."""
        if file.deleted or file.other_root:
            return None
        if not in_own_scratch(file.path):
            return Path(file.path)
        tree = self.trees.get(artifact)
        if tree is None:
            own = Path(artifact)
            return own if own.name == Path(file.path).name else None
        original = original_of(file.path, tree.files)
        return None if original is None else Path(original)

    def _map_of(self, path: Path) -> CodeMap | None:
        if path not in self._maps:
            # Relinks come one after the other, and a map of a large program is large.
            if len(self._maps) >= _MOST_MAPS:
                self._maps.clear()
            self._maps[path] = read_code_map(path)
        return self._maps[path]
