from __future__ import annotations

from ensign.model.builds import ProfileCoverage


def test_coverage_is_said_with_its_share() -> None:
    assert ProfileCoverage("PGO", 8, 2).said == "PGO: 2 of 8 functions profiled (25%)"
    assert ProfileCoverage("PGO", 0, 0).said == "PGO: 0 of 0 functions profiled (0%)"
    assert ProfileCoverage("BOLT").said == "BOLT: share of functions with a profile is unknown"
