#!/usr/bin/env bash
# Builds a JDK 17 with a fastdebug HotSpot (assertions on, larger types) from Debian's source, because no distribution has one.
# Prints it in the form of GOPROF_JDKS.
#   GOPROF_JDKS=$(scripts/fastdebug.sh) STOPS=1000 ROWS='^(default|Serial|G1|-Xint|C1 only|-TieredCompilation)$' ONLY=matrix make test-matrix
# Takes half an hour on two CPUs, and 3 GB in the cache (GOPROF_CACHE). As root it installs the packages that the build needs.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}") # a mirror may not keep unstable's sources
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/fastdebug
# shellcheck disable=SC2034 # debian.sh wants it
apt_kind=deb-src
. scripts/debian.sh # apt_get, update_lists, say

base=$(scripts/jdks.sh 17)
base=${base#17=}
wants=(autoconf file g++ make unzip zip libasound2-dev libcups2-dev libfontconfig-dev libfreetype-dev libx11-dev libxext-dev libxrandr-dev
    libxrender-dev libxt-dev libxtst-dev)

install_tools() {
    dpkg -s "${wants[@]}" >/dev/null 2>&1 && return
    if [ "$(id -u)" != 0 ]; then
        say "the build needs these packages: ${wants[*]}"
        return 1
    fi
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${wants[@]}"; } >&2 </dev/null
}

# Only what the tests need of it, and not optimised much: that halves the time.
build() { # source
    (
        cd "$1"
        bash configure --with-debug-level=fastdebug --with-boot-jdk="$base" --enable-headless-only --disable-warnings-as-errors \
            --with-native-debug-symbols=none --with-jvm-features=-zgc,-shenandoahgc,-jvmci,-epsilongc,-parallelgc,-jfr,-dtrace \
            --with-version-pre= --with-version-build=1 --with-version-opt=goprof --with-extra-cflags=-O1 --with-extra-cxxflags=-O1
        make hotspot
    ) >"$cache/build.log" 2>&1 </dev/null || { say "the build failed: $cache/build.log"; return 1; }
}

mkdir -p "$cache"
exec 9>"$cache/.lock"
flock 9
if [ ! -x "$cache/home/bin/java" ]; then
    install_tools
    update_lists
    rm -rf "$cache/source" "$cache/unfinished"
    mkdir "$cache/source"
    (cd "$cache/source" && apt_get source --download-only openjdk-17 >&2)
    tar -x -C "$cache/source" -f "$cache"/source/openjdk-17_*.orig.tar.*
    say "building HotSpot: $cache/build.log"
    build "$cache"/source/openjdk-17-*/
    cp -rs "$base/." "$cache/unfinished"
    find "$cache/unfinished/bin" -type l -exec sh -c 'for f; do cp --remove-destination "$(readlink -f "$f")" "$f"; done' - {} +
    rm -f "$cache/unfinished/lib/server/"*
    cp "$cache"/source/*/build/*/support/modules_libs/java.base/server/libjvm.so "$cache/unfinished/lib/server/"
    "$cache/unfinished/bin/java" -version 2>/dev/null || { say "the fastdebug JVM does not run here"; exit 1; }
    mv "$cache/unfinished" "$cache/home"
    rm -rf "$cache/source"
fi
echo "17-fastdebug=$cache/home"
