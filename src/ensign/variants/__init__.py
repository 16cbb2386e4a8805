"""From axes and rules to variants. Pure."""
