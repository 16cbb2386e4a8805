#!/bin/sh
# Installs what a list of Debian packages lacks, when root or sudo allows; else says what to do.
set -eu

command -v dpkg-query >/dev/null || { echo "packages.sh: not a Debian system; install the like of:" >&2; grep -v '^#' "$1" >&2; exit 0; }

missing=
for package in $(grep -v '^#' "$1"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif sudo -n true 2>/dev/null; then
    as_root=sudo
else
    echo "These Debian packages are missing, and this user may not install them. Ask for:" >&2
    echo "    sudo apt-get install --no-install-recommends$missing" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
