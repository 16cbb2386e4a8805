"""What a variant's profile is trained on, where that is not all of the training alone. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_ALSO, _ALL_BUT = "also ", "all but "


@dataclass(frozen=True, slots=True)
class TrainingChoice:
    """Tests that train as well, or with `without` training workloads that are left out."""

    names: tuple[str, ...] = ()
    without: bool = False

    def __str__(self) -> str:
        return f"{_ALL_BUT if self.without else _ALSO}{' '.join(self.names)}" if self.names else ""


def read_training_choice(text: str) -> TrainingChoice:
    """The choice in a text such as `also get-p16` or `all but train-lists`. ValueError."""
    for start in (_ALSO, _ALL_BUT):
        names = tuple(text.removeprefix(start).split())
        if text.startswith(start) and names:
            return TrainingChoice(names, start == _ALL_BUT)
    if text:
        raise ValueError(f"'{text}' is not written as 'also TEST …' or 'all but WORKLOAD …'")
    return TrainingChoice()
