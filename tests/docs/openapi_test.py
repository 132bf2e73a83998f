"""What the orchestrator answers is what docs/openapi.json says, of every route."""

import base64
import datetime
import http.client
import json
import secrets
import sys
import urllib.parse

import simulated
import harness
from harness import E2eTest, offline, wait_until

sys.path.insert(0, str(harness.ROOT / "tests/chaos"))
import agent as chaos

DOCUMENT = json.loads((harness.ROOT / "docs/openapi.json").read_text())
HEALTH = {"state": "failing", "since": "2026-01-02T03:04:05Z", "failures": 3, "message": "no"}
UPGRADE = {"Upgrade": "fuse-attach/1", "Connection": "Upgrade"}


def is_tried(operation, status):
    """Whether the test gets that answer: not where it takes trouble with the database, an
    address that is not allowed, an orchestrator without a key, or one that is a host itself."""
    return not (status in ("500", "503") or status == "403" and "x-master" not in operation or
                (operation["operationId"], status) in (("changeEnvironment rotate-token", "501"),
                                                       ("registerHost", "409")))


class Ledger(chaos.SimulatedAgent):
    """An agent with all that a host can have; commands exit with `exit_code`."""

    def __init__(self):
        super().__init__("ledger", "a-token", chaos.FEATURES, Handler)
        self.moody, self.exit_code = False, 0
        self.job = {"phase": "run", "state": "running", "step": 1, "steps": 1, "step_name": "b",
                    "started_at": "2026-01-02T03:04:05Z", "log_bytes": 3}

    def capacity(self):
        instance = {"uuid": "MIG-1", "profile": "1g.10gb", "kind": "a100",
                    "parent_gpu_uuid": "GPU-sliced"}
        return super().capacity() | {"mig_instances": [instance], "mig_profiles": {"1g.10gb": 1}}

    def stop(self):
        self.job |= {"phase": "done", "state": "exited", "exit_code": 143, "signal": 15,
                     "reason": "stopped", "finished_at": "2026-01-02T03:04:06Z"}


class Handler(chaos.Handler):
    """Has a job for every VM, prints its health whatever the command, ends terminals at once."""

    def serve(self):
        if "/attach" not in self.path:
            return super().serve()
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "fuse-attach/1")
        self.end_headers()
        payload = b'{"exit_code":0}'
        self.wfile.write(bytes([4, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload)
        self.close_connection = True
        return None

    def route(self, body):
        path = self.path.partition("?")[0]
        if path.endswith("/exec"):
            text = base64.b64encode(json.dumps(HEALTH).encode()).decode()
            return 200, {"exit_code": self.agent.exit_code, "stdout": text, "stderr": ""}
        if path.endswith("/start-agent"):
            return 200, {"ok": True, "endpoints": [
                {"as": "web", "url": "127.0.0.1:8000", "port": 80, "host_port": 8000}]}
        if path.endswith("/job"):
            if "action=stop" in self.path:
                self.agent.stop()
            return 200, self.agent.job
        return (200, "log") if path.endswith("/logs") else super().route(body)


def operations():
    """(path, method, action, operation) of every route."""
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            if method == "parameters":
                continue
            for action, part in operation.get("x-actions", {"": operation}).items():
                name = operation["operationId"] + (f" {action}" if action else "")
                yield path, method.upper(), action, {**operation, **part, "operationId": name}


@offline
class OpenApiTest(E2eTest):
    def setUp(self):
        super().setUp()
        try:
            import jsonschema
        except ImportError:
            print("SKIPPED: there is no python3-jsonschema")
            self.skipTest("no jsonschema")
        self.formats = jsonschema.FormatChecker(())
        self.formats.checks("date-time", raises=ValueError)(datetime.datetime.fromisoformat)
        self.validator = jsonschema.Draft202012Validator

    def begin(self):
        self.world.environment["TOKEN_ENCRYPTION_KEY"] = secrets.token_hex(32)
        self.fleet = simulated.Fleet(self)
        self.ledger = Ledger()
        self.addCleanup(self.ledger.close)
        self.seen = set()

    def send(self, method, path, body, headers, token):
        line = http.client.HTTPConnection(urllib.parse.urlsplit(self.fleet.url).netloc,
                                          timeout=harness.PATIENCE)
        try:
            if token:
                headers = {"Authorization": f"Bearer {token}", **headers}
            line.request(method, path, body if isinstance(body, (bytes, type(None)))
                         else json.dumps(body), headers)
            answer = line.getresponse()
            upgraded = answer.status == 101
            return answer.status, answer.headers, b"" if upgraded else answer.read()
        finally:
            line.close()

    def call(self, method, pattern, body=None, *, action="", query="", token=None, headers=None,
             status=200, **ids):
        """The answer to a call, which has to be of that status and as the document says."""
        operation, = (entry[3] for entry in operations() if entry[:3] == (pattern, method, action))
        words = ([f"action={action}"] if action else []) + ([query] if query else [])
        path = pattern.format(**ids) + ("?" + "&".join(words) if words else "")
        token = self.fleet.token if token is None else token
        got, head, text = self.send(method, path, body, headers or {}, token)
        what = f"{method} {path}: {got} {text[:2000]!r}"
        self.assertEqual(got, status, what)
        self.assertIn(str(got), operation["responses"], what)
        self.seen.add((operation["operationId"], str(got)))
        response = operation["responses"][str(got)]
        if "$ref" in response:
            response = DOCUMENT["components"]["responses"][response["$ref"].rpartition("/")[2]]
        for name in response.get("headers", {}):
            if name != "Preference-Applied":
                self.assertIn(name, head, what)
        return self.checked(response.get("content", {}), head, text, what)

    def checked(self, content, head, text, what):
        if not content:
            return self.assertEqual(text, b"", what)
        kind = head["Content-Type"].partition(";")[0]
        self.assertIn(kind, content, what)
        if kind == "application/octet-stream":
            return text
        if kind == "text/event-stream":
            found = [json.loads(line.partition(":")[2]) for line in text.decode().splitlines()
                     if line.startswith("data:")]
        else:
            found = [json.loads(text) if kind == "application/json" else text.decode()]
        schema = {**content[kind]["schema"], "components": DOCUMENT["components"]}
        for value in found:
            problems = [f"{list(problem.absolute_path)}: {problem.message}" for problem in
                        self.validator(schema, format_checker=self.formats).iter_errors(value)]
            self.assertEqual(problems, [], what)
        return found if kind == "text/event-stream" else found[0]

    def register(self, id, url, token, status=201):
        return self.call("POST", "/v1/hosts", {
            "id": id, "url": url, "token": token, "backend": "qemu", "labels": {"a": "b"},
            "region": "here", "capacity": {"vm_count": 16}}, status=status)

    def make(self, task, status=201, headers=None, **more):
        return self.call("POST", "/v1/environments",
                         {"task_id": task, "spec": {"image": "micro"}, **more}, headers=headers,
                         status=status)

    def test_schemas(self):
        """the schemas of the document are schemas, and its references lead somewhere"""
        def references(value):
            if isinstance(value, dict):
                yield from [value["$ref"]] if "$ref" in value else []
                value = list(value.values())
            for part in value if isinstance(value, list) else []:
                yield from references(part)
        for schema in DOCUMENT["components"]["schemas"].values():
            self.validator.check_schema(schema)
        named = set(references(DOCUMENT))
        there = {f"#/components/{kind}/{name}" for kind, part in DOCUMENT["components"].items()
                 for name in part if kind != "securitySchemes"}
        self.assertEqual(named, there)

    def test_every_answer(self):
        """every route answers as the document says, with no field that it does not know"""
        self.begin()
        self.open_routes()
        self.hosts()
        self.environments()
        self.keys()
        self.refusals()
        listed = {(operation["operationId"], status) for *_, operation in operations()
                  for status in operation["responses"] if is_tried(operation, status)}
        self.assertEqual(listed - self.seen, set())

    def open_routes(self):
        for path in ("/health", "/ready", "/metrics", "/v1/version"):
            self.call("GET", path, token="")
        self.assertEqual(self.call("GET", "/openapi.json", token=""), DOCUMENT)
        self.call("POST", "/login", {"token": self.fleet.token}, token="", status=204)
        self.call("POST", "/login", {"token": "wrong"}, token="", status=401)
        self.call("POST", "/login", b"{", token="", status=400)
        self.call("POST", "/logout", token="", status=204)

    def hosts(self):
        self.register("real", self.fleet.agent_url, self.fleet.agent_token)
        self.call("DELETE", "/v1/hosts/{hostId}", hostId="real", status=204)
        self.register("ledger", self.ledger.url, "wrong", status=502)
        self.call("POST", "/v1/hosts", {"id": "x"}, status=400)
        self.register("ledger", self.ledger.url, "a-token")
        for action in ("cordon", "drain", "uncordon"):
            self.call("POST", "/v1/hosts/{hostId}", action=action, hostId="ledger", status=204)
        page = self.call("GET", "/v1/hosts", query="limit=1")
        self.assertEqual(len(page["hosts"]), 1)
        self.call("GET", "/v1/hosts", query="cursor=%25", status=400)
        self.call("GET", "/v1/hosts/{hostId}", hostId="ledger")
        self.call("POST", "/v1/placements/explain", b"{", status=400)
        for spec in ({"gpus": 1}, {"gpus": 5, "gpu_kind": "h100"}):
            explained = self.call("POST", "/v1/placements/explain", {"spec": spec})
            self.assertEqual(explained["fits"], spec["gpus"] == 1)

    def environments(self):
        one = "/v1/environments/{vmId}"
        made = self.make("job", phases={"build": [{"name": "b", "script": "true"}],
                                        "run": {"script": "true"}},
                         spec={"gpus": 1, "cpus": 2}, expose=[{"port": 80, "as": "web"}],
                         healthcheck={"exec": ["true"]})
        id, uid = made["id"], made["uid"]
        self.assertTrue({"job", "endpoints", "gpu_device_uuids"} <= set(made), made)
        self.make("job", status=409)
        self.make("", status=400)
        self.make("seeded", status=501, seed_snapshot_id="s")
        self.make("pinned", status=404, spec={"host_id": "nowhere"})
        self.make("large", status=503, spec={"cpus": 9999})
        sliced = self.make("sliced", spec={"gpus": 1, "gpu_profile": "1g.10gb"})
        self.assertIn("mig_instance_uuids", sliced)
        self.make("later", headers={"Prefer": "respond-async"})
        self.call("GET", "/v1/environments", query="limit=1")
        self.call("GET", "/v1/environments", query="cursor=%25", status=400)
        self.call("GET", one, vmId=id)
        for action, body, status in (
                ("exec", {"cmd": ["ls"]}, 200), ("exec", {}, 400), ("stop", None, 204),
                ("rotate-token", None, 204), ("fork", {}, 409)):
            self.call("POST", one, body, action=action, vmId=id, status=status)
        self.call("POST", f"{one}/snapshots", {}, vmId=id, status=409)
        wait_until(lambda: self.call("GET", one, vmId=id)["job"]["state"] == "exited",
                   "the job has ended")
        wait_until(lambda: self.call("GET", one, vmId=id).get("health") == HEALTH,
                   "its health is known")
        self.call("GET", f"{one}/logs", vmId=id)
        self.call("GET", f"{one}/logs", query="tail=x", vmId=id, status=400)
        self.call("GET", f"{one}/attach", query="tty=1", headers=UPGRADE, vmId=id, status=101)
        self.call("GET", f"{one}/attach", query="tty=1", vmId=id, status=400)
        self.call("DELETE", "/v1/hosts/{hostId}", hostId="ledger", status=409)
        self.draining(one)
        self.call("DELETE", one, vmId=id, status=204)
        self.call("GET", one, query="include=ended", vmId=uid)
        events = self.call("GET", f"{one}/events", query="kinds=state,step,job", vmId=uid)
        self.assertEqual({event["event"] for event in events}, {"state", "step", "job"})

    def draining(self, one):
        """One without GPUs or a job, which then no longer runs."""
        id = self.make("plain")["id"]
        for path, action in ((one, "fork"), (f"{one}/snapshots", "")):
            self.call("POST", path, {}, action=action, vmId=id, status=501)
        self.call("POST", one, action="stop", vmId=id, status=409)
        self.call("POST", one, action="drain", vmId=id)
        for action in ("exec", "drain", "rotate-token"):
            self.call("POST", one, {"shell": "true"}, action=action, vmId=id, status=409)
        self.call("GET", f"{one}/attach", query="tty=1", headers=UPGRADE, vmId=id, status=409)
        id = self.make("deaf")["id"]
        self.ledger.exit_code = 1
        self.call("POST", one, action="drain", vmId=id, status=500)

    def keys(self):
        made = self.call("POST", "/v1/api-keys", {"label": "l"}, status=201)
        self.key = self.call("POST", "/v1/api-keys", status=201)["key"]
        self.call("POST", "/v1/api-keys", b"[]", status=400)
        self.call("GET", "/v1/environments", token=made["key"])
        self.call("DELETE", "/v1/api-keys/{id}", id=made["id"], status=204)
        listed = self.call("GET", "/v1/api-keys")["api_keys"]
        self.assertTrue(any("revoked_at" in key for key in listed))

    def refusals(self):
        """What every route of a kind refuses."""
        nobody = {"vmId": "none", "hostId": "none", "id": "none"}
        sizes = {"/login": 4 << 10, "/v1/environments": 1 << 20}
        for path in ("/v1/environments/{vmId}", "/v1/hosts/{hostId}"):
            told = DOCUMENT["paths"][path]["post"]["responses"]
            status, _, _ = self.send("POST", path + "?action=dance", {}, {}, self.fleet.token)
            self.assertEqual((status, "400" in told), (400, True))
        for path, method, action, operation in operations():
            anyone = operation.get("security") == []
            master = operation.get("x-master", False)

            def refused(status, body=None, **more):
                self.call(method, path, body, action=action, status=status, **nobody, **more)
            if not anyone:
                refused(401, token="")
            if master:
                refused(403, token=self.key)
            if "404" in operation["responses"] and "{" in path:
                refused(404, {"cmd": ["ls"]} if method == "POST" else None,
                        query="tty=1" if path.endswith("attach") else "",
                        headers=UPGRADE if path.endswith("attach") else None)
            if "413" in operation["responses"]:
                size = next((sizes[start] for start in sizes if path.startswith(start)), 64 << 10)
                refused(413, b" " * (size + 1))


if __name__ == "__main__":
    harness.main()
