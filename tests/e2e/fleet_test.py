"""A fleet as its users have it: an orchestrator, a host's agent, and a client."""

import json
import random
import re
import secrets
import signal
import socket
import subprocess
import urllib.error
import urllib.request

import harness
from harness import E2eTest, limit, read_until, wait_until


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """A service of fuse on a port of loopback, which can be ended and started again."""

    def __init__(self, world, name, words, environment):
        self.world, self.words, self.environment = world, words, environment
        self.log = world.root / f"work/{name}.log"
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = self.world.start(*self.words, env=self.environment, stdin=None,
                                            stdout=log, stderr=log)
        wait_until(lambda: b" ready " in self.log.read_bytes()[begin:]
                   or self.process.poll() is not None, f"{self.words[0]} serves")
        if self.process.poll() is not None:
            raise AssertionError(self.log.read_text())

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(harness.PATIENCE)


class FleetTest(E2eTest):
    def setUp(self):
        super().setUp()
        self.agent_token, self.token = secrets.token_hex(16), secrets.token_hex(16)
        agent_port, port = free_port(), free_port()
        self.agent_url, self.url = (f"http://127.0.0.1:{at}" for at in (agent_port, port))
        self.agent = Service(
            self.world, "agent",
            ["agent", "serve", "--listen", "127.0.0.1", "--port", agent_port,
             "--host-port-base", "0"],
            {"QEMU_AGENT_TOKEN": self.agent_token, "QEMU_DIR": str(self.world.state),
             "IMAGES_DIR": harness.IMAGES, "PUBLIC_HOST": "127.0.0.1"})
        self.addCleanup(lambda: self.agent.process.poll() is None and
                        self.agent.end(signal.SIGTERM))
        self.orchestrator = Service(
            self.world, "orchestrator",
            ["orchestrator", "serve", "--listen", f"127.0.0.1:{port}",
             "--state-dir", self.world.root / "state/orchestrator"],
            {"ORCH_AUTH_TOKEN": self.token})
        self.addCleanup(lambda: self.orchestrator.process.poll() is None and
                        self.orchestrator.end(signal.SIGTERM))

    def connect(self):
        self.expect(self.world.fuse("connect", self.url, "--master", "--token", self.token))

    def enter(self, *more):
        return self.world.fuse("host", "register", "gpu-1", "--url", self.agent_url, "--token",
                               self.agent_token, "--backend", "qemu", "--max-vms", "4", *more)

    def ask(self, path, token=None):
        """Status and body of a GET, as any HTTP client has it."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers),
                                        timeout=harness.PATIENCE) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def test_fleet(self):
        """a host is registered and a job runs on it, from a client that only has a context"""
        wrong = self.world.fuse("connect", self.url, "--token", "guess")
        self.expect(wrong, 4)
        self.connect()
        rejected = self.world.fuse("host", "register", "gpu-1", "--url", self.agent_url, "--token",
                                   "guess", "--backend", "qemu")
        self.expect(rejected, 4)
        self.assertIn("QEMU_AGENT_TOKEN", rejected.errors)
        self.assertIn("gpu-1: registered", self.expect(self.enter()).text)

        marker = secrets.token_hex(8)
        path = self.world.fusefile("far", f"echo {marker} $WHO; exit 9",
                                   more="env:\n  WHO: { value: there }\n")
        self.assertIn("would run on gpu-1", self.expect(self.world.fuse("explain", path)).text)
        done = self.expect(self.world.fuse("run", path), 9)
        self.assertEqual(done.text, f"{marker} there\n")
        self.assertIn(self.url, done.errors)
        self.assertEqual(self.expect(self.world.fuse("logs", "fuse-far")).text, done.text)
        self.assertEqual(self.world.qemus(), [])
        self.assertIsNone(self.world.background_pid())

        key = self.expect(self.world.fuse("apikeys", "create")).text.strip()
        self.assertEqual(self.ask("/v1/hosts", key)[0], 200)
        self.assertEqual(self.ask("/v1/hosts")[0], 401)
        self.assertEqual(self.ask("/v1/api-keys", key)[0], 403)
        self.assertIn(b'orchestrator_fleet_hosts{state="active"} 1', self.ask("/metrics")[1])

    def test_work_in_a_far_vm(self):
        """exec, shell text, files and removal go over both hops"""
        self.connect()
        self.expect(self.enter())
        path = self.world.fusefile("box", "echo up; sleep 600")
        self.expect(self.world.fuse("up", path))
        sent = random.randbytes(200_000)
        echoed = self.world.fuse("exec", "fuse-box", "--", "cat", stdin=sent)
        self.assertEqual(self.expect(echoed).out, sent)
        self.expect(self.world.fuse("exec", "fuse-box", "--shell", "exit 41"), 41)
        shown = self.expect(self.world.fuse("host", "get", "gpu-1")).text
        self.assertIn("fuse-box", shown)
        self.expect(self.world.fuse("host", "remove", "gpu-1", "--yes"), 7)
        self.expect(self.world.fuse("rm", "-y", "fuse-box"))
        self.expect(self.world.fuse("host", "remove", "gpu-1", "--yes"))
        self.expect(self.world.fuse("run", path), 125)

    def test_gpu_refusal(self):
        """a GPU that no host has is refused with what each host has"""
        self.connect()
        self.expect(self.enter())
        path = self.world.fusefile("gpu", "true", more="  gpu: 1\n  gpu_kind: a100\n")
        explained = self.expect(self.world.fuse("-o", "json", "explain", path), 3).json()
        self.assertFalse(explained["fits"])
        self.assertEqual(explained["hosts"][0]["reasons"][0]["code"], "gpu-count")
        refused = self.world.fuse("up", path)
        self.expect(refused, 3)
        self.assertIn("gpu", refused.errors)

    @limit(600)
    def test_restarts(self):
        """a job outlives the kill of orchestrator and agent with its output and code whole"""
        self.connect()
        self.expect(self.enter())
        lines = 40
        path = self.world.fusefile("long", f"i=0; while [ $i -lt {lines} ]; do echo line $i; "
                                   "i=$((i+1)); sleep 0.5; done; exit 23")
        run = self.world.start("run", path, stdin=subprocess.DEVNULL)
        got = read_until(run.stdout, b"line 2\n")
        self.orchestrator.end(signal.SIGKILL)
        self.orchestrator.start()
        got += read_until(run.stdout, b"line 12\n")
        self.agent.end(signal.SIGKILL)
        self.agent.start()
        rest, errors = run.communicate(timeout=harness.PATIENCE)
        self.assertEqual(run.returncode, 23, errors.decode())
        self.assertEqual((got + rest).decode(), "".join(f"line {n}\n" for n in range(lines)))
        wait_until(lambda: not self.world.qemus(), "the vm is gone")

    def test_one_orchestrator(self):
        """a second orchestrator on the same state is refused, naming the first"""
        second = self.world.fuse("orchestrator", "serve", "--listen", "127.0.0.1:0",
                                 "--state-dir", self.world.root / "state/orchestrator")
        self.expect(second, 7)
        self.assertIn(f"pid {self.orchestrator.process.pid}", second.errors)
        open_to_all = self.world.fuse("orchestrator", "serve", "--listen", "0.0.0.0:0",
                                      "--state-dir", self.world.root / "state/other")
        self.assertIn("ORCH_AUTH_TOKEN", open_to_all.errors)
        self.assertNotEqual(open_to_all.code, 0)
        self.assertEqual(json.loads(self.ask("/ready")[1])["status"], "ready")
        self.assertEqual(self.orchestrator.end(signal.SIGTERM), 0)
        self.assertTrue(re.search(r"stopping because=.signal 15", self.orchestrator.log.read_text()))


if __name__ == "__main__":
    harness.main()
