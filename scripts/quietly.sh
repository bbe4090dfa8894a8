# Sourced by scripts with steps whose output matters only if they fail.
# shellcheck shell=bash

# Says WHAT, and runs COMMAND with its output in the file LOG. If it fails, shows the end of LOG and names it.
quietly() { # LOG WHAT COMMAND...
    local log=$1 what=$2 status=0
    shift 2
    mkdir -p "$(dirname "$log")"
    echo "$what ..." >&2
    "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ "$status" != 0 ]; then
        { tail -n 20 "$log"; echo "failed: $what. All of its output: $(realpath "$log")"; } >&2
    fi
    return "$status"
}
