"""A host's agent that exists only here: it speaks the wire over HTTP, keeps a ledger
of its own, and has bad moments."""

import http.server
import json
import random
import socket
import sys
import threading
import time

FEATURES = ["uid", "jobs", "gpu-device-uuids", "kind-substring", "attach-pipes"]


class SimulatedAgent:
    """Four GPUs and a ledger of who has them.  Whatever breaks a promise is kept in
    `violations`."""

    def __init__(self, name, token, features, handler=None):
        self.name, self.token, self.features = name, token, features
        self.lock = threading.Lock()
        self.vms = {}  # uid -> {"vm_id", "devices", "key", "cluster"}
        self.violations = []
        self.created = self.destroyed = 0
        self.cut_off = False
        self.moody = True
        self.devices = [f"GPU-{name}-{n}" for n in range(4)]
        handler = type("Handler", (handler or Handler,), {"agent": self})
        self.server = Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def capacity(self):
        return {"cpus": 64, "ram_mb": 262144, "storage_gb": 4096, "arch": "amd64", "gpus": 4,
                "gpu_kind": "a100",
                "gpu_devices": [{"index": 0, "uuid": uuid, "model": "NVIDIA A100",
                                 "pci_bus_id": f"0000:0{n}:00.0", "memory_mb": 40960,
                                 "driver_version": "", "compute_cap": "", "mig_capable": True,
                                 "mig_mode": "Disabled", "iommu_group": str(n)}
                                for n, uuid in enumerate(self.devices)]}

    def create(self, body, key, cluster):
        """Status and answer."""
        with self.lock:
            uid, wanted = body["uid"], body.get("gpu_device_uuids", [])
            if uid in self.vms:
                if self.vms[uid]["key"] != key:
                    self.violations.append(f"{uid} was created again with another key")
                return 200, self.info(uid)
            if len(wanted) != body.get("gpus", 0):
                self.violations.append(f"{uid}: {wanted} for {body.get('gpus', 0)} gpus")
            for other, vm in self.vms.items():
                both = set(vm["devices"]) & set(wanted)
                if both:
                    self.violations.append(f"{uid} was given {both}, which {other} has")
                    return 409, "insufficient free gpus"
            self.vms[uid] = {"vm_id": body["name"], "devices": wanted, "key": key,
                             "cluster": cluster}
            self.created += 1
            return 200, self.info(uid)

    def info(self, uid):
        return {"vm_id": self.vms[uid]["vm_id"], "url": "", "uid": uid,
                "cluster": self.vms[uid]["cluster"]}

    def find(self, name):
        if name in self.vms:
            return name
        return next((uid for uid, vm in self.vms.items() if vm["vm_id"] == name), None)

    def destroy(self, name):
        with self.lock:
            uid = self.find(name)
            if uid is None:
                return 404, "vm not found"
            del self.vms[uid]
            self.destroyed += 1
            return 204, None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A caller that was killed is no news."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(http.server.BaseHTTPRequestHandler):
    agent = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.serve()

    def do_POST(self):
        self.serve()

    def do_DELETE(self):
        self.serve()

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def answer(self, status, body):
        text = b"" if body is None else (json.dumps(body) if isinstance(body, dict) else
                                         body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            self.close_connection = True  # whoever asked has been killed

    def serve(self):
        agent = self.agent
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length)
        if len(text) < length:
            return self.hang_up()
        body = json.loads(text) if text else {}
        if agent.cut_off:
            return self.hang_up()
        mood = random.random() if agent.moody and self.path.startswith("/v1/vm") else 1
        if mood < 0.02:
            return self.hang_up()  # before anything happened
        if mood < 0.04:
            return self.answer(500, "out of sorts")
        if mood < 0.06:
            time.sleep(random.random())
        status, answer = self.route(body)
        if 0.06 <= mood < 0.10:
            return self.hang_up()  # it happened, and nobody is told
        return self.answer(status, answer)

    def route(self, body):
        agent, path = self.agent, self.path.partition("?")[0]
        if self.headers.get("Authorization") != f"Bearer {agent.token}":
            return 401, "unauthorized"
        if path in ("/", "/healthz"):
            return 200, {"ok": True, "app_name": "qemu-agent", "version": "0",
                         "features": agent.features}
        if path == "/v1/capacity":
            return 200, agent.capacity()
        if path == "/v1/vm" and self.command == "POST":
            return agent.create(body, self.headers.get("Idempotency-Key"),
                                self.headers.get("X-Fuse-Cluster"))
        if path == "/v1/vm":
            with agent.lock:
                return 200, {"vms": [agent.info(uid) for uid in agent.vms]}
        name = path.split("/")[3]
        if self.command == "DELETE":
            return agent.destroy(name)
        with agent.lock:
            uid = agent.find(name)
            if uid is None:
                return 404, "vm not found"
            if path.endswith("/upload"):
                return 200, {"ok": True}
            if path.endswith("/start-agent"):
                return 200, {"ok": True, "endpoints": []}
            if path.endswith("/job"):
                return 404, "the vm has no job"
            return 200, agent.info(uid)
