#!/usr/bin/env bash
# Fetches Graal's compiler for the JDKs of `make test-matrix` that can use it as jars (21 and 25; JDK 11 may contain it) from Maven
# Central into the cache. Prints GOPROF_GRAAL: 21=/dir:25=/dir. If one cannot be fetched, stderr says so and it is left out.
set -euo pipefail

cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/graal
declare -A versions=([21]=23.1.2 [25]=25.0.1)

fetch() { # jdk, version
    local dir=$cache/$2 work
    [ -d "$dir" ] && return 0
    command -v mvn >/dev/null || { echo "Graal's compiler: no mvn to fetch it with" >&2; return 1; }
    work=$(mktemp -d "$cache/.fetching-XXXXXX")
    # shellcheck disable=SC2064 # now, not then
    trap "rm -rf '$work'" RETURN
    if ! mvn -q -B "-Dmaven.repo.local=$work/m2" dependency:get "-Dartifact=org.graalvm.compiler:compiler:$2" >&2 </dev/null; then
        echo "Graal's compiler $2 for JDK $1 could not be fetched" >&2
        return 1
    fi
    mkdir "$work/jars"
    find "$work/m2/org/graalvm" -name '*.jar' -exec mv {} "$work/jars" \;
    mv "$work/jars" "$dir"
}

mkdir -p "$cache"
found=()
for jdk in "${!versions[@]}"; do
    fetch "$jdk" "${versions[$jdk]}" && found+=("$jdk=$cache/${versions[$jdk]}")
done
(IFS=:; echo "${found[*]}")
