"""`ensign run` and its relatives: a study from its file to its result."""
