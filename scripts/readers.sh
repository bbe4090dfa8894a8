#!/usr/bin/env bash
# make test-readers: fetches by Maven what others read our files with, JMC's reader and rules and async-profiler's
# converter, and async-profiler itself, for a recording of its own. Prints the folder of the jars, as GOPROF_READERS wants it.
# GOPROF_CACHE names another cache than ~/.cache/goprof. Needs mvn and a JDK from 17 on; what is there already is not fetched again.
set -euo pipefail
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/readers

dependencies=""
for item in org.openjdk.jmc:flightrecorder.rules.jdk:9.1.1 tools.profiler:jfr-converter:4.5 tools.profiler:async-profiler:4.5; do
    IFS=: read -r group artifact version <<<"$item"
    dependencies+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
done
if [ ! -e "$cache/fetched" ]; then
    mkdir -p "$cache"
    echo "<project><modelVersion>4.0.0</modelVersion><groupId>goprof</groupId><artifactId>readers</artifactId><version>1</version>" \
        "<dependencies>$dependencies</dependencies></project>" >"$cache/pom.xml"
    (cd "$cache" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2)
    touch "$cache/fetched"
fi
echo "$cache/lib"
