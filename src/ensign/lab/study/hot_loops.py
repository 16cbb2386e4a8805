"""Where the hottest loop of a function lies in slow and in fast relinks, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ensign.lab.study.layout_samples import Key, RelinkSamples
from ensign.proof.sampled_code import Loop, loops_of

_LINE, _PAGE = 64, 4096
_MOST_PLACES = 4
_LARGEST_BYTES = 256  # where a longer one begins says little of it


@dataclass(frozen=True, slots=True)
class _Side:
    """Relinks of one half: in how many the loop crosses a border, and where in a line it begins."""

    relinks: int
    across_lines: int
    across_pages: int
    begins: tuple[int, ...]


def loop_text(key: Key, slow: Sequence[RelinkSamples], fast: Sequence[RelinkSamples]) -> str:
    """Of the smallest short loop with half of the function's samples; empty where there is none.

    Neither is there one where relinks differ in the function's code, or in nothing.
    """
    every = [*slow, *fast]
    if not all(key in each.places for each in every) or _lies_still(key, every):
        return ""
    first, *others = (frozenset(loops_of(*each.places[key])) for each in every)
    samples: Counter[int] = Counter()
    for each in every:
        samples.update(each.offsets[key])
    hottest = _hottest(first.intersection(*others), samples)
    if hottest is None:
        return ""
    share = _inside(hottest, samples) / samples.total()
    head = f"its hottest loop ({hottest.size} bytes, {100 * share:.0f} % of its samples)"
    return f"{head} {_compared(_side(hottest, key, slow), _side(hottest, key, fast))}"


def _lies_still(key: Key, relinks: Sequence[RelinkSamples]) -> bool:
    return len({each.places[key][1].start for each in relinks}) == 1


def _hottest(loops: frozenset[Loop], samples: Counter[int]) -> Loop | None:
    short = (loop for loop in loops if loop.size <= _LARGEST_BYTES)
    ordered = sorted(short, key=lambda loop: (loop.size, loop.start))
    hot = (loop for loop in ordered if 2 * _inside(loop, samples) >= samples.total())
    return next(hot, None)


def _inside(loop: Loop, samples: Counter[int]) -> int:
    return sum(count for at, count in samples.items() if loop.start <= at < loop.end)


def _side(loop: Loop, key: Key, relinks: Sequence[RelinkSamples]) -> _Side:
    starts = [each.places[key][1].start for each in relinks]
    return _Side(
        relinks=len(starts),
        across_lines=sum(loop.crosses(start, _LINE) for start in starts),
        across_pages=sum(loop.crosses(start, _PAGE) for start in starts),
        begins=tuple(sorted({(start + loop.start) % _LINE for start in starts})),
    )


def _compared(slow: _Side, fast: _Side) -> str:
    lines = (
        f"crosses a line of {_LINE} bytes in {slow.across_lines} of {slow.relinks} slow relinks "
        f"and in {fast.across_lines} of {fast.relinks} fast ones"
    )
    said = [lines]
    if slow.across_pages or fast.across_pages:
        said.append(f"a page in {slow.across_pages} and {fast.across_pages} of them")
    if max(len(slow.begins), len(fast.begins)) <= _MOST_PLACES:
        said.append(f"and begins at {_listed(slow)} and {_listed(fast)} modulo {_LINE}")
    return ", ".join(said)


def _listed(side: _Side) -> str:
    return " or ".join(map(str, side.begins))
