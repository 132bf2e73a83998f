"""The lab's machine: an emulated host with an IOMMU and display controllers to give away.

Its root is that of this machine, read-only below a layer in memory.  What is behind
its ports, by the addresses that they get:

    0000:01:00.0 .1   a card (1234:1111) with its sound chip, in one group
    0000:02:00.0      a card alone
    0000:03:00.0 .1   a card whose group also holds an NVMe
    0000:04:00.0      a card in one group with its port
    0000:05:00.0      an ATI card, which mediated devices can be made on
"""

import contextlib
import os
import signal
import subprocess
import time

from kernel import CannotHave

MEMORY = 2560  # MiB: itself, its layer and up to two guests
MODULES = ("virtio_pci", "virtiofs", "overlay", "vfio_iommu_type1", "vfio_pci", "kvm_amd", "nvme",
           "bochs", "snd_hda_intel", "mdev", "virtio_rng")
DEVICES = (
    "pcie-root-port,id=rp1,bus=pcie.0,chassis=1,slot=1,addr=5",
    "secondary-vga,bus=rp1,addr=0.0,multifunction=on",
    "intel-hda,bus=rp1,addr=0.1",
    "pcie-root-port,id=rp2,bus=pcie.0,chassis=2,slot=2,addr=6",
    "bochs-display,bus=rp2",
    "pcie-root-port,id=rp3,bus=pcie.0,chassis=3,slot=3,addr=7",
    "secondary-vga,bus=rp3,addr=0.0,multifunction=on",
    "nvme,drive=d0,serial=1,bus=rp3,addr=0.1",
    "pcie-root-port,id=rp4,bus=pcie.0,chassis=4,slot=4,addr=8,disable-acs=on",
    "bochs-display,bus=rp4",
    "pcie-root-port,id=rp5,bus=pcie.0,chassis=5,slot=5,addr=9",
    "ati-vga,bus=rp5",
)


def find_virtiofsd():
    """The program that shows a guest our files: part of QEMU, or of a package of its own."""
    for path in ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"):
        if os.access(path, os.X_OK):
            return path
    raise CannotHave("there is no virtiofsd: install qemu-system-common or virtiofsd")


@contextlib.contextmanager
def ended(process):
    """Ends a process, and what it started, with the block, however that ends."""
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def start_virtiofsd(work):
    socket = work / "root.sock"
    socket.unlink(missing_ok=True)
    program = find_virtiofsd()
    argv = [program, f"--socket-path={socket}"]
    if program.startswith("/usr/lib/"):
        argv += ["-o", "source=/", "-o", "sandbox=chroot", "-o", "cache=always",
                 "--thread-pool-size=4"]
    else:
        argv += ["--shared-dir=/", "--sandbox=chroot", "--cache=always", "--thread-pool-size=4"]
    with open(work / "virtiofsd.log", "wb") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True)
    end = time.monotonic() + 10
    while not socket.exists():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            said = (work / "virtiofsd.log").read_text().strip().splitlines() or ["it said nothing"]
            raise CannotHave(f"{program} does not serve: {said[-1]}")
        time.sleep(0.05)
    return process


def qemu_argv(work, kernel, words):
    """The command line of the machine; `words` are for its first process."""
    disk = work / "disk.img"
    with open(disk, "wb") as file:
        file.truncate(4 << 20)
    argv = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-machine", "q35", "-cpu", "max",
            "-smp", "2", "-m", f"{MEMORY}M", "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-vga", "none", "-device", "intel-iommu",
            "-object", f"memory-backend-memfd,id=mem,size={MEMORY}M,share=on",
            "-numa", "node,memdev=mem",
            "-serial", f"file:{work / 'console.log'}", "-serial", f"file:{work / 'report.log'}",
            "-chardev", f"socket,id=root,path={work / 'root.sock'}",
            "-device", "vhost-user-fs-pci,chardev=root,tag=outside",
            "-drive", f"if=none,id=d0,file={disk},format=raw",
            "-kernel", str(kernel.image), "-initrd", str(work / "initramfs"),
            "-append", " ".join(["console=ttyS0", "quiet", "panic=-1", "intel_iommu=on",
                                 "cryptomgr.notests", "no_timer_check", "LAB_ROOT=outside",
                                 *words])]
    for device in DEVICES:
        argv += ["-device", device]
    return argv


def follow(process, report, seconds):
    """Yields the lines of a report while its machine runs; ends it when time is up."""
    end = time.monotonic() + seconds
    rest = ""
    with open(report, encoding="utf-8", errors="replace") as file:
        while True:
            over = process.poll() is not None
            rest += file.read()
            *lines, rest = rest.split("\n")
            yield from (line.rstrip("\r") for line in lines)
            if over:
                break
            if time.monotonic() > end:
                yield f"broken the machine was still running after {seconds} s"
                break
            time.sleep(0.1)
    if rest:
        yield rest


def run_machine(work, kernel, words, seconds):
    """Runs the machine to its end; yields the lines of its report."""
    for name in ("console.log", "report.log"):
        (work / name).write_bytes(b"")
    with ended(start_virtiofsd(work)):
        with open(work / "qemu.log", "wb") as log:
            machine = subprocess.Popen(qemu_argv(work, kernel, words), stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=log, start_new_session=True)
        with ended(machine):
            yield from follow(machine, work / "report.log", seconds)
