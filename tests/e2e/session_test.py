"""Inside a guest: exec and shell."""

import fcntl
import os
import pty
import random
import signal
import struct
import termios
import unittest

import harness
from harness import E2eTest, wait_until


class SessionTest(E2eTest):
    def test_exec(self):
        """exec has the command's streams and exit code"""
        self.up("exec", "sleep 1000")
        fuse = self.world.fuse
        code = random.randint(1, 120)
        done = self.expect(fuse("exec", "fuse-exec", "--", "sh", "-c",
                                f"echo out; echo err >&2; exit {code}"), code)
        self.assertEqual((done.text, done.errors), ("out\n", "err\n"))
        self.expect(fuse("exec", "fuse-exec", "--", "sh", "-c", "kill -9 $$"), 137)
        # The words arrive as they are.
        words = ["a b", "", "$HOME", "'\"", "*", "-n", "ü\n"]
        done = self.expect(fuse("exec", "fuse-exec", "--", "printf", "[%s]", *words))
        self.assertEqual(done.text, "".join(f"[{word}]" for word in words))
        # Binary through stdin and back, to its end.
        block = random.randbytes(700_000)
        done = self.expect(fuse("exec", "fuse-exec", "--", "cat", stdin=block))
        self.assertTrue(done.out == block, f"{len(done.out)} of {len(block)} bytes came back")
        self.expect(fuse("exec", "fuse-exec", "--", "no-such-program"), 127)
        # Nothing of the job is disturbed.
        self.assertEqual(self.world.environments()[0]["state"], "running")
        self.remove("fuse-exec")
        self.expect(fuse("exec", "fuse-exec", "--", "true"), 125)

    def test_shell(self):
        """shell is a terminal in the guest"""
        self.up("shell", "sleep 1000")
        terminal, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
        shell = self.world.start("shell", "fuse-shell", stdin=side, stdout=side, stderr=side,
                                 start_new_session=True)
        os.close(side)
        try:
            with os.fdopen(terminal, "r+b", buffering=0) as screen:
                # Split, so that the echo of what is typed is not taken for its result.
                screen.write(b"echo in''side; stty size; tty\n")
                seen = harness.read_until(screen, b"/dev/pts/")
                self.assertIn(b"inside", seen)
                self.assertIn(b"33 101", seen)
                fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 70, 0, 0))
                os.kill(shell.pid, signal.SIGWINCH)
                screen.write(b"sleep 1; stty size; echo do''ne\n")
                self.assertIn(b"20 70", harness.read_until(screen, b"done"))
                # Ctrl-C ends the command there, not the shell here.  The mark comes from
                # the command itself: only then is it sure to be what Ctrl-C reaches.
                screen.write(b"sh -c 'echo st\"\"art; exec sleep 1000'\n")
                harness.read_until(screen, b"start")
                screen.write(b"\x03")
                screen.write(b"echo al''ive\n")
                harness.read_until(screen, b"alive")
                screen.write(b"exit 23\n")
                wait_until(lambda: shell.poll() is not None, "the shell has ended", 60)
                self.assertEqual(shell.returncode, 23)
        finally:
            shell.kill()
            shell.wait()
        self.remove("fuse-shell")

    def test_drained(self):
        """a drained environment begins nothing new, and its job goes on to its end"""
        self.up("drained", "while [ ! -e /tmp/end ]; do sleep 0.2; done; exit 6")
        # As pkill does for a stock orchestrator, which our agent survives.
        for _ in range(2):
            self.expect(self.world.fuse("exec", "fuse-drained", "--", "killall", "-TERM", "fused"))
        self.expect(self.world.fuse("exec", "fuse-drained", "--", "sh", "-c",
                                    "(sleep 3; touch /tmp/end) > /dev/null 2>&1 &"))
        done = self.expect(self.world.fuse("environment", "drain", "fuse-drained"))
        self.expect_says(done, "its job goes on")
        refused = self.expect(self.world.fuse("exec", "fuse-drained", "--", "true"), 125)
        self.expect_says(refused, "vm fuse-drained is in state draining")
        self.expect(self.world.fuse("logs", "-f", "--exit-code", "fuse-drained"), 6)
        self.remove("fuse-drained")

    def test_destroy(self):
        """rm ends the VM with all that runs in it, and says what is not there"""
        self.up("destroy", "echo hello; sleep 1000")
        self.assertEqual(len(self.world.qemus()), 1)
        client = self.world.start("exec", "fuse-destroy", "--", "sh", "-c", "echo up; sleep 1000")
        with client:
            harness.read_until(client.stdout, b"up\n")
            self.remove("fuse-destroy")
            _, err = client.communicate(timeout=harness.PATIENCE)
            self.assertEqual(client.returncode, 125, err)
        self.assertEqual(self.world.environments(), [])
        self.assertEqual(self.expect(self.world.fuse("logs", "fuse-destroy")).text, "hello\n")
        self.expect(self.world.fuse("rm", "--yes", "fuse-never"), 1)
        # Its name is free again.
        self.up("destroy", "sleep 1000")
        self.remove("fuse-destroy")


if __name__ == "__main__":
    unittest.main(verbosity=2)
