"""What the checks in the lab's machine have in common: fuse, its agent, and sysfs."""

import base64
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import time

PCI = pathlib.Path("/sys/bus/pci/devices")

# An emulated machine in an emulated machine takes its time.
PATIENCE = 120


class Skip(Exception):
    """A check that cannot be made here; the text says why."""


class Failed(Exception):
    """What a check found wrong."""


def expect(truth, what):
    if not truth:
        raise Failed(str(what))


def same(got, wanted, what=""):
    if got != wanted:
        raise Failed(f"{what}{': ' if what else ''}got {got!r}, expected {wanted!r}")


def await_truth(truth, what, patience=PATIENCE):
    """Asks until it is true."""
    end = time.monotonic() + patience
    while not (value := truth()):
        if time.monotonic() > end:
            raise Failed(f"not within {patience} s: {what}")
        time.sleep(0.1)
    return value


# What the kernel shows.

def link_name(path):
    """The last part of a link, "" when there is none."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""


def driver(address):
    return link_name(PCI / address / "driver")


def group(address):
    return link_name(PCI / address / "iommu_group")


def write(path, text):
    """Writes as the kernel wants it: with one write, whose errno is told."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


class Done:
    """A command that has ended."""

    def __init__(self, words, process, seconds):
        self.words, self.code, self.seconds = words, process.returncode, seconds
        self.out, self.err = process.stdout, process.stderr

    def json(self):
        return json.loads(self.out)

    def says(self, *texts):
        for text in texts:
            expect(text in self.out + self.err, f"{self} does not say {text!r}")
        return self

    def __str__(self):
        return f"fuse {' '.join(self.words)} ({self.code}): {self.out[-1500:]}{self.err[-1500:]}"


class Agent:
    """The host agent, a process of its own, and its caller."""

    TOKEN = "0123456789abcdef"

    def __init__(self, lab):
        self.lab = lab
        self.log = lab.dir.parent / "agent.log"
        self.process = None
        self.port = None

    def start(self):
        environment = {**os.environ, "QEMU_AGENT_TOKEN": self.TOKEN, "PUBLIC_HOST": "127.0.0.1",
                       "QEMU_DIR": str(self.lab.dir), "IMAGES_DIR": self.lab.images}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.lab.program, "agent", "serve", "--listen", "127.0.0.1", "--port", "0",
                 "--accel", self.lab.accel], env=environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log)
        ready = re.compile(r"ready at=http://127\.0\.0\.1:(\d+)")
        await_truth(lambda: ready.search(self.said()) or self.process.poll() is not None,
                    "the agent serves")
        expect(self.process.poll() is None, f"the agent ended: {self.said()}")
        self.port = int(ready.search(self.said()).group(1))

    def said(self):
        return self.log.read_text(errors="replace")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def ask(self, method, target, body=None):
        """Status and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * PATIENCE)
        try:
            connection.request(method, target, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self.TOKEN}"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def json(self, method, target, body=None):
        status, text = self.ask(method, target, body)
        expect(status == 200, f"{method} {target}: {status} {text}\n{self.said()[-1500:]}")
        return json.loads(text)

    def create(self, name, **wish):
        """Makes a small VM with devices; its uid."""
        body = {"name": name, "image": "micro", "cpus": 1, "memory_mb": 192, **wish}
        return self.json("POST", "/v1/vm", body)["uid"]

    def refused(self, status, name, **wish):
        """The text with which a create is refused."""
        body = {"name": name, "image": "micro", "cpus": 1, "memory_mb": 192, **wish}
        got, text = self.ask("POST", "/v1/vm", body)
        same(got, status, f"create of {name} ({text})")
        return text

    def destroy(self, vm):
        same(self.ask("DELETE", f"/v1/vm/{vm}"), (204, ""), f"destroy of {vm}")

    def shell(self, vm, script):
        """Output of a script in a guest, which must succeed."""
        done = self.json("POST", f"/v1/vm/{vm}/exec", {"cmd": ["sh", "-c", script]})
        out, err = (base64.b64decode(done[stream]).decode() for stream in ("stdout", "stderr"))
        same(done["exit_code"], 0, f"{script}: {err}")
        return out

    def guest_devices(self, vm):
        """What a guest has on its buses but for QEMU's own: (function, vendor:device, class)."""
        script = "for d in /sys/bus/pci/devices/*; do read v <$d/vendor; read i <$d/device; " \
                 "read c <$d/class; echo ${d##*.} ${v#0x}:${i#0x} ${c#0x}; done"
        rows = [tuple(line.split()) for line in self.shell(vm, script).splitlines()]
        return sorted(row for row in rows
                      if row[1].split(":")[0] not in ("1af4", "1b36") and
                      (row[1].split(":")[0] != "8086" or row[2].startswith("0403")))


class Lab:
    """The state of the checks: a folder of an agent's, and the agent."""

    def __init__(self):
        self.program = os.environ["LAB_FUSE"]
        self.images = os.environ["LAB_IMAGES"]
        self.module = os.environ.get("LAB_MODULE", "")
        self.why_no_module = os.environ.get("LAB_WHY", "").replace("_", " ")
        self.accel = "kvm" if os.path.exists("/dev/kvm") else "tcg"
        self.dir = pathlib.Path("/run/fuse")
        self.dir.mkdir(mode=0o700)
        self.agent = Agent(self)

    def fuse(self, *words, code=0):
        """Runs fuse to its end, which must be with this code."""
        environment = {**os.environ, "QEMU_DIR": str(self.dir), "XDG_STATE_HOME": "/run/state"}
        start = time.monotonic()
        process = subprocess.run([self.program, *words], env=environment, capture_output=True,
                                 stdin=subprocess.DEVNULL, check=False, text=True,
                                 timeout=PATIENCE)
        done = Done(words, process, time.monotonic() - start)
        if code is not None:
            same(done.code, code, done)
        return done

    def start(self, *words, before=()):
        """Starts fuse; the caller waits for it."""
        return subprocess.Popen([*before, self.program, *words],
                                env={**os.environ, "QEMU_DIR": str(self.dir)}, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def probe(self):
        """The cards by address."""
        devices = self.fuse("agent", "probe", "--vendor", "1234", "-o", "json").json()["devices"]
        return {device["address"]: device for device in devices}

    def bind(self, *words, code=0):
        """`agent bind -o json`; its answer."""
        return self.fuse("agent", "bind", "--vendor", "1234", "-o", "json", *words,
                         code=code).json()

    def record(self, uid):
        return json.loads((self.dir / "agent-state/vms" / uid / "record.json").read_text())

    def receipt(self, uid):
        return json.loads((self.dir / "agent-state/receipts" / uid / "record.json").read_text())

    def qemu_pid(self, uid):
        return self.record(uid)["process"]["pid"]

    def diagnosis(self):
        """What helps to understand a failure."""
        yield self.agent.log
        for name in ("qemu.log", "serial.log"):
            yield from sorted(self.dir.glob(f"agent-state/vms/*/{name}"))
