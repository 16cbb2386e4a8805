"""Sheets of facts of environments."""
