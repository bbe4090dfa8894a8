#!/bin/busybox sh
# The first RAM disk of a guest of scripts/kernels.sh: loads the modules that the root disk needs, and continues on that disk.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for m in /modules/*; do insmod "$m" 2>/dev/null; done
n=0
until [ -b /dev/vda ] || [ $n = 100 ]; do usleep 100000; n=$((n + 1)); done
mount -t ext4 /dev/vda /root
mount -o move /dev /root/dev
umount /proc /sys
exec switch_root /root /bin/sh /boot.sh
