#!/usr/bin/env bash
# tools/need.sh COMMAND=PACKAGE...: make sure that each command is here.
#
# Missing ones are installed with apt-get when that works without asking
# (root on Debian); otherwise one sentence says what is missing, exit 3.
# A word without "=" names a package whose presence is asked of dpkg.
set -euo pipefail

missing=()
for need in "$@"; do
  case "$need" in
    *=*) command -v "${need%%=*}" >/dev/null 2>&1 || missing+=("${need#*=}") ;;
    *) dpkg-query -W -f='${Status}' "$need" 2>/dev/null | grep -q 'ok installed' || missing+=("$need") ;;
  esac
done
[ ${#missing[@]} -eq 0 ] && exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "this machine lacks ${missing[*]}; install them, on Debian as root: $install" >&2
  exit 3
fi
echo "installing ${missing[*]} with apt-get (about a minute)" >&2
export DEBIAN_FRONTEND=noninteractive
if ! $install >/dev/null 2>&1; then
  # A machine that never fetched a package list, or has an old one.
  apt-get update -qq >&2 && $install >/dev/null || {
    echo "apt-get could not install ${missing[*]}; install them by hand: $install" >&2
    exit 3
  }
fi
