"""Proof by an artifact of the flags that were asked for.

Reading (`elf`, `archives`, `link`, `read`) is apart from judging (`rules*`, pure) and from
describing (`describe`, pure).
"""
