"""Checks of the inventory and of binding: what `fuse agent probe` and `bind` do to a kernel."""

import lab as labs
from lab import expect, same

CARD, SOUND = "0000:01:00.0", "0000:01:00.1"
ALONE = "0000:02:00.0"
MIXED, NVME = "0000:03:00.0", "0000:03:00.1"
BRIDGED, PORT = "0000:04:00.0", "0000:00:08.0"

FACTS = """# As nvidia-smi would have told of them.
0000:01:00.0 | uuid=GPU-card;model=Lab Card
0000:02:00.0 | uuid=GPU-alone;model=Lab Alone
0000:04:00.0 | uuid=GPU-bridged;model=Lab Bridged
"""


def members(card):
    return {member["address"]: (member["kind"], member["driver"]) for member in card["group"]}


def check_probe(lab):
    """probe shows cards with their groups, companions, bridges and drivers."""
    (lab.dir / "device-facts.txt").write_text(FACTS)
    cards = lab.probe()
    same(sorted(cards), [CARD, ALONE, MIXED, BRIDGED])
    for address, card in cards.items():
        same(card["iommu_group"], labs.group(address), address)
    same(members(cards[CARD]), {CARD: ("gpu", "bochs-drm"), SOUND: ("companion", "snd_hda_intel")})
    same(members(cards[ALONE]), {ALONE: ("gpu", "bochs-drm")})
    same(members(cards[BRIDGED]), {BRIDGED: ("gpu", "bochs-drm"), PORT: ("bridge", "pcieport")})
    same(members(cards[MIXED]), {MIXED: ("gpu", "bochs-drm"), NVME: ("foreign", "nvme")})
    same(cards[CARD]["state"], "unbound", cards[CARD])
    expect("bars" in cards[CARD] and cards[CARD]["bars"][0]["size"] == 16 << 20, cards[CARD])
    same(cards[MIXED]["state"], "unsafe", cards[MIXED])


def check_foreign(lab):
    """a group that holds an NVMe is refused in words, and nothing of it moves."""
    outcome, = lab.bind(MIXED, code=1)["groups"]
    same(outcome["outcome"], "failed")
    expect(f"also holds {NVME} (NVMe, 1b36:0010, driver nvme)" in outcome["reason"], outcome)
    same((labs.driver(MIXED), labs.driver(NVME)), ("bochs-drm", "nvme"))


def check_bind(lab):
    """bind moves a card and its sound chip, once, and writes the inventory."""
    outcome, = lab.bind(CARD)["groups"]
    same(outcome["outcome"], "bound", outcome)
    same((labs.driver(CARD), labs.driver(SOUND)), ("vfio-pci", "vfio-pci"))
    lines = (lab.dir / "vfio-inventory.txt").read_text()
    expect(f"1 lab-card {CARD} {SOUND} | bus_id={CARD};uuid=GPU-card;model=Lab Card" in lines,
           lines)
    same(lab.bind(CARD)["groups"][0]["outcome"], "already bound")
    same((lab.dir / "vfio-inventory.txt").read_text(), lines)
    same(lab.probe()[CARD]["state"], "ready")


def check_half_bound(lab):
    """a half-bound group is told by its function and driver, and not handed over."""
    labs.write(f"/sys/bus/pci/devices/{SOUND}/driver_override", "snd_hda_intel")
    labs.write("/sys/bus/pci/drivers/vfio-pci/unbind", SOUND)
    labs.write("/sys/bus/pci/drivers_probe", SOUND)
    same(labs.driver(SOUND), "snd_hda_intel")
    card = lab.probe()[CARD]
    same((card["state"], card["reason"]), ("unbound", f"{SOUND} is on snd_hda_intel"))
    lab.agent.start()
    same(lab.agent.refused(409, "half", gpus=1),
         "insufficient free gpus: requested 1 of any kind, 0 available in complete iommu groups")
    same(lab.bind(CARD)["groups"][0]["outcome"], "bound")
    same((labs.driver(CARD), labs.driver(SOUND)), ("vfio-pci", "vfio-pci"))


def check_unbind(lab):
    """unbind gives every function back to the driver that it had."""
    same(lab.bind("--unbind", SOUND)["outcome"], "given back")
    same((labs.driver(CARD), labs.driver(SOUND)), ("bochs-drm", "snd_hda_intel"))
    expect(CARD not in (lab.dir / "vfio-inventory.txt").read_text(), "it is still in the inventory")


def check_bind_all(lab):
    """bind without slots takes every card that may be had, and no bridge."""
    outcomes = {outcome["slots"][0]: outcome["outcome"] for outcome in lab.bind(code=1)["groups"]}
    same(outcomes, {CARD: "bound", ALONE: "bound", BRIDGED: "bound", MIXED: "failed"})
    for address in (CARD, SOUND, ALONE, BRIDGED):
        same(labs.driver(address), "vfio-pci", address)
    for port in ("0000:00:05.0", "0000:00:06.0", "0000:00:07.0", PORT):
        same(labs.driver(port), "pcieport", port)
    same(labs.driver(NVME), "nvme")
