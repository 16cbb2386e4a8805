"""Frozen data that every layer shares: units, errors, findings, trials, results. Pure."""
