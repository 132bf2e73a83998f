"""Guest images."""

import json
import os
import pathlib
import shutil
import signal
import unittest

import harness
from harness import IMAGES, E2eTest, ending, wait_until


class ImageTest(E2eTest):
    def test_list(self):
        """image list shows the baked images and what is wrong with a broken one"""
        listed = self.expect(self.world.fuse("image", "list", "-o", "json")).json()["images"]
        images = {image["name"]: image for image in listed}
        self.assertNotIn("problem", images["micro"])
        self.assertNotIn("problem", images["base"])
        self.assertGreater(images["base"]["disk_bytes"], 1 << 30)
        self.assertTrue(images["micro"]["kernel_version"])

        mine = self.world.root / "work/images"
        shutil.copytree(IMAGES, mine, ignore=shutil.ignore_patterns("initrd", ".*"))
        kernels = [path for path in (mine / "blobs").iterdir()
                   if b"HdrS" in path.read_bytes()[:4096]]
        for kernel in kernels:
            kernel.unlink()
        listed = self.expect(self.world.fuse("image", "list", "-o", "json",
                                             env={"FUSE_IMAGES": str(mine)})).json()["images"]
        for image in listed:
            self.assertIn("missing", image["problem"])

    def test_bad_names(self):
        """bake refuses names that are none"""
        for name in ("../x", "/x", "a b", ".x", ""):
            done = self.world.fuse("image", "bake", name)
            self.assertNotEqual(done.code, 0, str(done))
            self.expect_says(done, "invalid base image name")
        self.expect(self.world.fuse("image", "bake", "x", "--kind", "cake"), 2)

    @harness.limit(900)
    def test_interrupted_bake(self):
        """a bake that is killed leaves nothing that the next one does not remove"""
        mine = self.world.root / "work/images"
        environment = {"FUSE_IMAGES": str(mine)}
        bake = self.world.start("image", "bake", "micro", env=environment)
        with bake:
            wait_until(lambda: list(mine.glob(".bake-*/packages/*")), "it is underway")
            bake.send_signal(signal.SIGKILL)
        left = list(mine.glob(".bake-*"))
        self.assertEqual(len(left), 1)
        self.assertFalse((mine / "micro.json").exists())
        # What it had started ends by itself before long.
        wait_until(lambda: not [pid for pid in harness.leaks.processes(self.world.root)
                                if "apt" in harness.leaks.command_line(pid)], "apt has ended")
        done = self.expect(self.world.fuse("image", "bake", "micro", env=environment, timeout=600))
        self.expect_says(done, "micro")
        self.assertEqual(list(mine.glob(".bake-*")), [])
        self.assertTrue((mine / "micro.json").exists())
        path = self.world.fusefile("fresh", "echo from $(uname -s)")
        done = self.expect(self.world.fuse("run", path, env=environment))
        self.assertEqual(done.text, "from Linux\n")

    @harness.limit(600)
    def test_bake_beside_boots(self):
        """VMs boot while their image is baked anew, before, in and after the change"""
        mine = self.world.root / "work/images"
        shutil.copytree(IMAGES, mine, ignore=shutil.ignore_patterns("base.json", ".*"))
        self.world.environment["FUSE_IMAGES"] = str(mine)
        before = (mine / "micro.json").read_bytes()
        path = self.world.fusefile("beside", "uname -s; exit 3")
        bake = self.world.start("image", "bake", "micro", stdout=None, stderr=None)
        jobs = 0
        with ending(bake):
            while bake.poll() is None or jobs < 2:
                done = self.expect(self.world.fuse("run", path), 3)
                self.assertEqual(done.text, "Linux\n")
                jobs += 1
        self.assertEqual(bake.returncode, 0)
        self.assertNotEqual((mine / "micro.json").read_bytes(), before, "it was baked anew")
        self.expect(self.world.fuse("run", path), 3)
        self.expect(self.world.fuse("image", "verify"))

    @harness.limit(600)
    def test_upkeep(self):
        """verify names the file that is damaged, and prune leaves alone what a VM runs from"""
        mine = self.world.root / "work/images"
        shutil.copytree(IMAGES, mine, ignore=shutil.ignore_patterns("initrd", "micro.json", ".*"))
        self.world.environment["FUSE_IMAGES"] = str(mine)
        manifest = mine / "base.json"
        modules = mine / "blobs" / json.loads(manifest.read_text())["modules"]["sha256"]
        whole = modules.read_bytes()
        modules.chmod(0o644)
        modules.write_bytes(whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:])
        done = self.expect(self.world.fuse("image", "verify", "base"), 1)
        self.assertRegex(done.text, f"^base: {modules} has other content: .*\n$")
        modules.write_bytes(whole)
        done = self.expect(self.world.fuse("image", "verify"))
        self.assertEqual(done.text, "base: whole\n")

        self.up("upkeep", "sleep 1000", image="base")
        record, = self.world.agent_state.glob("vms/*/record.json")
        image = json.loads(record.read_text())["image"]
        used = {image[part] for part in ("kernel", "initrd", "disk")}

        def files():
            return {str(path) for place in ("blobs", "initrd") for path in (mine / place).iterdir()}

        # As if it had been baked anew long ago; who knows of the VM has only its record.
        manifest.unlink()
        for path in files():
            os.utime(path, (0, 0))
        self.expect(self.world.fuse("local", "down"))
        before = files()
        self.assertLess(used, before)
        done = self.expect(self.world.fuse("image", "prune", "--dry-run", "-o", "json"))
        self.assertEqual({file["path"] for file in done.json()["removed"]}, before - used)
        self.assertEqual(files(), before)
        self.expect(self.world.fuse("image", "prune"))
        self.assertEqual(files(), used)
        done = self.expect(self.world.fuse("exec", "fuse-upkeep", "--", "python", "-c",
                                           "import ssl; print(6 * 7)"))
        self.assertEqual(done.text, "42\n")
        self.remove("fuse-upkeep")
        self.expect(self.world.fuse("image", "prune"))
        self.assertEqual(files(), set())

    def test_modules(self):
        """every module that an image brings loads in its own kernel"""
        self.up("modules", "sleep 1000")
        order = self.expect(self.world.fuse("exec", "fuse-modules", "--", "cat",
                                            "/lib/modules/fuse.order")).text.split()
        loaded = self.expect(self.world.fuse("exec", "fuse-modules", "--", "cut", "-d", " ", "-f",
                                             "1", "/proc/modules")).text.split()
        wanted = {pathlib.PurePath(line).stem for line in order}
        self.assertEqual(wanted - set(loaded), set())
        self.assertGreater(len(wanted), 5)
        self.remove("fuse-modules")

    @harness.limit(600)
    def test_base(self):
        """the image base has a root on a disk that grows, and Python"""
        path = self.world.write("base.yaml", "version: 1\nname: base\nimage: base\n"
                                "resources:\n  memory: 512MB\n  disk: 6GB\nrun: sleep 1000\n")
        self.expect(self.world.fuse("up", path))
        size = self.expect(self.world.fuse("exec", "fuse-base", "--", "df", "--output=size", "-BM",
                                           "/")).text.split()[1]
        self.assertGreater(int(size.rstrip("M")), 5500)
        done = self.expect(self.world.fuse("exec", "fuse-base", "--", "python", "-c",
                                           "import ssl, os; print(os.getuid(), 6 * 7)"))
        self.assertEqual(done.text, "0 42\n")
        # What is written is in the VM's own disk.
        before = {path: os.stat(path).st_mtime_ns for path in pathlib.Path(IMAGES, "blobs").iterdir()}
        self.expect(self.world.fuse("exec", "fuse-base", "--", "sh", "-c",
                                    "dd if=/dev/urandom of=/big bs=1M count=20; sync"))
        after = {path: os.stat(path).st_mtime_ns for path in pathlib.Path(IMAGES, "blobs").iterdir()}
        self.assertEqual(before.keys() - after.keys(), set())
        self.expect(self.world.fuse("image", "list"))
        self.remove("fuse-base")


if __name__ == "__main__":
    unittest.main(verbosity=2)
