# Until goprof reads the memory of a JVM, however long it takes to begin.
until ls -l /proc/$1/fd | grep -q '/proc/[0-9]*/mem$'; do sleep 0.1; done
