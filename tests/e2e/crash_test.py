"""Processes that are killed at every step of a VM's life."""

import contextlib
import json
import os
import pty
import random
import re
import shutil
import signal
import time
import unittest

import harness
import leaks
from harness import E2eTest, ending, wait_until


class Gate:
    """A program that stands in for another and waits before it becomes it."""

    def __init__(self, world, name):
        self.folder = world.root / "work/gates"
        bin_folder = world.root / "work/bin"
        for folder in (self.folder, bin_folder):
            folder.mkdir(exist_ok=True)
        self.at, self.shut = self.folder / f"at-{name}", self.folder / f"shut-{name}"
        script = bin_folder / name
        script.write_text(f"#!/bin/sh\necho $$ > '{self.at}'.$$\nmv '{self.at}'.$$ '{self.at}'\n"
                          f"while [ -e '{self.shut}' ]; do sleep 0.05; done\n"
                          f"exec '{shutil.which(name)}' \"$@\"\n")
        script.chmod(0o755)
        if str(bin_folder) not in world.environment["PATH"]:
            world.environment["PATH"] = f"{bin_folder}:{world.environment['PATH']}"
        self.close()

    def close(self):
        self.at.unlink(missing_ok=True)
        self.shut.touch()

    def open(self):
        self.shut.unlink()

    def reached(self):
        """Waits until the program was started; its pid."""
        wait_until(self.at.exists, f"{self.at.name} is reached")
        return int(self.at.read_text())


class CrashTest(E2eTest):
    def kill_background(self):
        pid = self.world.lock_holder()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not leaks.is_alive(pid), "it is dead")

    def found_as_leak(self, pid):
        """Makes sure that the checker of leaks sees this process."""
        found = leaks.leaks(self.world.root, harness.IMAGES)
        self.assertTrue(any(text.startswith(f"{pid}:") for text in found.get("process", [])), found)

    def records(self):
        """The records of all VMs, as they are on disk at this moment."""
        for path in (self.world.agent_state / "vms").glob("*/record.json"):
            try:
                yield json.loads(path.read_text())
            except FileNotFoundError:
                pass

    def runs(self, name, phase):
        """Whether the job of an environment runs, and is in this phase."""
        got = self.world.fuse("environment", "get", name, "-o", "json")
        job = got.json()["job"] if got.code == 0 else {}
        return job.get("state") == "running" and job["phase"] == phase

    def touch(self, name, path):
        self.expect(self.world.fuse("exec", name, "--", "touch", path))

    def nothing_lives(self):
        wait_until(lambda: self.world.environments() == [], "every environment has ended")
        self.assertEqual(self.world.qemus(), [])
        self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])

    @harness.limit(600)
    def test_background_everywhere(self):
        """the background process may be killed at each step of one run"""
        code = random.randint(1, 124)
        qemu_img, qemu = Gate(self.world, "qemu-img"), Gate(self.world, "qemu-system-x86_64")
        path = self.world.fusefile(
            "steps", "echo first\nwhile [ ! -e /tmp/go ]; do sleep 0.1; done\n"
                     f"echo last\nexit {code}", image="base",
            more="build:\n  - 'while [ ! -e /tmp/built ]; do sleep 0.1; done'\n")
        run = self.world.start("run", path)
        with ending(run):
            # Before there is a QEMU; what was started is cut off as well.
            pid = qemu_img.reached()
            self.found_as_leak(pid)
            self.kill_background()
            os.kill(pid, signal.SIGKILL)
            qemu_img.open()
            # A QEMU that runs, but whose guest does not yet.
            pid = qemu.reached()
            self.kill_background()
            self.found_as_leak(pid)
            qemu.close()
            wait_until(lambda: not leaks.is_alive(pid), "the next one has ended it")
            qemu.open()
            # A guest that boots.
            first, = wait_until(self.world.qemus, "a QEMU runs")
            time.sleep(random.uniform(0, 3))
            self.kill_background()
            wait_until(lambda: not leaks.is_alive(first), "the next one has ended it")
            # From here on the VM stays.
            wait_until(lambda: self.runs("fuse-steps", "build"), "the build runs")
            second, = self.world.qemus()
            self.kill_background()
            self.touch("fuse-steps", "/tmp/built")
            harness.read_until(run.stdout, b"first\n")
            self.kill_background()
            self.touch("fuse-steps", "/tmp/go")
            self.assertEqual(self.world.qemus(), [second])
            wait_until(lambda: any(record["destroying"] for record in self.records()) or
                       not leaks.is_alive(second), "it is being removed")
            self.kill_background()
            out, err = run.communicate(timeout=harness.PATIENCE)
        self.assertEqual(run.returncode, code, err)
        self.assertEqual(out, b"last\n", err)
        self.nothing_lives()
        logs = self.expect(self.world.fuse("logs", "--exit-code", "fuse-steps"), code)
        self.assertEqual(logs.text, "first\nlast\n")

    @harness.limit(420)
    def test_between_steps(self):
        """the background process may be killed between boot and job, at any moment"""
        path = self.world.fusefile("moments", "echo only", more="build:\n  - 'true'\n")
        for _ in range(3):
            run = self.world.start("run", path)
            with ending(run):
                harness.read_until(run.stderr, b"create vm ")
                time.sleep(random.uniform(0, 0.2))
                self.kill_background()
                out, err = run.communicate(timeout=harness.PATIENCE)
            self.assertEqual((run.returncode, out), (0, b"only\n"), err)
            self.nothing_lives()

    @harness.limit(420)
    def test_killed_while_removing(self):
        """a removal goes on when the background process is killed in it"""
        self.up("removed", "sleep 1000")
        self.found_as_leak(*self.world.qemus())
        removal = self.world.start("rm", "--yes", "fuse-removed")
        with ending(removal):
            wait_until(lambda: any(record["destroying"] for record in self.records()),
                       "it is being removed")
            self.kill_background()
            _, err = removal.communicate(timeout=harness.PATIENCE)
        self.assertEqual(removal.returncode, 0, err)
        self.nothing_lives()

    @harness.limit(420)
    def test_ends_of_a_vm(self):
        """a VM that ends at boot, in the build or in its job is told with the reason"""
        gate = Gate(self.world, "qemu-system-x86_64")
        boot = self.world.start("run", self.world.fusefile("boot", "true"))
        with ending(boot):
            os.kill(gate.reached(), signal.SIGKILL)
            _, err = boot.communicate(timeout=harness.PATIENCE)
        self.assertEqual(boot.returncode, 125, err)
        self.assertIn(b"QEMU was killed by signal 9", err)
        self.nothing_lives()

        gate.open()
        # What is done to it, a command in the guest or a signal for its QEMU, and why
        # it ended.
        ways = {
            "build": (signal.SIGKILL, "QEMU was killed by signal 9"),
            "run": (signal.SIGKILL, "QEMU was killed by signal 9"),
            "reboot": ("reboot -f", "the guest restarted itself"),
            "panic": ("echo c > /proc/sysrq-trigger", "Kernel panic - not syncing: sysrq"),
            "poweroff": ("poweroff -f", "the guest powered off"),
        }
        with contextlib.ExitStack() as stack:
            runs = {}
            for name in ways:
                more = "build:\n  - 'echo built; sleep 1000'\n" if name == "build" else ""
                path = self.world.fusefile(name, "echo up; sleep 1000", more=more)
                runs[name] = stack.enter_context(ending(self.world.start("run", path)))
            for name in ways:
                phase = "build" if name == "build" else "run"
                wait_until(lambda: self.runs(f"fuse-{name}", phase), f"{name} is up")
            pids = {record["vm_id"]: record["process"]["pid"] for record in self.records()}
            for name, (way, _) in ways.items():
                self.found_as_leak(pids[f"fuse-{name}"])
                if isinstance(way, str):
                    self.world.fuse("exec", f"fuse-{name}", "--", "sh", "-c", way)
                else:
                    os.kill(pids[f"fuse-{name}"], way)
            for name, (_, reason) in ways.items():
                _, err = runs[name].communicate(timeout=harness.PATIENCE)
                self.assertEqual(runs[name].returncode, 125, (name, err))
                self.assertRegex(err.decode(), "lost: the vm ended: .*" + re.escape(reason))
                self.assertIsNone(re.search(rb"exit \d", err), err)
        self.nothing_lives()

    def test_closed_terminal(self):
        """a terminal that is closed leaves the job alone"""
        # Split, so that the plan's text is not taken for the output.
        path = self.world.fusefile("terminal", "echo fi''rst\nsleep 1000")
        terminal, side = pty.openpty()
        run = self.world.start("run", path, stdin=side, stdout=side, stderr=side,
                               preexec_fn=lambda: os.login_tty(side))
        os.close(side)
        with os.fdopen(terminal, "rb", buffering=0) as screen:
            harness.read_until(screen, b"first")
        self.assertEqual(run.wait(timeout=harness.PATIENCE), 129)
        self.assertEqual(self.world.environments()[0]["state"], "running")
        self.remove("fuse-terminal")


if __name__ == "__main__":
    unittest.main(verbosity=2)
