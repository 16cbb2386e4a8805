"""Processors of fifteen years beside what compilers make for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ensign.host.machine import processor_of
from ensign.meter.questions import read_processor
from ensign.model.errors import InputError
from ensign.model.instructions import FIRST_LEVEL, LEVELS, InstructionSets
from ensign.toolchains.find import ToolchainFinder
from ensign.tools.ship import Host, require_hosts
from processors import PROCESSORS, stand_in_here
from real_processes import PlainProcesses

LEVEL_OF = {
    "penryn": FIRST_LEVEL, "nehalem": "x86-64-v2", "k10": FIRST_LEVEL, "piledriver": "x86-64-v2",
    "haswell": "x86-64-v3", "skylake-sp": "x86-64-v4", "zen": "x86-64-v3", "zen4": "x86-64-v4",
    "sapphire-rapids": "x86-64-v4", "zen5": "x86-64-v4", "arrow-lake": "x86-64-v3",
    "granite-rapids-vm": "x86-64-v4",
}  # fmt: skip
COMPILERS = ("gcc-12", "clang-19")
_BITS = 0xFFFFFFFF


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> ToolchainFinder:
    return ToolchainFinder(PlainProcesses(), tmp_path_factory.mktemp("finder"))


def allowed(finder: ToolchainFinder, compiler: str, flags: tuple[str, ...]) -> InstructionSets:
    """By the first of the flags that the compiler knows."""
    toolchain = finder.find(compiler)
    found = (finder.instructions(toolchain, (flag,)) for flag in flags)
    return next(each for each in found if each is not None)


def test_they_are_twelve() -> None:
    assert LEVEL_OF.keys() == PROCESSORS.keys()
    assert len(PROCESSORS) == 12


@pytest.mark.parametrize("name", PROCESSORS)
def test_its_level_is_known(name: str) -> None:
    for processor in (PROCESSORS[name].processor, PROCESSORS[name].shown):
        levels = [FIRST_LEVEL, *(level for level in LEVELS if not processor.lacks(level))]
        assert levels == [FIRST_LEVEL, *LEVELS][: len(levels)]
        assert levels[-1] == LEVEL_OF[name]


@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_is_made_for_it_is_refused_nowhere(
    finder: ToolchainFinder, compiler: str, name: str
) -> None:
    facts = PROCESSORS[name]
    used = allowed(finder, compiler, tuple(f"-march={each}" for each in facts.march))
    used = replace(used, sets=used.sets - facts.taken_away)
    assert not require_hosts(name, used, (Host("asked", facts.processor.sets),))
    doubts = require_hosts(name, used, (Host("copy", facts.shown.sets),))
    assert not doubts or facts.shown.sets.not_known(used)


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_build_of_a_higher_level_is_refused(name: str) -> None:
    order = [FIRST_LEVEL, *LEVELS]
    for level, sets in LEVELS.items():
        for processor in (PROCESSORS[name].processor, PROCESSORS[name].shown):
            host, used = Host("it", processor.sets), InstructionSets(sets)
            if order.index(level) <= order.index(LEVEL_OF[name]):
                assert not require_hosts("v", used, (host,))
            else:
                with pytest.raises(InputError, match=f"with target {LEVEL_OF[name]}, or"):
                    require_hosts("v", used, (host,))


@pytest.mark.parametrize("compiler", COMPILERS)
def test_what_is_made_for_this_processor_may_use_what_it_has(
    finder: ToolchainFinder, compiler: str
) -> None:
    facts = stand_in_here()
    marches = ("native",) if facts is None else facts.march
    used = allowed(finder, compiler, tuple(f"-march={each}" for each in marches))
    lacking = read_processor().sets.lacking(used.sets)
    assert lacking == (frozenset() if facts is None else lacking & facts.taken_away)


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_of_tomorrow_has_what_it_names(name: str) -> None:
    """Bits that have no name today change nothing; a name that only others know is no lack."""
    facts = PROCESSORS[name]
    more = {**facts.registers, "7.1.ecx": _BITS, "7.3.eax": _BITS, "80000021.0.eax": _BITS}
    more |= {"7.1.edx": more.get("7.1.edx", 0) | 1 << 19, "24.0.ebx": 9, "29.0.ebx": _BITS}
    more["xcr0"] = more.get("xcr0", 0) | 1 << 62
    tomorrow = processor_of(facts.cpuinfo.replace("flags\t\t: ", "flags\t\t: avx99 "), more)
    news = tomorrow.flags - facts.processor.flags - {f"avx10_{number}" for number in range(1, 10)}
    assert news == {"avx99"}
    assert tomorrow.sets.not_known(InstructionSets(frozenset(), ("AVX99",))) == ()
    for sets in (facts.processor.sets, facts.shown.sets):
        assert sets.not_known(InstructionSets(frozenset(), ("AVX99",))) == ("AVX99",)
        assert not require_hosts("v", InstructionSets(frozenset()), (Host("it", sets),))


def test_what_its_copy_does_not_show_is_not_lacking() -> None:
    facts = PROCESSORS["arrow-lake"]
    hidden = InstructionSets(facts.processor.flags - facts.shown.flags)
    assert {"avx_vnni_int8", "cmpccxadd", "sha512", "sm4"} <= hidden.sets
    assert set(facts.shown.sets.not_known(hidden)) == hidden.sets
    assert not facts.processor.sets.not_known(hidden)
    old = PROCESSORS["nehalem"].shown.sets
    assert old.lacking(hidden.sets) >= {"avx_vnni_int8", "sha512", "sm4"}


def test_registers_that_the_system_does_not_keep_take_their_sets_away() -> None:
    facts = PROCESSORS["granite-rapids-vm"]
    bare = processor_of("", {**facts.registers, "xcr0": 0b111})
    assert {"avx2", "fma", "vaes"} <= bare.flags
    assert not {each for each in bare.flags if each.startswith(("avx512", "amx", "avx10"))}
    none = processor_of("", {**facts.registers, "xcr0": 0})
    assert not {"avx", "avx2", "fma", "xsave", "xsavec"} & none.flags
    assert "bmi2" in none.flags
