"""Test suites that others published, as workloads of ensign."""
