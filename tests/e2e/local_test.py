"""Local mode: the background process and its VMs."""

import os
import pathlib
import signal
import stat
import unittest

import leaks
from harness import E2eTest, wait_until


class LocalTest(E2eTest):
    def test_up_and_down(self):
        """local up starts one background process, local down ends it"""
        self.assertIsNone(self.world.background_pid())
        self.expect(self.world.fuse("local", "up"))
        pid = self.world.background_pid()
        self.expect(self.world.fuse("local", "up"))
        self.assertEqual(self.world.background_pid(), pid)
        self.assertEqual(os.getsid(pid), pid)
        self.assertEqual(stat.S_IMODE(self.world.state.stat().st_mode), 0o700)
        self.expect(self.world.fuse("local", "down"))
        self.assertIsNone(self.world.background_pid())
        wait_until(lambda: not leaks.is_alive(pid), "it has ended")
        self.expect(self.world.fuse("local", "down"))

    def test_started_together(self):
        """commands that need it at the same time start one between them"""
        clients = [self.world.start("environment", "list", "-o", "json") for _ in range(5)]
        for client in clients:
            out, err = client.communicate(timeout=120)
            self.assertEqual(client.returncode, 0, err)
            self.assertIn(b'"environments"', out)
        self.assertIsNotNone(self.world.background_pid())

    def test_says_so(self):
        """the first command says that it starts the background process"""
        done = self.expect(self.world.fuse("environment", "list"))
        self.expect_says(done, "background process")
        done = self.expect(self.world.fuse("environment", "list"))
        self.assertNotIn("background process", done.errors)

    def test_vms_go_on(self):
        """VMs go on without the background process and are found again"""
        self.up("goes-on", "n=0\nwhile :; do n=$((n + 1)); echo $n > /tmp/n; sleep 0.2; done")
        qemus = self.world.qemus()
        self.assertEqual(len(qemus), 1)
        self.expect(self.world.fuse("local", "down"))
        self.assertIsNone(self.world.background_pid())
        self.assertEqual(self.world.qemus(), qemus)
        listed = self.world.environments()
        self.assertEqual([(e["id"], e["state"]) for e in listed], [("fuse-goes-on", "running")])
        done = self.expect(self.world.fuse("exec", "fuse-goes-on", "--", "cat", "/tmp/n"))
        self.assertGreater(int(done.text), 0)
        self.remove("fuse-goes-on")

    def test_confined(self):
        """QEMU has no privileges, whoever starts it, and is confined"""
        self.up("confined", "sleep 1000")
        pid, = self.world.qemus()
        status = dict(line.split(":", 1) for line in
                      pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        self.assertNotIn("0", status["Uid"].split())
        self.assertNotIn("0", status["Gid"].split())
        self.assertEqual(int(status["CapEff"], 16), 0)
        self.assertEqual(int(status["Seccomp"]), 2, "by a filter")
        for name in ("qmp.sock", "ch.sock"):
            found, = self.world.agent_state.glob(f"vms/*/{name}")
            self.assertEqual(found.stat().st_mode & 0o022, 0, "nobody else writes to it")
        self.remove("fuse-confined")

    def test_purge(self):
        """local down --purge ends every VM and leaves nothing but the lock"""
        self.up("goes", "sleep 1000")
        self.expect(self.world.fuse("local", "down", "--purge"), 2)
        self.assertEqual(len(self.world.qemus()), 1)
        done = self.expect(self.world.fuse("local", "down", "--purge", "--yes"))
        self.expect_says(done, "removed 1 environment and all state")
        self.assertEqual(self.world.qemus(), [])
        self.assertEqual(os.listdir(self.world.state), ["lock"])
        self.assertEqual(self.world.environments(), [])
        self.expect(self.world.fuse("local", "down", "--yes"), 2)

    def test_killed_vm(self):
        """a VM whose QEMU is killed is not said to run"""
        self.up("dies", "sleep 1000")
        os.kill(self.world.qemus()[0], signal.SIGKILL)
        wait_until(lambda: not any(e["state"] == "running" for e in self.world.environments()),
                   "it is no longer said to run")
        got = self.world.fuse("environment", "get", "--ended", "fuse-dies", "-o", "json")
        self.assertNotEqual(self.expect(got).json()["state"], "running")
        self.expect(self.world.fuse("logs", "--exit-code", "fuse-dies"), 125)
        self.world.fuse("rm", "--yes", "fuse-dies")
        self.assertEqual(self.world.environments(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
