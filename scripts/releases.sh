# shellcheck shell=bash
# Sourced: the releases of the JDK that goprof is tested on. vmstructs/releases.txt is the only list of them.

releases() { # CPU as GOARCH spells it, the first release (0)
    awk -v cpu="$1" -v from="${2:-0}" '!/^#/ && $1 + 0 >= from + 0 && (" " $0 " ") ~ " " cpu " " { print $1 }' \
        "$(dirname "${BASH_SOURCE[0]}")/../vmstructs/releases.txt" | paste -sd ' '
}
