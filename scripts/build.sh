#!/usr/bin/env bash
# Builds cmd/goprof as it is released. Arguments go to go build: scripts/build.sh -o goprof
# The program's entry point is in arch/entry, which reads the limit of address space before Go's runtime begins.
set -euo pipefail

# These packages do nothing while samples are taken: commands, pages, what is known of a JVM besides samples, servers.
# The compiler copies no function into another one there (-l), which saves 1.4 MB of 19.7. Nothing that a look at a
# thread, a walk, the account of a sample or an event of a JFR file needs may stand here.
cold=(
    ./{cmd,triage,diagnose,output,agent,annotate}/... ./memory ./session/postmortem
    ./profile/{redact,contention,resource} ./sampler/{guard,bpf} ./arch/disasm
    net net/... crypto/... vendor/... math/big mime/... regexp/... text/... archive/zip os/exec log debug/{dwarf,elf}
    fmt encoding/{json,asn1,pem,csv} golang.org/x/arch/... go.yaml.in/...
    github.com/{ianlancetaylor,spf13,go-delve,google}/...
)
warm=(./output ./output/{jfr,pprof,recording,timeline}) # each sample of a file goes through these
flags=("${cold[@]/%/=-l}" "${warm[@]/%/=}")
# Functions begin at 8 bytes (-funcalign), not at 32 as on x86-64 or 16 as on aarch64: 280 kB.
exec "${GO:-go}" build "${flags[@]/#/-gcflags=}" -ldflags "-s -w -funcalign=8 -E goprof/arch/entry.start" \
    "$@" ./cmd/goprof
