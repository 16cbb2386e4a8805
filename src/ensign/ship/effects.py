"""Whether a build made without ensign's help has the effects of the one that was measured. Pure.

Both are compared object by object, by the calls that compiled what the artifact's link took, its
dependencies included; then by the link, by the code generators' own record (DWARF), by the
protections in the artifact, and by the findings that only the shipped build has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from ensign.model.calls import Call, is_object
from ensign.model.finding_kinds.proof import NO_DEBUG_INFO
from ensign.model.findings import Severity
from ensign.model.shipment import Verified
from ensign.proof.evidence import BuildEvidence, linked_calls, shown
from ensign.proof.facts import Hardening, UnitKind
from ensign.proof.flags import Effects, effect, effects, lto_of
from ensign.proof.rules import judge
from ensign.proof.rules_rust import is_of_rust
from ensign.ship.rust_effects import rust_notes, rust_problems

# Of flags, those that are compared; None is all.
Subjects = frozenset[str] | None

# Debug information changes no code; a project that has none is no worse.
_NOT_AN_EFFECT = frozenset(("g",))
_NOT_LOST = frozenset((NO_DEBUG_INFO.code,))
# Without LTO the link generates no code; what decides then is the linker.
_OF_EVERY_LINK = frozenset(("use-ld",))
_SPELLED = {"O": "{}", "lto": "-flto ({})", "use-ld": "-fuse-ld={}", "compiler": "compiler {}"}


@dataclass(frozen=True, slots=True)
class ComparedBuild:
    """A build: what was seen of it, and the hash of the bytes of all its files that count.

    `others` are the same of the files that are loaded with the program.
    Programs in its calls are named by what they really are, behind all links.
    """

    seen: BuildEvidence
    identity: str
    others: tuple[BuildEvidence, ...] = ()


def verify(
    measured: ComparedBuild, shipped: ComparedBuild, asked: Iterable[str] | None = None
) -> Verified:
    """Compare them. Calls of dependencies are those that were dependencies' when measured.

    With `asked`, flags, only what these decide is compared: the rest was chosen for this compiler.
    """
    same_bytes = measured.identity == shipped.identity
    subjects = None if asked is None else frozenset((*effects(asked), "compiler"))
    problems = list(_problems(measured.seen, shipped.seen, subjects))
    theirs = {each.file: each for each in shipped.others}
    for seen in measured.others:
        if seen.file in theirs:
            found = _problems(seen, theirs[seen.file], subjects)
            problems += (
                each if each.startswith(f"{seen.file}: ") else f"{seen.file}: {each}"
                for each in found
            )
        else:
            problems.append(f"{seen.file}, which ran with the measured program, is not shipped")
    notes = () if problems else tuple(_notes(measured.seen, same_bytes=same_bytes))
    return Verified(tuple(problems), notes, same_bytes)


def _problems(measured: BuildEvidence, shipped: BuildEvidence, subjects: Subjects) -> Iterator[str]:
    """Of one file."""
    if is_of_rust(measured):
        yield from rust_problems(measured, shipped)
    else:
        yield from _unit_problems(measured, shipped, subjects)
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
    apart = [any(output.path in foreign for output in call.outputs) for call in shipped.calls]
    calls = list(zip(shipped.calls, apart, strict=True))
    return replace(
        shipped,
        calls=tuple(call for call, is_foreign in calls if not is_foreign),
        dependency_calls=tuple(call for call, is_foreign in calls if is_foreign),
    )


def _all_calls(seen: BuildEvidence) -> BuildEvidence:
    every = (*seen.dependency_calls, *seen.calls)
    return replace(seen, calls=every, dependency_calls=(), took=frozenset())


def _objects(seen: BuildEvidence) -> dict[str, Effects]:
    """What decides the code of each object that went into the artifact, by its path."""
    found: dict[str, Effects] = {}
    for call in linked_calls(_all_calls(seen)):
        names = [each.path for each in call.outputs if is_object(each.path)]
        for name in names or [f"{call.cwd}/{source}" for source in call.line.sources]:
            found[name] = {**_of(call), "compiler": call.program}
    return found


def _of(call: Call) -> Effects:
    found = effects(call.ran[1:])
    return {subject: value for subject, value in found.items() if subject not in _NOT_AN_EFFECT}


def _unit_problems(
    measured: BuildEvidence, shipped: BuildEvidence, subjects: Subjects
) -> Iterator[str]:
    ours, theirs = _objects(measured), _objects(shipped)
    if not ours or not theirs:
        yield "no compiler call was recorded, so its flags cannot be compared"
        return
    missing = sorted(ours.keys() - theirs.keys())
    more = sorted(theirs.keys() - ours.keys())
    if missing:
        yield f"{len(missing)} objects are not in it: {shown(missing)}"
    if more:
        yield f"{len(more)} objects are in it that were not measured: {shown(more)}"
    differing: dict[str, list[str]] = {}
    for name in sorted(ours.keys() & theirs.keys()):
        for text in _differences(ours[name], theirs[name], subjects):
            differing.setdefault(text, []).append(name)
    for text, names in differing.items():
        yield f"{text} in {len(names)} of {len(ours)} compile units ({shown(names)})"


def _differences(ours: Effects, theirs: Effects, subjects: Subjects) -> Iterator[str]:
    for subject in sorted(ours.keys() | theirs.keys()):
        if ours.get(subject) == theirs.get(subject):
            continue
        if subjects is not None and subject not in subjects:
            continue
        if subject not in theirs:
            yield f"{_spelled(subject, ours)} is missing"
        elif subject not in ours:
            yield f"{_spelled(subject, theirs)} was not measured, but is there"
        else:
            was, now = _spelled(subject, ours), _spelled(subject, theirs)
            yield f"{was} was measured, {now} is there"


def _spelled(subject: str, found: Effects) -> str:
    value = found[subject]
    if subject.startswith("D:"):
        return f"-D{subject[2:]}={value}"
    return _SPELLED.get(subject, f"{subject}={{}}").format(value)


def _link_problems(
    measured: BuildEvidence, shipped: BuildEvidence, subjects: Subjects
) -> Iterator[str]:
    was, now = measured.link, shipped.link
    if was is None or now is None:
        yield "no link was recorded, so it cannot be compared"
        return
    compiled = any(lto_of(call.ran[1:]) for call in linked_calls(shipped))
    lto = compiled or lto_of(was.ran[1:]) or lto_of(now.ran[1:])

    def of_link(call: Call) -> Effects:
        return {key: each for key, each in _of(call).items() if lto or key in _OF_EVERY_LINK}

    ours, theirs = of_link(was), of_link(now)
    # A project that compiles and links with the same variable says more at the link than counts.
    of_units = effects(word for call in linked_calls(shipped) for word in call.ran[1:])
    theirs = {key: v for key, v in theirs.items() if key in ours or of_units.get(key) != v}
    yield from (f"at the link, {text}" for text in _differences(ours, theirs, subjects))
    wanted = () if shipped.request is None else shipped.request.flags.link
    for flag in wanted:
        told_by_bytes = flag in ("-pie", "-no-pie") or flag.startswith("-Wl,-z,")
        if effect(flag) is None and not told_by_bytes and flag not in now.ran:
            yield f"at the link, {flag} is missing"
    if was.program != now.program:
        yield f"{was.program} linked what was measured, {now.program} links this"


def _generated_problems(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    """With what flags GCC says that it generated code at the link."""
    ours, theirs = _generated(measured), _generated(shipped)
    if theirs is None:
        return
    if ours is not None and ours != theirs:
        was, now = (" ".join(sorted(each)) or "nothing" for each in (ours, theirs))
        yield f"the link generated code at {was} when measured, at {now} now"


def _generated(seen: BuildEvidence) -> frozenset[str] | None:
    """Levels of the units that the link generated; None where there is no debug information."""
    units = seen.proof.binary.units
    if not any(unit.flags is not None for unit in units):
        return None
    ltrans = [unit for unit in units if unit.kind is UnitKind.LTRANS]
    return frozenset(effects(unit.flags or ()).get("O", "no -O") for unit in ltrans)


def _hardening_problems(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    ours, theirs = measured.proof.binary.hardening, shipped.proof.binary.hardening
    for each in fields(Hardening):
        was, now = getattr(ours, each.name), getattr(theirs, each.name)
        if isinstance(was, bool) and was != now:
            name = each.name.replace("_", " ")
            yield f"protections: {name} was {_said(was)} when measured, and is {_said(now)}"
    if bool(ours.checked) != bool(theirs.checked):
        was, now = (_said(each.checked) for each in (ours, theirs))
        yield f"protections: FORTIFY was {was} when measured, and is {now}"


def _said(value: object) -> str:
    return "there" if value else "absent"


def _new_findings(measured: BuildEvidence, shipped: BuildEvidence) -> Iterator[str]:
    known = {finding.code for finding in judge(measured)} | _NOT_LOST
    for finding in judge(shipped):
        if finding.severity is not Severity.NOTE and finding.code not in known:
            yield f"{finding.text} ({finding.code})"


def _notes(measured: BuildEvidence, *, same_bytes: bool) -> Iterator[str]:
    if is_of_rust(measured):
        yield from rust_notes(measured)
    else:
        count = len(_objects(measured))
        lto = _lto_word(_objects(measured).values())
        yield f"each of {count} compile units has the flags that decide code as measured{lto}"
    yield "the link and the protections are as measured"
    if same_bytes:
        yield "the loaded bytes are equal to those that were measured"
    else:
        yield "the loaded bytes differ from those that were measured, but nothing of the above does"


def _lto_word(objects: Iterable[Mapping[str, str]]) -> str:
    count = sum(each.get("lto", "off") != "off" for each in objects)
    return f" ({count} of them for LTO)" if count else ""
