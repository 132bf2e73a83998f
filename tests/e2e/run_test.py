"""fuse run: a job in a VM of its own, its output, its exit code."""

import os
import random
import secrets
import signal
import subprocess
import sys
import unittest

import harness
import leaks
from harness import ROOT, E2eTest, wait_until


class RunTest(E2eTest):
    def gone(self, task):
        """Whether the VM of a task and all that belongs to it has been removed."""
        self.assertEqual(self.world.environments(), [])
        self.assertEqual(self.world.qemus(), [])
        ended = self.expect(self.world.fuse("environment", "list", "--ended", "-o", "json")).json()
        self.assertEqual([e["task_id"] for e in ended["environments"]], [task])

    @harness.limit(600)
    def test_train(self):
        """the example trains in a VM to the digits that the host computes"""
        key = secrets.token_hex(16)
        train = ROOT / "examples/train"
        # What the file's own env says, and the secret.
        environment = {"PATH": os.environ["PATH"], "LEARNING_RATE": "0.5", "DATA_KEY": key}
        here = subprocess.run([sys.executable, train / "train.py", "--epochs", "5"],
                              env=environment, capture_output=True, check=True)
        self.assertEqual(here.stdout.count(b"loss"), 5)
        done = self.expect(self.world.fuse("run", train / "Fusefile", "--secret", "DATA_KEY",
                                           env={"DATA_KEY": key}, timeout=500))
        self.assertEqual(done.out, here.stdout, str(done))
        self.assertNotIn(key, done.errors)
        self.gone("train")

    def test_exit_code(self):
        """run exits with the job's own code"""
        code = random.randint(1, 255)
        path = self.world.fusefile("codes", f"echo before\nexit {code}\necho after")
        done = self.expect(self.world.fuse("run", path), code)
        self.assertEqual(done.text, "before\n", str(done))
        self.gone("codes")
        logs = self.world.fuse("logs", "fuse-codes", "--exit-code")
        self.expect(logs, code)
        self.assertEqual(logs.text, "before\n")

    def test_signal(self):
        """a job that a signal ends makes 128 and the signal's number"""
        number = random.choice([signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
        path = self.world.fusefile("signals", f"kill -{int(number)} $$\nsleep 100")
        self.expect(self.world.fuse("run", path), 128 + number)

    def test_output(self):
        """every byte of the output arrives, once and in order"""
        block = random.randbytes(48 * 1024)
        self.world.write("block", block)
        path = self.world.fusefile(
            "bytes", "n=0\nwhile [ $n -lt 100 ]; do\n  cat block; echo \"[$n]\"; n=$((n + 1))\ndone",
            more="copy:\n  - { from: block, to: block }\n")
        done = self.expect(self.world.fuse("run", path))
        expected = b"".join(block + f"[{n}]\n".encode() for n in range(100))
        # Not assertEqual: nobody reads a difference of five megabytes.
        self.assertEqual(len(done.out), len(expected))
        self.assertTrue(done.out == expected, "the output differs")

    def test_live(self):
        """output comes while the job runs, and interrupting the view leaves the job alone"""
        path = self.world.fusefile(
            "live", "echo first\nwhile [ ! -e /tmp/go ]; do sleep 0.1; done\necho last\nexit 9")
        run = self.world.start("run", path)
        with run:
            harness.read_until(run.stdout, b"first\n")
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=harness.PATIENCE)
            self.assertEqual((run.returncode, out), (130, b""), err)
            self.assertIn(b"fuse logs -f fuse-live", err)
        self.assertEqual(self.world.environments()[0]["state"], "running")
        self.expect(self.world.fuse("exec", "fuse-live", "--", "touch", "/tmp/go"))
        done = self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-live"), 9)
        self.assertEqual(done.text, "first\nlast\n")
        wait_until(lambda: not self.world.environments(), "the VM is removed as it was asked for")
        self.gone("live")

    def test_closed_output(self):
        """a reader that goes away detaches from the job"""
        path = self.world.fusefile("pipe", "echo first\nwhile :; do echo more; sleep 0.2; done")
        run = self.world.start("run", path)
        with run:
            harness.read_until(run.stdout, b"first\n")
            run.stdout.close()
            run.stdout = None
            _, err = run.communicate(timeout=harness.PATIENCE)
            self.assertEqual(run.returncode, 141, err)
        self.assertEqual(self.world.environments()[0]["state"], "running")
        self.remove("fuse-pipe")

    def test_killed_client(self):
        """the VM is removed at the end of the job though the client was killed"""
        path = self.world.fusefile(
            "orphan", "echo first\nwhile [ ! -e /tmp/go ]; do sleep 0.1; done")
        run = self.world.start("run", path)
        with run:
            harness.read_until(run.stdout, b"first\n")
            run.kill()
        self.expect(self.world.fuse("exec", "fuse-orphan", "--", "touch", "/tmp/go"))
        wait_until(lambda: not self.world.environments(), "the VM is removed")
        self.gone("orphan")

    def test_build(self):
        """build steps run before the job and a failed one ends it with its last lines"""
        more = "build:\n  - echo one > made\n  - { run: 'echo two >> made' }\n"
        path = self.world.fusefile("built", "cat made", more=more)
        done = self.expect(self.world.fuse("run", path))
        self.assertTrue(done.text.endswith("one\ntwo\n"), str(done))
        more = "build:\n  - 'for n in $(seq 1 50); do echo line $n; done; exit 3'\n"
        path = self.world.fusefile("unbuilt", "echo ne''ver", more=more)
        done = self.world.fuse("up", path)
        self.expect(done, 1)
        self.expect_says(done, "line 50")
        self.assertNotIn("never", done.text + done.errors)
        if self.world.environments():
            self.remove("fuse-unbuilt")

    def test_environment(self):
        """a job has its env, its files with their modes, and a place to work in"""
        more = ("env:\n  PLAIN: { value: \"a 'quoted' $value\" }\n"
                "files:\n  - { path: /etc/app.conf, content: \"x: 1\\n\", mode: \"0640\" }\n"
                "workspace: /srv/work\n")
        path = self.world.fusefile(
            "env", "echo \"$PLAIN\"\npwd\nid -u\necho $HOME $FUSE_TASK_ID\n"
            "stat -c %a /etc/app.conf\ncat /etc/app.conf", more=more)
        done = self.expect(self.world.fuse("run", path))
        self.assertEqual(done.text, "a 'quoted' $value\n/srv/work\n0\n/root env\n640\nx: 1\n")

    def test_copy(self):
        """a folder arrives without what is left out of it, and what is executable stays so"""
        self.world.write("tree/tool", "#!/bin/sh\necho ran\n").chmod(0o755)
        for name in ("tree/data", "tree/sub/deep/kept", "tree/left.log", "tree/.env"):
            self.world.write(name, "x")
        self.world.write(".fuseignore", "*.log\n")
        path = self.world.fusefile(
            "copied", "tree/tool\n[ -x tree/data ] || find tree -type f | sort",
            more="copy:\n  - { from: tree, to: tree }\n")
        done = self.expect(self.world.fuse("run", path))
        self.assertEqual(done.text, "ran\ntree/data\ntree/sub/deep/kept\ntree/tool\n")

    @harness.limit(600)
    def test_init(self):
        """what init writes is valid and runs on this machine as it stands"""
        folder = self.world.write("starter/.keep", "").parent
        self.expect(self.world.fuse("init", cwd=folder))
        self.expect(self.world.fuse("validate", cwd=folder))
        done = self.expect(self.world.fuse("run", cwd=folder, timeout=500))
        self.assertRegex(done.text, r"^hello from .*\nit has 1 CPU and \d+ MiB of memory\n$")
        self.gone("starter")
        written = (folder / "Fusefile").read_bytes()
        self.expect(self.world.fuse("init", "--gpu", cwd=folder), 7)
        self.assertEqual((folder / "Fusefile").read_bytes(), written)

    def test_init_gpu(self):
        """what init --gpu writes is valid, and says what it misses where there is no GPU"""
        folder = self.world.write("starter/.keep", "").parent
        self.expect(self.world.fuse("init", "--gpu", cwd=folder))
        self.expect(self.world.fuse("validate", cwd=folder))
        if os.path.isdir("/proc/driver/nvidia/gpus"):
            print("SKIPPED: this machine has a GPU")
            return
        self.expect_says(self.expect(self.world.fuse("up", cwd=folder), 3), "GPU")
        self.assertEqual(self.world.environments(), [])

    def test_gpu(self):
        """a GPU that this machine does not have is refused in words"""
        if os.path.isdir("/proc/driver/nvidia/gpus"):
            print("SKIPPED: this machine has a GPU")
            return
        path = self.world.write("gpu.yaml", "version: 1\nname: gpu\nimage: micro\n"
                                            "resources:\n  gpu: 1\nrun: 'true'\n")
        done = self.expect(self.world.fuse("up", path), 3)
        self.expect_says(done, "GPU")
        self.assertRegex(done.errors.lower(), r"no gpu|0 gpus|without gpus|none")
        self.expect(self.world.fuse("run", path), 125)
        self.assertEqual(self.world.environments(), [])

    def test_unknown_image(self):
        """an image that is not there is named, with the place and the way out"""
        path = self.world.fusefile("nowhere", "true", image="no/such")
        done = self.expect(self.world.fuse("up", path), 1)
        self.expect_says(done, f"base image 'no/such' not found at {harness.IMAGES}/no/such.qcow2")
        self.assertEqual(self.world.environments(), [])


class LeakTest(E2eTest):
    def test_running_vm_is_a_leak(self):
        """the leak checker sees a VM that still runs"""
        self.up("left", "sleep 1000")
        found = leaks.leaks(self.world.root, harness.IMAGES)
        self.assertIn("folder of a VM", found)
        self.assertTrue(any("qemu-system" in text for text in found["process"]), found)
        self.remove("fuse-left")


if __name__ == "__main__":
    unittest.main(verbosity=2)
