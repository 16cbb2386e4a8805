"""From a variant to the project's own build: the change, the steps, their effects."""
