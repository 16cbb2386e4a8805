"""How a function of x86-64 treats its variables: in registers, or in slots of the stack. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

# Address, mnemonic, operands, as capstone has them.
Word = tuple[int, str, str]

_SLOT = re.compile(r"(\w+) ptr (\[r[bs]p(?: [+-] \w+)?\])")
_PADDING = ("nop", "endbr", "int3", "data16", "cs nop", ".")
_ENDS = ("ret", "jmp", "call", "leave", "syscall", "rep", "hlt", "ud2", "lock", "xchg", "bnd")
_COMPARE = ("cmp", "test", "bt", "ucomis", "comis")
# These write rax and rdx beside what they name.
_WIDE_RESULTS = ("mul", "imul", "div", "idiv", "cdq", "cqo", "cdqe", "cwde", "rdtsc", "cpuid",
                 "cmpxchg", "xgetbv")  # fmt: skip
_OF_REGISTERS = ("rbx", "r12", "r13", "r14", "r15")


def _families() -> dict[str, str]:
    """Each name of a register, and what the whole register is called."""
    found: dict[str, str] = {}
    for name in ("ax", "bx", "cx", "dx", "si", "di", "bp", "sp"):
        low = name[0] + "l" if name[1] == "x" else name + "l"
        found |= dict.fromkeys((f"r{name}", f"e{name}", name, low), f"r{name}")
        found |= {name[0] + "h": f"r{name}"} if name[1] == "x" else {}
    for number in range(8, 16):
        found |= dict.fromkeys((f"r{number}{end}" for end in ("", "d", "w", "b")), f"r{number}")
    for number in range(32):
        found |= dict.fromkeys((f"{kind}mm{number}" for kind in "xyz"), f"xmm{number}")
    return found


_FAMILIES = _families()
_ARGUMENTS = frozenset(("rdi", "rsi", "rdx", "rcx", "r8", "r9", *(f"xmm{n}" for n in range(8))))


@dataclass(slots=True)
class StackUse:
    """What was counted in one function.

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
    """What registers and slots hold at one instruction of a straight piece of code."""

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
        self.held = {slot: each for slot, each in self.held.items() if "rbp" in slot}

    def written(self, register: str) -> None:
        """A register has another value."""
        self.fresh.discard(register)
        if self.held:
            self.held = {slot: each for slot, each in self.held.items() if each[0] != register}

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


def stack_use(words: Sequence[Word]) -> StackUse:
    """Count in the instructions of one function."""
    state = _State()
    targets = {each[2] for each in words if each[1][0] == "j"}
    for address, mnemonic, operands in words:
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
    found = None if mnemonic == "lea" or "[r" not in operands else _SLOT.search(operands)
    width, slot = ("", "") if found is None else found.groups()
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
