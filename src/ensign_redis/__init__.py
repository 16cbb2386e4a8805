"""Redis for ensign: its published benchmark suite, and the load generator of that."""
