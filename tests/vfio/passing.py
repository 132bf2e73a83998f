"""Checks of whole cards in VMs: create, refusal, restart, release, reuse, sudden ends."""

import os
import signal

import lab as labs
from binding import ALONE, BRIDGED, CARD, SOUND
from lab import await_truth, expect, same

CARD_IN_GUEST = [("0", "1234:1111", "038000"), ("1", "8086:2668", "040300")]
SHORT = "insufficient free gpus: requested {} of {}, {} available in complete iommu groups"

uids = {}
stuck = {}


def check_capacity(lab):
    """the agent offers the bound cards, whoever made them."""
    if lab.agent.process is None:
        lab.agent.start()
    capacity = lab.agent.json("GET", "/v1/capacity")
    same(capacity["gpus"], 3, capacity)
    same({device["uuid"]: device["iommu_group"] for device in capacity["gpu_devices"]},
         {"GPU-card": labs.group(CARD), "GPU-alone": labs.group(ALONE),
          "GPU-bridged": labs.group(BRIDGED)})


def check_create(lab):
    """a VM gets a card with its sound chip, and its guest lists both in one slot."""
    uids["one"] = lab.agent.create("one", gpus=1, gpu_kind="lab-card")
    same(lab.agent.guest_devices("one"), CARD_IN_GUEST)
    devices = [device["address"] for device in lab.record(uids["one"])["devices"]]
    same(devices, [CARD, SOUND])
    card = lab.probe()[CARD]
    same(card["state"], "in-use")
    expect(f"pid {lab.qemu_pid(uids['one'])} (qemu-system" in card["reason"], card)


def check_refusal(lab):
    """a second VM is refused the same group."""
    same(lab.agent.refused(409, "two", gpus=1, gpu_kind="lab-card"),
         SHORT.format(1, "kind 'lab-card'", 0))
    same(lab.agent.refused(409, "two", gpus=1, gpu_device_uuids=["GPU-card"]),
         SHORT.format(1, "any kind", 0))
    same(lab.agent.refused(409, "two", gpus=3), SHORT.format(3, "any kind", 2))


def check_unbind_in_use(lab):
    """a card in use is not unbound: its holder is named."""
    done = lab.fuse("agent", "bind", "--vendor", "1234", "--unbind", CARD, code=None)
    expect(done.code != 0, done)
    done.says(f"IOMMU group {labs.group(CARD)} is in use: pid {lab.qemu_pid(uids['one'])} (qemu-")
    same((labs.driver(CARD), labs.driver(SOUND)), ("vfio-pci", "vfio-pci"))


def check_restart(lab):
    """an agent that is killed and started again keeps the VM and its claim."""
    pid = lab.qemu_pid(uids["one"])
    lab.agent.kill()
    os.kill(pid, 0)
    lab.agent.start()
    same(lab.agent.guest_devices("one"), CARD_IN_GUEST)
    same(lab.agent.refused(409, "two", gpus=1, gpu_kind="lab-card"),
         SHORT.format(1, "kind 'lab-card'", 0))
    same(lab.qemu_pid(uids["one"]), pid)


def released(release):
    return release["grade"], {device["address"]: (device["reset"], device["problem"])
                              for device in release["devices"]}


def check_release(lab):
    """a destroyed VM's devices are reset together, answer, and have a receipt."""
    lab.agent.destroy("one")
    receipt = lab.receipt(uids["one"])
    same(released(receipt["release"]), ("reset", {CARD: ("hot", ""), SOUND: ("hot", "")}))
    same(lab.probe()[CARD]["state"], "ready")
    expect("devices of a vm are free again" in lab.agent.said(), lab.agent.said())


def check_reuse(lab):
    """the card goes to the next VM, as the first had it."""
    uids["next"] = lab.agent.create("next", gpus=1, gpu_device_uuids=["GPU-card"])
    same(lab.agent.guest_devices("next"), CARD_IN_GUEST)


def check_killed_qemu(lab):
    """a QEMU that is killed gives its devices back, before the VM is destroyed."""
    os.kill(lab.qemu_pid(uids["next"]), signal.SIGKILL)
    await_truth(lambda: "release" in lab.record(uids["next"]), "its devices are released")
    record = lab.record(uids["next"])
    same(record["state"], "ended")
    same(released(record["release"])[0], "reset")
    same(lab.probe()[CARD]["state"], "ready")
    lab.agent.destroy("next")
    same(lab.receipt(uids["next"])["release"], record["release"])


def check_two_groups(lab):
    """a VM gets two groups, one of them without the port that is in it."""
    uids["two"] = lab.agent.create("two", gpus=2, gpu_device_uuids=["GPU-alone", "GPU-bridged"])
    same(lab.agent.guest_devices("two"), [("0", "1234:1111", "038000")] * 2)
    same(sorted(device["address"] for device in lab.record(uids["two"])["devices"]),
         [ALONE, BRIDGED])
    same(labs.driver("0000:00:08.0"), "pcieport")


def check_unbind_begun(lab):
    """the agent goes on while the kernel holds up an unbind."""
    # QEMU would have the guest let go of the card; one that stands still does not.
    os.kill(lab.qemu_pid(uids["two"]), signal.SIGSTOP)
    # Without /proc it does not see who has the card open.
    stuck["unbind"] = lab.start("agent", "bind", "--vendor", "1234", "--unbind", BRIDGED,
                                before=["unshare", "--mount", "sh", "-c",
                                        'mount -t tmpfs none /proc && exec "$@"', "sh"])
    await_truth(lambda: labs.driver(BRIDGED) == "", "the kernel takes the driver away")
    same(lab.probe()[BRIDGED]["driver"], "")
    same(lab.agent.json("GET", "/v1/capacity")["gpus"], 2)
    same(lab.agent.refused(409, "three", gpus=2), SHORT.format(2, "any kind", 1))
