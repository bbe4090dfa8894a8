#!/usr/bin/env bash
# Fetches servers and libraries of others by Maven, and compiles the programs of testdata/servers. Prints their folder in the form
# of GOPROF_SERVERS: a folder for each with the class path in "classpath" and the main class in "main".
#   scripts/servers.sh               those of make test-servers
#   scripts/servers.sh lucene ...    only these; heap's TestPrograms needs lucene h2 spring
# GOPROF_CACHE names another cache than ~/.cache/goprof. Needs mvn and a JDK from 21 on. Does not fetch again what exists.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$PWD/testdata/servers
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/servers
javac=${JAVA_HOME:+$JAVA_HOME/bin/}javac
for other in /usr/lib/jvm/*/bin/javac "${XDG_CACHE_HOME:-$HOME/.cache}"/goprof/jdks/*/bin/javac; do
    "$javac" --release 21 --version >/dev/null 2>&1 && break
    [ ! -x "$other" ] || javac=$other
done
"$javac" --release 21 --version >/dev/null 2>&1 || { echo "servers.sh: no JDK from 21 on; try: JAVA_HOME=DIR $0" >&2; exit 1; }
wanted=${*:-helidon jetty spring tomcat kafka vertx}

# server NAME RELEASE MAIN GROUP:ARTIFACT:VERSION... puts the libraries, and what they need, into NAME/lib, and compiles the
# program for Java from that release on.
server() {
    local name=$1 release=$2 main=$3 dir=$cache/$1 library group artifact version
    [[ " $wanted " == *" $name "* ]] || return 0
    shift 3
    if [ "$(cat "$dir/fetched" 2>&1)" != "$*" ]; then
        rm -rf "$dir"
        mkdir -p "$dir"
        {
            echo "<project><modelVersion>4.0.0</modelVersion><groupId>goprof</groupId><artifactId>$name</artifactId>"
            echo "<version>1</version><dependencies>"
            for library; do
                IFS=: read -r group artifact version <<<"$library"
                echo "<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
            done
            echo "</dependencies></project>"
        } >"$dir/pom.xml"
        (cd "$dir" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2)
        echo "$*" >"$dir/fetched"
    fi
    rm -rf "$dir/classes"
    "$javac" --release "$release" -cp "$dir/lib/*" -d "$dir/classes" "$sources/$main.java" "$sources/Work.java" "$sources/Clients.java" >&2
    echo "$dir/classes:$(printf '%s:' "$dir"/lib/*.jar)" >"$dir/classpath"
    echo "servers.$main" >"$dir/main"
}

server helidon 21 Helidon io.helidon.webserver:helidon-webserver:4.1.6
server jetty 21 Jetty org.eclipse.jetty:jetty-server:12.0.16
server lucene 17 Lucene org.apache.lucene:lucene-core:9.12.1
server h2 17 H2 com.h2database:h2:2.3.232
server spring 17 Spring org.springframework.boot:spring-boot-starter-web:3.4.1 \
    io.opentelemetry.javaagent:opentelemetry-javaagent:2.11.0
server tomcat 17 Shop org.apache.tomcat.embed:tomcat-embed-core:10.1.34 com.zaxxer:HikariCP:6.2.1 com.h2database:h2:2.3.232
server kafka 17 Messages org.apache.kafka:kafka-clients:3.9.0 org.apache.kafka:kafka_2.13:3.9.0
server vertx 17 EventLoop io.vertx:vertx-core:4.5.11
echo "$cache"
