"""A first study of a source tree that nobody prepared."""
