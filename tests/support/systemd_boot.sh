#!/usr/bin/env bash
# Becomes systemd, as process 1 of new namespaces (systemd_namespace.py), on a root of its own in memory.
#
# Of the machine it sees /usr, the checkout, Python and the caches, all read-only, and devices without state. It finds no units but
# those in /run/units: the machine's own would, for example, set kernel parameters.
# Arguments: an empty folder, checkout, site-packages, base prefix of Python, folder of caches, folder with etc and units.
set -euo pipefail
root=$1 checkout=$2 packages=$3 python=$4 cache=$5 files=$6

mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir -p "$root"/{etc,usr,var/{cache,lib,log,tmp},run,tmp,proc,sys,dev,root,home,old,opt/{checkout,packages,python,jars}}

read_only() {
  mount --bind "$1" "$root/$2"
  mount -o remount,bind,ro "$root/$2"
}
read_only /usr usr
read_only "$checkout" opt/checkout
read_only "$packages" opt/packages
read_only "$python" opt/python
for link in /bin /sbin /lib /lib64; do cp -a "$link" "$root"; done
cp -a /etc/. "$root/etc"
cp -a "$files/etc/." "$root/etc"
chmod 1777 "$root/tmp" "$root/var/tmp"

# the commands of the units, from this checkout
version=$("$python/bin/python3" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
mkdir -p "$root/opt/grouplake/bin" "$root/opt/grouplake/lib/$version/site-packages"
ln -s "/opt/python/bin/$version" "$root/opt/grouplake/bin/python"
printf 'home = /opt/python/bin\n' > "$root/opt/grouplake/pyvenv.cfg"
printf '/opt/checkout\n/opt/packages\n' > "$root/opt/grouplake/lib/$version/site-packages/grouplake.pth"
cat > "$root/opt/grouplake/bin/grouplake" <<'COMMAND'
#!/bin/sh
# the library of a Python that was built for another folder
export LD_LIBRARY_PATH=/opt/python/lib
exec /opt/grouplake/bin/python -c 'import sys; from pipelines.cli import main; sys.exit(main())' "$@"
COMMAND
chmod 755 "$root/opt/grouplake/bin/grouplake"

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mkdir -p "$root/run/cache"
for kind in jars ivy kernels; do
  if [ -d "$cache/$kind" ]; then cp -a "$cache/$kind" "$root/run/cache"; fi
done
cp -a "$files/units" "$root/run/units"

cd "$root"
pivot_root . old
umount -l /old
rmdir /old
# as systemd does where it believes to be outside of a container: it hands mounts of credentials to services by propagation
mount --make-rshared /
# PATH of the machine may name folders that are not here
exec env -i PATH=/usr/bin:/usr/sbin:/bin:/sbin container=grouplake SYSTEMD_UNIT_PATH=/run/units SYSTEMD_GENERATOR_PATH=/run/none \
  SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/none \
  /usr/lib/systemd/systemd --system --unit=multi-user.target --log-target=console --show-status=no
