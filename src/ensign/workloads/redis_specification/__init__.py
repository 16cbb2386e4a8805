"""The Redis benchmarks specification: its tests, written for memtier_benchmark, as drives."""
