"""Names of the programs that advice and checkups look for on the search path."""

COMPILERS = r"(gcc|clang)(-\d+)?"
LINKERS = r"ld\.bfd|ld\.gold|ld\.lld(-\d+)?|mold"
PROFILERS = r"perf|valgrind|llvm-profdata(-\d+)?|llvm-bolt(-\d+)?"
BUILD_TOOLS = ("make", "cmake", "ninja", "tclsh", "dpkg-source")
OTHERS = ("hyperfine", "gzip", "git")
ROOT_MAKERS = ("mmdebstrap", "debootstrap")
