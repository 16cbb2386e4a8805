#!/bin/sh
# Builds dist/: the sdist, and from it a wheel for any Linux of an architecture (this machine's, or the one named).
# The meter is linked statically, with the C library, so that it needs nothing of where it runs.
set -eu
cd "$(dirname "$0")/.."

architecture=${1:-$(uname -m)}
target=$architecture-unknown-linux-gnu
if [ "$architecture" != "$(uname -m)" ]; then
    command -v "$architecture-linux-gnu-gcc" >/dev/null || {
        echo "packaging/build.sh: no compiler for $architecture: apt-get install gcc-$architecture-linux-gnu libc6-dev-arm64-cross" >&2
        exit 1
    }
    rustup target add "$target"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER="$architecture-linux-gnu-gcc"
fi

# A target that is named keeps RUSTFLAGS from what runs while building.
export CARGO_BUILD_TARGET="$target" CARGO_TARGET_DIR="$PWD/meter/target" RUSTFLAGS="-C target-feature=+crt-static"
rm -rf dist/ensign-*.tar.gz dist/ensign-*"$architecture".whl
# By what requirements-build.lock has installed, which is all that builds anything here.
.venv/bin/python -m build --sdist --no-isolation --outdir dist . >/dev/null
.venv/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist \
    --config-settings="--build-option=--plat-name=manylinux_2_17_$architecture" dist/ensign-*.tar.gz
ls -l dist
