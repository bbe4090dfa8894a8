# Lines "suite, user, look, exit code, samples, what goprof said", separated by tabs -> a table of Markdown.
BEGIN { columns = split(suites, suite, " ") }
{
    said = $6
    gsub(/\|/, "\\|", said)
    if (!($3 in known)) { known[$3] = 1; look[++looks] = $3 }
    # What is said whatever comes out: that goprof begins, which rights it keeps, what a triage finds.
    gsub(/goprof: (rights|recordings keep|recording the JVMs|looking at|process [0-9]+: [a-z-]+)[^|]*/, "", said)
    sub(/ *try: .*/, "", said)
    gsub(/goprof: (cannot look at process [0-9]+|cannot take samples of [a-z-]+|engine|off-cpu): /, "", said)
    sub(/ +$/, "", said)
    if ($4 == 0 || $4 == 13) cell = said == "" ? "works" : "less: " said
    else if ($4 == 7) cell = "nothing met" # the right is there, and nothing was seen in so short a time
    else cell = "refuses (" $4 "): " said
    of[$3, $1] = cell
}
END {
    printf "| |"
    for (i = 1; i <= columns; i++) printf " %s |", suite[i]
    printf "\n|---|"
    for (i = 1; i <= columns; i++) printf "---|"
    printf "\n"
    for (l = 1; l <= looks; l++) {
        printf "| %s |", look[l]
        for (i = 1; i <= columns; i++) printf " %s |", of[look[l], suite[i]]
        printf "\n"
    }
}
