"""fuse agent serve, driven over its wire alone."""

import base64
import http.client
import json
import os
import random
import re
import secrets
import signal
import socket
import struct
import unittest
import urllib.request

import harness
from harness import E2eTest, limit, wait_until

SMALL = {"image": "micro", "cpus": 1, "memory_mb": 256}


class Agent:
    """An agent process on a port of loopback, and its caller."""

    def __init__(self, world, *flags):
        self.world = world
        self.token = secrets.token_hex(16)
        self.log = world.root / "work/agent.log"
        self.flags = flags
        self.process = None
        self.start()

    def start(self):
        """Starts it, and waits until it serves."""
        self.process = self.spawn()
        wait_until(lambda: self._port() or self.process.poll() is not None, "the agent serves")
        if self.process.poll() is not None:
            raise AssertionError("the agent ended: " + self.log.read_text())
        self.port = self._port()

    def spawn(self, **more):
        environment = {"QEMU_AGENT_TOKEN": self.token, "QEMU_DIR": str(self.world.state),
                       "IMAGES_DIR": harness.IMAGES, "PUBLIC_HOST": "127.0.0.1"}
        with open(self.log, "wb") as log:
            return self.world.start("agent", "serve", "--listen", "127.0.0.1", "--port", "0",
                                    *self.flags, env=environment,
                                    **{"stdin": None, "stdout": log, "stderr": log, **more})

    def _port(self):
        found = re.search(r"ready at=http://127\.0\.0\.1:(\d+)", self.log.read_text())
        return int(found.group(1)) if found else None

    def end(self, number):
        """Ends it by a signal; its exit code."""
        self.process.send_signal(number)
        return self.process.wait(harness.PATIENCE)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.PATIENCE)

    def ask(self, method, target, body=None, token=None, headers=None):
        """Status and body of an answer."""
        connection = self.connect()
        try:
            connection.request(method, target, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {token or self.token}",
                                **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def json(self, method, target, body=None, status=200, headers=None):
        """The JSON of an answer, whose status must be this."""
        got, text = self.ask(method, target, body, headers=headers)
        if got != status:
            raise AssertionError(f"{method} {target}: {got} {text!r}, expected {status}")
        return json.loads(text)

    def shell(self, vm, script, **more):
        """Exit code and output of a script in a guest."""
        done = self.json("POST", f"/v1/vm/{vm}/exec", {"cmd": ["sh", "-c", script], **more})
        return done["exit_code"], base64.b64decode(done["stdout"]), base64.b64decode(done["stderr"])

    def log_of(self, vm, query="follow=1"):
        status, text = self.ask("GET", f"/v1/vm/{vm}/logs?{query}")
        if status != 200:
            raise AssertionError(f"logs of {vm}: {status} {text!r}")
        return text

    def await_log(self, vm, mark):
        wait_until(lambda: mark in self.log_of(vm, "offset=0"), f"{mark!r} is in the log")


def frame(kind, payload):
    return struct.pack(">BxxxI", kind, len(payload)) + payload


class Attached:
    """A raw attach connection."""

    def __init__(self, agent, vm, query, early=b""):
        self.socket = socket.create_connection(("127.0.0.1", agent.port), harness.PATIENCE)
        self.buffer = b""
        self.socket.sendall(f"GET /v1/vm/{vm}/attach?{query} HTTP/1.1\r\nHost: agent\r\n"
                            f"Authorization: Bearer {agent.token}\r\n"
                            "Upgrade: FUSE-attach/1\r\n\r\n".encode() + early)
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        self.head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)

    def _receive(self):
        piece = self.socket.recv(65536)
        if not piece:
            raise EOFError(self.buffer)
        self.buffer += piece

    def read(self):
        """The next frame: type and payload."""
        while len(self.buffer) < 8:
            self._receive()
        kind, size = struct.unpack(">BxxxI", self.buffer[:8])
        while len(self.buffer) < 8 + size:
            self._receive()
        payload, self.buffer = self.buffer[8:8 + size], self.buffer[8 + size:]
        return kind, payload

    def read_to_end(self):
        """Output by type, and the exit code."""
        output = {1: b"", 2: b""}
        while True:
            kind, payload = self.read()
            if kind == 4:
                self.socket.close()
                return output, json.loads(payload)["exit_code"]
            output[kind] += payload


class AgentTest(E2eTest):
    def serve(self, *flags):
        agent = Agent(self.world, *flags)
        self.addCleanup(agent.process.kill)
        return agent

    @limit(600)
    def test_wire(self):
        """the agent's wire: VMs, files, commands, ports, sessions, jobs"""
        agent = self.serve()
        for method, target in (("GET", "/healthz"), ("GET", "/v1/vm"), ("POST", "/v1/vm")):
            self.assertEqual(agent.ask(method, target, token="wrong"), (401, b"unauthorized"))
        health = agent.json("GET", "/healthz")
        self.assertEqual((health["ok"], health["app_name"]), (True, "qemu-agent"))
        capacity = agent.json("GET", "/v1/capacity")
        self.assertEqual(capacity["cpus"], os.cpu_count())
        self.assertEqual(capacity["gpu_devices"], [])
        self.assertEqual(agent.ask("GET", "/v1/nothing"), (404, b"not found"))
        self.assertEqual(agent.ask("POST", "/v1/vm", {"image": "../x"})[0], 400)
        self.assertEqual(
            agent.ask("POST", "/v1/vm", {**SMALL, "gpus": 1}),
            (409, b"insufficient free gpus: requested 1 of any kind, 0 available in complete "
                  b"iommu groups"))

        made = agent.json("POST", "/v1/vm", {"name": "My_App", **SMALL, "storage_gb": 0})
        self.assertEqual(made["vm_id"], "my-app")
        self.assertRegex(made["url"], r"^127\.0\.0\.1:\d+$")
        self.assertEqual(agent.ask("POST", "/v1/vm", {"name": "my app", **SMALL}),
                         (409, b"vm my-app already exists"))
        self.assertEqual(agent.json("GET", "/v1/vm?prefix=my-")["vms"], [made])
        self.assertEqual(agent.json("GET", "/v1/vm/My_App"), made)

        self.files_and_commands(agent)
        self.ports(agent, made["url"])
        self.sessions(agent)
        uid = made["uid"]
        log, code = self.job(agent)
        self.assertEqual(agent.ask("DELETE", "/v1/vm/my-app"), (204, b""))
        self.assertEqual(agent.ask("DELETE", "/v1/vm/my-app"), (404, b"vm not found"))
        self.assertEqual(agent.json("GET", f"/v1/vm/{uid}/job")["exit_code"], code)
        self.assertEqual(agent.log_of(uid), log)
        self.assertEqual(self.world.qemus(), [])
        self.assertIn(b'fuse_agent_creates_total{outcome="made"} 1\n',
                      agent.ask("GET", "/metrics")[1])
        self.assertEqual(agent.end(signal.SIGTERM), 0)
        self.assertNotIn(agent.token, agent.log.read_text())

    def files_and_commands(self, agent):
        block = random.randbytes(3_000_000)
        upload = {"path": "/data/block", "content_b64": base64.b64encode(block).decode()}
        self.assertEqual(agent.json("POST", "/v1/vm/my-app/upload", upload), {"ok": True})
        secret = {"path": "/fuse/deep/secret", "content_b64": "eA=="}
        agent.json("POST", "/v1/vm/my-app/upload", secret)
        self.assertEqual(agent.shell("my-app", "cat /data/block")[1], block)
        self.assertEqual(agent.shell("my-app", "stat -c %a /fuse/deep /fuse/deep/secret")[1],
                         b"700\n600\n")
        code = random.randint(1, 120)
        self.assertEqual(agent.shell("my-app", f"echo out; echo err >&2; exit {code}"),
                         (code, b"out\n", b"err\n"))
        late = agent.shell("my-app", "sleep 1000", timeout_ms=300)
        self.assertEqual(late[:2], (124, b""))
        self.assertTrue(late[2].startswith(b"timeout:"), late)

    def ports(self, agent, own):
        script = "mkdir -p /www && echo hello >/www/index.html && httpd -p 8080 -h /www && " \
                 "httpd -p 9550 -h /www"
        self.assertEqual(agent.shell("my-app", script)[0], 0)
        start = {"manifest_path": "/fuse/manifest.json", "secrets_path": "/fuse/secrets.json",
                 "tls_cert_path": "/fuse/tls/cert.pem", "expose": [{"port": 8080, "as": "http"}]}
        endpoint, = agent.json("POST", "/v1/vm/my-app/start-agent", start)["endpoints"]
        self.assertEqual((endpoint["as"], endpoint["port"]), ("http", 8080))
        for url in (endpoint["url"], own):
            with urllib.request.urlopen(f"http://{url}/", timeout=harness.PATIENCE) as page:
                self.assertEqual(page.read(), b"hello\n")

    def sessions(self, agent):
        self.assertEqual(
            agent.ask("GET", "/v1/vm/my-app/attach?cmd=true"),
            (400, b"attach requires tty=1; use /exec for non-interactive commands"))
        # What is sent right behind the head is not lost.
        attached = Attached(agent, "my-app", "tty=1&rows=33&cols=101&cmd=sh&cmd=-c&cmd="
                            "stty+size%3B+read+x%3B+echo+got+%22%24x%22%3B+exit+5",
                            frame(0, b"early\n"))
        self.assertEqual(attached.head, b"HTTP/1.1 101 Switching Protocols\r\n"
                                        b"Upgrade: fuse-attach/1\r\nConnection: Upgrade")
        output, code = attached.read_to_end()
        self.assertIn(b"33 101", output[1])
        self.assertIn(b"got early", output[1])
        self.assertEqual((output[2], code), (b"", 5))
        # A client that goes takes its process with it.
        naps = random.randint(100_000, 999_999)
        attached = Attached(agent, "my-app",
                            f"tty=1&cmd=sh&cmd=-c&cmd=echo+up%3B+sleep+{naps}")
        self.assertEqual(attached.read()[0], 1)
        look = f"ps | grep 'sleep {naps}' | grep -v grep"
        wait_until(lambda: agent.shell("my-app", look)[1] != b"", "the session's process is seen")
        attached.socket.close()
        wait_until(lambda: agent.shell("my-app", look)[1] == b"", "the session's process is gone")

    def job(self, agent):
        code = random.randint(1, 120)
        noise = secrets.token_hex(100_000)
        agent.json("POST", "/v1/vm/my-app/upload",
                   {"path": "/data/noise",
                    "content_b64": base64.b64encode(noise.encode()).decode()})
        job = {"steps": [{"name": "make", "script": "echo building $WORD"}],
               "script": f"echo begun; until [ -e /go ]; do sleep 0.1; done; cat /data/noise; "
                         f"exit {code}",
               "env": {"WORD": "it's"}}
        self.assertEqual(agent.ask("GET", "/v1/vm/my-app/job")[0], 404)
        agent.json("POST", "/v1/vm/my-app/job", job, status=202)
        self.assertEqual(agent.ask("POST", "/v1/vm/my-app/job", job)[0], 409)
        connection = agent.connect()
        connection.request("GET", "/v1/vm/my-app/logs?offset=9&follow=1",
                           headers={"Authorization": f"Bearer {agent.token}"})
        answer = connection.getresponse()
        start = b"building it's\nbegun\n"
        self.assertEqual(answer.read(len(start) - 9), start[9:])
        self.assertEqual(agent.json("GET", "/v1/vm/my-app/job")["state"], "running")
        agent.shell("my-app", "touch /go")
        self.assertEqual(answer.read(), noise.encode())
        connection.close()
        ended = agent.json("GET", "/v1/vm/my-app/job")
        self.assertEqual((ended["state"], ended["exit_code"], ended["reason"]),
                         ("exited", code, "exited"))
        self.assertEqual(ended["log_bytes"], len(start) + len(noise))
        return start + noise.encode(), code

    @limit(600)
    def test_restart(self):
        """an agent that is killed or stopped leaves VMs and jobs to the next one"""
        agent = self.serve()
        create = {"name": "keep", **SMALL}
        key = {"Idempotency-Key": "op-1", "X-Fuse-Cluster": "c-1"}
        made = agent.json("POST", "/v1/vm", create, headers=key)
        self.assertEqual(made["cluster"], "c-1")
        code = random.randint(1, 120)
        agent.json("POST", "/v1/vm/keep/job", status=202, body={
            "script": f"echo one; until [ -e /go ]; do sleep 0.1; done; echo two; exit {code}"})
        agent.await_log("keep", b"one\n")

        agent.end(signal.SIGKILL)
        self.assertEqual(len(self.world.qemus()), 1)
        agent.start()
        self.addCleanup(agent.process.kill)
        # The same create again is the same VM, where it was.
        self.assertEqual(agent.json("POST", "/v1/vm", create, headers=key), made)
        self.assertEqual(agent.json("GET", "/v1/vm/keep/job")["state"], "running")

        # One agent at a time has the state.
        second = agent.world.start("agent", "serve", "--port", "0", env={
            "QEMU_AGENT_TOKEN": "x", "QEMU_DIR": str(self.world.state),
            "PUBLIC_HOST": "127.0.0.1"})
        _, err = second.communicate(timeout=harness.PATIENCE)
        self.assertEqual(second.returncode, 7)
        self.assertIn(f"in use by process {agent.process.pid}".encode(), err)

        # A call in hand is answered before it stops, a stream is ended.
        connection = agent.connect()
        connection.request("POST", "/v1/vm/keep/exec",
                           json.dumps({"cmd": ["sh", "-c", "touch /in; sleep 3; echo done"]}),
                           {"Authorization": f"Bearer {agent.token}"})
        wait_until(lambda: agent.shell("keep", "[ -e /in ]")[0] == 0, "the exec runs")
        agent.process.send_signal(signal.SIGTERM)
        answer = connection.getresponse()
        self.assertEqual(base64.b64decode(json.loads(answer.read())["stdout"]), b"done\n")
        self.assertEqual(agent.process.wait(harness.PATIENCE), 0)
        self.assertEqual(len(self.world.qemus()), 1)

        agent.start()
        self.addCleanup(agent.process.kill)
        agent.shell("keep", "touch /go")
        self.assertEqual(agent.log_of("keep"), b"one\ntwo\n")
        self.assertEqual(agent.json("GET", "/v1/vm/keep/job")["exit_code"], code)
        self.assertEqual(agent.ask("DELETE", "/v1/vm/keep"), (204, b""))
        self.assertEqual(agent.end(signal.SIGTERM), 0)
        self.assertEqual(self.world.qemus(), [])


@harness.offline
class AgentStartTest(E2eTest):
    def test_refusals(self):
        """an agent does not start without a token, an address or a key to its certificate"""
        start = self.world.fuse
        for words in (["agent", "serve"], ["--host-mode"]):
            self.expect_says(self.expect(start(*words), 1), "QEMU_AGENT_TOKEN")
        token = {"QEMU_AGENT_TOKEN": "t", "QEMU_DIR": str(self.world.root / "work/d")}
        done = self.expect(start("--host-mode", env={**token, "PUBLIC_HOST": "http://me"}), 1)
        self.expect_says(done, "PUBLIC_HOST must be an IP address or a DNS name")
        done = self.expect(start("--host-mode", "--tls-cert", "/x", env=token), 1)
        self.expect_says(done, "--tls-cert needs --tls-key")
        settings = self.world.write("agent.env", "QEMU_AGENT_TOKEN=t\nQEMU_AGENT_PROT=1\n")
        done = self.expect(start("--host-mode", "--env-file", settings), 1)
        self.expect_says(done, f"{settings}:2: QEMU_AGENT_PROT is no setting of the agent")


if __name__ == "__main__":
    unittest.main(verbosity=2)
