#!/bin/busybox sh
# The first process of the lab's virtual machine. What is printed goes to the first serial port. On
# the second it speaks with the lab outside, in lines whose first word tells what they are.
/bin/busybox mkdir -p /bin/installed
/bin/busybox --install -s /bin/installed
export PATH=/bin:/bin/installed LC_ALL=C HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/pts
mount -t tmpfs -o size=90% none /tmp
mount -t tmpfs -o size=90% none /var/tmp
mount -t tmpfs none /run
# Programs look here for what is mounted.
ln -sf /proc/mounts /etc/mtab
stty -F /dev/ttyS1 raw 2>/dev/null
exec >/dev/ttyS0 2>&1
tell() { echo "$*" >/dev/ttyS1; }

tell "up $(uname -r)"
for module in $(cat /etc/wanted); do
    modprobe -q "$module"
done
for module in /lib/own/*.ko; do
    [ -e "$module" ] || continue
    insmod "$module" || tell "said could not load $module"
done
# Linux 7.3 refuses some algorithms to programs unless told otherwise.
[ ! -e /proc/sys/crypto/af_alg_restrict ] || echo 0 >/proc/sys/crypto/af_alg_restrict
# Room for messages of 1 MiB to the kernel's ciphers; Linux 6.1 gives too little.
[ "$(cat /proc/sys/net/core/optmem_max)" -ge 131072 ] || echo 131072 >/proc/sys/net/core/optmem_max
ip link set lo up

mkfifo /run/said
while read -r line; do tell "said $line"; done </run/said &
teller=$!
sh /etc/work >/run/said 2>&1
status=$?
wait $teller
if [ -s /tmp/record.json ]; then
    tell record
    gzip -c /tmp/record.json | base64 >/dev/ttyS1
    tell end
fi
tell "exit $status"
sync
# QEMU was told to end rather than to start again. Unlike switching off, this needs no ACPI.
reboot -f
