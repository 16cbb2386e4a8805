"""What an artifact proves of the flags that were asked for.

Reading (`elf`, `archives`, `link`, `read`) is apart from judging (`rules*`, pure) and from
describing (`describe`, pure).
"""
