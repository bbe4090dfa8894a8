# Reads recordings of truth.Shares, each with what the program says of itself, and prints a row for each (docs/evidence/support.md): how
# far shares are off, and goprof's CPU time. cpus: how many CPUs the guest has.
FNR == 1 {
    if (file != "") tell()
    file = FILENAME
    all = 0
    split("", seen)
}
{
    if ($0 !~ /Shares\.work/) next
    n = $NF
    all += n
    if (match($0, /Shares\.bucket[A-Za-z0-9]+/)) seen[substr($0, RSTART + 7, RLENGTH - 7)] += n
    else seen["other"] += n
}
END { tell() }
function tell(    base, line, shares, parts, i, kv, off, worst, number) {
    base = file
    sub(/^\.\//, "", base)
    sub(/\.collapsed$/, "", base)
    getline line <(base ".truth")
    sub(/.*"shares":\{/, "", line)
    gsub(/[}"]/, "", line)
    parts = split(line, shares, ",")
    for (i = 1; i <= parts; i++) {
        split(shares[i], kv, ":")
        off = (seen[kv[1]] / (all ? all : 1) - kv[2]) * 100
        if (off < 0) off = -off
        if (off > worst) worst = off
    }
    while ((getline line <(base ".summary.json")) > 0)
        if (match(line, /^  "[a-z_]+": [0-9]+,$|"duration_ns": [0-9]+/)) {
            split(substr(line, RSTART, RLENGTH), kv, /[": ,]+/)
            number[kv[2]] = kv[3]
        }
    printf "| %d | %s | %d | %d | %.1f points | %d of %d | %d %% |\n", cpus, base, all, number["effective_samples"], worst, number["lost"],
        number["attempted"], 100 * number["own_cpu_ns"] / number["duration_ns"]
}
