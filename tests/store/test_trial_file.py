from dataclasses import replace

import pytest

from ensign.model.errors import InputError
from ensign.model.findings import Finding, Severity
from ensign.model.trials import CodeSamples, Mode, SampledFile, SliceRecord, Trial, VariantTotals
from ensign.store.trial_file import from_bytes, slices_of, to_bytes


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
            SliceRecord("twin", 5, 5, 4, 1, filler=True),
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
    with pytest.raises(InputError, match="not a trial"):
        from_bytes(b"PAR1 nonsense PAR1")


def test_another_schema_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ensign.store.trial_file.SCHEMA", 3)
    data = to_bytes(a_trial())
    monkeypatch.undo()
    with pytest.raises(InputError, match="schema 3; this ensign reads 2"):
        from_bytes(data)
