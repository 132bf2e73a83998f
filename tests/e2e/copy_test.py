"""fuse cp between this machine and guests."""

import os
import random
import unittest

from harness import E2eTest


class CopyTest(E2eTest):
    def test_copy(self):
        """cp carries files and folders both ways, byte for byte"""
        self.up("copy", "sleep 1000")
        fuse, work = self.world.fuse, self.world.root / "work"
        block = random.randbytes(3_000_000)
        self.world.write("in.bin", block).chmod(0o751)
        self.expect(fuse("cp", "in.bin", "fuse-copy:/root"))
        self.expect(fuse("cp", "copy:/root/in.bin", "back.bin"))
        self.assertTrue((work / "back.bin").read_bytes() == block)
        self.assertEqual((work / "back.bin").stat().st_mode & 0o7777, 0o751)

        odd = "line\nfeed 'and' -quotes ü"
        self.world.write(f"tree/sub/{odd}", b"\0\xff odd")
        self.world.write("tree/" + "n" * 180, "long")
        (work / "tree/empty").mkdir()
        os.symlink("../elsewhere", work / "tree/link")
        (work / "tree/sub").chmod(0o711)
        self.expect(fuse("cp", "tree", "fuse-copy:/srv-new"))
        names = self.expect(fuse("exec", "fuse-copy", "--", "find", "/srv-new", "-print0")).out
        self.assertIn(f"/srv-new/sub/{odd}".encode(), names.split(b"\0"))
        self.expect(fuse("cp", "fuse-copy:/srv-new", "again"))
        self.assertEqual((work / f"again/sub/{odd}").read_bytes(), b"\0\xff odd")
        self.assertEqual((work / ("again/" + "n" * 180)).read_text(), "long")
        self.assertTrue((work / "again/empty").is_dir())
        self.assertEqual(os.readlink(work / "again/link"), "../elsewhere")
        self.assertEqual((work / "again/sub").stat().st_mode & 0o7777, 0o711)

        done = self.expect(fuse("cp", "fuse-copy:/root/in.bin", "-"))
        self.assertTrue(done.out == block)
        self.expect(fuse("cp", "-", "fuse-copy:/root/typed", stdin=b"from stdin\n"))
        done = self.expect(fuse("exec", "fuse-copy", "--", "cat", "/root/typed"))
        self.assertEqual(done.text, "from stdin\n")
        self.remove("fuse-copy")

    def test_failures(self):
        """cp says what is missing and what is full, and leaves nothing half done"""
        self.up("full", "sleep 1000")
        fuse = self.world.fuse
        done = self.expect(fuse("cp", "fuse-full:/nope", "."), 1)
        self.expect_says(done, "there is no file or folder fuse-full:/nope")
        self.world.write("big", random.randbytes(2_000_000))
        done = self.expect(fuse("cp", "big", "fuse-full:/no/such/place"), 1)
        self.expect_says(done, "there is no folder fuse-full:/no/such", "mkdir -p")
        self.expect(fuse("exec", "fuse-full", "--", "sh", "-c",
                         "mkdir /small && mount -t tmpfs -o size=1m none /small && "
                         "echo kept >/small/old"))
        done = self.expect(fuse("cp", "big", "fuse-full:/small/old"), 1)
        self.expect_says(done, "the disk of fuse-full is full")
        done = self.expect(fuse("exec", "fuse-full", "--", "sh", "-c", "cat /small/old; ls -A /small"))
        self.assertEqual(done.text, "kept\nold\n")
        done = self.expect(fuse("cp", "big", "other:/x"), 1)
        self.expect_says(done, "other")
        self.remove("fuse-full")


if __name__ == "__main__":
    unittest.main(verbosity=2)
