"""Findings on whether a build is what its name says: by its bytes, recorded calls and log."""

from __future__ import annotations

from ensign.model.findings import FindingKind, Severity

NOT_FROM_THIS_BUILD = FindingKind(
    "not-from-this-build",
    Severity.ERROR,
    "Objects, libraries or the program itself are of an earlier build, or come from elsewhere. The "
    "variant is not raced.",
    "Remove what was built earlier (`build.clean`, `source.exclude`), or declare what belongs "
    "there in `build.prebuilt`.",
)
WRONG_COMPILER = FindingKind(
    "wrong-compiler",
    Severity.ERROR,
    "Another compiler than the one asked for compiled a part of it. The variant is not raced.",
    "Let the build take its compiler from `CC` and `CXX`, or hand it over with `build.rewrite`.",
)
FLAG_MISSING = FindingKind(
    "flag-missing",
    Severity.ERROR,
    "No compile unit has a flag that was asked for.",
    'Hand the flags to a build that ignores its variables: `build.rewrite.compile = ["{cflags}"]`.',
    "no compiler call had it",
)
FLAG_NOT_RECORDED = FLAG_MISSING.as_severity(
    Severity.WARNING, "calls had it, and the compiler recorded nothing of it"
)
FLAG_OVERRIDDEN = FindingKind(
    "flag-overridden",
    Severity.ERROR,
    "A later flag on the command line undoes one that was asked for, or the LTO link has another "
    "`-O`.",
    'Give the variant\'s flags last: `build.rewrite.compile = ["{cflags}"]`. Declare sources that '
    "are to have their own flags in `build.own_flags`.",
    "units did not get it",
)
FLAG_UNDONE = FLAG_OVERRIDDEN.as_severity(
    Severity.WARNING,
    "the calls had it last; it concerns the level of an LTO link; or nobody said what was asked "
    "for (`doctor`)",
)
FLAGS_DIFFER = FindingKind(
    "flags-differ",
    Severity.ERROR,
    "Some compile units lack a flag that was asked for, or units differ from each other. "
    "Dependencies built in a stage of their own do not count.",
    "Hand the flag to them, or declare what is to have its own flags in `build.own_flags`.",
    "units did not get what was asked for",
)
FLAGS_MAY_DIFFER = FLAGS_DIFFER.as_severity(
    Severity.WARNING,
    "only the record of the flags may be missing; or another file that runs has what all of this "
    "one lacks; or units differ in optimization, LTO, target or protections (`doctor`)",
)
FLAGS_VARY = FLAGS_DIFFER.as_severity(Severity.NOTE, "units differ in other flags (`doctor`)")
LINK_FLAG_MISSING = FindingKind(
    "link-flag-missing",
    Severity.ERROR,
    "The link was not told of the linker, the allocator or the alignment of loops that was asked "
    "for.",
    'Hand the flags to links: `build.rewrite.link = ["{ldflags}"]`.',
)
FLAG_LEAKED_INTO_DEPENDENCY = FindingKind(
    "flag-leaked-into-dependency",
    Severity.WARNING,
    "The program's build made a bundled dependency again, with the variant's flags.",
    "Let the program's build find it up to date, or give it the flags on purpose: "
    '`dependencies = "flags"`.',
)
UNOPTIMIZED = FindingKind(
    "unoptimized",
    Severity.WARNING,
    "No compile unit was compiled with optimization, so its speed says nothing of the program as "
    "it is meant to be used.",
    "Build it with `-O2`, or as a release build of its build system.",
)
LOOKS_UNOPTIMIZED = FindingKind(
    "looks-unoptimized",
    Severity.WARNING,
    "No flags are known, and the code of the file, or of a part of it, is what compilers make at "
    "`-O0`: variables are stored on the stack and loaded at each use, even what a register still "
    "holds (x86-64 alone; `doctor`).",
    "Build it with `-O2`, or as a release build (`cargo build --release`, "
    "`-DCMAKE_BUILD_TYPE=Release`); `-g` or `ensign record` would say the flags of each unit.",
)
FAST_MATH_START = FindingKind(
    "fast-math-start-up",
    Severity.WARNING,
    "A link with `-ffast-math` (or `-Ofast`) added start-up code that flushes denormals to zero "
    "for the whole process, also where a program loads the library: results change, and time where "
    "there are denormals (`doctor`, `compare`).",
    "Compile with the flag, but link without it; `-mno-daz-ftz` (GCC 13 and later) leaves the code "
    "out. If it is wanted, compare with what has it, too.",
)
NO_DEBUG_INFO = FindingKind(
    "no-debug-info",
    Severity.WARNING,
    "All or some units have no debug information, so their flags are unknown: stripped, compiled "
    "without `-g`, or split off.",
    "Build with `-g` (Clang: also `-grecord-command-line`), and strip later.",
    "in a study, which asks for it",
)
NO_DEBUG_INFO_THERE = NO_DEBUG_INFO.as_severity(
    Severity.NOTE, "of what was built without ensign (`doctor`)"
)
MIXED_COMPILERS = FindingKind(
    "mixed-compilers",
    Severity.WARNING,
    "Compile units are of several compilers or versions.",
    "Clean the tree and build all of it with one compiler.",
)
SOURCE_CHANGED = FindingKind(
    "source-changed",
    Severity.WARNING,
    "A source was written after the program, which may therefore not be of these sources "
    "(`doctor`). Copying a folder without its times may raise it, too.",
    "Build it again.",
)

LTO_NOT_LINKED = FindingKind(
    "lto-not-linked",
    Severity.ERROR,
    "Units were compiled for LTO, but the link generated no code for them: LTO did not happen.",
    "Pass `-flto` when linking, too.",
    "LTO was asked for",
)
LTO_HALFWAY = LTO_NOT_LINKED.as_severity(Severity.WARNING, "it was not asked for")
LTO_COMPILE_ONLY = FindingKind(
    "lto-compile-only",
    Severity.WARNING,
    "`-flto` is not on the link line, which leaves it to the linker whether and how LTO is done.",
    "Pass `-flto` when linking, too.",
)
LTO_NOT_ASKED = FindingKind(
    "lto-not-asked",
    Severity.WARNING,
    "Units have LTO that was not asked for.",
    "Turn LTO off in the project's own configuration, so that variants decide about it.",
)
OPTIMIZATION_MISSING_AT_LINK = FindingKind(
    "optimization-missing-at-link",
    Severity.WARNING,
    "The LTO link has no `-O` option of its own, so the compiler or the linker chose the level at "
    "which code was generated.",
    "Pass `-O` and `-flto` when linking, too.",
)
WRONG_ARCHIVER = FindingKind(
    "wrong-archiver",
    Severity.WARNING,
    "The index of an archive leaves out its LTO objects, because it was made by an archiver that "
    "cannot read them.",
    "Use `gcc-ar` or `llvm-ar`.",
)
ARCHIVE_BEFORE_OBJECTS = FindingKind(
    "archive-before-objects",
    Severity.WARNING,
    "On the link line an archive stands before what needs it; a linker takes nothing from an "
    "archive for what comes later.",
    "Put libraries after objects.",
)
ARCHIVE_AFTER_SHARED = FindingKind(
    "archive-after-shared",
    Severity.WARNING,
    "An archive stands after a shared library that has the same symbols, so the program uses those "
    "of the shared library.",
    "Put the archive first, or leave one of them out.",
)
DUPLICATE_LIBRARY = FindingKind(
    "duplicate-library",
    Severity.NOTE,
    "A library is on the link line more than once.",
    "Nothing, unless it was meant to be another one.",
)
ARCHIVE_UNUSED = FindingKind(
    "archive-unused",
    Severity.NOTE,
    "An archive contributed nothing to the program.",
    "Nothing. If it should have (an allocator, for example), something else provides its symbols.",
)

HARDENING_MISSING = FindingKind(
    "hardening-missing",
    Severity.WARNING,
    "The artifact lacks protections of the hardening that was asked for: PIE, RELRO, BIND_NOW, a "
    "stack that cannot be executed, or FORTIFY.",
    "Hand the flags to the compiler and the link (`build.rewrite`).",
)
HARDENING_LEFT = FindingKind(
    "hardening-left",
    Severity.WARNING,
    "The artifact has protections that it was to be without: PIE, RELRO or BIND_NOW.",
    "Take them out of the project's own flags, or read the variant as one that has them.",
)
ALIGNMENT_WITHOUT_EFFECT = FindingKind(
    "alignment-without-effect",
    Severity.ERROR,
    "An alignment of functions was asked for, and the artifact shows no trace of it: no section of "
    "its code is aligned to 64 bytes, or functions that BOLT moved begin anywhere.",
    "See what the compiler, the LTO link or BOLT says of the flags; GCC heeds none at `-Os`, and "
    "none of code that its profile calls cold.",
)
PLT_CALLS = FindingKind(
    "plt-calls",
    Severity.NOTE,
    "A shared library calls its own functions through the PLT, so that they can be interposed.",
    "`-Wl,-Bsymbolic-functions` or hidden visibility makes the calls direct, "
    "`-fno-semantic-interposition` those within one source (with LTO: nearly all).",
    "interposition and PLT are as usual",
)
PLT_CALLS_LEFT = PLT_CALLS.as_severity(
    Severity.WARNING, "the variant turns interposition or the PLT off"
)
NOT_INTERPOSABLE = FindingKind(
    "not-interposable",
    Severity.WARNING,
    "Calls within a shared library may pass over a function that is put in place of one that it "
    "exports, as by `LD_PRELOAD`: `-fno-semantic-interposition`, GCC's `-Ofast` or `-Bsymbolic`.",
    "Fine where nobody replaces the library's own functions; else leave the flag out.",
)

PROFILE_MISSING = FindingKind(
    "profile-missing",
    Severity.WARNING,
    "Compile units that were to use a profile have none, or the compiler warns of it.",
    "Train with a workload that runs them, and keep the paths of profiling and build alike.",
)
PROFILE_STALE = FindingKind(
    "profile-stale",
    Severity.WARNING,
    "The profile does not fit the source or the program: the compiler or BOLT warns of it, or the "
    "source was changed after the profile was written (`doctor`).",
    "Collect it again.",
)
PROFILE_EMPTY = FindingKind(
    "profile-empty",
    Severity.WARNING,
    "The profile is empty or cannot be read.",
    "Collect it again, with the tools of the same compiler. A program that is killed writes none.",
)
PROFILE_NOT_USED = FindingKind(
    "profile-not-used",
    Severity.NOTE,
    "Profiles lie beside the program that no unit was compiled with, or the program is itself an "
    "instrumented build.",
    "Build it with `-fprofile-use`.",
    "profiles lie there unused",
)
PROFILE_STILL_COLLECTED = PROFILE_NOT_USED.as_severity(
    Severity.WARNING, "the program is an instrumented build: neither for use nor for measurement"
)
BOLT_NOT_APPLIED = FindingKind(
    "bolt-not-applied",
    Severity.ERROR,
    "BOLT was asked for, but the artifact shows no trace of it.",
    "Look for BOLT's messages in the build log.",
)
BOLT_NOT_ASKED = FindingKind(
    "bolt-not-asked",
    Severity.WARNING,
    "The artifact was rewritten by BOLT, which was not asked for.",
    "Turn BOLT off in the project's own build, so that variants decide about it.",
)
BOLT_PROFILE_THIN = FindingKind(
    "bolt-profile-thin",
    Severity.WARNING,
    "By its log BOLT had a profile for very few of the program's functions.",
    "Train longer, or with workloads that run more of the program.",
)
PROFILE_NOT_GIVEN = FindingKind(
    "profile-not-given",
    Severity.ERROR,
    "Crates were compiled without the profile that the variant is named after (Rust).",
    "Let the build take its flags from RUSTFLAGS or Cargo's configuration alone.",
)
CODE_OF_C = FindingKind(
    "code-of-c",
    Severity.NOTE,
    "Build scripts of a Rust program compiled C or C++ into it, with the system's compiler: the "
    "variant's choices do not reach it, but for the level, which Cargo tells build scripts.",
    "Nothing; read the differences as those of the Rust code. `CC` and `CFLAGS` in `build.env` "
    "decide how that code is compiled, for all variants alike.",
)
CRATE_UNUSED = FindingKind(
    "crate-unused",
    Severity.NOTE,
    "A crate was compiled for a Rust program that no source of it uses, so nothing of it is there.",
    "Use it (an allocator needs `#[global_allocator]`, for example), or leave it out of the "
    "dependencies.",
)
PROFILE_OF_MEMBER = FindingKind(
    "profile-of-member",
    Severity.WARNING,
    "A member of a Cargo workspace has a profile, which Cargo ignores: only the manifest of the "
    "workspace may have one.",
    "Move `[profile]` there. What the study's axes name holds in any case.",
)
OWN_RUSTFLAGS = FindingKind(
    "own-rustflags",
    Severity.WARNING,
    "The project's own configuration of Cargo has flags for rustc, and the variant's take their "
    "place, as RUSTFLAGS do.",
    "Write what the program needs into `axes.flags`.",
)
NOT_JUDGED = FindingKind(
    "not-judged",
    Severity.NOTE,
    "The evidence leaves a question open, and the text says which one and why: flags, LTO, profile "
    "or link order of a build, what a command ran, or whether variants write the same files.",
    "Provide what the text asks for, or live with the open question.",
)
ARCHIVE_PASSED_OVER = FindingKind(
    "archive-passed-over",
    Severity.NOTE,
    "An archive in the folder defines functions that the program takes from a shared library "
    "instead: it was not linked, or stands where the linker needs nothing of it any more.",
    "Name the archive behind the objects and before the shared library, or live with it.",
)
OWN_OPTIMIZATION = FindingKind(
    "own-optimization",
    Severity.NOTE,
    "A source says itself how it, or a function of it, is optimized (`#pragma GCC optimize`, "
    "`__attribute__((optimize))`, `optnone`): flags do not decide there, and no record of flags "
    "shows it.",
    "Take that out of the source to see what the flags do, or live with it.",
)
FILE_REPLACED = FindingKind(
    "file-replaced",
    Severity.WARNING,
    "A running process has a program or library that was deleted or replaced since, as by an "
    "upgrade: what lies under its name is not what runs.",
    "Restart the program.",
)
RECORD_STALE = FindingKind(
    "record-stale",
    Severity.WARNING,
    "The file is not what the recorded build wrote: it was made or changed by something else, "
    "before or afterwards. The record is not used for it.",
    "Record the build again: `ensign record -- make`.",
)
RECORD_PARTIAL = FindingKind(
    "record-partial",
    Severity.NOTE,
    "The recorded build compiled only a part of what the file was linked from; the rest was there "
    "before, or made by calls that were not recorded: its debug information alone says how.",
    "Record a whole build: `make clean`, then `ensign record -- make`.",
)
