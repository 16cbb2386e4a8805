"""Tests of whether costs differ, by how much, and how surely. Pure: costs in, statements out.

`looks` and `student` hold the constants and quantiles; `pair` decides one pair of variants;
`signed_rank` is its companion; `trials` and `rounds` turn trials into log costs; `suite`,
`non_inferior`, `holm`, `bands` and `twin` judge many workloads. Log ratios are of costs: below 0 is
faster. One page per method is in docs/background/statistics.
"""
