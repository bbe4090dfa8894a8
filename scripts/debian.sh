# Sourced by scripts that use packages of Debian without installing them. apt gets its own lists, cache and empty machine, and
# otherwise this machine's configuration (mirror, proxies, certificates). Needs no root.
# The sourcing script sets:
#   cache   a directory; lists and packages are kept in its apt/
#   suite   a suite of Debian
#   apt_architecture   only if it is not this machine's
#   apt_kind           deb-src for sources, else packages
# shellcheck shell=bash disable=SC2154

say() { echo "$*" >&2; }

apt_with() { # get or cache, arguments...
    local tool=$1 other=()
    shift
    [ -z "${apt_architecture:-}" ] || other=(-o APT::Architecture="$apt_architecture" -o APT::Architectures="$apt_architecture")
    "apt-$tool" -qq -o Dir::State="$cache/apt/state" -o Dir::State::status="$cache/apt/status" -o Dir::Cache="$cache/apt/cache" \
        -o Dir::Etc::sourcelist="$cache/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
        -o Dir::Etc::preferences=/dev/null -o APT::Get::List-Cleanup=false -o APT::Sandbox::User="$(id -un)" \
        -o APT::Install-Recommends=false -o Acquire::Check-Valid-Until=false "${other[@]}" "$@" </dev/null
}

apt_get() { apt_with get "$@"; }

# Where this machine has Debian from: its own sources, whatever they are.
mirror() {
    # shellcheck disable=SC2016 # apt-get's own variable
    local found uri='$(REPO_URI)'
    found=$(apt-get indextargets --format "$uri" 'Label: Debian' 'Component: main' 'Created-By: Packages' 2>/dev/null | head -1)
    if [ -z "$found" ]; then # never updated: the label stands in what an update fetches
        found=$(apt-get indextargets --format "$uri" 'Component: main' 'Created-By: Packages' 2>/dev/null | grep '/debian/*$' | head -1)
    fi
    echo "$found"
}

# Fetches the suite's package lists, at most once a day.
update_lists() {
    mkdir -p "$cache/apt/state/lists/partial" "$cache/apt/cache/archives/partial" # apt wants them, and who is done deletes the second
    if [ -n "$(find "$cache/apt/updated" -mtime -1 2>/dev/null)" ] && grep -q " $suite main\$" "$cache/apt/sources.list"; then
        return 0
    fi
    local from keys=/usr/share/keyrings/debian-archive-keyring.gpg trust=""
    from=$(mirror)
    if [ -z "$from" ]; then
        say "no Debian mirror in this machine's apt sources"
        return 1
    fi
    [ -e "$keys" ] && trust="[signed-by=$keys] "
    : >"$cache/apt/status"
    echo "${apt_kind:-deb} $trust$from $suite main" >"$cache/apt/sources.list"
    say "reading the package lists of Debian $suite"
    apt_get update >&2 || return 1
    touch "$cache/apt/updated"
}
