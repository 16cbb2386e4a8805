"""Detection of unoptimized code (-O0): by what functions do with their variables.

Unoptimized code keeps each variable in a slot of the stack. It stores its arguments there first of
all, and loads from there at each use, even what a register still holds. Optimized code does that
with a few variables of a few functions: where it has too few registers, or where a variable is
volatile. `bench/unoptimized.py` says how well that tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate, compress
from pathlib import Path

from ensign.meter.client import find_meter
from ensign.meter.questions import Instruction, MachineCode, disassembled
from ensign.proof.bounded_elf import BoundedElf, DamagedFile, elf_of
from ensign.proof.functions import functions_of
from ensign.proof.loaded_bytes import code_sections

_STACK_SLOT = re.compile(r"(\w+) ptr (\[r[bs]p(?: [+-] \w+)?\])")
_PADDING = ("nop", "endbr", "int3", "data16", "cs nop", ".")
_ENDS = ("ret", "jmp", "call", "leave", "syscall", "rep", "hlt", "ud2", "lock", "xchg", "bnd")
_COMPARE = ("cmp", "test", "bt", "ucomis", "comis")
# These write rax and rdx beside what they name.
_WIDE_RESULTS = ("mul", "imul", "div", "idiv", "cdq", "cqo", "cdqe", "cwde", "rdtsc", "cpuid",
                 "cmpxchg", "xgetbv")  # fmt: skip
_OF_REGISTERS = ("rbx", "r12", "r13", "r14", "r15")


def _families() -> dict[str, str]:
    """Each name of a register, and what the whole register is called."""
    whole: dict[str, str] = {}
    for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"):
        low = name[0] + "l" if name[1] == "x" else name + "l"
        whole |= dict.fromkeys((f"r{name}", f"e{name}", name, low), f"r{name}")
        whole |= {name[0] + "h": f"r{name}"} if name[1] == "x" else {}
    for number in range(8, 16):
        whole |= dict.fromkeys((f"r{number}{end}" for end in ("", "d", "w", "b")), f"r{number}")
    for number in range(32):
        whole |= dict.fromkeys((f"{kind}mm{number}" for kind in "xyz"), f"xmm{number}")
    return whole


_FAMILIES = _families()
_ARGUMENTS = frozenset(("rdi", "rsi", "rdx", "rcx", "r8", "r9", *(f"xmm{n}" for n in range(8))))


@dataclass(slots=True)
class StackUse:
    """Counts of one function.

    `slots` are instructions that load or store a slot of its frame, `reloads` loads of what a
    general register still holds, `arguments` those that were stored first of all and loaded again.
    `saved` are registers that are kept for the caller, so that variables may stay in them.
    `vectors` are instructions on more than one number.
    """

    read: int = 0
    slots: int = 0
    reloads: int = 0
    arguments: int = 0
    saved: int = 0
    vectors: int = 0
    framed: bool = False


@dataclass(slots=True)
class _State:
    """Content of registers and slots at one instruction of a straight piece of code."""

    use: StackUse = field(default_factory=StackUse)
    # By slot: the register that has its value, and the width.
    held: dict[str, tuple[str, str]] = field(default_factory=dict)
    spilled: set[str] = field(default_factory=set)
    fresh: set[str] = field(default_factory=lambda: set(_ARGUMENTS))

    def anywhere(self) -> None:
        """It may come from elsewhere, or go there."""
        self.held.clear()
        self.fresh.clear()

    def moved(self) -> None:
        """The stack pointer has."""
        self.held = {slot: value for slot, value in self.held.items() if "rbp" in slot}

    def written(self, register: str) -> None:
        """A register has another value."""
        self.fresh.discard(register)
        if self.held:
            self.held = {slot: value for slot, value in self.held.items() if value[0] != register}

    def loaded(self, slot: str, width: str, register: str) -> None:
        """A slot is read, into a register or for a calculation with it."""
        if slot in self.spilled:
            self.spilled.discard(slot)
            self.use.arguments += 1
        holder = self.held.get(slot)
        if holder is not None and holder[1] == width and not holder[0].startswith("xmm"):
            self.use.reloads += not register.startswith("xmm")

    def stored(self, slot: str, width: str, register: str) -> None:
        """A slot is written; `register` is empty where it is no plain copy of one."""
        self.held.pop(slot, None)
        if register:
            self.held[slot] = (register, width)
            if register in self.fresh:
                self.spilled.add(slot)


def stack_use(instructions: Sequence[Instruction]) -> StackUse:
    """Count in the instructions of one function."""
    state = _State()
    targets = {
        instruction.operands for instruction in instructions if instruction.mnemonic[0] == "j"
    }
    for address, _, mnemonic, operands in instructions:
        if mnemonic.startswith(_PADDING):
            continue
        state.use.read += 1
        if hex(address) in targets:
            state.anywhere()
        if "xmmword" in operands or "ymm" in operands or "zmm" in operands:
            state.use.vectors += 1
        if mnemonic in ("push", "pop"):
            state.use.saved += mnemonic == "push" and operands in _OF_REGISTERS
            state.moved()
        elif mnemonic.startswith(_ENDS):
            state.anywhere()
        elif mnemonic == "mov" and operands == "rbp, rsp":
            state.use.framed = True
        else:
            _step(state, mnemonic, operands)
        if mnemonic[0] == "j":
            state.fresh.clear()
    return state.use


def _step(state: _State, mnemonic: str, operands: str) -> None:
    first, _, second = operands.partition(", ")
    target = _FAMILIES.get(first, "")
    compares, copies = mnemonic.startswith(_COMPARE), mnemonic.startswith("mov")
    match = None if mnemonic == "lea" or "[r" not in operands else _STACK_SLOT.search(operands)
    width, slot = ("", "") if match is None else match.groups()
    reads = bool(slot) and (slot in second or compares or not copies)
    state.use.slots += bool(slot)
    if mnemonic[0] == "f":  # x87 takes numbers from memory alone
        state.held.clear()
    elif reads:
        state.loaded(slot, width, target)
    kept = reads and copies and bool(target) and slot not in state.held
    if target == "rsp":
        state.moved()
    if target and not compares:
        state.written(target)
    if mnemonic in _WIDE_RESULTS:
        state.written("rax")
        state.written("rdx")
    if kept:
        state.held[slot] = (target, width)
    if "[" in first and not compares:
        if slot:
            state.stored(slot, width, _FAMILIES.get(second, "") if copies else "")
        else:
            state.held.clear()


_MOST_BYTES = 8 << 20
_MOST_DISASSEMBLED = 1 << 20
_LONGEST_FUNCTION = 256 << 10
# Instructions that move or compare slots of the stack, as a quick look for them: MOV, ADD, CMP with
# a place by rbp, or by rsp. Of unoptimized code each twentieth byte or so begins one.
_PLACE_BY_RBP = rb"[\x45\x4d\x55\x5d\x65\x6d\x75\x7d\x85\x8d\x95\x9d\xa5\xad\xb5\xbd]"
_PLACE_BY_RSP = rb"[\x44\x4c\x54\x5c\x64\x6c\x74\x7c\x84\x8c\x94\x9c\xa4\xac\xb4\xbc]\x24"
_SLOT = re.compile(
    rb"[\x03\x39\x3b\x83\x89\x8b\xc7](?:" + _PLACE_BY_RBP + rb"|" + _PLACE_BY_RSP + rb")"
)
_BYTES_PER_SLOT, _SHORT_BYTES = 100, 48
_SHORT, _FEW_NAMES = 12, 200
# Runs of neighbors are read, so that parts are seen.
_NEIGHBORS = 64
# Shares of the instructions: of unoptimized code 0.36 and 0.037 in the mean, of other 0.07, 0.0005.
_SLOTS, _MANY_SLOTS, _MOSTLY = 0.15, 0.25, 0.35
_RELOADS, _MANY_RELOADS = 0.012, 0.02
# Who has neither many slots nor reloads is optimized; between that and the other nothing is said.
_DOUBTFUL_SLOTS = 0.2
# A run of functions: what one that is unoptimized adds, what one that is not takes away. An object
# is a run, since linkers keep the order; others are two or three by chance in a large program.
_GAIN, _STRONG_GAIN, _LOSS, _ENOUGH = 4.0, 8.0, 1.6, 20.0
_STRONG_SLOTS, _STRONG_RELOADS, _CERTAIN_RELOADS = 0.3, 5, 40
_WHOLE, _FEW_OTHERS = 0.75, 2
_FEW, _FEW_RELOADS = 3, 3


_SUMS = ("looked_at", "functions", "unoptimized", "names", "framed", "instructions", "slots",
         "reloads", "vectors")  # fmt: skip
# Of the C library's start files.
_START = frozenset(
    ("_start", "_init", "_fini", "deregister_tm_clones", "register_tm_clones", "frame_dummy",
     "__do_global_dtors_aux", "_dl_relocate_static_pie")
)  # fmt: skip
# Go and Free Pascal have conventions of their own.
_OTHERS = frozenset((".gopclntab", ".note.go.buildid", ".fpcdata"))


class _Look(Enum):
    UNOPTIMIZED = 1
    OPTIMIZED = 2
    OPEN = 3


@dataclass(frozen=True, slots=True)
class Unoptimized:
    """Counts of a file's functions.

    Of those `looked_at`, `functions` can be told, `unoptimized` of them look so; `names` are their
    names, as far as there are symbols. All other figures are of these alone: `framed` have a frame
    pointer; of `instructions` so many load or store `slots`, `reloads` what a register holds, and
    `vectors` work on several numbers. `partial`: pieces were read, not all. `whole` is True where
    nearly all of it looks so, else it is a part of it.
    """

    looked_at: int = 0
    functions: int = 0
    unoptimized: int = 0
    names: tuple[str, ...] = ()
    framed: int = 0
    instructions: int = 0
    slots: int = 0
    reloads: int = 0
    vectors: int = 0
    partial: bool = False
    whole: bool = False

    def __bool__(self) -> bool:
        """True if anything of it looks unoptimized."""
        return self.unoptimized > 0


def read_unoptimized(source: Path | bytes) -> Unoptimized | None:
    """Read it. None where it is not of x86-64, of a language of its own ways, or damaged."""
    try:
        with elf_of(source) as elf:
            names = {section.name for section in elf.iter_sections()}
            if elf["e_machine"] != "EM_X86_64" or names & _OTHERS:
                return None
            read, partial = _functions(elf)
            total = sum(int(code_section["sh_size"]) for code_section in code_sections(elf))
            return replace(_judged(read), partial=partial or total > _MOST_BYTES)
    except DamagedFile:
        return None


def together(objects: Iterable[bytes]) -> Unoptimized:
    """Members of an archive, or as many of them as are read of one file."""
    unoptimized, size = Unoptimized(whole=True), 0
    for content in objects:
        look, size = read_unoptimized(content), size + len(content)
        if look is None:
            continue
        sums = {name: getattr(unoptimized, name) + getattr(look, name) for name in _SUMS}
        whole = unoptimized.whole and (look.whole or not look.looked_at)
        unoptimized = Unoptimized(**sums, partial=unoptimized.partial or look.partial, whole=whole)
        if size > _MOST_BYTES:
            return replace(unoptimized, partial=True)
    return unoptimized


@dataclass(frozen=True, slots=True)
class _Read:
    name: str
    use: StackUse | None
    look: _Look


def _functions(elf: BoundedElf) -> tuple[list[_Read], bool]:
    """All that were looked at, and whether some of them were not read."""
    functions = [
        function for function in functions_of(elf, _MOST_BYTES) if function.name not in _START
    ]
    doubtful = [_has_slots(function.code) for function in functions]
    size = sum(
        len(function.code) for function, read in zip(functions, doubtful, strict=True) if read
    )
    step = 1 + size // _MOST_DISASSEMBLED
    numbered = zip(functions, doubtful, accumulate(doubtful), strict=True)
    wanted = [read and not number // _NEIGHBORS % step for _, read, number in numbered]
    codes = (
        MachineCode(64, function.address, function.code[:_LONGEST_FUNCTION])
        for function in functions
    )
    answers = iter(disassembled(find_meter(), compress(codes, wanted)))
    reads = []
    for each, doubt, read in zip(functions, doubtful, wanted, strict=True):
        use = stack_use(next(answers)) if read else None
        short = len(each.code) < _SHORT_BYTES
        look = _look(use) if use is not None else _Look.OPEN if doubt or short else _Look.OPTIMIZED
        reads.append(_Read(each.name, use, look))
    return reads, step > 1


def _has_slots(code: bytes) -> bool:
    """True if it may be unoptimized; what is short has to be read to know."""
    if len(code) < _SHORT_BYTES:
        return _SLOT.search(code) is not None
    return len(_SLOT.findall(code)) * _BYTES_PER_SLOT > len(code)


def _look(use: StackUse) -> _Look:
    if not use.read:
        return _Look.OPEN
    slots, reloads = use.slots / use.read, use.reloads / use.read
    if slots >= _SLOTS and use.saved <= use.framed:
        many = slots >= _MANY_SLOTS and reloads >= _MANY_RELOADS
        stored = use.arguments > 0 and reloads >= _RELOADS
        nothing_else = use.framed and use.arguments and slots >= _MOSTLY and not use.saved
        if stored or nothing_else or (many and use.reloads >= (2 if use.framed else _FEW_RELOADS)):
            return _Look.UNOPTIMIZED
    doubtful = slots >= _DOUBTFUL_SLOTS or reloads >= _RELOADS
    if use.read < _SHORT or (doubtful and use.saved <= 2):  # noqa: PLR2004  # as few as at -O0
        return _Look.OPEN
    return _Look.OPTIMIZED


def _judged(read: Sequence[_Read]) -> Unoptimized:
    bad = [one for one in read if one.look is _Look.UNOPTIMIZED]
    told = len(bad) + sum(one.look is _Look.OPTIMIZED for one in read)
    others = told - len(bad)
    whole = bool(bad) and (len(bad) >= _WHOLE * told or others <= _FEW_OTHERS)
    if whole and not _is_enough(bad, others):
        return Unoptimized(looked_at=len(read), functions=told)
    if not whole:
        bad = [one for run in _runs(read) for one in run if one.look is _Look.UNOPTIMIZED]
    uses = [one.use for one in bad if one.use is not None]
    return Unoptimized(
        looked_at=len(read),
        functions=told,
        unoptimized=len(bad),
        names=tuple(one.name for one in bad if one.name)[:_FEW_NAMES],
        framed=sum(use.framed for use in uses),
        instructions=sum(use.read for use in uses),
        slots=sum(use.slots for use in uses),
        reloads=sum(use.reloads for use in uses),
        vectors=sum(use.vectors for use in uses),
        whole=whole and bool(bad),
    )


def _is_enough(bad: Sequence[_Read], others: int) -> bool:
    """True if so few functions are no chance."""
    reloads = sum(read.use.reloads for read in bad if read.use is not None)
    return len(bad) > _FEW or (len(bad) > others and reloads >= _FEW_RELOADS)


def _runs(read: Sequence[_Read]) -> Iterable[Sequence[_Read]]:
    """Neighbors most of which look unoptimized: the runs of the highest sums, one after another."""
    at = 0
    while at < len(read):
        total = best = 0.0
        start = first = last = at
        for number in range(at, len(read)):
            if total <= 0:
                if best >= _ENOUGH:
                    break
                total, best, start = 0.0, 0.0, number
            total += _score(read[number])
            if total > best:
                best, first, last = total, start, number + 1
        if best < _ENOUGH:
            return
        yield read[first:last]
        at = last


def _score(read: _Read) -> float:
    use = read.use
    if read.look is not _Look.UNOPTIMIZED or use is None:
        return -_LOSS if read.look is _Look.OPTIMIZED else 0.0
    strong = use.framed and use.arguments and use.slots >= _STRONG_SLOTS * use.read
    if strong and use.reloads >= _CERTAIN_RELOADS:
        return _ENOUGH
    return _STRONG_GAIN if strong and use.reloads >= _STRONG_RELOADS else _GAIN
