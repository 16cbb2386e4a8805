"""Files of common formats, made up."""
