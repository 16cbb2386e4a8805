#!/bin/bash
# Builds {title}: {choices}.
# The steps are those of the build that was measured. {needs}
#
#   bash build.sh SOURCE PROGRAM [FOLDER]
#
# SOURCE is the pristine source, which is copied; PROGRAM is the file to make. FOLDER is a new one
# for trees and profiles; without it they are made in a temporary folder, and removed. Trained
# programs listen on ports above PORT; JOBS is how many commands make may run at once.
set -euo pipefail
shopt -s globstar
[ $# -ge 2 ] || { echo "usage: bash build.sh SOURCE PROGRAM [FOLDER]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
files=$here/training
[ -d "$files" ] || files=$here
source=$(cd "$1" && pwd)
program=$(realpath -m "$2")
jobs=${JOBS:-$(nproc)} port=${PORT:-7411} server= given=${3:-}
if [ -n "$given" ]; then
    work=$(realpath -m "$given")
    mkdir "$work"
else
    work=$(realpath "$(mktemp -d)")
fi
tree=$work/tree
leave() {
    [ -z "$server" ] || kill -KILL "$server" || true
    [ -n "$given" ] || rm -rf "$work"
}
trap leave EXIT
export LC_ALL=C TZ=UTC SOURCE_DATE_EPOCH={epoch}

# fresh FROM: the tree anew, as a copy.
fresh() { cd "$work"; rm -rf "$tree"; cp -a "$1" "$tree"; cd "$tree"; }
# keep TO NAME...: what the next steps need of the tree.
keep() { to=$work/$1; shift; mkdir -p "$to"; cp -a --parents "$@" "$to"; }
# begin RUN: a run of the program, in the folder of the files that it reads.
begin() {
    run=$1 port=$((port + 1)) tmp=$(mktemp -d -p "$work")
    echo "training: $run"
    cd "$files"
}
# collect TO: folders for what is counted, and for the profile that is made of it.
collect() { counts=$work/counts profile=$work/$1; rm -rf "$counts"; mkdir "$counts" "$profile"; }
