# Recordings of truth.Shares, and beside each what the program says of itself -> how far shares are off, and the cost.
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
function tell(    base, line, shares, parts, i, kv, off, worst, where) {
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
        if (off > worst) { worst = off; where = kv[1] }
    }
    printf "%s: %d samples, worst %.1f points (%s)\n", base, all, worst, where
    while ((getline line <(base ".err")) > 0) if (line ~ /^(CPU|Profile|Cost|goprof|rate) /) print "    " line
}
