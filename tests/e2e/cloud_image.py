"""Makes a disk like those that Debian publishes for clouds: GPT, an EFI system
partition with GRUB, a root that grows, systemd and cloud-init, and nothing of fuse.

Made once and kept beside the baked images; it takes neither root nor loop devices.
"""

import fcntl
import os
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = ["systemd-sysv", "udev", "dbus", "linux-image-cloud-amd64", "initramfs-tools",
            "grub-efi-amd64-bin", "grub-common", "cloud-init", "cloud-guest-utils", "fdisk",
            "netplan.io", "systemd-resolved", "ca-certificates"]

# At the end of the set-up, "$1" being the root: what is of this machine goes, and the
# boot loader's image is made by the root's own packages.
HOOK = """\
set -eu
rm -f "$1/etc/hostname" "$1/etc/resolv.conf"
ln -s ../run/systemd/resolve/stub-resolv.conf "$1/etc/resolv.conf"
echo 'LABEL=cloud-root / ext4 rw,discard,errors=remount-ro 0 1' >"$1/etc/fstab"
: >"$1/etc/machine-id"
mkdir "$1/efi"
cat >"$1/efi/start" <<'END'
search --no-floppy --label --set=root cloud-root
linux /vmlinuz root=LABEL=cloud-root ro console=tty0 console=ttyS0,115200
initrd /initrd.img
boot
END
chroot "$1" grub-mkimage --format=x86_64-efi --prefix=/boot/grub --config=/efi/start \\
  --output=/efi/BOOTX64.EFI part_gpt fat ext2 normal linux search search_label serial
"""

SECTOR = 512
MIB = 1 << 20
EFI_AT, EFI_SIZE = 1 * MIB, 32 * MIB
ROOT_AT, ROOT_SIZE = 33 * MIB, 1600 * MIB
# The second table is behind the last partition.
DISK_SIZE = ROOT_AT + ROOT_SIZE + MIB

# The root is the last partition, so that it can grow, though not the last by number.
LAYOUT = f"""\
label: gpt
start={ROOT_AT // SECTOR}, size={ROOT_SIZE // SECTOR}, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709
start={EFI_AT // SECTOR}, size={EFI_SIZE // SECTOR}, type=uefi
"""


def run(*argv, **options):
    """Runs a tool to its end; some are where a plain user's PATH does not lead."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return subprocess.run(list(map(str, argv)), env={**os.environ, "PATH": path}, text=True,
                          check=True, **options)


def sources():
    """This machine's own Debian sources, as lines of a sources.list."""
    release = dict(line.split("=", 1) for line in
                   pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    codename = release["VERSION_CODENAME"].strip('"')
    listed = run("apt-get", "indextargets", "--format",
                 "$(ORIGIN)|$(RELEASE)|$(COMPONENT)|$(REPO_URI)", "Created-By: Packages",
                 stdout=subprocess.PIPE).stdout
    found = {}
    for line in listed.splitlines():
        origin, suite, component, uri = line.split("|")
        if origin == "Debian" and suite.startswith(codename):
            found.setdefault((uri, suite), []).append(component)
    return codename, [f"deb {uri} {suite} {' '.join(sorted(set(components)))}"
                      for (uri, suite), components in found.items()]


def set_up_root(work):
    """A tar archive of the root."""
    codename, lines = sources()
    mode = "root" if os.geteuid() == 0 else "unshare"
    run("mmdebstrap", f"--mode={mode}", "--variant=minbase", "--format=tar",
        "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*", f"--include={','.join(PACKAGES)}",
        f"--customize-hook={HOOK}", codename, work / "root.tar", *lines)


def make_efi(work, loader):
    """The EFI system partition, with the loader where firmware looks for one."""
    partition = work / "efi.raw"
    run("mkfs.vfat", "-F", "16", "-C", partition, EFI_SIZE // 1024, stdout=subprocess.DEVNULL)
    run("mmd", "-i", partition, "::/EFI", "::/EFI/BOOT")
    run("mcopy", "-i", partition, loader, "::/EFI/BOOT/BOOTX64.EFI")


def make_disk(work, disk):
    """The partitions and what is on them."""
    raw, efi = work / "disk.raw", work / "BOOTX64.EFI"
    with open(raw, "wb") as file:
        file.truncate(DISK_SIZE)
    run("sfdisk", "--quiet", raw, input=LAYOUT)
    (work / "root").mkdir()
    # Files belong to whom they should in the eyes of one fakeroot only.
    script = """
      tar --extract --numeric-owner --preserve-permissions --exclude="./dev/*" \\
        --file "$1/root.tar" --directory "$1/root"
      mv "$1/root/efi/BOOTX64.EFI" "$2"
      rm -r "$1/root/efi"
      mkfs.ext4 -q -F -L cloud-root -d "$1/root" -E "lazy_itable_init=0,offset=$3" "$4" "$5"
    """
    run("fakeroot", "sh", "-euc", script, "sh", work, efi, ROOT_AT, raw, f"{ROOT_SIZE // 1024}k",
        stderr=subprocess.DEVNULL)
    make_efi(work, efi)
    with open(raw, "r+b") as file:
        file.seek(EFI_AT)
        file.write((work / "efi.raw").read_bytes())
    run("qemu-img", "convert", "-c", "-O", "qcow2", "-o", "compression_type=zstd", raw, disk)


def make(disk):
    """Makes `disk`, a path that ends in .qcow2, unless it is there."""
    disk = pathlib.Path(disk).resolve()
    disk.parent.mkdir(parents=True, exist_ok=True)
    with open(disk.parent / ".making.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if disk.exists():
            return
        with tempfile.TemporaryDirectory(prefix=".making-", dir=disk.parent) as folder:
            work = pathlib.Path(folder)
            set_up_root(work)
            make_disk(work, work / "disk.qcow2")
            (work / "disk.qcow2").rename(disk)


if __name__ == "__main__":
    make(sys.argv[1])
