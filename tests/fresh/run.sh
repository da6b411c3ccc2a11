#!/usr/bin/env bash
# `make fresh`: a stranger's machine, proved.
#
# Builds a minimal Debian 12 root with debootstrap (base, Python, make, git),
# clones the committed tree into it, and runs both README commands inside with
# nothing else typed: `make up DEMO=1`, then `make test`. Then `make up DEMO=1`
# again with the network cut and only loopback up.
#
# Runs as root on Debian. The root lies in FRESH_DIR (.fresh in the tree); it
# is unmounted and removed at the end, whatever happened, unless FRESH_KEEP=1.
# STEPS chooses among "up test offline" while working on one of them.
set -euo pipefail

tree=$(cd "$(dirname "$0")/../.." && pwd)
work=${FRESH_DIR:-$tree/.fresh}
root=$work/root
steps=${STEPS:-up test offline}
# The second `make up` must show its first token within this time.
offline_limit_s=20

if [ "$(id -u)" -ne 0 ]; then
  echo "make fresh NOT RUN: it needs root, for debootstrap, chroot and mounts" >&2
  exit 3
fi
"$tree/tools/need.sh" debootstrap=debootstrap unshare=util-linux ip=iproute2

# Processes whose root is ours, so that nothing else can be hit.
inmates() {
  local link
  for link in /proc/[0-9]*/root; do
    if [ "$(readlink "$link" 2>/dev/null)" = "$root" ]; then
      link=${link#/proc/}
      echo "${link%/root}"
    fi
  done
}

clean_up() {
  local pid mount
  for pid in $(inmates); do kill -9 "$pid" 2>/dev/null || true; done
  for mount in sys dev proc; do
    if mountpoint -q "$root/$mount"; then
      umount -R "$root/$mount" || umount -R -l "$root/$mount"
    fi
  done
  if [ -z "${FRESH_KEEP:-}" ] && ! grep -q " $root/" /proc/mounts; then
    rm -rf --one-file-system "$root"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# The machine's own Debian mirror, whichever form its sources have.
mirror() {
  local listed
  listed=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    /etc/apt/sources.list.d/*.sources 2>/dev/null || true)
  awk '/^URIs:/ {print $2} /^deb / {for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) {print $i; break}}' \
    <<<"$listed" | grep -E '/debian/?$' | head -1
}

build_root() {
  mkdir -p "$work/packages"
  echo "== a minimal Debian 12 root"
  debootstrap --variant=minbase --cache-dir="$work/packages" \
    --include=python3,python3-venv,ca-certificates,make,git \
    bookworm "$root" "$(mirror)" >"$work/debootstrap.log" 2>&1 || {
    tail -5 "$work/debootstrap.log" >&2
    exit 3
  }
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount --make-rslave "$root/dev"
  # Every machine has it; without, PoCL finds no processor and aborts.
  mount -t sysfs -o ro sysfs "$root/sys"
  # What this machine needs to reach its mirrors, and nothing of its packages:
  # certificates, name servers, apt's transport settings, pip's certificate.
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  cp -L /etc/hosts "$root/etc/hosts"
  cp /etc/apt/apt.conf.d/*proxy* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  python3 -m pip config list 2>/dev/null |
    grep -E '\.(cert|index-url|proxy|timeout|default-timeout)=' |
    sed -E "s/^[^.]*\.([a-z-]+)='(.*)'$/\1 = \2/" | sort -u -t= -k1,1 |
    sed '1i [global]' >"$root/etc/pip.conf"
}

# Runs a command in the root with a bare environment, or with the network cut.
inside() { env -i "${clean[@]}" chroot "$root" bash -lc "cd /srv/bedplate && $1"; }
inside_offline() {
  env -i "${clean[@]}" unshare -n bash -c \
    "ip link set lo up && exec chroot '$root' bash -lc 'cd /srv/bedplate && $1'"
}
clean=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
  [ -z "${!name:-}" ] || clean+=("$name=${!name}")
done

step() {
  local name=$1 run=$2 command=$3 start=$SECONDS
  echo "== $name: $command"
  if ! "$run" "$command"; then
    echo "fresh: FAILED at $name" >&2
    exit 1
  fi
  took=$((SECONDS - start))
  echo "== $name: done in $took s"
  if [ -n "$(inmates)" ]; then
    echo "fresh: FAILED, $name left processes behind: $(inmates | tr '\n' ' ')" >&2
    exit 1
  fi
}

FRESH_KEEP='' clean_up
build_root
git clone --quiet --no-hardlinks "$tree" "$root/srv/bedplate"
for name in $steps; do
  case $name in
    up) step up inside "make up DEMO=1" ;;
    test) step test inside "make test" ;;
    offline)
      step offline inside_offline "make up DEMO=1"
      if [ "$took" -gt "$offline_limit_s" ]; then
        echo "fresh: FAILED, the second make up took $took s, $offline_limit_s allowed" >&2
        exit 1
      fi
      ;;
  esac
done
echo "fresh: passed ($steps)"
