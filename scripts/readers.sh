#!/usr/bin/env bash
# make test-readers: fetches by Maven the programs with which goprof's files are tested: JMC's reader and rules, async-profiler and
# its converter, jstall's parser of thread dumps, the readers of heap dumps of VisualVM and of Eclipse MAT. Prints the folder of the
# jars in the form of GOPROF_READERS.
#   scripts/readers.sh npm     fetches by npm: speedscope with its schema, a validator, the Firefox Profiler's command line, the client
#                              of the Model Context Protocol, and its node. Prints the folder of the packages in the form of
#                              GOPROF_VIEWERS. npm's own configuration says where npm gets them from
# GOPROF_CACHE names another cache than ~/.cache/goprof. Needs mvn and a JDK from 17 on. Does not fetch again what exists.
set -euo pipefail
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/readers

if [ "${1:-}" = npm ]; then
    packages=(speedscope@1.25.0 ajv@8.20.0 @firefox-devtools/profiler-cli@0.10.0 @modelcontextprotocol/sdk@1.32.2 node@24.9.0)
    if [ "$(cat "$cache/npm/fetched" 2>/dev/null)" != "${packages[*]}" ]; then
        mkdir -p "$cache/npm"
        echo '{"private": true}' >"$cache/npm/package.json"
        (cd "$cache/npm" && npm install --no-audit --no-fund "${packages[@]}" >&2)
        "$cache/npm/node_modules/node/bin/node" --version >&2 # its package fetches the program itself
        echo "${packages[*]}" >"$cache/npm/fetched"
    fi
    echo "$cache/npm/node_modules"
    exit
fi

dependencies=""
for item in org.openjdk.jmc:flightrecorder.rules.jdk:9.1.1 tools.profiler:jfr-converter:4.5 tools.profiler:async-profiler:4.5 \
    me.bechberger:jthreaddump:0.5.8 org.gridkit.jvmtool:hprof-heap:0.16 com.squareup.haha:haha:1.3; do
    IFS=: read -r group artifact version <<<"$item"
    dependencies+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
done
if [ "$(cat "$cache/fetched" 2>/dev/null)" != "$dependencies" ]; then
    mkdir -p "$cache"
    echo "<project><modelVersion>4.0.0</modelVersion><groupId>goprof</groupId><artifactId>readers</artifactId><version>1</version>" \
        "<dependencies>$dependencies</dependencies></project>" >"$cache/pom.xml"
    (cd "$cache" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2)
    echo "$dependencies" >"$cache/fetched"
fi
echo "$cache/lib"
