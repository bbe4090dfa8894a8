#!/usr/bin/env bash
# Makes sure that a JDK (java and javac) is installed, and prints its JAVA_HOME.
# Installs one from this machine's package sources if it may, else says what to install.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/quietly.sh

# The home of the first JDK found: GOPROF_JDKS, JAVA_HOME, the PATH, /usr/lib/jvm.
find_jdk() {
    local dir
    for dir in $(tr ':' '\n' <<<"${GOPROF_JDKS:-}" | sed 's/^[^=]*=//') "${JAVA_HOME:-}" "$(jdk_on_path)" /usr/lib/jvm/*; do
        if [ -n "$dir" ] && [ -x "$dir/bin/java" ] && [ -x "$dir/bin/javac" ]; then
            readlink -f "$dir"
            return 0
        fi
    done
    return 1
}

jdk_on_path() {
    local javac
    if javac=$(command -v javac); then
        dirname "$(dirname "$(readlink -f "$javac")")"
    fi
}

give_up() {
    {
        echo "goprof's tests and demo need a JDK (java and javac, any version from 8 on), and there is none."
        echo "Install one, for instance:"
        echo "    apt-get install default-jdk-headless        (Debian, Ubuntu)"
        echo "    dnf install java-latest-openjdk-devel       (Fedora)"
        echo "    apk add openjdk21-jdk                       (Alpine)"
        echo "or name those that you have: GOPROF_JDKS=\"17=/path/to/jdk17:25=/path/to/jdk25\""
    } >&2
    exit 1
}

if find_jdk; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    give_up
fi

install() { apt-get -qq update && apt-get -qq install -y --no-install-recommends default-jdk-headless; }
export DEBIAN_FRONTEND=noninteractive
quietly build/install-jdk.log "no JDK found: installing default-jdk-headless" install || give_up
find_jdk || give_up
