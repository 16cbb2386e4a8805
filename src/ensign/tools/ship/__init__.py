"""`ensign ship`: what a study found becomes a change that can be merged."""
