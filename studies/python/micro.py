"""Micro-benchmarks in the manner of PyBench: `python micro.py NAME`. Each does a fixed amount of one thing and prints a result.

Nothing is imported, so that the interpreter's start is all that is not the benchmark.
"""

import sys


class Plain:
    kind = 1

    def __init__(self, value):
        self.value = value

    def method(self, more):
        return self.value + more

    @property
    def double(self):
        return self.value + self.value

    def __len__(self):
        return 7

    def __add__(self, other):
        return self.value + other.value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Derived(Plain):
    def method(self, more):
        return super().method(more) + 1


def three(a, b, c):
    return a + b + c


def named(a, *, b=1, c=2):
    return a + b + c


def rest(*args, **kwargs):
    return len(args) + len(kwargs)


GLOBAL = 3


def integer_arithmetic(n):
    total = 0
    for i in range(n):
        total += (i * 3 - i) // 2 % 7
    return total


def big_integers(n):
    a, b, total = 3**200, 7**150, 0
    for i in range(n):
        total ^= (a + i) * b // (b - i)
    return total & 0xFFFF


def float_arithmetic(n):
    x = 1.0
    for i in range(n):
        x = (x * 1.000001 + 0.5 - x / 3.0) % 10.0
    return x


def complex_arithmetic(n):
    z = 0.1 + 0.2j
    for _ in range(n):
        z = z * (0.5 - 0.3j) + (1 - 1j)
    return z


def bit_operations(n):
    x = 12345
    for i in range(n):
        x = ((x << 3) ^ (x >> 2) | i) & 0xFFFFF
    return x


def compare_integers(n):
    count = 0
    for i in range(n):
        if i < 1000 or i > 5000 and i != 7000 and i <= 900000:
            count += 1
    return count


def compare_floats(n):
    count, x = 0, 0.0
    for _ in range(n):
        x += 0.25
        if x < 10.0 or x > 1e3 and x != 2e3:
            count += 1
    return count


def compare_strings(n):
    a, b, c = "abcdefgh" * 2, "abcdefgh" + "abcdefgi", "b"
    count = 0
    for _ in range(n):
        count += (a == b) + (a < b) + (a != c)
    return count


def python_calls(n):
    total = 0
    for i in range(n):
        total += three(i, 2, 3)
    return total


def keyword_calls(n):
    total = 0
    for i in range(n):
        total += named(i, c=4, b=3)
    return total


def star_calls(n):
    args, kwargs, total = (1, 2, 3), {"x": 1}, 0
    for _ in range(n):
        total += rest(*args, **kwargs)
    return total


def builtin_calls(n):
    total = 0
    for i in range(n):
        total += abs(i) + min(i, 5) + len("abc")
    return total


def method_calls(n):
    it, total = Plain(2), 0
    for i in range(n):
        total += it.method(i)
    return total


def super_calls(n):
    it, total = Derived(2), 0
    for i in range(n):
        total += it.method(i)
    return total


def recursion(n):
    def fibonacci(k):
        return k if k < 2 else fibonacci(k - 1) + fibonacci(k - 2)

    return sum(fibonacci(14) for _ in range(n))


def lambdas(n):
    return sum(map(lambda x: x + 1, range(n)))


def closures(n):
    count = 0

    def step():
        nonlocal count
        count += 1

    for _ in range(n):
        step()
    return count


def operators_of_classes(n):
    a, b, total = Plain(1), Plain(2), 0
    for _ in range(n):
        total += a + b + len(a)
    return total


def create_instances(n):
    total = 0
    for i in range(n):
        total += Plain(i).value
    return total


def create_slotted(n):
    total = 0
    for i in range(n):
        total += Slotted(i).value
    return total


def create_classes(n):
    total = 0
    for i in range(n):
        total += type("T", (Plain,), {"x": i}).x
    return total


def attributes(n):
    it = Plain(1)
    for i in range(n):
        it.value = it.value + it.kind
    return it.value


def properties(n):
    it, total = Plain(3), 0
    for _ in range(n):
        total += it.double
    return total


def global_lookups(n):
    total = 0
    for _ in range(n):
        total += GLOBAL + len("ab")
    return total


def dynamic_attributes(n):
    it = Plain(0)
    for i in range(n):
        setattr(it, "value", getattr(it, "value", 0) + hasattr(it, "none"))
    return it.value


def type_checks(n):
    it, count = Derived(1), 0
    for _ in range(n):
        count += isinstance(it, Plain) + isinstance(it, (int, str)) + (type(it) is Derived)
    return count


def if_then_else(n):
    count = 0
    for i in range(n):
        k = i & 3
        if k == 0:
            count += 1
        elif k == 1:
            count += 2
        elif k == 2:
            count += 3
        else:
            count += 4
    return count


def nested_loops(n):
    count = 0
    for _ in range(n):
        for _ in (1, 2, 3):
            for _ in "ab":
                count += 1
    return count


def while_loops(n):
    i = 0
    while i < n:
        i += 1
        if i % 3:
            continue
    return i


def exceptions(n):
    count = 0
    for i in range(n):
        try:
            raise ValueError(i)
        except ValueError as error:
            count += error.args[0] & 1
    return count


def generators(n):
    def numbers(k):
        for i in range(k):
            yield i * 2

    return sum(numbers(n))


def comprehensions(n):
    total = 0
    for i in range(n):
        total += len([x + i for x in (1, 2, 3, 4, 5, 6) if x != 3])
    return total


def dict_creation(n):
    total = 0
    for i in range(n):
        total += len({"a": i, "b": 2, "c": 3}) + len({1: i, 2: 3})
    return total


def dict_string_keys(n):
    d = {"alpha": 1, "beta": 2, "gamma": 3}
    for _ in range(n):
        d["alpha"] = d["beta"] + d["gamma"]
        d["beta"] = d.get("alpha", 0) & 0xFF
    return d["beta"]


def dict_integer_keys(n):
    d = {}
    for i in range(n):
        d[i & 1023] = d.get(i & 511, 0) + 1
    return len(d)


def dict_float_keys(n):
    d = {0.5 * k: k for k in range(256)}
    total = 0
    for i in range(n):
        total += d[0.5 * (i & 255)]
    return total


def dict_deletion(n):
    d = {}
    for i in range(n):
        d[i] = i
        if i >= 8:
            del d[i - 8]
    return len(d)


def sets(n):
    s, total = set(), 0
    for i in range(n):
        s.add(i & 255)
        total += (i * 7 & 511) in s
    return total


def list_append(n):
    total = 0
    for _ in range(n):
        items = []
        for i in range(20):
            items.append(i)
        while items:
            total += items.pop()
    return total


def list_slicing(n):
    items, total = list(range(100)), 0
    for i in range(n):
        total += len(items[10:20]) + len(items[::5])
        items[3:5] = (i, i)
    return total


def list_sorting(n):
    items = [(i * 7919) % 1009 for i in range(300)]
    return sum(sorted(items)[7] + sorted(items, key=lambda x: -x)[3] for _ in range(n))


def tuples(n):
    total = 0
    for i in range(n):
        t = (i, i + 1, i + 2)
        a, b, c = t
        total += t[1] + a + b + c + len(t[1:])
    return total


def iterate_pairs(n):
    names, total = list(range(50)), 0
    for _ in range(n):
        for i, (a, b) in enumerate(zip(names, names)):
            total += i + a - b
    return total


def string_concatenation(n):
    total = 0
    for i in range(n):
        s = "abc" + "def"[i & 1 :] + "x" * (i & 7)
        total += len(s)
    return total


def string_join_split(n):
    text, total = "one two three four five six seven", 0
    for _ in range(n):
        total += len(" ".join(text.split()))
    return total


def string_methods(n):
    text, total = "  Some Words With, Commas And Such  ", 0
    for _ in range(n):
        total += len(text.strip().lower().replace("words", "w")) + text.find("Commas") + text.startswith("x")
    return total


def string_slicing(n):
    text, total = "the quick brown fox jumps over the lazy dog", 0
    for i in range(n):
        total += len(text[4:9]) + len(text[::-1]) + (text[i % 40] == "o")
    return total


def unicode_strings(n):
    text, total = "Größe Straße Äpfel Ünïcödé", 0
    for _ in range(n):
        total += len(text.upper()) + len((text + "é").encode("utf-8").decode("utf-8"))
    return total


def string_formatting(n):
    total = 0
    for i in range(n):
        total += len(f"{i:5d} {i / 3:.2f} {'x'!r}") + len("%s-%d" % ("a", i))
    return total


def integers_as_text(n):
    total = 0
    for i in range(n):
        total += int(str(i * 12345))
    return total


def byte_strings(n):
    total = 0
    for i in range(n):
        b = bytearray(b"abc")
        b += bytes((i & 255, 1, 2))
        total += b[3] + len(bytes(b))
    return total


# How often: some 0.1 s each.
TIMES = {
    integer_arithmetic: 500_000,
    big_integers: 100_000,
    float_arithmetic: 600_000,
    complex_arithmetic: 600_000,
    bit_operations: 450_000,
    compare_integers: 900_000,
    compare_floats: 900_000,
    compare_strings: 500_000,
    python_calls: 700_000,
    keyword_calls: 600_000,
    star_calls: 300_000,
    builtin_calls: 300_000,
    method_calls: 700_000,
    super_calls: 250_000,
    recursion: 750,
    lambdas: 750_000,
    closures: 900_000,
    operators_of_classes: 350_000,
    create_instances: 300_000,
    create_slotted: 400_000,
    create_classes: 6_000,
    attributes: 900_000,
    properties: 700_000,
    global_lookups: 1_000_000,
    dynamic_attributes: 350_000,
    type_checks: 450_000,
    if_then_else: 800_000,
    nested_loops: 150_000,
    while_loops: 900_000,
    exceptions: 250_000,
    generators: 900_000,
    comprehensions: 150_000,
    dict_creation: 300_000,
    dict_string_keys: 500_000,
    dict_integer_keys: 600_000,
    dict_float_keys: 750_000,
    dict_deletion: 500_000,
    sets: 650_000,
    list_append: 40_000,
    list_slicing: 250_000,
    list_sorting: 750,
    tuples: 450_000,
    iterate_pairs: 20_000,
    string_concatenation: 350_000,
    string_join_split: 150_000,
    string_methods: 175_000,
    string_slicing: 350_000,
    unicode_strings: 125_000,
    string_formatting: 75_000,
    integers_as_text: 350_000,
    byte_strings: 200_000,
}

if __name__ == "__main__":
    named_benchmarks = {each.__name__: (each, times) for each, times in TIMES.items()}
    benchmark, times = named_benchmarks[sys.argv[1]]
    print(benchmark(times))
