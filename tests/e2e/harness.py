"""What the end-to-end tests have in common.

Each runs the static executable in a world of its own: a fresh folder with state,
configuration and home, and the guest images that all tests share.  When it ends,
nothing of it may be left; the checker of leaks proves before each test that it
finds them.

    FUSE_BIN          the executable (build/fuse)
    FUSE_TEST_IMAGES  the folder of guest images (build/images)
    FUSE_TEST_KEEP    when set, the folder of a failed test stays

Run one by hand:  python3 tests/e2e/run_test.py RunTest.test_train
One of another folder finds this file by PYTHONPATH=tests/e2e.
"""

import contextlib
import functools
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest

import leaks

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUSE = os.path.abspath(os.environ.get("FUSE_BIN") or ROOT / "build/fuse")
IMAGES = os.path.abspath(os.environ.get("FUSE_TEST_IMAGES") or ROOT / "build/images")

# A guest under emulation on a busy machine takes its time.
PATIENCE = 240


class TimeIsUp(Exception):
    pass


def limit(seconds):
    """Sets how long a test may take, in seconds; the default is 300."""
    def mark(function):
        function.limit = seconds
        return function
    return mark


def serial(function):
    """Marks a test that nothing else should run beside."""
    function.serial = True
    return function


def long(function):
    """Marks a test that takes too long to run each time; `make test-long` runs these."""
    function.long = True
    return function


def offline(case):
    """Marks a class of tests that start no VM and need no images."""
    case.offline = True
    return case


class Done:
    """A command that has ended."""

    def __init__(self, argv, code, out, err):
        self.argv, self.code, self.out, self.err = argv, code, out, err

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def errors(self):
        return self.err.decode(errors="replace")

    def json(self):
        return json.loads(self.out)

    def __str__(self):
        return (f"{' '.join(map(str, self.argv))}\nexited with {self.code}\n"
                f"--- stdout\n{self.text[-4000:]}\n--- stderr\n{self.errors[-4000:]}")


class World:
    """A folder of its own for one test, and fuse in it."""

    def __init__(self):
        # A short name: sockets lie below it.
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="fz-", dir="/tmp"))
        leaks.check_the_checker(self.root)
        for planted in ("planted-images", "state", "tmp"):
            shutil.rmtree(self.root / planted)
        for name in ("home", "config", "state", "tmp", "work"):
            (self.root / name).mkdir(mode=0o700)
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "TMPDIR": str(self.root / "tmp"),
            "FUSE_IMAGES": IMAGES,
            "FUSE_ACCEL": "tcg",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
        }
        self.state = self.root / "state/fuse"
        self.agent_state = self.state / "agent-state"

    def fuse(self, *words, stdin=b"", timeout=PATIENCE, **options):
        """Runs fuse to its end."""
        process = self.start(*words, **options)
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            out, err = process.communicate()
            print(Done(process.args, "no code: it was killed", out, err), file=sys.stderr)
            raise
        return Done(process.args, process.returncode, out, err)

    def start(self, *words, env=None, cwd=None, program=FUSE, **options):
        """Starts fuse with pipes; the caller ends it."""
        for stream in ("stdin", "stdout", "stderr"):
            options.setdefault(stream, subprocess.PIPE)
        return subprocess.Popen([program, *map(str, words)], cwd=cwd or self.root / "work",
                                env={**self.environment, **(env or {})}, **options)

    def write(self, name, text):
        path = self.root / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def fusefile(self, name, run, image="micro", more=""):
        """Writes a Fusefile whose job is the shell text `run`."""
        text = f"version: 1\nname: {name}\nimage: {image}\nresources:\n  cpus: 1\n  memory: 256MB\n"
        text += more + "\nrun: |\n"
        text += "".join(f"  {line}\n" for line in run.strip("\n").split("\n"))
        return self.write(f"{name}.yaml", text)

    def background_pid(self):
        """The pid of the background process, or nothing."""
        status = self.fuse("local", "status", "-o", "json").json()
        return status["pid"] if status["running"] else None

    def lock_holder(self):
        """The pid of the background process, without starting or asking one."""
        return int((self.state / "lock").read_text())

    def qemus(self):
        """The pids of the QEMU processes of this world."""
        return [pid for pid in leaks.processes(self.root)
                if "qemu-system" in leaks.command_line(pid).split(" ")[0]]

    def environments(self):
        listed = self.fuse("environment", "list", "-o", "json")
        if listed.code != 0:
            raise AssertionError(str(listed))
        return listed.json()["environments"]

    def diagnosis(self):
        """What helps to understand a failure: logs of fuse and of the guests."""
        logs = [self.state / "daemon.log"]
        for name in ("serial.log", "qemu.log"):
            logs += sorted(self.agent_state.glob(f"*/*/{name}"))
        for path in logs:
            if path.exists():
                yield f"--- {path}\n" + path.read_text(errors="replace")[-6000:]


def resident(pid):
    """What a process has in memory, in MiB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) // 1024


def wait_until(truth, what, patience=PATIENCE):
    """Asks until it is true."""
    end = time.monotonic() + patience
    while True:
        value = truth()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {patience} s: {what}")
        time.sleep(0.1)


def read_until(stream, mark, patience=PATIENCE):
    """Reads from a pipe until `mark` has come; all that was read."""
    seen, end = b"", time.monotonic() + patience
    while mark not in seen:
        left = end - time.monotonic()
        if left <= 0 or not select.select([stream], [], [], left)[0]:
            raise AssertionError(f"{mark!r} did not come within {patience} s; got {seen[-4000:]!r}")
        piece = os.read(stream.fileno(), 65536)
        if not piece:
            raise AssertionError(f"the stream ended without {mark!r}: {seen[-4000:]!r}")
        seen += piece
    return seen


@contextlib.contextmanager
def ending(process):
    """Ends a started process with the block, however that ends."""
    with process:
        try:
            yield process
        finally:
            process.kill()


class E2eTest(unittest.TestCase):
    longMessage = True
    maxDiff = 4000

    def __init__(self, method="runTest"):
        super().__init__(method)
        self.failed = False
        body = getattr(self, method)

        @functools.wraps(body)
        def watched(case):
            try:
                body()
            except BaseException:
                case.failed = True
                raise
        setattr(self, method, types.MethodType(watched, self))

    def setUp(self):
        seconds = getattr(getattr(self, self._testMethodName), "limit", 300)
        signal.signal(signal.SIGALRM, self._time_is_up)
        signal.alarm(seconds)
        self.world = World()
        # Also when the set-up of a subclass or the test itself fails.
        self.addCleanup(self._clean_up)

    def _time_is_up(self, *_):
        raise TimeIsUp("the test took longer than it may")

    def _clean_up(self):
        signal.alarm(120)
        try:
            if self.failed:
                print(f"the test's folder: {self.world.root}", file=sys.stderr)
                for text in self.world.diagnosis():
                    print(text, file=sys.stderr)
            elif self.world.state.exists():
                self.world.fuse("local", "down")
            left = {} if self.failed else self._lasting_leaks()
        finally:
            signal.alarm(0)
            leaks.kill_all(self.world.root)
            if not (self.failed and os.environ.get("FUSE_TEST_KEEP")):
                shutil.rmtree(self.world.root, ignore_errors=True)
        self.assertEqual(left, {}, "the test left something behind")

    def _lasting_leaks(self):
        """What is left after a moment: a process that is about to end is no leak."""
        deadline = time.monotonic() + 5
        while (left := leaks.leaks(self.world.root, IMAGES)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    # Checks that show the whole command when they fail.

    def expect(self, done, code=0):
        self.assertEqual(done.code, code, str(done))
        return done

    def expect_says(self, done, *texts):
        said = done.text + done.errors
        for text in texts:
            self.assertIn(text, said, str(done))

    def up(self, name, run, *words, image="micro", more=""):
        """An environment whose job runs."""
        path = self.world.fusefile(name, run, image=image, more=more)
        self.expect(self.world.fuse("up", path, *words))
        return f"fuse-{name}"

    def remove(self, *ids):
        self.expect(self.world.fuse("rm", "--yes", *ids))
        self.assertEqual(self.world.qemus(), [])


def images_are_baked():
    """Bakes what is not there yet: the tests share the images and keep them."""
    os.makedirs(IMAGES, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fz-", dir="/tmp") as home:
        environment = {**os.environ, "HOME": home, "XDG_STATE_HOME": home, "FUSE_IMAGES": IMAGES}
        listed = subprocess.run([FUSE, "image", "list", "-o", "json"], env=environment,
                                capture_output=True, check=True)
        usable = {image["name"] for image in json.loads(listed.stdout)["images"]
                  if "problem" not in image}
        try:
            for name in ("micro", "base"):
                if name not in usable:
                    print(f"baking {name} into {IMAGES}", flush=True)
                    subprocess.run([FUSE, "image", "bake", name], env=environment, check=True)
        finally:
            subprocess.run([FUSE, "local", "down"], env=environment, capture_output=True,
                           check=False)


def main():
    if sys.argv[1:] == ["--bake"]:
        images_are_baked()
    else:
        unittest.main(verbosity=2)


if __name__ == "__main__":
    main()
