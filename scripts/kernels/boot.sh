#!/bin/sh
# The first process of a guest of scripts/kernels.sh: mounts the usual file systems, and runs the job of the second disk.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mkdir -p /dev/pts /dev/shm /job
mount -t devpts devpts /dev/pts
mount -t tracefs tracefs /sys/kernel/tracing
mount -t securityfs security /sys/kernel/security
# As systemd mounts them: one tree (version 2), a tree for each controller (v1), or both (hybrid).
mode=$(sed -n 's/.*\bcgroups=\([a-z0-9]*\).*/\1/p' /proc/cmdline)
if [ -z "$mode" ]; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
else
    mount -t tmpfs cgroup /sys/fs/cgroup
    for of in cpu memory freezer; do mkdir /sys/fs/cgroup/$of; mount -t cgroup -o $of cgroup /sys/fs/cgroup/$of; done
    [ "$mode" = v1 ] || { mkdir /sys/fs/cgroup/unified; mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified; }
fi
ip link set lo up 2>/dev/null
tar -xf /dev/vdb -C /job
mkdir -p /job/out
uname -r >/job/out/release
sh /job/job.sh
tar -cf /dev/vdc -C /job out
sync
echo o >/proc/sysrq-trigger
sleep 60
