"""What the reader's own links will be like: each variant's spread, and a fresh link's speed."""

from __future__ import annotations

import math

from ensign.model.results import Result, VariantLayouts
from ensign.model.units import pluralize, speedup
from ensign.report.words import Span, between, clean, listed, plain_share

FRESH_LEVEL = 0.9
_MOST_NAMED = 4
# Nothing is foretold where it may be more than twice as fast or as slow as the middle.
_LARGEST_LOG = math.log(2)


def fresh_span(variant: str, result: Result) -> Span | None:
    """Where the speedup of one fresh link over one of the baseline lies; None if hardly known."""
    found = None if result.layouts is None else result.layouts.of(variant)
    if found is None or not found.fresh_low or not found.fresh_high:
        return None
    if math.log(found.fresh_high / found.fresh_low) > 2 * _LARGEST_LOG:
        return None
    low, high = speedup(found.fresh_high), speedup(found.fresh_low)
    return Span(low, high, (low + high) / 2)


def fresh_sentence(variant: str, result: Result) -> tuple[str, ...]:
    """What the reader who links it again meets; nothing where that is not known."""
    span = fresh_span(variant, result)
    if span is None:
        return ()
    other = clean(result.baseline)
    whose = f"A fresh link of {clean(variant)} will be"
    level = plain_share(FRESH_LEVEL)
    if span.low < 0 < span.high:
        return (f"{whose} {between(span)} than a fresh link of {other} ({level}).",)
    ends = sorted(abs(round(100 * end, span.digits)) for end in (span.low, span.high))
    least, most = (f"{end:.{span.digits}f}" for end in ends)
    way = "faster" if span.low >= 0 else "slower"
    return (f"{whose} {least} to {most} % {way} than a fresh link of {other} ({level}).",)


def wide_spreads(result: Result) -> tuple[str, ...]:
    """A sentence of the variants whose links differ by more than the margin, the widest first."""
    layouts, margin = result.layouts, result.margin
    if layouts is None or margin is None:
        return ()
    limit = math.log1p(margin)
    # An estimate of which even 0 is possible tells nothing, but where it can have no other end.
    known = (each for each in layouts.variants if each.low or each.execution_sd is None)
    wide = [each for each in known if each.sd is not None and each.sd > limit]
    if not wide:
        return ()
    wide.sort(key=lambda each: -(each.sd or 0.0))
    said = [f"{clean(each.variant)} {_sd(each)}" for each in wide[:_MOST_NAMED]]
    if len(wide) > _MOST_NAMED:
        said.append(f"{pluralize(len(wide) - _MOST_NAMED, 'more variant')}")
    noise = "" if wide[0].execution_sd is not None else ", with the noise of executions in it"
    head = f"Standard deviation between links of one variant{noise}, where it exceeds the margin"
    return (f"{head} ({plain_share(result.level)}): {listed(tuple(said))}.",)


def own_spread_text(result: Result) -> str:
    """Each variant's own standard deviation between layouts; empty where none is known."""
    layouts = result.layouts
    if layouts is None or not layouts.variants:
        return ""
    known = [each for each in layouts.variants if each.sd is not None]
    if not known:
        return (
            f"Too few relinks of {clean(result.baseline)} differ for the A/A twin to have its own: "
            "the spread of one variant alone is not known."
        )
    each = "; ".join(f"{clean(one.variant)} {_sd(one)}{_noise(one)}" for one in known)
    once = all(one.execution_sd is None for one in known)
    noise = ", with the noise of executions in it" if once else ""
    return (
        f"Standard deviation between a variant's own layouts ({plain_share(result.level)}){noise}: "
        f"{each}."
    )


def _sd(row: VariantLayouts) -> str:
    """`1.2 % (0.8 to 2.1 %)`; `1.2 % (at most 2.1 %)` where nothing is known of the least."""
    sd, low, high = (sd_percent(each) for each in (row.sd, row.low, row.high))
    least = f"{low} to" if row.low else "at most"
    return f"{sd} % ({least} {high} %)"


def _noise(row: VariantLayouts) -> str:
    if row.execution_sd is None:
        return ""
    return f", of an execution {sd_percent(row.execution_sd)} %"


def sd_percent(log_sd: float | None) -> str:
    """`1.2`: a standard deviation of log costs in percent, to two figures."""
    return f"{100 * math.expm1(log_sd or 0.0):#.2g}".rstrip(".")
