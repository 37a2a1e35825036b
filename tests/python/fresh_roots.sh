#!/bin/sh
# A wheel trains a network where there is nothing but Python: fresh roots of Debian 12 and Ubuntu
# 24.04, without a C compiler, get it with [cc] and make a program and a library there.
#   PYTHON=PYTHON-WITH-PIP sh tests/python/fresh_roots.sh WHEEL FOLDER
# As root, with debootstrap and a network. FOLDER keeps the roots (1 GB) for the next time.
set -eu
wheel=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)
python=${PYTHON:-python3}
said=$folder/said
fail() { echo "FAIL $*"; tail -n 5 "$said"; exit 1; }
command -v debootstrap >/dev/null || { echo "skipped: there is no debootstrap"; exit 77; }

# root NAME SUITE MIRROR SCRIPT OPTION...: once. It is whole when the last line of its log is.
root() {
    name=$1 suite=$2 mirror=$3 script=$4
    shift 4
    [ ! -f "$folder/$name/whole" ] || return 0
    rm -rf "${folder:?}/$name"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates "$@" "$suite" \
        "$folder/$name" "$mirror" "$script" >"$said" 2>&1 || fail "debootstrap $name"
    touch "$folder/$name/whole"
}
scripts=/usr/share/debootstrap/scripts
root debian12 bookworm http://deb.debian.org/debian $scripts/bookworm
keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
if [ ! -f $keyring ]; then
    keyring=$folder/keyring$keyring
    pool=https://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring
    deb=$pool/ubuntu-keyring_2023.11.28.1_all.deb
    [ -f "$keyring" ] || { curl -sSf -o "$folder/keyring.deb" $deb && dpkg-deb -x \
        "$folder/keyring.deb" "$folder/keyring"; } 2>"$said" || fail "$keyring"
fi
root ubuntu2404 noble http://archive.ubuntu.com/ubuntu $scripts/gutsy --components=main,universe \
    --keyring="$keyring"

mkdir -p "$folder/links"
rm -f "$folder"/links/lowerset-*
cp "$wheel" "$folder/links"
for version in 3.11 3.12; do            # of the two systems
    "$python" -m pip download -q -d "$folder/links" --only-binary :all: --python-version $version \
        numpy ziglang >"$said" 2>&1 || fail "pip download"
done

# in_root NAME COMMAND...
in_root() {
    name=$1
    shift
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 LOWERSET_PROBE=off \
        chroot "$folder/$name" "$@" >"$said" 2>&1
}
for name in debian12 ubuntu2404; do
    rm -rf "$folder/$name/work"
    mkdir "$folder/$name/work"
    cp "$folder"/links/*.whl "$here/fresh_root.py" "$folder/$name/work"
    mountpoint -q "$folder/$name/proc" || mount -t proc proc "$folder/$name/proc"
    trap 'umount "$folder/$name/proc"' EXIT
    for compiler in cc gcc clang tcc; do
        ! in_root $name sh -c "command -v $compiler" || fail "$name has $compiler"
    done
    in_root $name python3 -m venv /work/venv || fail "$name: venv"
    in_root $name sh -c '/work/venv/bin/pip install --no-index --find-links /work "lowerset[cc]"' \
        || fail "$name: pip install"
    in_root $name sh -c 'cd /work && venv/bin/python fresh_root.py' || fail "$name: training"
    echo "$name: $(tail -n 1 "$said")"
    umount "$folder/$name/proc"
    trap - EXIT
done
