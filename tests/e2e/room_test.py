"""Disks that are full, and programs and images that are not what they should be."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import unittest

import harness
import leaks
from harness import E2eTest, ending, wait_until


@contextlib.contextmanager
def small_disk(folder, size):
    """Puts a file system of its own at a folder; nothing when that is not allowed."""
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs",
                              folder], capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=True)


class RoomTest(E2eTest):
    def fill(self):
        """Leaves no room in the state folder; the file that takes it."""
        path = self.world.root / "state/fill"
        with open(path, "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))
        return path

    @harness.limit(420)
    def test_full_host_disk(self):
        """a full disk of the host is told, and what it held up goes on when there is room"""
        with small_disk(self.world.root / "state", "24m") as mounted:
            if not mounted:
                print("SKIPPED: this user may not mount a file system")
                return
            self.full_host_disk()
            self.expect(self.world.fuse("local", "down"))
            self.assertIn("mount", leaks.leaks(self.world.root, harness.IMAGES))

    def full_host_disk(self):
        block = random.randbytes(100_000)
        self.world.write("block", block)
        self.up("full", "echo first\nwhile [ ! -e /tmp/go ]; do sleep 0.1; done\n"
                        "for n in 1 2 3 4 5; do cat block; echo \"[$n]\"; done\nexit 7",
                more="copy:\n  - { from: block, to: block }\n")
        wait_until(lambda: self.world.fuse("logs", "fuse-full").text == "first\n", "it runs")
        filled = self.fill()
        # The log cannot be kept: the guest holds it.
        self.expect(self.world.fuse("exec", "fuse-full", "--", "touch", "/tmp/go"))
        log = self.world.state / "daemon.log"
        done = self.world.fuse("up", self.world.fusefile("more", "true"))
        self.expect(done, 1)
        self.expect_says(done, "No space left on device")
        self.assertEqual(len(self.world.qemus()), 1)
        self.assertNotEqual(self.world.fuse("logs", "--exit-code", "fuse-full").code, 7)
        # What is told of it does not grow without bounds.
        filled.unlink()
        done = self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-full"), 7)
        expected = b"first\n" + b"".join(block + f"[{n}]\n".encode() for n in range(1, 6))
        self.assertEqual(len(done.out), len(expected))
        self.assertTrue(done.out == expected, "the output has a hole or a repeat")
        self.assertLess(len(log.read_text().splitlines()), 60)

        # A VM can be removed from a disk that is full, and a background process
        # started on one says why it cannot be.
        filled = self.fill()
        self.remove("fuse-full")
        self.assertEqual(self.world.environments(), [])
        self.expect(self.world.fuse("local", "down"))
        filled.unlink()
        filled = self.fill()
        done = self.world.fuse("ps")
        if done.code != 0:
            self.expect_says(done, "No space left on device")
        filled.unlink()
        self.expect(self.world.fuse("ps"))
        logs = self.expect(self.world.fuse("logs", "--exit-code", "fuse-full"), 7)
        self.assertTrue(logs.out == expected)

    @harness.limit(420)
    def test_waiting_for_room(self):
        """a VM that cannot write its disk waits, which is told, and goes on when there is room"""
        with small_disk(self.world.root / "state", "64m") as mounted:
            if not mounted:
                print("SKIPPED: this user may not mount a file system")
                return
            self.up("waits", "echo first\nwhile [ ! -e /run/go ]; do sleep 0.1; done\n"
                             "head -c 20000000 /dev/urandom > /data\nsync\n"
                             "wc -c < /data\nexit 5", image="base")
            filled = self.fill()
            self.world.start("exec", "fuse-waits", "--", "touch", "/run/go").wait()
            log = self.world.state / "daemon.log"
            wait_until(lambda: "a vm waits for room" in log.read_text(), "it is told")
            self.assertEqual(self.world.environments()[0]["state"], "running")
            filled.unlink()
            done = self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-waits"), 5)
            self.assertEqual(done.text, "first\n20000000\n")
            self.assertIn("there is room for its disk again", log.read_text())
            self.remove("fuse-waits")
            self.expect(self.world.fuse("local", "down"))

    @harness.limit(420)
    def test_full_guest_disk(self):
        """a job that fills its own disk still has its output and its code"""
        fill = {"micro": "cat /dev/zero > /filled 2>/dev/null || true\n",
                "base": "fallocate -l $(df --output=avail -B1 / | tail -n 1) /filled 2>/dev/null || true\n"
                        "cat /dev/zero > /rest 2>/dev/null || true\n"}
        for image, text in fill.items():
            path = self.world.fusefile(
                "filled", f"echo first\n{text}"
                          "n=0; while [ $n -lt 3000 ]; do n=$((n + 1)); echo \"line $n\"; done\n"
                          "exit 9", image=image)
            done = self.expect(self.world.fuse("run", path), 9)
            self.assertEqual(done.text, "first\n" + "".join(f"line {n}\n"
                                                            for n in range(1, 3001)))

    def test_programs(self):
        """a QEMU that is missing or ends at once is told, and nothing stays"""
        path = self.world.fusefile("programs", "true")
        empty = self.world.root / "work/empty"
        empty.mkdir()
        done = self.world.fuse("run", path, env={"PATH": str(empty)})
        self.expect(done, 125)
        self.expect_says(done, "qemu-system-x86_64 is not on this host: install QEMU")
        self.assertEqual(self.world.environments(), [])
        self.expect(self.world.fuse("local", "down"))
        broken = self.world.write("qemu", "#!/bin/sh\necho 'qemu: it is broken' >&2\nexit 3\n")
        broken.chmod(0o755)
        done = self.world.fuse("run", path, env={"QEMU_BIN": str(broken)})
        self.expect(done, 125)
        self.expect_says(done, "QEMU exited with 3: qemu: it is broken")
        self.assertEqual(self.world.environments(), [])
        self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])
        self.expect(self.world.fuse("local", "down"))
        self.expect(self.world.fuse("run", path))

    def test_locked_disk(self):
        """a disk that another process has open is told as that"""
        real = shutil.which("qemu-system-x86_64")
        # Takes the disk's lock a moment before the VM does.
        script = self.world.write(
            "qemu", f"#!/bin/sh\n'{shutil.which('qemu-io')}' -f qcow2 -c 'sleep 3000' disk.qcow2 "
                    f"&\nsleep 1\nexec '{real}' \"$@\"\n")
        script.chmod(0o755)
        path = self.world.fusefile("locked", "true", image="base")
        done = self.world.fuse("run", path, env={"QEMU_BIN": str(script)})
        self.expect(done, 125)
        self.expect_says(done, "another process has this disk open")
        self.assertEqual(self.world.environments(), [])
        self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])

    def test_images(self):
        """an image whose files are missing, cut short or overwritten is told as that"""
        images = self.world.root / "work/images"
        shutil.copytree(harness.IMAGES, images, ignore=shutil.ignore_patterns("initrd", "base*"))
        manifest = json.loads((images / "micro.json").read_text())
        kernel = images / "blobs" / manifest["direct_kernel"]["sha256"]
        self.world.environment["FUSE_IMAGES"] = str(images)
        path = self.world.fusefile("image", "true")
        self.expect(self.world.fuse("run", path))
        whole = kernel.read_bytes()
        kernel.chmod(0o644)
        for damage, words in ((whole[:-7], f"{kernel} has {len(whole) - 7} bytes instead of"),
                              (bytes(len(whole)), "QEMU"),
                              (None, f"{kernel} is missing")):
            if damage is None:
                kernel.unlink()
            else:
                kernel.write_bytes(damage)
            done = self.expect(self.world.fuse("run", path), 125)
            self.expect_says(done, words)
            self.assertEqual(self.world.environments(), [])
            self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])
        kernel.write_bytes(whole)
        initrd, = (images / "initrd").iterdir()
        initrd.chmod(0o644)
        initrd.write_bytes(initrd.read_bytes()[:100_000])
        self.expect(self.world.fuse("run", path))


if __name__ == "__main__":
    unittest.main(verbosity=2)
