"""The executable itself."""

import os
import shutil
import subprocess
import unittest

import harness
from harness import FUSE, ROOT, E2eTest


@harness.offline
class StaticTest(E2eTest):
    def test_static(self):
        """the executable is static and small"""
        ldd = subprocess.run(["ldd", FUSE], capture_output=True, text=True, check=False)
        self.assertIn("not a dynamic executable", ldd.stdout + ldd.stderr)
        self.assertLess(os.path.getsize(FUSE), 15_000_000)

    def in_chroot(self, *words):
        """Runs fuse in a folder that holds nothing but itself and a Fusefile."""
        jail = self.world.root / "work/jail"
        if not jail.exists():
            jail.mkdir()
            shutil.copy(FUSE, jail / "fuse")
            (jail / "Fusefile").write_text("version: 1\nname: x\nimage: base\nrun: [echo, hi]\n")
        enter = [shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin"), str(jail)]
        if os.geteuid() != 0:
            enter = [shutil.which("unshare"), "--user", "--map-root-user", *enter]
        return subprocess.run([*enter, "/fuse", *words], env={}, capture_output=True, text=True,
                              timeout=60, check=False)

    def test_chroot(self):
        """it runs in an empty chroot"""
        done = self.in_chroot("--version")
        self.assertEqual(done.returncode, 0, done)
        self.assertRegex(done.stdout, r"^fuse \d")
        done = self.in_chroot("compile", "/Fusefile", "--format", "json")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn('"task_id": "x"', done.stdout)

    def test_unwritten(self):
        """results that cannot be written are no success"""
        with open("/dev/full", "wb") as full:
            done = subprocess.run([FUSE, "version"], stdout=full, stderr=subprocess.PIPE,
                                  check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"the output could not be written", done.stderr)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([FUSE, "version"], stdout=writer, stderr=subprocess.PIPE,
                              check=False)
        os.close(writer)
        self.assertEqual((done.returncode, done.stderr), (141, b""))

    def test_build_leaves_the_tree_alone(self):
        """nothing of the tree is needed at run time"""
        copy = self.world.root / "work/fuse"
        shutil.copy(FUSE, copy)
        strings = copy.read_bytes()
        self.assertNotIn(str(ROOT / "cmd").encode(), strings)
        self.assertNotIn(str(ROOT / "hostmode").encode(), strings)


if __name__ == "__main__":
    unittest.main(verbosity=2)
