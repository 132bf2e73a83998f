"""What the product says of GPU jobs, a test for each statement.

Placing is tried on the simulated machine, whose agent is this program's; what is sent to
an agent, on one that only keeps a ledger.
"""

import json
import sys
import urllib.error
import urllib.request

import simulated
import harness
from harness import E2eTest, offline

sys.path.insert(0, str(harness.ROOT / "tests/chaos"))
import agent as chaos

SLICED_CARD = "0000:47:00.0"


class LedgerAgent(chaos.SimulatedAgent):
    """Two whole cards, and a third one in two instances when it is said so."""

    def __init__(self, name, token, lists_instances):
        super().__init__(name, token, chaos.FEATURES)
        self.moody = False
        self.bodies = []
        self.instances = [
            {"uuid": f"MIG-{name}-{n}", "profile": "1g.10gb", "kind": "a100",
             "parent_gpu_uuid": "GPU-sliced"} for n in range(2)] if lists_instances else []

    def capacity(self):
        known = super().capacity()
        known["gpu_devices"] = known["gpu_devices"][:2]
        for number, device in enumerate(known["gpu_devices"]):
            device["index"] = number
        known["gpus"] = 2
        if self.instances:
            known |= {"mig_instances": self.instances, "mig_profiles": {"1g.10gb": 2}}
        return known

    def create(self, body, key, cluster):
        with self.lock:
            self.bodies.append(body)
            self.vms[body["uid"]] = {"vm_id": body["name"], "key": key, "cluster": cluster,
                                     "devices": body.get("gpu_device_uuids", [])}
            return 200, self.info(body["uid"])


@offline
class GpuStatementTest(E2eTest):
    def write(self, *lines):
        text = "version: 1\nname: job\nimage: micro\nrun: \"true\"\n"
        if lines:
            text += "resources:\n" + "".join(f"  {line}\n" for line in lines)
        return self.world.write("Fusefile", text)

    def connect(self, fleet):
        self.fleet = fleet
        self.expect(self.world.fuse("connect", fleet.url, "--master", "--token", fleet.token))

    def register(self, name, url, token, *more):
        return self.expect(self.world.fuse("host", "register", name, "--url", url, "--token", token,
                                           *more))

    def explained(self, *lines):
        """Where a file would go, or the code of what the first host lacks."""
        done = self.world.fuse("explain", "-o", "json", self.write(*lines))
        answer = done.json()
        self.assertEqual(done.code, 0 if answer["fits"] else 3, str(done))
        return answer.get("host_id") or answer["hosts"][0]["reasons"][0]["code"]

    def call(self, method, path, body=None):
        """Status and JSON of a call that no client of ours makes."""
        request = urllib.request.Request(
            self.fleet.url + path, method=method, data=body and json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.fleet.token}"})
        try:
            with urllib.request.urlopen(request, timeout=harness.PATIENCE) as answer:
                return answer.status, json.loads(answer.read() or "null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())


class FileTest(GpuStatementTest):
    """What is said of Fusefiles, without anybody to send them to."""

    def problems(self, *lines):
        done = self.world.fuse("validate", "-o", "json", self.write(*lines))
        return [problem["code"] for problem in done.json()["errors"]]

    def test_fraction(self):
        """there is no fraction of a gpu"""
        for count in ("0.5", "1.5", "1/2", "half"):
            self.assertEqual(self.problems(f"gpu: {count}"), ["F012"], count)
        self.assertEqual(self.problems("gpu: 1"), [])

    def test_all_at_once(self):
        """validate, compile and up name all mistakes about gpus at once, and ask nobody"""
        path = self.write("gpu: -1", "gpu_kind: rtx4090", "gpu_profile: 9g.1gb")
        self.assertEqual(set(self.problems("gpu: -1", "gpu_kind: rtx4090", "gpu_profile: 9g.1gb")),
                         {"F030", "F031", "F033"})
        for command in ("validate", "compile", "up"):
            done = self.world.fuse(command, path, env={"FUSE_URL": "http://127.0.0.1:1"})
            self.expect(done, 1)
            self.expect_says(done, "resources.gpu:", "9g.1gb", "rtx4090")
        self.assertEqual(self.problems("gpu_profile: 1g.10gb"), ["F032"])

    def test_profile_grammar(self):
        """a profile is slices, memory and perhaps +me, in any case, and sent in lower case"""
        for profile in ("1g.10gb", "3g.20gb", "7g.80gb", "1g.10gb+me", "1G.10GB"):
            path = self.write("gpu: 1", f"gpu_profile: {profile}")
            spec = self.expect(self.world.fuse("compile", "--only", "spec", path)).json()
            self.assertEqual(spec["gpu_profile"], profile.lower())
        for profile in ("0g.10gb", "8g.80gb", "1g", "g.10gb", "1g.gb", "1g10gb", "1g.10gb+xx",
                        "whole"):
            self.assertEqual(self.problems("gpu: 1", f"gpu_profile: {profile}"), ["F031"], profile)

    def test_kinds_without_mig(self):
        """kinds that are known to have no mig are refused with a profile, unknown ones pass"""
        known = ("v100", "t4", "p100", "p40", "k80", "rtx", "gtx", "titan", "l4", "l40", "l40s",
                 "rtx4090", "Tesla-V100", "GTX-1080")
        for kind in known:
            lines = "gpu: 1", f"gpu_kind: {kind}", "gpu_profile: 1g.10gb"
            self.assertEqual(self.problems(*lines), ["F033"], kind)
            self.assertEqual(self.problems(*lines[:2]), [], kind)
        for kind in ("a100", "h100", "x900", '""'):
            self.assertEqual(self.problems("gpu: 1", f"gpu_kind: {kind}", "gpu_profile: 1g.10gb"),
                             [], kind)


class MachineTest(GpuStatementTest):
    """What is said of hosts, on the simulated machine."""

    def setUp(self):
        super().setUp()
        self.machine = simulated.add_machine(self)
        self.connect(simulated.Fleet(self, self.machine))

    def on_machine(self, *words):
        code, out, err = self.machine.fuse("agent", *words)
        self.assertEqual(code, 0, out + err)
        return out

    def enter(self, *more):
        return self.register("gpu-1", self.fleet.agent_url, self.fleet.agent_token, "--backend",
                             "qemu", *more)

    def carve(self):
        self.on_machine("mig", "apply", "--gpu", SLICED_CARD, "--profile", "1g.5gb=1",
                        "--profile", "2g.10gb=1")

    def test_register(self):
        """a gpu host is registered with its count, its kind and how many vms it may have"""
        self.on_machine("bind")
        self.enter("--gpus", "1", "--gpu-kind", "a100", "--max-vms", "4")
        host = self.expect(self.world.fuse("host", "get", "gpu-1", "-o", "json")).json()
        capacity = host.get("host", host)["capacity"]
        self.assertEqual((capacity["gpus"], capacity["gpu_kind"], capacity["vm_count"]),
                         (1, "a100", 4))

    def test_kind(self):
        """gpu_kind is a part of a device's model in any case, and may be left out"""
        self.on_machine("bind")
        self.enter()
        for kind in ("a100", "A100", "a100-sxm4", "NVIDIA"):
            self.assertEqual(self.explained("gpu: 1", f"gpu_kind: {kind}"), "gpu-1", kind)
        self.assertEqual(self.explained("gpu: 1"), "gpu-1")
        self.assertEqual(self.explained("gpu: 1", "gpu_kind: h100"), "gpu-kind")

    def test_whole_group(self):
        """a card goes with every function of its iommu group, its sound chip included"""
        self.on_machine("bind")
        bound = json.loads(self.on_machine("bind", "--list", "-o", "json"))["groups"]
        slots = [group["slots"] for group in bound]
        self.assertIn(["0000:0f:00.0", "0000:0f:00.1"], slots)

    def test_count_of_units(self):
        """gpu counts cards, and with a profile instances"""
        self.on_machine("bind")
        self.enter()
        self.assertEqual(self.explained("gpu: 2"), "gpu-1")
        self.assertEqual(self.explained("gpu: 3"), "gpu-count")
        self.assertEqual(self.explained("gpu: 1", "gpu_profile: 1g.5gb"), "mig-profile")

    def test_probed_instances(self):
        """a host that was carved needs no count of its instances to be registered"""
        self.carve()
        self.enter("--gpu-kind", "a100", "--max-vms", "8")
        for profile in ("1g.5gb", "2g.10gb"):
            self.assertEqual(self.explained("gpu: 1", f"gpu_profile: {profile}"), "gpu-1")
            self.assertEqual(self.explained("gpu: 2", f"gpu_profile: {profile}"), "mig-busy")

    def test_kind_of_instances(self):
        """a request for instances of a kind goes to no host without a card of that kind"""
        self.carve()
        self.enter()
        wanted = "gpu: 1", "gpu_profile: 1g.5gb"
        self.assertEqual(self.explained(*wanted), "gpu-1")
        self.assertEqual(self.explained(*wanted, "gpu_kind: a100"), "gpu-1")
        self.assertEqual(self.explained(*wanted, "gpu_kind: h100"), "gpu-kind")

    def test_never_carved_by_a_request(self):
        """a profile that nobody carved is a refusal to place, and carves nothing"""
        self.carve()
        self.on_machine("bind")
        self.enter()
        before = self.on_machine("mig", "list")
        path = self.write("gpu: 1", "gpu_profile: 3g.20gb")
        self.expect(self.world.fuse("validate", path))
        refused = self.expect(self.world.fuse("up", path), 3)
        self.expect_says(refused, "3g.20gb mig instance")
        self.assertEqual(self.on_machine("mig", "list"), before)

    def test_scripts(self):
        """the scripts that operators know bind cards and carve instances"""
        scripts, fuse = harness.ROOT / "scripts", {"FUSE_BIN": str(self.machine.bin / "fuse")}
        for script, words, says in (
                ("qemu-mig-setup.sh", ["--gpu", SLICED_CARD, "--profile", "1g.5gb=1"], "1g.5gb "),
                ("qemu-mig-setup.sh", ["--list"], SLICED_CARD),
                ("qemu-vfio-bind.sh", [], "0000:0f:00.0: bound"),
                ("qemu-vfio-bind.sh", ["--list"], "vfio-pci")):
            process = self.world.start(*words, program=str(scripts / script), env=fuse)
            out, err = process.communicate(timeout=harness.PATIENCE)
            self.assertEqual(process.returncode, 0, err.decode())
            self.assertIn(says, out.decode(), script)

    def test_rules_of_the_orchestrator(self):
        """a caller without a Fusefile meets the same rules about gpus, as a 400"""
        wrong = {"gpus": 0, "gpu_profile": "9g.1gb", "gpu_kind": "T4"}
        status, answer = self.call("POST", "/v1/environments", {"task_id": "t", "spec": wrong})
        self.assertEqual((status, answer["error"]["code"]), (400, "invalid_argument"))
        for part in ("spec.gpu_profile: invalid MIG profile", "spec.gpus >= 1", "T4"):
            self.assertIn(part, answer["error"]["message"])
        status, _ = self.call("POST", "/v1/environments", {"task_id": "t", "spec": {"gpus": -1}})
        self.assertEqual(status, 400)


class LedgerTest(GpuStatementTest):
    """What is said of what a host's agent is told."""

    def ledger(self, name="gpu-1", lists_instances=True, more=("--backend", "qemu")):
        ledger = LedgerAgent(name, "a-token", lists_instances)
        self.addCleanup(ledger.close)
        self.register(name, ledger.url, ledger.token, "--max-vms", "4", *more)
        return ledger

    def setUp(self):
        super().setUp()
        self.connect(simulated.Fleet(self))

    def make(self, task, **spec):
        """An environment that runs."""
        status, answer = self.call("POST", "/v1/environments",
                                   {"task_id": task, "spec": {"image": "micro", **spec}})
        self.assertEqual((status, answer.get("state")), (201, "running"), answer)
        return answer

    def allocated(self):
        return self.call("GET", "/v1/hosts/gpu-1")[1]["allocated"]

    def test_backend(self):
        """work without gpus goes to the usual backend, a gpu to qemu, and no file says so"""
        self.ledger("plain", more=())
        self.ledger()
        self.assertEqual(self.explained(), "plain")
        self.assertEqual(self.explained("gpu: 1"), "gpu-1")

    def test_bound_instance(self):
        """an environment is bound to an instance, and its agent is told which"""
        ledger = self.ledger()
        made = self.make("one", gpus=1, gpu_profile="1g.10gb")
        bound = made["mig_instance_uuids"]
        self.assertEqual(len(bound), 1)
        self.assertEqual(ledger.bodies[-1]["mig_instance_uuids"], bound)
        other = self.make("two", gpus=1, gpu_profile="1g.10gb")["mig_instance_uuids"]
        self.assertNotEqual(other, bound)
        shown = self.expect(self.world.fuse("host", "get", "gpu-1")).text
        self.assertRegex(shown, rf"{bound[0]} .* {made['id']}\n")

    def test_pools(self):
        """instances and whole cards are apart: neither request takes from the other's"""
        self.ledger()
        self.make("slice", gpus=2, gpu_profile="1g.10gb")
        self.assertEqual(self.allocated().get("gpus", 0), 0)
        whole = self.make("whole", gpus=2)
        self.assertEqual(len(whole["gpu_device_uuids"]), 2)
        self.assertNotIn("mig_instance_uuids", whole)
        self.assertEqual(len(self.allocated()["mig_instance_uuids"]), 2)
        self.assertEqual(self.explained("gpu: 1"), "gpu-count")
        self.assertEqual(self.explained("gpu: 1", "gpu_profile: 1g.10gb"), "mig-busy")

    def test_declared_profiles(self):
        """a host that lists no instances is counted by what was declared, and its agent picks"""
        ledger = self.ledger(lists_instances=False,
                             more=("--backend", "qemu", "--mig-profile", "1g.10gb=2"))
        self.make("one", gpus=2, gpu_profile="1g.10gb")
        body = ledger.bodies[-1]
        self.assertEqual((body["gpus"], body["gpu_profile"]), (2, "1g.10gb"))
        self.assertNotIn("mig_instance_uuids", body)
        self.assertEqual(self.explained("gpu: 1", "gpu_profile: 1g.10gb"), "mig-busy")

    def test_registered_kind(self):
        """where devices have no models, gpu_kind is the kind that the host was registered with"""
        ledger = LedgerAgent("bare", "a-token", False)
        self.addCleanup(ledger.close)
        ledger.devices = []
        self.register("bare", ledger.url, ledger.token, "--backend", "qemu", "--gpus", "2",
                      "--gpu-kind", "a100")
        self.assertEqual(self.explained("gpu: 2", "gpu_kind: A100"), "bare")
        self.assertEqual(self.explained("gpu: 2"), "bare")
        self.assertEqual(self.explained("gpu: 1", "gpu_kind: h100"), "gpu-kind")

    def test_no_snapshots(self):
        """snapshots and forks of an environment with a card or an instance are refused in words"""
        ledger = self.ledger()
        for task, spec in (("card", {"gpus": 1}), ("slice", {"gpus": 1, "gpu_profile": "1g.10gb"})):
            id = self.make(task, **spec)["id"]
            for path in (f"/v1/environments/{id}/snapshots", f"/v1/environments/{id}?action=fork"):
                status, answer = self.call("POST", path, {})
                self.assertEqual((status, answer["error"]["code"]), (409, "conflict"), path)
                self.assertIn("not supported for gpu environments", answer["error"]["message"])
        self.assertEqual(len(ledger.bodies), 2)


if __name__ == "__main__":
    harness.main()
