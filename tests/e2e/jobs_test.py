"""Jobs of every kind, many at a time and one after another."""

import contextlib
import hashlib
import os
import pathlib
import random
import signal
import time
import unittest

import harness
import leaks
from harness import E2eTest, ending, wait_until


class JobsTest(E2eTest):
    def nothing_lives(self):
        wait_until(lambda: self.world.environments() == [], "every environment has ended")
        self.assertEqual(self.world.qemus(), [])
        self.assertEqual(os.listdir(self.world.agent_state / "vms"), [])

    @harness.limit(600)
    def test_eight_kinds(self):
        """eight jobs at once, each of another kind, end as each of them should"""
        code = random.randint(1, 124)
        number = random.choice([signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2])
        every_byte = bytes(range(256)) * 4
        self.world.write("every-byte", every_byte)
        # The job's text, its exit code, its output, and what is told of its end.
        kinds = {
            "code": (f"exit {code}", code, b"", f"exit {code}"),
            "signal": (f"kill -{int(number)} $$; sleep 100", 128 + number, b"",
                       f"by signal {int(number)}"),
            "daemon": ("setsid sleep 1000 &\nnohup sleep 1000 >/dev/null 2>&1 &\necho left\nexit 3",
                       3, b"left\n", "exit 3"),
            "closed": ("echo a\nexec >&- 2>&-\nsleep 1\nexit 5", 5, b"a\n", "exit 5"),
            "binary": ("cat every-byte", 0, every_byte, "exit 0"),
            "memory": ("echo before\ntail /dev/zero\necho never", 137, b"before\n",
                       "ran out of memory"),
            "stubborn": ("trap '' TERM\necho ready\nwhile :; do sleep 1 || true; done", 137, b"ready\n",
                         "was stopped"),
            "bomb": ("bomb() { bomb | bomb & }\nset +e\necho ready\nbomb 2>/dev/null\n"
                     "while :; do :; done", None, b"ready\n", ""),
        }
        with contextlib.ExitStack() as stack:
            runs = {}
            for name, (text, _, _, _) in kinds.items():
                more = "copy:\n  - { from: every-byte, to: every-byte }\n" if name == "binary" else ""
                path = self.world.fusefile(name, text, more=more)
                if name == "bomb":
                    path.write_text(path.read_text().replace(
                        "resources:\n", "resources:\n  max_runtime: 30s\n"))
                runs[name] = stack.enter_context(ending(self.world.start("run", path)))
            harness.read_until(runs["stubborn"].stdout, b"ready\n")
            self.expect(self.world.fuse("stop", "fuse-stubborn"))
            for name, (_, expected, output, said) in kinds.items():
                out, err = runs[name].communicate(timeout=harness.PATIENCE)
                told = (name, runs[name].returncode, out[-500:], err.decode()[-1500:])
                if name == "bomb":
                    # Which limit it runs into first is the kernel's choice.
                    self.assertIn(runs[name].returncode, (124, 137), told)
                    self.assertRegex(err.decode(), "time limit|ran out of memory", told)
                else:
                    self.assertEqual(runs[name].returncode, expected, told)
                    self.assertIn(said, err.decode(), told)
                # The shells of these may have more to say; the rest has been read of one.
                if name not in ("memory", "stubborn", "bomb"):
                    self.assertEqual(out, output, told)
        self.nothing_lives()

    @harness.limit(600)
    def test_flood(self):
        """256 MiB of output arrive byte for byte across a killed background process"""
        self.flood(256)

    @harness.long
    @harness.limit(3000)
    def test_long_flood(self):
        """1 GiB of output arrives byte for byte across a killed background process"""
        self.flood(1024)

    def flood(self, mebibytes):
        # Drawn blocks in a drawn order: nothing that is lost, repeated or out of order
        # can go unseen.
        # A Fusefile carries half a megabyte at most.
        block_size = 96 * 1024
        blocks = [random.randbytes(block_size) for _ in range(4)]
        order = [random.randrange(4) for _ in range(mebibytes * 1024 * 1024 // block_size + 1)]
        total = len(order) * block_size
        for number, block in enumerate(blocks):
            self.world.write(f"block-{number}", block)
        self.world.write("order", "".join(f"block-{number}\n" for number in order))
        more = "copy:\n" + "".join(f"  - {{ from: {name}, to: {name} }}\n" for name in
                                   ("order", "block-0", "block-1", "block-2", "block-3"))
        path = self.world.fusefile("flood", "xargs cat < order\nexit 4",
                                   more=more)
        expected = hashlib.sha256()
        for number in order:
            expected.update(blocks[number])
        run = self.world.start("run", path, stderr=None)
        with ending(run):
            seen, size, kills = hashlib.sha256(), 0, 0
            while piece := run.stdout.read1(1 << 20):
                seen.update(piece)
                size += len(piece)
                if size > (kills + 1) * total // 3 and kills < 2:
                    kills += 1
                    pid = self.world.lock_holder()
                    os.kill(pid, signal.SIGKILL)
            self.assertEqual(run.wait(timeout=harness.PATIENCE), 4)
        self.assertEqual((size, kills), (total, 2))
        self.assertEqual(seen.digest(), expected.digest())
        logs = self.world.start("logs", "--exit-code", "fuse-flood")
        with ending(logs):
            again = hashlib.sha256()
            while piece := logs.stdout.read1(1 << 20):
                again.update(piece)
            self.assertEqual(logs.wait(timeout=harness.PATIENCE), 4)
        self.assertEqual(again.digest(), expected.digest())
        self.nothing_lives()

    @harness.limit(420)
    def test_many_short(self):
        """short jobs one after another leave nothing and do not slow each other"""
        self.run_in_a_row(5)

    @harness.long
    @harness.limit(3000)
    def test_hundred(self):
        """a hundred jobs one after another leave nothing and do not make it grow"""
        self.run_in_a_row(100)

    def run_in_a_row(self, jobs):
        """Neither descriptors nor threads nor the files of what has ended grow with the
        jobs; memory does by no more than what their history is."""
        for number in range(jobs):
            code = random.randint(0, 124)
            path = self.world.fusefile("short", f"echo short; exit {code}")
            done = self.expect(self.world.fuse("run", path), code)
            self.assertEqual(done.text, "short\n")
            if number == min(jobs // 2, 20):
                time.sleep(1)
                before = self.footprint()
        time.sleep(1)
        after = self.footprint()
        self.assertLessEqual(after["descriptors"], before["descriptors"])
        self.assertLessEqual(after["threads"], before["threads"])
        self.assertLessEqual(after["resident"], before["resident"] + 8)
        self.nothing_lives()

    def footprint(self):
        """What the background process has: descriptors, threads, and memory in MiB."""
        process = pathlib.Path(f"/proc/{self.world.lock_holder()}")
        return {"descriptors": len(os.listdir(process / "fd")),
                "threads": len(os.listdir(process / "task")),
                "resident": harness.resident(process.name)}


if __name__ == "__main__":
    unittest.main(verbosity=2)
