"""Checks of whole cards in VMs: create, refusal, restart, release, reuse, sudden ends."""

import os
import signal

import lab as labs
from binding import ALONE, BRIDGED, CARD, SOUND
from lab import await_truth, expect, same

CARD_IN_GUEST = [("0", "1234:1111", "038000"), ("1", "8086:2668", "040300")]
SHORT = "insufficient free gpus: requested {} of {}, {} available in complete iommu groups"

uids = {}


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


def set_secondary_bus(port, number):
    """Turns a port to another bus: what was behind it answers no more."""
    with open(f"/sys/bus/pci/devices/{port}/config", "r+b", buffering=0) as config:
        config.seek(0x19)
        config.write(bytes([number]))


def check_dead_card(lab):
    """a card that does not answer after a VM is set aside, and the other one is not."""
    port, bus = "0000:00:06.0", int(ALONE.split(":")[1], 16)
    os.kill(lab.qemu_pid(uids["two"]), signal.SIGSTOP)
    try:
        set_secondary_bus(port, 0x40)
        os.kill(lab.qemu_pid(uids["two"]), signal.SIGKILL)
        await_truth(lambda: "release" in lab.record(uids["two"]), "the end of the VM is settled")
    finally:
        set_secondary_bus(port, bus)
    grade, devices = released(lab.record(uids["two"])["release"])
    same(grade, "quarantined", devices)
    same(devices[BRIDGED], ("bus", ""))
    expect("reads ffff where its vendor 1234 should be" in devices[ALONE][1], devices)
    lab.agent.destroy("two")
    cards = lab.probe()
    same((cards[ALONE]["state"], cards[BRIDGED]["state"]), ("quarantined", "ready"))
    same(lab.agent.refused(409, "again", gpus=1, gpu_kind="lab-alone"),
         SHORT.format(1, "kind 'lab-alone'", 0))
    # It answers again: somebody has looked at it.
    (lab.dir / "device-quarantine.txt").unlink()
    same(lab.probe()[ALONE]["state"], "ready")


def check_foreign_holder(lab):
    """a card that a process of somebody else's has open is not handed out."""
    with open(f"/dev/vfio/{labs.group(ALONE)}", "r+b", buffering=0):
        card = lab.probe()[ALONE]
        same(card["state"], "in-use")
        expect(f"pid {os.getpid()} (python3" in card["reason"], card)
        same(lab.agent.refused(409, "held", gpus=1, gpu_kind="lab-alone"),
             SHORT.format(1, "kind 'lab-alone'", 0))
    same(lab.probe()[ALONE]["state"], "ready")
