"""Checks of mediated devices: what a vGPU of NVIDIA's is on older kernels."""

import ctypes
import os
import pathlib
import uuid

import lab as labs
from lab import Failed, Skip, expect, same

PARENT = pathlib.Path("/sys/bus/pci/devices/0000:05:00.0")
TYPE = PARENT / "mdev_supported_types/nvidia-63"
MDEVS = pathlib.Path("/sys/bus/mdev/devices")
IN_GUEST = [("0", "10de:1eb8", "030200")]

made = {}


def insert_module(path):
    finit_module = 313
    with open(path, "rb") as module:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.syscall(finit_module, module.fileno(), b"", 0) != 0:
            raise Failed(f"{path} is not loaded: {os.strerror(ctypes.get_errno())}")


def require_module(lab):
    if not lab.module:
        raise Skip(lab.why_no_module or "the module for mediated devices was not built")
    if not TYPE.exists():
        raise Skip("no mediated devices can be made: see the check before")


def check_mdev_host(lab):
    """an mdev host shows its types where NVIDIA's driver has them."""
    if not lab.module:
        raise Skip(lab.why_no_module or "the module for mediated devices was not built")
    insert_module(lab.module)
    same(labs.driver("0000:05:00.0"), "nvidia")
    same((TYPE / "available_instances").read_text(), "4\n")


def check_mdev(lab):
    """a VM gets a mediated device, by its profile, and its guest lists it."""
    require_module(lab)
    made["mdev"] = str(uuid.uuid4())
    labs.write(TYPE / "create", made["mdev"])
    (lab.dir / "mig-inventory.txt").write_text(
        f"1g.5gb lab-t4 {made['mdev']} GPU-parent | path={MDEVS / made['mdev']}\n")
    capacity = lab.agent.json("GET", "/v1/capacity")
    same(capacity["mig_profiles"], {"1g.5gb": 1})
    made["uid"] = lab.agent.create("slice", gpus=1, gpu_profile="1g.5gb")
    same(lab.agent.guest_devices("slice"), IN_GUEST)
    argv = " ".join(lab.record(made["uid"])["argv"])
    expect(f"vfio-pci,sysfsdev={MDEVS / made['mdev']}," in argv, argv)


def check_mdev_refusal(lab):
    """a second VM is refused the same instance."""
    require_module(lab)
    same(lab.agent.refused(409, "other", gpus=1, gpu_profile="1g.5gb"),
         "insufficient free mig instances: requested 1 x 1g.5gb of any kind, 0 free")
    same(lab.agent.refused(409, "other", gpus=1, gpu_profile="1g.5gb",
                           mig_instance_uuids=[made["mdev"]]),
         f"mig instance {made['mdev']} already attached to another vm")


def check_mdev_release(lab):
    """a mediated device comes back to the pool as its driver leaves it."""
    require_module(lab)
    lab.agent.destroy("slice")
    release = lab.receipt(made["uid"])["release"]
    same((release["grade"], release["devices"]),
         ("not-reset", [{"address": made["mdev"], "reset": "", "problem": ""}]))
    expect((MDEVS / made["mdev"]).exists(), "it is gone")


def check_mdev_gone(lab):
    """a create on an instance that the host has lost says what happened and what to do."""
    require_module(lab)
    labs.write(MDEVS / made["mdev"] / "remove", "1")
    text = lab.agent.refused(500, "lost", gpus=1, gpu_profile="1g.5gb")
    expect("no such host device: No such file or directory" in text, text)
    expect("fuse agent mig apply" in text, text)
    same(lab.agent.json("GET", "/v1/vm?prefix=lost")["vms"], [])
