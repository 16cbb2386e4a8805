"""Calls, attributes, dictionaries, strings, floats and sorting: `python stdlib.py ROUNDS`."""

import sys


class Node:
    def __init__(self, value):
        self.value = value

    def add(self, other):
        return self.value + other


def calls(n):
    node, total = Node(3), 0
    for i in range(n):
        total += node.add(i)
    return total


def tables(n):
    d = {}
    for i in range(n):
        d[i % 997] = d.get(i % 997, 0) + i
    return len(d)


def strings(n):
    parts = [str(i) for i in range(n)]
    return len("".join(parts).replace("1", "22").split("5"))


def floats(n):
    x = 0.5
    for i in range(n):
        x = x * 3.7 * (1 - x)
    return int(x * 10)


def ordered(n):
    return sorted((i * 7919) % 10007 for i in range(n))[n // 2]


total = 0
for _ in range(int(sys.argv[1])):
    total += calls(20000) + tables(20000) + strings(8000) + floats(20000) + ordered(8000)
print(total)
