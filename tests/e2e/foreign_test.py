"""Images that fuse did not make: a cloud's own disk, started by firmware."""

import os
import pathlib
import random
import signal
import subprocess
import unittest

import cloud_image
import harness
from harness import E2eTest, wait_until

# Not among the baked images: what those tests list and copy is all of fuse's making.
DISK = pathlib.Path(harness.IMAGES + "-foreign") / "debian.qcow2"

# Firmware, GRUB, systemd and cloud-init under emulation, on a busy machine.
BOOT = 540


class FirmwareTest(E2eTest):
    """A disk with nothing on it: no boot to wait for."""

    def setUp(self):
        super().setUp()
        images = self.world.root / "work/images"
        images.mkdir()
        self.world.environment["FUSE_IMAGES"] = str(images)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", images / "empty.qcow2", "1G"],
                       check=True)

    def test_nothing_to_boot(self):
        """missing firmware, and a disk that firmware cannot start, are told as that"""
        path = self.world.fusefile("empty", "true", image="empty")
        done = self.world.fuse("run", path, env={"OVMF_CODE": "/nowhere/OVMF_CODE.fd"})
        self.expect_says(self.expect(done, 125), "image 'empty' boots by firmware",
                         "/nowhere/OVMF_CODE.fd is missing", "(Debian: ovmf)")
        # The next background process has the usual firmware.
        self.expect(self.world.fuse("local", "down"))
        done = self.expect(self.world.fuse("run", path), 125)
        self.expect_says(done, "UEFI, has found nothing on the disk that it could start")
        self.assertEqual(self.world.environments(), [])
        self.assertEqual(self.world.qemus(), [])

    def test_unwanted(self):
        """an environment that still boots is removed without waiting for its guest"""
        path = self.world.fusefile("empty", "true", image="empty")
        self.expect(self.world.fuse("up", path, "--no-wait"))
        qemu, = wait_until(self.world.qemus, "it boots")
        os.kill(qemu, signal.SIGSTOP)
        self.remove("fuse-empty")


class ForeignTest(E2eTest):
    @classmethod
    def setUpClass(cls):
        cloud_image.make(DISK)

    def setUp(self):
        super().setUp()
        self.world.environment["FUSE_IMAGES"] = str(DISK.parent)

    def cloud(self, name, run):
        """A Fusefile for the image; its root is to grow."""
        text = (f"version: 1\nname: {name}\nimage: debian\n"
                "resources:\n  cpus: 2\n  memory: 1GB\n  disk: 5GB\nrun: |\n")
        return self.world.write(f"{name}.yaml", text + "".join(f"  {line}\n" for line in run))

    def nothing_lives(self):
        self.assertEqual(self.world.environments(), [])
        self.assertEqual(self.world.qemus(), [])
        self.assertEqual(list((self.world.agent_state / "vms").iterdir()), [])

    @harness.limit(900)
    def test_run(self):
        """an unmodified cloud image runs a job, answers commands and stops as our own do"""
        listed = self.expect(self.world.fuse("image", "list", "-o", "json")).json()["images"]
        self.assertEqual([(i["name"], i["boot"], i["foreign"]) for i in listed],
                         [("debian", "firmware", True)])
        self.expect_says(self.expect(self.world.fuse("image", "list")), "firmware")
        self.expect_says(self.expect(self.world.fuse("image", "verify", "debian")), "firmware")

        code = random.randint(1, 120)
        path = self.cloud("cloud", [
            f"trap 'echo asked; exit {code}' TERM", "cat /proc/1/comm", "ls -d /sys/firmware/efi",
            "hostname; echo $FUSE_TASK_ID", "stat -f -c %T /fuse",
            "df --output=size -BM /", "echo re''ady", "while :; do sleep 0.1; done"])
        run = self.world.start("run", path)
        with harness.ending(run):
            said = harness.read_until(run.stdout, b"ready\n", patience=BOOT).decode().split()
            self.assertEqual(said[:5], ["systemd", "/sys/firmware/efi", "fuse-cloud", "cloud",
                                        "tmpfs"])
            self.assertGreater(int(said[6].rstrip("M")), 4500, said)
            logs = self.expect(self.world.fuse("logs", "fuse-cloud"))
            self.assertEqual(logs.text.split(), said)
            done = self.world.fuse("exec", "fuse-cloud", "--", "sh", "-c", f"cat; exit {code}",
                                   stdin=b"to the guest")
            self.assertEqual(self.expect(done, code).out, b"to the guest")
            self.expect(self.world.fuse("stop", "fuse-cloud"))
            out, err = run.communicate(timeout=harness.PATIENCE)
        self.assertEqual(run.returncode, code, err)
        self.assertTrue(out.endswith(b"asked\n"), out)
        self.nothing_lives()
        self.expect(self.world.fuse("logs", "--exit-code", "fuse-cloud"), code)

    @harness.limit(900)
    def test_reboot(self):
        """a cloud image that restarts itself is told as that, and its job as lost"""
        path = self.cloud("restart", ["echo up", "systemctl reboot", "sleep 1000"])
        done = self.expect(self.world.fuse("run", path, timeout=BOOT), 125)
        self.assertEqual(done.text, "up\n")
        self.assertRegex(done.errors, "lost: the vm ended: the guest restarted itself")
        self.nothing_lives()


if __name__ == "__main__":
    unittest.main(verbosity=2)
