"""Three replicas on one PostgreSQL, three agents, many clients, and trouble.

Clients create and destroy environments for a while; replicas are killed, agents cut
off, the database is stopped.  When all is quiet again every environment must be
accounted for: what clients were told is true, the agents' ledgers hold exactly the
live environments, and no device was ever given to two.

    python3 tests/chaos/chaos_test.py POSTGRES-DIR [SECONDS [SEED]]

FUSE_BIN is the executable; POSTGRES-DIR that of tests/postgres/server.
"""

import http.client
import json
import os
import pathlib
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import agent

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUSE = os.environ.get("FUSE_BIN") or str(ROOT / "build/fuse")
CLIENTS = 6
SETTLE = 240


class NoAnswer(Exception):
    """Nobody knows what became of a call."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Replica:
    def __init__(self, folder, number, environment):
        self.port, self.environment = free_port(), environment
        self.log = folder / f"replica-{number}.log"
        self.kills = 0
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [FUSE, "orchestrator", "serve", "--listen", f"127.0.0.1:{self.port}"],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self):
        self.kills += 1
        self.process.kill()
        self.process.wait()
        self.start()

    def keep_alive(self):
        """One that gave up while the database was away is started again, as a service is."""
        if self.process.poll() is not None:
            self.start()

    def call(self, method, path, body=None, timeout=90):
        """Status and JSON of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": f"Bearer {self.environment['ORCH_AUTH_TOKEN']}"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(str(error)) from error
        finally:
            connection.close()


class Chaos:
    def __init__(self, folder, server, seconds):
        self.server, self.seconds = server, seconds
        self.agents = [agent.SimulatedAgent(f"h{n}", secrets.token_hex(8), agent.FEATURES)
                       for n in range(3)]
        uri = (pathlib.Path(server) / "uri").read_text().strip()
        schema = f"chaos_{secrets.token_hex(4)}"
        subprocess.run(["psql", "--quiet", uri, "-c", f"CREATE SCHEMA {schema}"], check=True,
                       stdout=subprocess.DEVNULL)
        self.uri = f"{uri}&options=-csearch_path%3D{schema}"
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder),
                       "DATABASE_URL": self.uri,
                       "ORCH_AUTH_TOKEN": secrets.token_hex(16),
                       "TOKEN_ENCRYPTION_KEY": secrets.token_hex(32)}
        self.replicas = [Replica(folder, n, environment) for n in range(3)]
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.problems = []
        self.kept = set()
        self.counts = {"created": 0, "refused": 0, "unknown": 0, "destroyed": 0}

    def note(self, what):
        with self.lock:
            self.problems.append(what)

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def ask(self, method, path, body=None, patience=SETTLE):
        """Asks one replica after another until one answers and has its database."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            try:
                status, answer = random.choice(self.replicas).call(method, path, body)
                if status < 500:
                    return status, answer
            except NoAnswer:
                pass
            time.sleep(0.2)
        raise AssertionError(f"{method} {path}: nobody answers")

    def register(self):
        for one in self.agents:
            status, answer = self.ask("POST", "/v1/hosts", {
                "id": one.name, "url": one.url, "token": one.token, "backend": "qemu",
                "capacity": {"vm_count": 64}})
            if status != 201:
                raise AssertionError(f"register: {status} {answer}")

    def gone(self, vm):
        """Destroys it, until somebody says that it is gone."""
        end = time.monotonic() + SETTLE
        while time.monotonic() < end:
            try:
                status, _ = random.choice(self.replicas).call("DELETE", f"/v1/environments/{vm}")
                if status in (204, 404):
                    return
            except NoAnswer:
                pass
            time.sleep(0.2)
        self.note(f"{vm} could not be destroyed")

    def client(self, number):
        turn = 0
        while not self.stop.is_set():
            turn += 1
            task = f"c{number}-{turn}"
            vm = f"fuse-{task}"
            spec = {"cpus": 1, "gpus": random.choice([0, 1, 1, 2])}
            try:
                status, answer = random.choice(self.replicas).call(
                    "POST", "/v1/environments", {"task_id": task, "spec": spec})
            except NoAnswer:
                self.count("unknown")
                self.gone(vm)
                continue
            if status == 201:
                self.count("created")
                if random.random() < 0.1:
                    with self.lock:
                        self.kept.add(vm)
                    continue
                time.sleep(random.random() * 0.3)
                self.gone(vm)
                self.count("destroyed")
            else:
                # Refused means that there is nothing, or nothing before long.
                self.count("refused")
                self.expect_nothing(vm, f"{status} {answer}")

    def expect_nothing(self, vm, said):
        end = time.monotonic() + SETTLE
        while time.monotonic() < end:
            status, _ = self.ask("GET", f"/v1/environments/{vm}")
            if status == 404:
                return
            time.sleep(0.5)
        self.note(f"{vm} is there although its create was refused: {said}")

    def trouble(self):
        while not self.stop.wait(random.uniform(0.2, 1.2)):
            kind = random.random()
            if kind < 0.45:
                random.choice(self.replicas).kill()
            elif kind < 0.85:
                one = random.choice(self.agents)
                one.cut_off = True
                self.stop.wait(random.uniform(0.5, 4))
                one.cut_off = False
            else:
                subprocess.run([str(ROOT / "tests/postgres/server"), "restart", self.server],
                               check=True, stdout=subprocess.DEVNULL)
            for replica in self.replicas:
                replica.keep_alive()

    def run(self):
        self.register()
        clients = [threading.Thread(target=self.client, args=(n,)) for n in range(CLIENTS)]
        trouble = threading.Thread(target=self.trouble)
        for thread in (*clients, trouble):
            thread.start()
        time.sleep(self.seconds)
        self.stop.set()
        trouble.join()
        for one in self.agents:
            one.cut_off = one.moody = False
        for replica in self.replicas:
            replica.keep_alive()
        for thread in clients:
            thread.join()
        self.settle()

    def environments(self):
        found, cursor = {}, ""
        while True:
            status, page = self.ask("GET", f"/v1/environments?limit=200&cursor={cursor}")
            if status != 200:
                raise AssertionError(f"list: {status} {page}")
            for one in page["environments"]:
                found[one["id"]] = one
            cursor = page.get("next_cursor", "")
            if not cursor:
                return found

    def differences(self):
        """What is not as it has to be once everything is quiet."""
        found = self.environments()
        out = []
        if set(found) != self.kept:
            out.append(f"environments that are too many: {set(found) - self.kept}, "
                       f"that are missing: {self.kept - set(found)}")
        live = {one["uid"]: one for one in found.values()}
        held = {}
        for one in self.agents:
            with one.lock:
                for uid, vm in one.vms.items():
                    held[uid] = (one.name, sorted(vm["devices"]))
        for uid in set(held) ^ set(live):
            out.append(f"{uid} is {'an orphan on ' + held[uid][0] if uid in held else 'without vm'}")
        for uid in set(held) & set(live):
            said = (live[uid]["host_id"], sorted(live[uid].get("gpu_device_uuids", [])))
            if said != held[uid] or live[uid]["state"] != "running":
                out.append(f"{live[uid]} is not what its host has: {held[uid]}")
        return out

    def settle(self):
        end = time.monotonic() + SETTLE
        while (left := self.differences()) and time.monotonic() < end:
            time.sleep(2)
        self.problems += left
        for one in self.agents:
            self.problems += [f"{one.name}: {what}" for what in one.violations]

    def explain(self):
        """The problems, and what they are to be understood from."""
        for problem in self.problems:
            print("PROBLEM", problem)
        print(f"at {time.time():.0f} the operations are", flush=True)
        subprocess.run(["psql", "--expanded", self.uri, "-c", "SELECT * FROM operations"],
                       check=False)
        for replica in self.replicas:
            print(f"--- {replica.log.name}")
            lines = replica.log.read_text(errors="replace").splitlines()
            print("\n".join([line for line in lines if " info " not in line][-20:]))

    def close(self):
        for replica in self.replicas:
            replica.process.send_signal(signal.SIGTERM)
        for replica in self.replicas:
            code = replica.process.wait(90)
            if code != 0:
                self.problems.append(f"a replica ended with {code}")
                print("PROBLEM", self.problems[-1])
        for one in self.agents:
            one.close()


def main():
    server, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 45
    if not (pathlib.Path(server) / "uri").exists():
        print("skipped: PostgreSQL is not installed (apt-get install postgresql)")
        return 77
    seed = sys.argv[3] if len(sys.argv) > 3 else secrets.token_hex(4)
    random.seed(seed)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fz-chaos-") as name:
        chaos = Chaos(pathlib.Path(name), server, seconds)
        well = False
        try:
            chaos.run()
            well = not chaos.problems
        finally:
            if not well:
                chaos.explain()
            chaos.close()
    print({**chaos.counts, "kept": len(chaos.kept),
           "replica kills": sum(replica.kills for replica in chaos.replicas),
           "vms": sum(one.created for one in chaos.agents)})
    if not chaos.problems and chaos.counts["created"] < 20:
        print("PROBLEM too little happened to say anything")
        return 1
    return 1 if chaos.problems else 0


if __name__ == "__main__":
    sys.exit(main())
