"""A machine with GPUs that does not exist, and a fleet with it or with this machine.

The machine is tests/docs/simulated_machine.cpp: it runs `fuse agent ...` of this tree on
simulated hardware, and can start no VMs.  Whatever else is asked of fuse is done by the
executable.
"""

import json
import os
import secrets
import shutil
import signal
import socketserver
import subprocess
import sys
import threading
import urllib.request

import harness
from fleet_test import Service, free_port
from harness import wait_until

MACHINE = os.environ.get("FUSE_SIMULATED_MACHINE") or str(
    harness.ROOT / "build/release/tests/simulated_machine")

# What shells find as fuse: hands the agent's commands to the machine.
WRAPPER = f"""#!{sys.executable}
import json, os, socket, sys
if "agent" not in sys.argv[1:]:
    os.execv({harness.FUSE!r}, sys.argv)
line = socket.socket(socket.AF_UNIX)
line.connect(os.path.join(os.path.dirname(__file__), "socket"))
command = {{"words": sys.argv[1:], "environment": dict(os.environ), "directory": os.getcwd()}}
line.sendall(json.dumps(command).encode() + b"\\n")
done = json.loads(line.makefile().readline())
sys.stderr.write(done["err"])
sys.stdout.write(done["out"])
sys.exit(done["code"])
"""


class Machine:
    """The machine, and the folder `bin` with the fuse that speaks to it."""

    def __init__(self, world):
        self.world, self.lock = world, threading.Lock()
        self.bin = world.root / "machine"
        self.bin.mkdir()
        self.log = self.bin / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [MACHINE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={**world.environment, "TMPDIR": str(self.bin)}, text=True)
        (self.bin / "fuse").write_text(WRAPPER)
        (self.bin / "fuse").chmod(0o755)
        machine = self

        class Line(socketserver.StreamRequestHandler):
            def handle(self):
                self.wfile.write(json.dumps(machine.ask(json.loads(self.rfile.readline())))
                                 .encode() + b"\n")

        self.server = socketserver.ThreadingUnixStreamServer(str(self.bin / "socket"), Line)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ask(self, command):
        with self.lock:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())

    def fuse(self, *words, **environment):
        """Exit code, stdout and stderr of a command of the agent's."""
        done = self.ask({"words": [str(word) for word in words],
                         "environment": {**self.world.environment, **environment},
                         "directory": str(self.world.root / "work")})
        return done["code"], done["out"], done["err"]

    def serve(self, token):
        """Starts the agent on the machine; its address."""
        port = free_port()
        self.fuse("agent", "serve", "--listen", "127.0.0.1", "--port", port,
                  "--host-port-base", "0", QEMU_AGENT_TOKEN=token, PUBLIC_HOST="127.0.0.1",
                  IMAGES_DIR=harness.IMAGES)
        wait_until(lambda: " ready " in self.log.read_text(), "the machine's agent serves")
        return f"http://127.0.0.1:{port}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.process.stdin.close()
        self.process.wait(harness.PATIENCE)
        self.process.stdout.close()
        shutil.rmtree(self.bin)


class Fleet:
    """An orchestrator, and an agent: the machine's, or one of the executable's."""

    def __init__(self, test, machine=None):
        self.world = test.world
        self.token, self.agent_token = secrets.token_hex(16), secrets.token_hex(16)
        self.agent_url = machine.serve(self.agent_token) if machine else self.serve_agent(test)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        orchestrator = Service(
            self.world, "orchestrator",
            ["orchestrator", "serve", "--listen", f"127.0.0.1:{port}",
             "--state-dir", self.world.root / "state/orchestrator"],
            {"ORCH_AUTH_TOKEN": self.token})
        test.addCleanup(lambda: orchestrator.end(signal.SIGTERM))

    def serve_agent(self, test):
        port = free_port()
        agent = Service(
            self.world, "agent",
            ["agent", "serve", "--listen", "127.0.0.1", "--port", port, "--host-port-base", "0"],
            {"QEMU_AGENT_TOKEN": self.agent_token, "QEMU_DIR": str(self.world.root / "state/agent"),
             "IMAGES_DIR": harness.IMAGES, "PUBLIC_HOST": "127.0.0.1"})
        test.addCleanup(lambda: agent.end(signal.SIGTERM))
        return f"http://127.0.0.1:{port}"

    def read(self, path, url=None, token=None):
        """The body of a GET: of the orchestrator, or of another service."""
        request = urllib.request.Request((url or self.url) + path, headers={
            "Authorization": f"Bearer {token or self.token}"})
        with urllib.request.urlopen(request, timeout=harness.PATIENCE) as answer:
            return answer.read().decode()


def add_machine(test):
    """The machine for a test, with its devices' files in the test's own folder."""
    test.world.environment["QEMU_DIR"] = str(test.world.root / "work/qemu")
    machine = Machine(test.world)
    test.addCleanup(machine.close)
    return machine
