"""The use cases: what happens next across packages."""
