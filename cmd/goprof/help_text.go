package main

// The short helps.

const recordBrief = `record samples the stacks of a running JVM into a file. The name of the file chooses the format:
.collapsed, .html (a flame graph), .svg, .jfr, .pb.gz, .speedscope.json, .firefox.json.gz, .json.
Without -d it records until Ctrl-C or until the JVM ends. An account at the end says how far the
result can be believed.`

const recordBriefExample = `  goprof record --pid 1234 -d 30s                  CPU time, into out.collapsed
  goprof record petclinic -d 30s -o now.html       the JVM with that in its main class or jar
  goprof record --pid 1234 -d 1m -o x.jfr          each sample with its time
  goprof record --pid 1234 -d 1m --mode wall -t    all threads, also those that wait
  goprof record --pid 1234 -d 1m --event alloc     who allocates
  goprof record --pid 1234 -d 1m --event lock      who waits for locks
  goprof record --pid 1234 -o day-%t.jfr --loop 10m --keep 6   always the last hour
  goprof record -- java -jar app.jar               start it, record it whole`

const dumpBrief = `dump looks once at every thread of a JVM: its state, its locks, its whole stack. It needs no help
from the JVM, and works on a JVM that is deadlocked or stopped. --core reads a core file.`

const dumpBriefExample = `  goprof dump 1234                            or --pid 1234
  goprof dump petclinic --group               threads at the same place once
  goprof dump 1234 -n 3 --every 5s            what moved, and what did not
  goprof dump 1234 -o threads.json            the ending chooses JSON or text
  goprof dump 1234 --format jstack > t.txt    for tools that read jstack's dumps
  goprof dump --core core.1234                what it did when it died`

const agentBrief = `agent records all JVMs of this host at a low rate until SIGTERM. It hands over
a batch of each JVM every 15 seconds, to files or to servers. Each flag may also be a variable of
the environment or a key of one YAML file (docs/agent.md).`

const agentBriefExample = `  goprof agent --files /var/lib/goprof
  goprof agent --files /var/lib/goprof --files-format jfr --every 1m
  goprof agent --otlp http://collector:4318
  goprof agent --config /etc/goprof/agent.yaml --check    only say whether the file is right`

const diffBrief = `diff says what changed between two recordings, and what of it is noise. A star marks a change that
noise alone would not give. Several recordings a side make it sure (docs/diff.md).`

const diffBriefExample = `  goprof diff before.jfr after.jfr
  goprof diff before.jfr after.jfr -o diff.html           a differential flame graph
  goprof diff -o diff.html before*.jfr -- after*.jfr      several starts of each version`
