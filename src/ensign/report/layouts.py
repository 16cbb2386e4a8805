"""Additions of relinks to a report: the subject of an interval, the spread, its parts."""

from __future__ import annotations

import math

from ensign.model.comparisons import Comparison, Direction
from ensign.model.finding_kinds.builds import SAME_PROGRAM
from ensign.model.results import LayoutFacts, LayoutSplit, LayoutSpread, Result, VariantLayouts
from ensign.model.units import pluralize, speedup
from ensign.report.words import Span, between, clean, listed, percent, plain_share, signed

ONE_LAYOUT = (
    "These binaries, this host and boot, these workloads. Without relinks it speaks of these "
    "binaries, not of these flags: the order of code in memory alone can move a program by as "
    "much as a flag does. Studies race relinks ([layouts]); 'ensign init' in a source tree writes "
    "such a study."
)


ONE_BINARY_NOTE = "one binary of its flags: another link of them may be faster or slower"
WITHIN_SPREAD = "within the layout spread"
WITHIN_SPREAD_NOTE = f"{WITHIN_SPREAD}: another relink of the baseline alone may do as much"


def races_relinks(result: Result) -> bool:
    """True if rounds took turns with relinks of every variant that can be relinked."""
    return result.layouts is not None and result.layouts.raced > 0


def speaks_of_binaries(variant: str, result: Result) -> bool:
    """True if a comparison is of single binaries, and not of the flags that made them.

    Commands that run one program on other inputs are compared by that, and not by flags.
    """
    if result.layouts is not None and races_relinks(result):
        return variant in result.layouts.unable
    findings = (finding for finding in result.findings if finding.is_a(SAME_PROGRAM))
    return not any(finding.subject == variant for finding in findings)


def scope(result: Result) -> str:
    """Subject of the intervals of a study."""
    layouts = result.layouts
    if layouts is None:
        return ONE_LAYOUT
    if layouts.raced:
        text = (
            "These flags, layouts as sampled, this host and boot, these workloads. Rounds took "
            f"turns with {layouts.raced} relinks of each variant ({clean(layouts.kind)}), the "
            "twin with its own; an interval counts relinks, not executions."
        )
        if layouts.unable:
            text += (
                f" {listed(layouts.unable)} could not be relinked: there it speaks of one binary."
            )
        return text
    return (
        "These binaries, this host and boot, these workloads. It speaks of these binaries, not of "
        "these flags: only the baseline was relinked, to see how much the order of code in memory "
        "moves a program."
    )


def layout_text(result: Result) -> str:
    """The spread of the baseline's relinks, and the parts of the spread; empty without any."""
    layouts = result.layouts
    if layouts is None:
        return ""
    parts = [_spread(layouts, result)] if layouts.spreads else []
    own = own_spread_text(result)
    parts += [own] if own else _splits(layouts, result)
    known = layouts.splits or any(variant.execution_sd is not None for variant in layouts.variants)
    if layouts.raced and not known:
        parts.append(
            "Each relink ran once, so layout and execution cannot be told apart: that takes more "
            f"than {pluralize(layouts.raced, 'round')}."
        )
    return " ".join(parts)


def beside_spread(comparison: Comparison, result: Result) -> tuple[str, str]:
    """Note of the spread on a variant shown to differ: a detail or a caveat, or neither."""
    layouts = result.layouts
    if layouts is None or not layouts.spreads or comparison.direction is Direction.UNCLEAR:
        return "", ""
    spread = layouts.spreads[0]
    range_ = f"{_ends(spread)} ({plain_share(result.level)})"
    if spread.low <= comparison.ratio <= spread.high:
        name = clean(comparison.variant)
        return "", (
            f"Another relink of {clean(result.baseline)} alone lies {range_}: the binaries differ, "
            f"but that the flags of {name} are the reason is not shown."
        )
    return f"That is beyond what a relink of the baseline does: {range_}.", ""


def within_spread(comparison: Comparison, result: Result, workload: str = "") -> bool | None:
    """True if a variant's whole interval lies where another relink of the baseline would lie.

    Over all workloads, or of one. None where there is no spread of the same metric to tell by.
    """
    layouts = result.layouts
    is_other = comparison.variant == result.twin or comparison.metric.value != result.metric
    if layouts is None or is_other:
        return None
    only = workload if len(result.workload_names) > 1 else ""
    spread = next(
        (layout_spread for layout_spread in layouts.spreads if layout_spread.workload == only), None
    )
    if spread is None:
        return None
    return spread.low <= comparison.low and comparison.high <= spread.high


def _ends(spread: LayoutSpread) -> str:
    return between(_span(spread.low, spread.high))


def _span(low_ratio: float, high_ratio: float) -> Span:
    return Span(speedup(high_ratio), speedup(low_ratio), 0.0)


def _spread(layouts: LayoutFacts, result: Result) -> str:
    whole, *single = layouts.spreads
    measured = between(_span(whole.least, whole.greatest))
    text = (
        f"{pluralize(whole.relinks, 'relink')} of {clean(result.baseline)} "
        f"({clean(layouts.kind)}), raced against its natural link over all workloads, "
        f"lay {measured}; another one lies {_ends(whole)} ({plain_share(result.level)})."
    )
    if single:
        cells = (
            f"{clean(spread.workload)} {signed(speedup(spread.greatest))} to "
            f"{percent(speedup(spread.least))}"
            for spread in single
        )
        text += f" Measured by workload: {', '.join(cells)}."
    return text


def _splits(layouts: LayoutFacts, result: Result) -> list[str]:
    if not layouts.splits:
        return []
    head = (
        f"Standard deviation between layouts (with its upper bound at {plain_share(result.level)}) "
        "and of an execution"
    )
    if not layouts.raced:
        return [f"{head}: {_split(layouts.splits[0])}."]
    text = "; ".join(f"{clean(split.variant)} {_split(split)}" for split in layouts.splits)
    return [f"{head}, against the baseline: {text}."]


def _split(split: LayoutSplit) -> str:
    bound = f"at most {_share(split.layout_high)}" if split.layout_high else "none seen"
    text = f"{_share(split.layout_sd)} ({bound}) and {_share(split.execution_sd)}"
    total = split.layout_sd**2 + split.execution_sd**2
    if total > 0:
        text += f", layouts being {round(100 * split.layout_sd**2 / total)} % of the variance"
    return text


def _share(log_sd: float) -> str:
    return f"{100 * math.expm1(log_sd):.2f} %"


FRESH_LEVEL = 0.9
_MOST_NAMED = 4
# Nothing is foretold where it may be more than twice as fast or as slow as the middle.
_LARGEST_LOG = math.log(2)


def fresh_span(variant: str, result: Result) -> Span | None:
    """Range of the speedup of one fresh link over one of the baseline; None if hardly known."""
    layouts = None if result.layouts is None else result.layouts.of(variant)
    if layouts is None or not layouts.fresh_low or not layouts.fresh_high:
        return None
    if math.log(layouts.fresh_high / layouts.fresh_low) > 2 * _LARGEST_LOG:
        return None
    low, high = speedup(layouts.fresh_high), speedup(layouts.fresh_low)
    return Span(low, high, (low + high) / 2)


def fresh_sentence(variant: str, result: Result) -> tuple[str, ...]:
    """Note for the reader who links it again; nothing where that is not known."""
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
    known = (variant for variant in layouts.variants if variant.low or variant.execution_sd is None)
    wide = [
        variant_layouts
        for variant_layouts in known
        if variant_layouts.sd is not None and variant_layouts.sd > limit
    ]
    if not wide:
        return ()
    wide.sort(key=lambda layouts: -(layouts.sd or 0.0))
    texts = [
        f"{clean(variant_layouts.variant)} {_sd(variant_layouts)}"
        for variant_layouts in wide[:_MOST_NAMED]
    ]
    if len(wide) > _MOST_NAMED:
        texts.append(f"{pluralize(len(wide) - _MOST_NAMED, 'more variant')}")
    noise = "" if wide[0].execution_sd is not None else ", with the noise of executions in it"
    head = f"Standard deviation between links of one variant{noise}, where it exceeds the margin"
    return (f"{head} ({plain_share(result.level)}): {listed(tuple(texts))}.",)


def own_spread_text(result: Result) -> str:
    """Each variant's own standard deviation between layouts; empty where none is known."""
    layouts = result.layouts
    if layouts is None or not layouts.variants:
        return ""
    known = [variant for variant in layouts.variants if variant.sd is not None]
    if not known:
        return (
            f"Too few relinks of {clean(result.baseline)} differ for the A/A twin to have its own: "
            "the spread of one variant alone is not known."
        )
    text = "; ".join(f"{clean(one.variant)} {_sd(one)}{_noise(one)}" for one in known)
    once = all(one.execution_sd is None for one in known)
    noise = ", with the noise of executions in it" if once else ""
    return (
        f"Standard deviation between a variant's own layouts ({plain_share(result.level)}){noise}: "
        f"{text}."
    )


def _sd(row: VariantLayouts) -> str:
    """`1.2 % (0.8 to 2.1 %)`; `1.2 % (at most 2.1 %)` where nothing is known of the least."""
    sd, low, high = (sd_percent(value) for value in (row.sd, row.low, row.high))
    least = f"{low} to" if row.low else "at most"
    return f"{sd} % ({least} {high} %)"


def _noise(row: VariantLayouts) -> str:
    if row.execution_sd is None:
        return ""
    return f", of an execution {sd_percent(row.execution_sd)} %"


def sd_percent(log_sd: float | None) -> str:
    """`1.2`: a standard deviation of log costs in percent, to two figures."""
    return f"{100 * math.expm1(log_sd or 0.0):#.2g}".rstrip(".")
