#!/usr/bin/env bash
# make test-languages: fetches the compilers of Kotlin, Scala, Groovy and JRuby by Maven, and compiles the programs of
# testdata/languages. Prints their folder in the form of GOPROF_LANGUAGES: a folder for each language with the class path in
# "classpath" and the main class (and its argument) in "main".
# GOPROF_CACHE names another cache than ~/.cache/goprof. Needs mvn and a JDK. Does not make again what exists.
set -euo pipefail
cd "$(dirname "$0")/.."
sources=$PWD/testdata/languages
cache=${GOPROF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/goprof}/languages
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

# fetch LANGUAGE GROUP:ARTIFACT:VERSION... puts them, and what they need, into LANGUAGE/lib.
fetch() {
    local language=$1 item group artifact version dependencies=""
    shift
    [ -e "$cache/$language/fetched" ] && return 0
    mkdir -p "$cache/$language"
    for item; do
        IFS=: read -r group artifact version <<<"$item"
        dependencies+="<dependency><groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version></dependency>"
    done
    echo "<project><modelVersion>4.0.0</modelVersion><groupId>goprof</groupId><artifactId>$language</artifactId><version>1</version>" \
        "<dependencies>$dependencies</dependencies></project>" >"$cache/$language/pom.xml"
    (cd "$cache/$language" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >&2)
    touch "$cache/$language/fetched"
}

jars() { printf '%s:' "$cache/$1"/lib/*.jar; }

# compiled LANGUAGE SOURCE MAIN COMPILER... compiles SOURCE into LANGUAGE/classes, unless it has not changed.
compiled() {
    local language=$1 source=$sources/$2 main=$3 classes=$cache/$1/classes
    shift 3
    if ! cmp -s "$source" "$cache/$language/source"; then
        rm -rf "$classes"
        mkdir -p "$classes"
        "$java" -cp "$(jars "$language")" "$@" -d "$classes" "$source" >&2
        cp "$source" "$cache/$language/source"
    fi
    echo "$classes:$(jars "$language")" >"$cache/$language/classpath"
    echo "$main" >"$cache/$language/main"
}

fetch kotlin org.jetbrains.kotlin:kotlin-compiler-embeddable:2.0.21 org.jetbrains.kotlinx:kotlinx-coroutines-core-jvm:1.9.0
compiled kotlin Shop.kt shop.ShopKt org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -nowarn -no-stdlib -no-reflect -cp "$(jars kotlin)"
fetch scala org.scala-lang:scala-compiler:2.13.14
compiled scala Shop.scala shop.Main scala.tools.nsc.Main -usejavacp
fetch groovy org.apache.groovy:groovy:4.0.24
compiled groovy Shop.groovy shop.Shop org.codehaus.groovy.tools.FileSystemCompiler
fetch jruby org.jruby:jruby-complete:9.4.9.0
jars jruby >"$cache/jruby/classpath"
echo "org.jruby.Main $sources/shop.rb" >"$cache/jruby/main"
echo "$cache"
