import gzip
import json
from dataclasses import replace

import pytest

from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.trials import CodeSamples, Mode, SampledFile, SliceRecord, Trial, VariantTotals
from ensign.store.trial_file import from_bytes, to_bytes
from trial_slices import slices_of


def a_trial() -> Trial:
    totals = VariantTotals("baseline", 10, 9, 6, 3, 2, 1000, 4096, 5, 6, 2, (("page-faults", 7),))
    samples = CodeSamples(
        (SampledFile("/x/program", ((4096, 7), (4100, 2)), deleted=True),), 1, 2, 3
    )
    totals = replace(totals, code_samples=samples)
    return Trial(
        workload="set",
        round_index=3,
        seed=9,
        mode=Mode.INTERLEAVED,
        freezer="cgroup",
        slice_ns=5_000_000,
        started_unix_s=1.5,
        wall_ns=77,
        running_share=0.98,
        variants=(totals,),
        slices=(
            SliceRecord("baseline", 0, 5, 4, 1, filler=False),
            SliceRecord("twin", 5, 5, 4, 1, filler=True, cpu_wait_ns=2),
        ),
        findings=(Finding("overshoot", Severity.WARNING, "a stop took 9 ms", "baseline"),),
    )


def test_a_trial_survives_its_file() -> None:
    data = to_bytes(a_trial())
    assert replace(from_bytes(data), slices=slices_of(data)) == a_trial()


def test_without_slices_the_rest_is_the_same() -> None:
    read = from_bytes(to_bytes(a_trial()))
    assert read.slices == ()
    assert read.variants == a_trial().variants


def test_what_is_no_trial_is_an_input_error() -> None:
    for data in (b"", b"PAR1 nonsense PAR1", gzip.compress(b"variant,wall_ns"), gzip.compress(b"")):
        with pytest.raises(InputError, match="not a trial"):
            from_bytes(data)


def test_a_file_that_was_cut_off_or_changed_is_an_input_error() -> None:
    data = to_bytes(a_trial())
    for length in range(0, len(data), 7):
        with pytest.raises(InputError, match="not a trial"):
            from_bytes(data[:length])
    for place in range(10, len(data), 7):
        changed = data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :]
        with pytest.raises(InputError, match="not a trial"):
            from_bytes(changed)


def test_equal_trials_give_equal_bytes() -> None:
    assert to_bytes(a_trial()) == to_bytes(a_trial())


def test_other_tools_find_a_table_after_the_first_line() -> None:
    lines = gzip.decompress(to_bytes(a_trial())).decode().splitlines()
    assert json.loads(lines[0])["trial"]["workload"] == "set"
    assert lines[1:] == [
        "variant,start_ns,wall_ns,cpu_ns,load_cpu_ns,filler,cpu_wait_ns",
        "baseline,0,5,4,1,False,",
        "twin,5,5,4,1,True,2",
    ]


def test_another_schema_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensign.store.trial_file.SCHEMA", 4)
    data = to_bytes(a_trial())
    monkeypatch.undo()
    with pytest.raises(InputError, match="schema 4; this ensign reads 3"):
        from_bytes(data)
