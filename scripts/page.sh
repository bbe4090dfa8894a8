# Sourced by the scripts that write tables into pages of docs.
# shellcheck shell=bash

# Puts what is read between two marks of a page: <!-- mark --> and <!-- /mark -->.
put() { # page, mark
    local new
    new=$(mktemp)
    cat >"$new"
    sed -i -e "/^<!-- $2 -->\$/,/^<!-- \/$2 -->\$/{/^<!-- /!d}" -e "/^<!-- $2 -->\$/r $new" "$1"
    rm "$new"
}
