from __future__ import annotations

import pytest

from ensign.explain.function_names import ALLOCATION, interface_of, source_name


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("compress", "compress"),
        ("compress.part.0", "compress"),
        ("compress.constprop.0.isra.3", "compress"),
        ("compress.cold", "compress"),
        ("compress.lto_priv.12", "compress"),
        ("helper.llvm.1234567890", "helper"),
        ("main/1", "main"),
        ("main.cold.0/2(*2)", "main"),
        (
            "std::vector<int>::push_back(int const&) [clone .part.0]",
            "std::vector<int>::push_back(int const&)",
        ),
        ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
        ("log2.0", "log2"),
        (".text", ".text"),
    ],
)
def test_clones_have_the_name_of_what_was_written(symbol: str, expected: str) -> None:
    assert source_name(symbol) == expected


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [
        ("__memmove_avx_unaligned_erms", "libc.so.6", "memmove"),
        ("__memcpy_sse2_unaligned", "libc.so.6", "memmove"),
        ("__memset_evex_unaligned", "libc.so.6", "memset"),
        ("__strlen_sse2", "libc.so.6", "strlen"),
        ("__sin_fma", "libm.so.6", "sin"),
        ("__ieee754_log_fma", "libm.so.6", "log"),
        ("__memmove_avx_unaligned_erms", "", "__memmove_avx_unaligned_erms"),
        ("_int_malloc", "libc.so.6", ALLOCATION),
        ("__GI___libc_malloc", "libc.so.6", ALLOCATION),
        ("__GI___qsort_r", "libc.so.6", "__qsort_r"),
        ("__GI_mine", "", "__GI_mine"),
        ("cfree", "libc.so.6", "cfree"),
        ("do_malloc", "libtcmalloc.so.4", ALLOCATION),
        ("free", "", "free"),
        ("qsort_r", "libc.so.6", "qsort_r"),
    ],
)
def test_implementations_of_one_interface_have_one_name(
    name: str, file: str, expected: str
) -> None:
    assert interface_of(name, file, ("tcmalloc",)) == expected
