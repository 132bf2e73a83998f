"""What is killed, removed or damaged while VMs run: the job goes on or its loss is
told with its reason, nothing is left behind, and the next command works."""

import os
import shutil
import signal
import time
import unittest

import harness
import leaks
from harness import E2eTest, ending, wait_until


class FaultTest(E2eTest):
    """Each test plants its own leak first: a QEMU that nobody ends is found."""

    def kill_background(self):
        """Kills the background process as a crash would; its pid."""
        pid = self.world.lock_holder()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not leaks.is_alive(pid), "it is dead")
        return pid

    def found_as_leak(self, pid):
        """Makes sure that the checker of leaks sees this process."""
        found = leaks.leaks(self.world.root, harness.IMAGES)
        self.assertTrue(any(text.startswith(f"{pid}:") for text in found.get("process", [])), found)

    def vm_folder(self):
        """The folder of the only VM."""
        folders = list((self.world.agent_state / "vms").iterdir())
        self.assertEqual(len(folders), 1, folders)
        return folders[0]

    def ended(self, name):
        got = self.expect(self.world.fuse("environment", "get", "--ended", name, "-o", "json"))
        return got.json()

    def all_is_gone(self):
        wait_until(lambda: self.world.environments() == [], "the environment has ended")
        self.assertEqual(self.world.qemus(), [])
        self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])

    @harness.limit(420)
    def test_suspended(self):
        """a machine that was suspended goes on with its job, and sets its guest's clock"""
        path = self.world.fusefile("asleep", "for n in $(seq 60); do echo $n; sleep 0.2; done\n"
                                             "sleep 1000")
        run = self.world.start("run", path)
        with ending(run):
            seen = harness.read_until(run.stdout, b"5\n")
            everything = [self.world.lock_holder(), run.pid, *self.world.qemus()]
            for pid in everything:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(12)
            for pid in everything:
                os.kill(pid, signal.SIGCONT)
            # A guest's clock stands still with its host.
            self.guest("date -s @1000000000")
            wait_until(lambda: abs(int(self.guest("date +%s")) - time.time()) < 5,
                       "the guest's clock is right again")
            seen += harness.read_until(run.stdout, b"60\n")
            self.assertEqual(seen.decode().split(), [str(n) for n in range(1, 61)])
            run.send_signal(signal.SIGINT)
            run.wait(timeout=harness.PATIENCE)
        self.remove("fuse-asleep")

    def guest(self, script):
        return self.expect(self.world.fuse("exec", "fuse-asleep", "--", "sh", "-c", script)).text

    @harness.limit(420)
    def test_removed_folder(self):
        """a VM whose folder is removed is ended, its job lost with the reason"""
        path = self.world.fusefile("homeless", "echo first\nsleep 1000")
        run = self.world.start("run", path)
        with ending(run):
            harness.read_until(run.stdout, b"first\n")
            qemu, = self.world.qemus()
            self.found_as_leak(qemu)
            folder = self.vm_folder()
            shutil.rmtree(folder)
            _, err = run.communicate(timeout=harness.PATIENCE)
        self.assertEqual(run.returncode, 125, err)
        self.assertIn(f"its folder {folder} was removed while it ran".encode(), err)
        self.all_is_gone()
        self.assertEqual(self.ended("fuse-homeless")["job"]["state"], "lost")
        self.assertEqual(self.expect(self.world.fuse("logs", "fuse-homeless")).text, "first\n")

        # The same while nobody looks, and by a name that nobody knows any more.
        self.up("homeless", "sleep 1000")
        qemu, = self.world.qemus()
        self.kill_background()
        os.rename(self.vm_folder(), self.world.root / "work/moved")
        self.found_as_leak(qemu)
        self.all_is_gone()
        self.assertIn("no longer has the vm", self.ended("fuse-homeless")["error"])
        self.assertFalse(leaks.is_alive(qemu))
        log = (self.world.state / "daemon.log").read_text()
        self.assertLess(len(log.splitlines()), 200, log)
        # Whoever moved it has it now, with the sockets in it.
        shutil.rmtree(self.world.root / "work/moved")

    def test_removed_state(self):
        """removing the whole state folder ends what ran from it"""
        self.up("stateless", "sleep 1000")
        qemu, = self.world.qemus()
        background = self.world.lock_holder()
        self.found_as_leak(qemu)
        self.found_as_leak(background)
        shutil.rmtree(self.world.state)
        wait_until(lambda: not leaks.is_alive(qemu), "the VM is ended")
        wait_until(lambda: not leaks.is_alive(background), "the background process has ended")
        self.assertEqual(self.world.environments(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
