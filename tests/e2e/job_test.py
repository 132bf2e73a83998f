"""Jobs over time: logs, stop, and a background process that dies."""

import base64
import os
import random
import re
import secrets
import signal
import subprocess
import time
import unittest

import harness
import leaks
from harness import E2eTest, wait_until


def all_forms(secret):
    """A secret as it might lie about: itself, hex, and base64 at every alignment."""
    plain = secret.encode()
    forms = {plain, plain.hex().encode(), plain.hex().upper().encode()}
    for shift in range(3):
        # Without the characters at both ends, which depend on the neighbours.
        forms.add(base64.b64encode(b"x" * shift + plain)[4:-4])
    return forms


def files_with(root, forms):
    """The files below a folder that hold any of the byte strings."""
    found = []
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    text = file.read()
                if any(form in text for form in forms):
                    found.append(path)
    return found


class JobTest(E2eTest):
    def test_logs(self):
        """logs shows all of the output, its end or its rest, also after the job"""
        lines = [f"{n} {random.randbytes(6).hex()}\n" for n in range(300)]
        self.world.write("lines", "".join(lines))
        path = self.world.fusefile("logs", "cat lines; exit 4",
                                   more="copy:\n  - { from: lines, to: lines }\n")
        self.expect(self.world.fuse("run", path), 4)
        whole = "".join(lines)
        self.assertEqual(self.expect(self.world.fuse("logs", "fuse-logs")).text, whole)
        self.assertEqual(self.expect(self.world.fuse("logs", "-f", "fuse-logs")).text, whole)
        tail = self.expect(self.world.fuse("logs", "--tail", "7", "fuse-logs"))
        self.assertEqual(tail.text, "".join(lines[-7:]))
        offset = random.randrange(len(whole))
        rest = self.expect(self.world.fuse("logs", "--since", offset, "fuse-logs"))
        self.assertEqual(rest.text, whole[offset:])
        self.expect(self.world.fuse("logs", "--exit-code", "fuse-logs"), 4)
        self.expect(self.world.fuse("logs", "fuse-other"), 1)
        self.expect(self.world.fuse("logs", "--exit-code", "fuse-other"), 125)

    def test_stop(self):
        """stop asks the job to end and lets it finish in its own way"""
        code = random.randint(1, 100)
        self.up("stop", f"trap 'echo asked; exit {code}' TERM\necho ready\n"
                        "while :; do sleep 0.1; done")
        wait_until(lambda: "ready" in self.world.fuse("logs", "fuse-stop").text, "the job is ready")
        self.expect(self.world.fuse("stop", "fuse-stop"))
        done = self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-stop"), code)
        # The shell may tell of its sleep, which the signal ends too.
        self.assertRegex(done.text, r"^ready\n(Terminated\n)?asked\n$")
        self.remove("fuse-stop")

    def test_same_task(self):
        """of two with one task id one wins, and the other is told which"""
        self.up("twice", "sleep 1000")
        path = self.world.root / "work/twice.yaml"
        done = self.expect(self.world.fuse("up", path), 7)
        self.expect_says(done, "fuse-twice")
        self.expect_says(self.expect(self.world.fuse("run", path), 125), "fuse-twice")
        self.assertEqual(len(self.world.environments()), 1)
        self.remove("fuse-twice")

    @harness.limit(420)
    def test_race(self):
        """of many that race for one task id exactly one wins"""
        path = self.world.fusefile("race", "sleep 1000")
        racers = [self.world.start("up", path, "--no-wait") for _ in range(6)]
        codes = []
        for racer in racers:
            out, err = racer.communicate(timeout=harness.PATIENCE)
            codes.append(racer.returncode)
            if racer.returncode != 0:
                self.assertEqual(racer.returncode, 7, (out, err))
                self.assertIn(b"fuse-race", err)
        self.assertEqual(sorted(codes), [0] + [7] * 5)
        self.assertEqual(len(self.world.environments()), 1)
        wait_until(lambda: self.world.environments()[0]["state"] == "running", "the winner runs")
        self.assertEqual(len(self.world.qemus()), 1)
        self.remove("fuse-race")

    @harness.limit(600)
    def test_killed_background(self):
        """a job goes on when the background process is killed, with no hole and no repeat"""
        code = random.randint(1, 124)
        block = random.randbytes(3000)
        self.world.write("block", block)
        count = 120
        path = self.world.fusefile(
            "killed", f"n=0\nwhile [ $n -lt {count} ]; do\n"
                      "  cat block; echo \"[$n]\"; n=$((n + 1)); sleep 0.1\ndone\n"
                      "while [ ! -e /tmp/go ]; do sleep 0.1; done\n"
                      f"echo end; exit {code}",
            more="copy:\n  - { from: block, to: block }\n")
        expected = b"".join(block + f"[{n}]\n".encode() for n in range(count)) + b"end\n"
        self.expect(self.world.fuse("up", path))
        qemus = self.world.qemus()
        self.assertEqual(len(qemus), 1)

        # A reader that is in the middle of it when the background process dies.
        reader = self.world.start("logs", "-f", "fuse-killed")
        with reader:
            seen = harness.read_until(reader.stdout, b"[3]\n")
            killed = []
            for _ in range(3):
                pid = self.world.background_pid() or self.start_background()
                self.assertNotIn(pid, killed)
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                wait_until(lambda: not leaks.is_alive(pid), "it is dead")
                time.sleep(random.uniform(0.2, 1.5))
            # The next command starts another, which finds the VM and the job.
            got = self.expect(self.world.fuse("environment", "get", "fuse-killed", "-o", "json"))
            self.assertEqual(got.json()["state"], "running")
            self.assertEqual(self.world.qemus(), qemus)
            self.expect(self.world.fuse("exec", "fuse-killed", "--", "touch", "/tmp/go"))
            out, err = reader.communicate(timeout=harness.PATIENCE)
            # It may have given up with the background process; what it had is right.
            self.assertTrue(expected.startswith(seen + out), err)

        done = self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-killed"), code)
        self.assertEqual(len(done.out), len(expected))
        self.assertTrue(done.out == expected, "the output has a hole or a repeat")
        self.remove("fuse-killed")
        again = self.expect(self.world.fuse("logs", "--exit-code", "fuse-killed"), code)
        self.assertTrue(again.out == expected, "the output changed when the VM was removed")

    def start_background(self):
        self.expect(self.world.fuse("local", "up"))
        return self.world.background_pid()

    def test_job_ends_meanwhile(self):
        """a job that ends while no background process lives still has its output and code"""
        code = random.randint(1, 124)
        self.up("meanwhile", "echo one\nwhile [ ! -e /tmp/go ]; do sleep 0.1; done\n"
                             f"sleep 2; echo two; exit {code}")
        # The command in the guest outlives the exec and lets the job end later.
        self.expect(self.world.fuse("exec", "fuse-meanwhile", "--", "touch", "/tmp/go"))
        pid = self.world.background_pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not leaks.is_alive(pid), "it is dead")
        time.sleep(6)
        done = self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-meanwhile"), code)
        self.assertEqual(done.text, "one\ntwo\n")
        self.remove("fuse-meanwhile")

    def test_secrets(self):
        """a secret is in no file, no command line and no log"""
        secret = "s-" + secrets.token_urlsafe(24)
        forms = all_forms(secret)
        more = "env:\n  TOKEN: { secret: TOKEN }\n"
        path = self.world.fusefile(
            "secret", "echo \"$TOKEN\" | sha256sum\nwhile :; do sleep 1; done", more=more)
        # The search finds what is there to be found.
        planted = self.world.write("planted", b"..." + random.choice(sorted(forms)) + b"...")
        self.assertEqual(files_with(self.world.root, forms), [str(planted)])
        planted.unlink()

        up = self.expect(self.world.fuse("up", path, "--secret", "TOKEN", "--verbose",
                                         env={"TOKEN": secret}))
        expected = subprocess.run(["sha256sum"], input=secret.encode() + b"\n",
                                  capture_output=True, check=True).stdout.decode()
        wait_until(lambda: self.world.fuse("logs", "fuse-secret").text == expected,
                   "the job has got the secret")
        got = self.expect(self.world.fuse("environment", "get", "fuse-secret", "-o", "json"))
        for text in (up.out, up.err, got.out, got.err):
            self.assertFalse(any(form in text for form in forms))
        # The background process began with the environment of the command that
        # started it, and QEMU with its.
        for pid in leaks.processes(self.world.root):
            for file in ("cmdline", "environ"):
                with open(f"/proc/{pid}/{file}", "rb") as text:
                    held = text.read()
                self.assertFalse(any(form in held for form in forms), leaks.command_line(pid))
        self.assertEqual(files_with(self.world.root, forms), [])
        self.remove("fuse-secret")
        self.assertEqual(files_with(self.world.root, forms), [])

    def test_time_limit(self):
        """a job that runs out of its time is ended, with 124"""
        path = self.world.write("limit.yaml", "version: 1\nname: limit\nimage: micro\n"
                                "resources:\n  memory: 256MB\n  max_runtime: 5s\n"
                                "run: 'echo begin; sleep 1000; echo never'\n")
        done = self.expect(self.world.fuse("run", path), 124)
        self.assertEqual(re.findall("never", done.text), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
