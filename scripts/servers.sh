#!/usr/bin/env bash
# make test-servers: fetches Helidon and Jetty by Maven, compiles the programs of testdata/servers, and prints where they
# are, as GOPROF_SERVERS wants it: a folder for each server with the class path in "classpath" and the main class in "main".
# GOPROF_CACHE names another cache than ~/.cache/goprof. Needs mvn and a JDK from 21 on; what is there already is not fetched again.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$PWD/testdata/servers
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/servers
javac=${JAVA_HOME:+$JAVA_HOME/bin/}javac

# server NAME MAIN GROUP:ARTIFACT:VERSION puts the library, and what it needs, into NAME/lib, and compiles the program.
server() {
    local name=$1 main=$2 group artifact version dir=$cache/$1
    IFS=: read -r group artifact version <<<"$3"
    if [ ! -e "$dir/fetched" ]; then
        mkdir -p "$dir"
        echo "<project><modelVersion>4.0.0</modelVersion><groupId>goprof</groupId><artifactId>$name</artifactId><version>1</version>" \
            "<dependencies><dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>" \
            "</dependency></dependencies></project>" >"$dir/pom.xml"
        (cd "$dir" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2)
        touch "$dir/fetched"
    fi
    rm -rf "$dir/classes"
    "$javac" --release 21 -cp "$dir/lib/*" -d "$dir/classes" "$sources/$main.java" "$sources/Work.java" "$sources/Clients.java" >&2
    echo "$dir/classes:$(printf '%s:' "$dir"/lib/*.jar)" >"$dir/classpath"
    echo "servers.$main" >"$dir/main"
}

server helidon Helidon io.helidon.webserver:helidon-webserver:4.1.6
server jetty Jetty org.eclipse.jetty:jetty-server:12.0.16
echo "$cache"
