#!/bin/sh
# Carves MIG instances for VMs; the name that host set-ups know it by.
#
#   qemu-mig-setup.sh --profile P=N [--profile P=N]...   carve what is missing
#   qemu-mig-setup.sh                  carve again what was there before a reboot
#   qemu-mig-setup.sh --list           show the instances
#   qemu-mig-setup.sh --unbind UUID    take one away
#
# FUSE_BIN names another fuse than that of PATH.
set -eu
fuse=${FUSE_BIN:-fuse}
case ${1-} in
  --list)
    shift
    exec "$fuse" agent mig list "$@"
    ;;
  --unbind)
    shift
    exec "$fuse" agent mig destroy "$@"
    ;;
  *)
    exec "$fuse" agent mig apply "$@"
    ;;
esac
