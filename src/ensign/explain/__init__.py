"""Where, what and why two variants differ."""
