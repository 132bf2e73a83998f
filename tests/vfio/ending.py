"""Checks of what goes wrong: an unbind that hangs, a card that dies, one that others hold."""

import os
import pathlib
import signal

import lab as labs
from binding import ALONE, BRIDGED
from lab import PATIENCE, await_truth, expect, same
from passing import SHORT, released, stuck, uids


def check_unbind_given_up(lab):
    """an unbind that does not come back is given up, and its card set aside."""
    if "unbind" not in stuck:
        raise labs.Skip("the check that begins it was left out")
    said, _ = stuck["unbind"].communicate(timeout=PATIENCE)
    expect(stuck["unbind"].returncode != 0, said)
    expect(f"{BRIDGED}: vfio-pci does not let go of it" in said, said)
    same(lab.probe()[BRIDGED]["state"], "quarantined")


def set_secondary_bus(port, number):
    """Turns a port to another bus: what was behind it answers no more."""
    with open(f"/sys/bus/pci/devices/{port}/config", "r+b", buffering=0) as config:
        config.seek(0x19)
        config.write(bytes([number]))


def check_dead_card(lab):
    """a card that does not answer after a VM is set aside, and the other one is not."""
    port, bus = "0000:00:06.0", int(ALONE.split(":")[1], 16)
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
    same((cards[ALONE]["state"], cards[BRIDGED]["state"]), ("quarantined", "quarantined"))
    same(lab.agent.refused(409, "again", gpus=1, gpu_kind="lab-alone"),
         SHORT.format(1, "kind 'lab-alone'", 0))
    # It answers again: somebody has looked at it.
    (lab.dir / "device-quarantine.txt").unlink()
    cards = lab.probe()
    # The unbind came to its end with the QEMU.
    same((cards[ALONE]["state"], cards[BRIDGED]["state"]), ("ready", "unbound"))


def check_foreign_holder(lab):
    """a card that a process of somebody else's has open is not handed out."""
    with open(f"/dev/vfio/{labs.group(ALONE)}", "r+b", buffering=0):
        card = lab.probe()[ALONE]
        same(card["state"], "in-use")
        expect(f"pid {os.getpid()} (python3" in card["reason"], card)
        same(lab.agent.refused(409, "held", gpus=1, gpu_kind="lab-alone"),
             SHORT.format(1, "kind 'lab-alone'", 0))
    same(lab.probe()[ALONE]["state"], "ready")


def check_stop(lab):
    """the agent ends on SIGTERM and leaves nothing that runs."""
    same(lab.agent.stop(), 0)
    left = [command for path in pathlib.Path("/proc").glob("[0-9]*/comm")
            if (command := path.read_text().strip()).startswith("qemu-system")]
    same(left, [])
