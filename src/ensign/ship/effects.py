"""Comparison of a build made without ensign's help with the one that was measured. Pure.

Both are compared part by part: objects by the calls that compiled what the artifact's link took,
its dependencies included; crates by the calls of rustc, which records nothing in what it makes.
Then by the link, by the code generators' own record (DWARF), by the protections in the artifact,
and by the findings that only the shipped build has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ensign.model.calls import Call, is_object
from ensign.model.finding_kinds.proof import NO_DEBUG_INFO
from ensign.model.findings import Severity
from ensign.model.shipment import Verified
from ensign.proof.comparison import Choices, Difference, differences, grouped
from ensign.proof.evidence import BuildEvidence, linked_calls, shown
from ensign.proof.facts import UnitKind
from ensign.proof.flags import effect, effects, lto_of
from ensign.proof.rules.judge import judge
from ensign.proof.rules.rust import is_of_rust
from ensign.proof.rust_calls import Crate, crates_of

# Debug information changes no code; a project that has none is no worse.
_NOT_AN_EFFECT = frozenset(("g",))
_NOT_LOST = frozenset((NO_DEBUG_INFO.code,))
# Without LTO the link generates no code; what decides then is the linker.
_OF_EVERY_LINK = frozenset(("use-ld",))
_SPELLED = {"O": "{}", "lto": "-flto ({})", "use-ld": "-fuse-ld={}", "compiler": "compiler {}"}
# What decides the code of a crate; the rest where something is linked, as others follow the link's.
_OF_CRATES = (
    *("opt-level", "codegen-units", "panic", "target-cpu", "target-feature"),
    *("llvm-args", "profile-use"),
)
_OF_RUST_LINKS = ("lto", "link-arg", "linker")


@dataclass(frozen=True, slots=True)
class ComparedBuild:
    """A build: what was seen of it, and the hash of the bytes of all its files that count.

    `others` are the same of the files that are loaded with the program.
    """

    seen: BuildEvidence
    identity: str
    others: tuple[BuildEvidence, ...] = ()

    def behind_links(self, real: Callable[[str], str]) -> ComparedBuild:
        """The same build, with programs by what they are: `cc` and `gcc-12` may be the same one."""

        def named(calls: tuple[Call, ...]) -> tuple[Call, ...]:
            return tuple(replace(call, program=real(call.program)) for call in calls)

        seen, *others = (
            replace(
                evidence,
                calls=named(evidence.calls),
                dependency_calls=named(evidence.dependency_calls),
            )
            for evidence in (self.seen, *self.others)
        )
        return replace(self, seen=seen, others=tuple(others))


@dataclass(frozen=True, slots=True)
class _Language:
    """Names and readers of parts of a program, and words for a difference between two."""

    files: str
    parts: str
    no_calls: str
    has_all: str
    read: Callable[[BuildEvidence], Mapping[str, Choices]]
    say: Callable[[Difference], str]


def verify(
    measured: ComparedBuild, shipped: ComparedBuild, asked: Iterable[str] | None = None
) -> Verified:
    """Compare them. Calls of dependencies are those that were dependencies' when measured.

    With `asked`, flags, only what these decide is compared: the rest was chosen for this compiler.
    """
    same_bytes = measured.identity == shipped.identity
    subjects = None if asked is None else sorted({*effects(asked), "compiler"})
    problems = list(_problems(measured.seen, shipped.seen, subjects))
    theirs = {other.file: other for other in shipped.others}
    for seen in measured.others:
        if seen.file in theirs:
            found = _problems(seen, theirs[seen.file], subjects)
            problems += (
                f"{seen.file}: {problem.removeprefix(f'{seen.file}: ')}" for problem in found
            )
        else:
            problems.append(f"{seen.file}, which ran with the measured program, is not shipped")
    notes = () if problems else tuple(_notes(measured.seen, same_bytes=same_bytes))
    return Verified(tuple(problems), notes, same_bytes)


def _problems(
    measured: BuildEvidence, shipped: BuildEvidence, subjects: Sequence[str] | None
) -> Iterator[str]:
    """Differences of one file; `subjects` are those that are compared, if not all."""
    if is_of_rust(measured):
        yield from _part_problems(measured, shipped, None, _RUST)
    else:
        yield from _part_problems(measured, shipped, subjects, _C)
        yield from _link_problems(measured, shipped, subjects)
        yield from _generated_problems(measured, shipped)
    if subjects is None:
        yield from _hardening_problems(measured, shipped)
    if measured.proof.binary.bolted and not shipped.proof.binary.bolted:
        yield "BOLT was not applied"
    yield from _new_findings(measured, _parted(shipped, measured))


def _parted(shipped: BuildEvidence, measured: BuildEvidence) -> BuildEvidence:
    """The shipped build with its dependencies' calls apart, as they are in the measured one."""
    foreign = {output.path for call in measured.dependency_calls for output in call.outputs}
    foreign -= {output.path for call in measured.calls for output in call.outputs}
    apart = grouped(
        (any(output.path in foreign for output in call.outputs), call) for call in shipped.calls
    )
    own, of_dependencies = tuple(apart.get(False, ())), tuple(apart.get(True, ()))
    return replace(shipped, calls=own, dependency_calls=of_dependencies)


def _part_problems(
    measured: BuildEvidence,
    shipped: BuildEvidence,
    subjects: Sequence[str] | None,
    language: _Language,
) -> Iterator[str]:
    ours, theirs = language.read(measured), language.read(shipped)
    if not ours or not theirs:
        yield language.no_calls
        return
    for names, text in (
        (ours.keys() - theirs.keys(), "are not in it"),
        (theirs.keys() - ours.keys(), "are in it that were not measured"),
    ):
        if names:
            yield f"{len(names)} {language.files} {text}: {shown(sorted(names))}"
    differing = grouped(
        (language.say(difference), name)
        for name in sorted(ours.keys() & theirs.keys())
        for difference in differences(ours[name], theirs[name], subjects)
    )
    for text, parts in differing.items():
        yield f"{text} in {len(parts)} of {len(ours)} {language.parts} ({shown(parts)})"


def _objects(seen: BuildEvidence) -> dict[str, Choices]:
    """Choices that decide the code of each object in the artifact, by its path."""
    every = (*seen.dependency_calls, *seen.calls)
    found: dict[str, Choices] = {}
    for call in linked_calls(replace(seen, calls=every, dependency_calls=(), took=frozenset())):
        names = [output.path for output in call.outputs if is_object(output.path)]
        choices = {**_choices(call), "compiler": call.program}
        for name in names or [f"{call.cwd}/{source}" for source in call.line.sources]:
            found[name] = choices
    return found


def _choices(call: Call) -> Choices:
    call_effects = effects(call.ran[1:])
    return {
        subject: value for subject, value in call_effects.items() if subject not in _NOT_AN_EFFECT
    }


def _say(difference: Difference) -> str:
    if difference.there is None:
        return f"{_spelled(difference.subject, difference.asked)} is missing"
    there = _spelled(difference.subject, difference.there)
    if difference.asked is None:
        return f"{there} was not measured, but is there"
    return f"{_spelled(difference.subject, difference.asked)} was measured, {there} is there"


def _spelled(subject: str, value: str | None) -> str:
    if subject.startswith("D:"):
        return f"-D{subject[2:]}={value}"
    return _SPELLED.get(subject, f"{subject}={{}}").format(value)


def _crates(seen: BuildEvidence) -> dict[str, Choices]:
    """Choices that decide the code of each crate, by its name."""
    return {
        crate.name: {**_choices_of_crate(crate), "compiler": crate.call.program}
        for crate in crates_of(seen)
    }


def _choices_of_crate(crate: Crate) -> dict[str, str]:
    """Cargo leaves out what is the default; its own without LTO is `thin` within a crate."""
    options = (*_OF_CRATES, *(_OF_RUST_LINKS if crate.links else ()))
    values = {option: crate.value(option) for option in options if crate.value(option)}
    return values | ({"profile-use": "on"} if "profile-use" in values else {})


def _say_of_crates(difference: Difference) -> str:
    if difference.subject == "compiler":
        return f"{difference.asked} compiled what was measured, {difference.there} compiles this"
    was, now = difference.asked or "its default", difference.there or "its default"
    return f"-C {difference.subject}={was} was measured, {now} is there"


_C = _Language(
    files="objects",
    parts="compile units",
    no_calls="no compiler call was recorded, so its flags cannot be compared",
    has_all="has the flags that decide code as measured",
    read=_objects,
    say=_say,
)
_RUST = _Language(
    files="crates",
    parts="crates",
    no_calls="no call of rustc was recorded, so its options cannot be compared",
    has_all="has the options of rustc that decide code as measured",
    read=_crates,
    say=_say_of_crates,
)


def _link_problems(
    measured: BuildEvidence, shipped: BuildEvidence, subjects: Sequence[str] | None
) -> Iterator[str]:
    was, now = measured.link, shipped.link
    if was is None or now is None:
        yield "no link was recorded, so it cannot be compared"
        return
    compiling = tuple(linked_calls(shipped))
    lto = any(lto_of(call.ran[1:]) for call in (*compiling, was, now))
    ours, theirs = (
        {key: choice for key, choice in _choices(call).items() if lto or key in _OF_EVERY_LINK}
        for call in (was, now)
    )
    # A project that compiles and links with the same variable says more at the link than counts.
    of_units = effects(word for call in compiling for word in call.ran[1:])
    theirs = {key: v for key, v in theirs.items() if key in ours or of_units.get(key) != v}
    for difference in differences(ours, theirs, subjects):
        yield f"at the link, {_say(difference)}"
    for flag in () if shipped.request is None else shipped.request.flags.link:
        told_by_bytes = flag in ("-pie", "-no-pie") or flag.startswith("-Wl,-z,")
        if effect(flag) is None and not told_by_bytes and flag not in now.ran:
            yield f"at the link, {flag} is missing"
    if was.program != now.program:
        yield f"{was.program} linked what was measured, {now.program} links this"


def _generated_problems(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    """With what flags GCC says that it generated code at the link."""
    ours, theirs = _generated(measured), _generated(shipped)
    if ours is not None and theirs is not None and ours != theirs:
        was, now = (" ".join(sorted(values)) or "nothing" for values in (ours, theirs))
        yield f"the link generated code at {was} when measured, at {now} now"


def _generated(seen: BuildEvidence) -> frozenset[str] | None:
    """Levels of the units that the link generated; None where there is no debug information."""
    units = seen.proof.binary.units
    if not any(unit.flags is not None for unit in units):
        return None
    ltrans = [unit for unit in units if unit.kind is UnitKind.LTRANS]
    return frozenset(effects(unit.flags or ()).get("O", "no -O") for unit in ltrans)


def _hardening_problems(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    ours, theirs = _protections(measured), _protections(shipped)
    for difference in differences(ours, theirs, ours):
        asked = f"{difference.subject} was {difference.asked} when measured"
        yield f"protections: {asked}, and is {difference.there}"


def _protections(seen: BuildEvidence) -> Choices:
    values = asdict(seen.proof.binary.hardening)
    switches = {name: value for name, value in values.items() if isinstance(value, bool)}
    switches["FORTIFY"] = bool(values["checked"])
    words = {True: "there", False: "absent"}
    return {name.replace("_", " "): words[value] for name, value in switches.items()}


def _new_findings(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    known = {finding.code for finding in judge(measured)} | _NOT_LOST
    for finding in judge(shipped):
        if finding.severity is not Severity.NOTE and finding.code not in known:
            yield f"{finding.text} ({finding.code})"


def _notes(measured: BuildEvidence, *, same_bytes: bool) -> Iterator[str]:
    language = _RUST if is_of_rust(measured) else _C
    parts = language.read(measured)
    lto = sum(part.get("lto", "off") != "off" for part in parts.values())
    for_lto = f" ({lto} of them for LTO)" if lto and language is _C else ""
    yield f"each of {len(parts)} {language.parts} {language.has_all}{for_lto}"
    yield "the link and the protections are as measured"
    if same_bytes:
        yield "the loaded bytes are equal to those that were measured"
    else:
        yield "the loaded bytes differ from those that were measured, but nothing of the above does"
