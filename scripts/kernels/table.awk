# Lines "suite, section, look, exit code, samples, what goprof said", separated by tabs -> a table of Markdown.
BEGIN {
    columns = split(suites, suite, " ")
    split(names, name, " ")
}
{
    sub(/ -r 20$/, "", $3) # so that goprof keeps up in emulation
    late = $6 ~ /were lost: goprof could not keep up/
    if (!($3 in known)) { known[$3] = 1; look[++looks] = $3 }
    said = ""
    lines = split($6, line, "^")
    for (i = 1; i <= lines; i++) {
        # What is said whatever comes out: that goprof begins, which rights it keeps, what a triage finds, what helps.
        if (line[i] ~ /^(try|Profile|goprof: ([0-9]+m?[0-9]*s left of|rights|recordings keep|recording CPU time|ended after|files: |looking at|process [0-9]+: [a-z-]+))/) continue
        sub(/^goprof: (cannot (look at|record|dump) process [0-9]+|cannot take samples of [a-z_:-]+|engine|off-cpu): /, "", line[i])
        sub(/^(goprof:|Note) +/, "", line[i])
        gsub(/process [0-9]+/, "process N", line[i])
        gsub(/\|/, "\\|", line[i])
        if (line[i] != "") said = said (said == "" ? "" : "; ") line[i]
    }
    if ($4 == 0 || $4 == 13 || $4 == 10) cell = said == "" ? "works" : "less: " said
    else if ($4 == 7 && said !~ /frozen/) cell = late ? "permitted; too late here" : "nothing met" # the right is there, and nothing was seen in so short a time
    else if ($4 == 124 || $4 == 137) cell = "not ended after 5 minutes here" # job.sh ended it
    else if ($4 == 2) cell = "**crashed**"
    else cell = "refuses (" $4 "): " said
    of[$3, $1] = cell
}
END {
    printf "| |"
    for (i = 1; i <= columns; i++) printf " %s |", name[i]
    printf "\n|---|"
    for (i = 1; i <= columns; i++) printf "---|"
    printf "\n"
    # Looks that came out the same on each kernel share a row.
    for (l = 1; l <= looks; l++) {
        row = ""
        for (i = 1; i <= columns; i++) {
            cell = of[look[l], suite[i]]
            row = row " " (i > 1 && length(cell) > 40 && cell == of[look[l], suite[i - 1]] ? "the same" : cell) " |"
        }
        if (!(row in at)) { at[row] = ++rows; order[rows] = row; head[rows] = look[l] }
        else head[at[row]] = head[at[row]] "<br>" look[l]
    }
    for (r = 1; r <= rows; r++) printf "| %s |%s\n", head[r], order[r]
}
