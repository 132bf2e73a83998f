"""Guests that mean harm: their root has taken the place of our agent and says to the
host whatever it likes.  The host, its memory and its other guests are unaffected."""

import random
import sys
import time
import unittest

import harness
from harness import E2eTest, wait_until

# Leaves the job's group, ends whatever holds the agent's port, and writes there from then
# on: in each of the ways that it is told for a few seconds, in the last one for good.
TAKE_OVER = r"""
import glob, os, random, signal, sys, time

CHUNK = 1 << 20


def port():
    for name in glob.glob("/sys/class/virtio-ports/*/name"):
        if open(name).read().strip() == "fuse.agent":
            return "/dev/" + name.split("/")[-2]
    raise SystemExit("no port")


def holders(path):
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) == path:
                yield int(link.split("/")[2])
        except OSError:
            pass


def opened(path):
    while True:
        for pid in set(holders(path)):
            os.kill(pid, signal.SIGKILL)
        try:
            return os.open(path, os.O_RDWR)
        except OSError:
            time.sleep(0.005)


def answer(fd, kind):
    # What the host begins with holds its nonce, which makes what follows look like ours.
    begun = os.read(fd, 65536) if kind in ("echo", "huge") else b""
    os.write(fd, begun)
    while kind == "garbage":
        os.write(fd, random.randbytes(random.randrange(1, CHUNK)))
    while kind == "echo":
        os.write(fd, os.read(fd, 65536))
    while kind == "huge":  # frames that say they are longer than any
        os.write(fd, bytes([2]) + b"\xff" * 8 + bytes(CHUNK))
    while kind == "deaf":
        time.sleep(60)


class Enough(Exception):
    pass


def enough(*_):
    raise Enough


if os.fork():
    os._exit(0)
os.setsid()
with open("/sys/fs/cgroup/cgroup.procs", "w") as group:
    group.write(str(os.getpid()))
signal.signal(signal.SIGALRM, enough)
mine = opened(port())
for kind in sys.argv[1:]:
    signal.alarm(5 if kind != sys.argv[-1] else 0)
    try:
        answer(mine, kind)
    except Enough:
        pass
"""


class HostileTest(E2eTest):
    @harness.limit(600)
    def test_agent_replaced(self):
        """a guest whose root speaks for our agent harms nobody but itself"""
        kinds = ["garbage", "echo", "huge", "deaf"]
        random.shuffle(kinds)
        print(kinds, file=sys.stderr)
        self.up("neighbour", "while sleep 0.2; do echo here; done")
        pid = self.world.lock_holder()
        before = harness.resident(pid)
        self.world.write("harm.py", TAKE_OVER)
        self.up("harm", f"python3 harm.py {' '.join(kinds)}\nsleep 1000", image="base",
                more="copy: [{ from: harm.py, to: harm.py }]\n")
        refused = wait_until(self.harm_does_not_answer, "the agent has been replaced")
        self.assertRegex(refused.errors, r"^error: ", str(refused))
        end = time.monotonic() + 30
        while time.monotonic() < end:
            self.assertEqual(self.world.lock_holder(), pid, "it is still the first one")
            self.assertLess(harness.resident(pid), before + 32)
            said = self.expect(self.world.fuse("exec", "fuse-neighbour", "--", "echo", "well"))
            self.assertEqual(said.text, "well\n")
            time.sleep(1)
        self.assertIsNotNone(self.harm_does_not_answer())
        self.expect(self.world.fuse("rm", "--yes", "fuse-harm"))
        self.assertEqual(len(self.world.qemus()), 1)
        self.remove("fuse-neighbour")

    def harm_does_not_answer(self):
        done = self.world.fuse("exec", "fuse-harm", "--", "true")
        return None if done.code == 0 else done


if __name__ == "__main__":
    unittest.main(verbosity=2)
