#!/usr/bin/env bash
# Runs the tests in circumstances that none of them may depend on; see CONTRIBUTING.md.
# tests/circumstances.sh [NAME...] [-- COMMAND...]
set -uo pipefail
cd "$(dirname "$0")/.."

ALL=(short-path long-path busy nohup no-terminal c-locale shuffled processors)
names=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    case " ${ALL[*]} " in
        *" $1 "*) names+=("$1") ;;
        *) echo "circumstances.sh: '$1' is none of: ${ALL[*]}" >&2; exit 2 ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=("${ALL[@]}")
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- make meter-test unit

scratch=$(mktemp -d /tmp/circumstances.XXXXXX)
spinning=()
calm() {
    [ ${#spinning[@]} -eq 0 ] || { kill "${spinning[@]}"; wait "${spinning[@]}"; } 2>/dev/null
    spinning=()
}
trap 'calm; rm -rf "$scratch" "${short:-}"' EXIT

# A folder of that many characters in all.
of_length() {
    printf -v filler '%*s' $(($1 - ${#scratch} - 1)) ''
    mkdir -p "$scratch/${filler// /x}" && echo "$scratch/${filler// /x}"
}

in_circumstance() {
    local name=$1
    shift
    case $name in
        short-path) short=$(mktemp -d /tmp/XXXXX) && TMPDIR=$short "$@" ;;
        long-path) TMPDIR=$(of_length 90) "$@" ;;
        busy)
            for _ in 1 2 3; do
                while :; do :; done &
                spinning+=($!)
            done
            "$@"
            ;;
        nohup) nohup "$@" </dev/null 2>&1 | cat ;;
        no-terminal) setsid --wait "$@" </dev/null 2>&1 | cat ;;
        c-locale) env -u LANG LC_ALL=C "$@" ;;
        processors)
            local processor
            for processor in $(grep -Po '^ "\K[^"]+' tests/processors.json); do
                echo "-- $processor"
                TEST_PROCESSOR=$processor "$@" || return
            done
            ;;
        shuffled) MAKEFLAGS= PYTEST="${PYTEST:-} --shuffle ${SEED:-any}" "$@" ;;
    esac
}

failed=()
for name in "${names[@]}"; do
    echo "== $name"
    in_circumstance "$name" "$@" || failed+=("$name")
    calm
done
[ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
