#!/bin/sh
# Makes this host's GPUs ready for VMs; the name that host set-ups know it by.
#
#   qemu-vfio-bind.sh                 bind every GPU's IOMMU group to vfio-pci
#   qemu-vfio-bind.sh --list          show what is bound
#   qemu-vfio-bind.sh --unbind SLOT   give the group of that function back
#
# FUSE_BIN names another fuse than that of PATH.
exec "${FUSE_BIN:-fuse}" agent bind "$@"
