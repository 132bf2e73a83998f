"""State that is damaged, of a newer version, or wanted by two at a time."""

import contextlib
import json
import os
import random
import shutil
import signal
import sqlite3
import unittest

import harness
import leaks
from harness import FUSE, E2eTest, ending, wait_until


class StateTest(E2eTest):
    def kill_background(self):
        pid = self.world.lock_holder()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not leaks.is_alive(pid), "it is dead")

    def refused(self, *texts):
        """That a command fails in words while the state is as it is."""
        done = self.world.fuse("ps")
        self.assertNotEqual(done.code, 0, str(done))
        self.expect_says(done, *texts)
        return done

    def test_damaged_record(self):
        """a VM whose record is damaged is ended and told, and its log stays"""
        self.up("record", "echo first\nsleep 1000")
        qemu, = self.world.qemus()
        wait_until(lambda: self.world.fuse("logs", "fuse-record").text == "first\n", "it runs")
        self.kill_background()
        record, = (self.world.agent_state / "vms").glob("*/record.json")
        text = record.read_bytes()
        record.write_bytes(random.choice([text[:random.randrange(len(text))],
                                          random.randbytes(len(text))]))
        found = leaks.leaks(self.world.root, harness.IMAGES)
        self.assertTrue(any(what.startswith(f"{qemu}:") for what in found["process"]), found)
        wait_until(lambda: self.world.environments() == [], "the environment has ended")
        self.assertFalse(leaks.is_alive(qemu))
        self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])
        got = self.expect(self.world.fuse("environment", "get", "--ended", "fuse-record",
                                          "-o", "json")).json()
        self.assertEqual(got["job"]["state"], "lost")
        self.assertIn("the record is damaged", got["error"])
        self.assertEqual(self.expect(self.world.fuse("logs", "fuse-record")).text, "first\n")
        # Its name is free.
        self.up("record", "sleep 1000")
        self.remove("fuse-record")

    def test_newer_state(self):
        """what a newer version has written is refused, naming it, and taken up again after"""
        self.up("newer", "sleep 1000")
        qemus = self.world.qemus()
        self.kill_background()
        version = self.world.agent_state / "version"
        kept = version.read_text()
        version.write_text("7\n")
        self.refused("has layout 7, this program knows 1", "newer version")
        version.write_text(kept)
        with contextlib.closing(sqlite3.connect(self.world.state / "fuse.db")) as store:
            known, = store.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
            store.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
            store.commit()
        self.refused("has schema version 99", f"up to version {known}", "newer fuse")
        with contextlib.closing(sqlite3.connect(self.world.state / "fuse.db")) as store:
            store.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (known,))
            store.commit()
        self.assertEqual(self.world.environments()[0]["state"], "running")
        self.assertEqual(self.world.qemus(), qemus)

        # One VM's record alone.
        self.kill_background()
        record, = (self.world.agent_state / "vms").glob("*/record.json")
        text = record.read_text()
        record.write_text(json.dumps({**json.loads(text), "schema": 9}))
        self.assertEqual(self.world.environments()[0]["state"], "running")
        done = self.world.fuse("exec", "fuse-newer", "--", "true")
        self.expect(done, 125)
        self.expect_says(done, "the record has schema 9, this program knows 1")
        self.assertEqual(self.world.qemus(), qemus)
        self.expect(self.world.fuse("local", "down"))
        record.write_text(text)
        self.expect(self.world.fuse("exec", "fuse-newer", "--", "true"))
        self.remove("fuse-newer")

    def test_damaged_store(self):
        """a damaged database or key is named with what to do, and doing it works"""
        self.expect(self.world.fuse("local", "up"))
        self.expect(self.world.fuse("local", "down"))
        store, key = self.world.state / "fuse.db", self.world.state / "key"
        kept = store.read_bytes()
        for damaged in (random.randbytes(8192), kept[:100] + random.randbytes(len(kept) - 100)):
            store.write_bytes(damaged)
            for more in ("-wal", "-shm"):
                (self.world.state / f"fuse.db{more}").unlink(missing_ok=True)
            self.refused(f"open the database {store}", f"mv {store} {store}.damaged")
            self.assertEqual(store.read_bytes(), damaged)
        shutil.move(store, f"{store}.damaged")
        self.assertEqual(self.world.environments(), [])
        self.expect(self.world.fuse("local", "down"))
        key.write_bytes(b"short")
        self.refused(f"the key {key} is damaged", f"rm {key}")
        key.unlink()
        self.assertEqual(self.world.environments(), [])

    def test_lost_store(self):
        """VMs of a database that is gone are not left to run for ever"""
        self.up("orphaned", "sleep 1000")
        self.kill_background()
        for path in self.world.state.glob("fuse.db*"):
            path.unlink()
        qemu, = self.world.qemus()
        self.assertEqual(self.world.environments(), [])
        wait_until(lambda: not leaks.is_alive(qemu), "the VM is ended")
        wait_until(lambda: not os.listdir(self.world.agent_state / "vms"), "its folder is gone")

    def test_two_at_a_time(self):
        """of background processes that start together one stays"""
        self.up("race", "sleep 1000")
        qemus = self.world.qemus()
        self.kill_background()
        for _ in range(3):
            # The one that stays is killed in the end.
            with contextlib.ExitStack() as stack:
                racers = [stack.enter_context(ending(self.world.start(
                    "local", "serve", "--state", self.world.state, start_new_session=True)))
                          for _ in range(4)]
                wait_until(lambda: sum(racer.poll() is None for racer in racers) == 1,
                           "all but one have ended")
                codes = sorted(racer.poll() for racer in racers if racer.poll() is not None)
                self.assertEqual(codes, [0, 0, 0])
                self.assertEqual(self.world.environments()[0]["state"], "running")
                self.assertEqual(self.world.qemus(), qemus)
                self.assertEqual(self.world.background_pid(), self.world.lock_holder())
        self.expect(self.world.fuse("local", "up"))
        self.remove("fuse-race")

    def test_other_build(self):
        """a job goes on while the executable is replaced by another build"""
        images = self.world.root / "work/images"
        shutil.copytree(harness.IMAGES, images, ignore=shutil.ignore_patterns("initrd"),
                        copy_function=os.link)
        self.world.environment["FUSE_IMAGES"] = str(images)
        self.up("upgraded", "n=0\nwhile [ $n -lt 60 ]; do n=$((n + 1)); echo $n; sleep 0.1; done\n"
                            "while [ ! -e /tmp/go ]; do sleep 0.1; done\nexit 6")
        qemus, old = self.world.qemus(), self.world.lock_holder()
        build = self.expect(self.world.fuse("local", "status", "-o", "json")).json()["build_id"]
        with open(FUSE, "rb") as file:
            program = file.read()
        self.assertEqual(program.count(bytes.fromhex(build)), 1)
        other = bytes.fromhex(build)[:-1] + bytes([bytes.fromhex(build)[-1] ^ 1])
        newer = self.world.write("newer", program.replace(bytes.fromhex(build), other))
        newer.chmod(0o755)
        reader = self.world.start("logs", "-f", "--exit-code", "fuse-upgraded")
        with ending(reader):
            harness.read_until(reader.stdout, b"3\n")
            listed = self.world.fuse("ps", "-o", "json", program=newer)
            self.expect_says(self.expect(listed), "of another build", "VMs go on")
            self.assertEqual(listed.json()["environments"][0]["state"], "running")
            self.assertNotEqual(self.world.lock_holder(), old)
            wait_until(lambda: not leaks.is_alive(old), "the old one has ended")
            self.assertEqual(self.world.qemus(), qemus)
            self.expect(self.world.fuse("exec", "fuse-upgraded", "--", "touch", "/tmp/go",
                                        program=newer))
            _, err = reader.communicate(timeout=harness.PATIENCE)
            self.assertEqual(reader.returncode, 6, err)
        logs = self.expect(self.world.fuse("logs", "fuse-upgraded", program=newer))
        self.assertEqual(logs.text, "".join(f"{n}\n" for n in range(1, 61)))
        self.expect(self.world.fuse("rm", "--yes", "fuse-upgraded", program=newer))
        self.expect(self.world.fuse("local", "down", program=newer))


if __name__ == "__main__":
    unittest.main(verbosity=2)
