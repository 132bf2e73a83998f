#!/usr/bin/env python3
"""Plays a QEMU for tests of timing and of crash points.

    fake_qemu.py PLAN ARGUMENT...

Takes a QEMU's arguments, makes its two sockets in the current folder, answers
on its monitor, and runs a guest agent as the guest.  PLAN is a JSON file read
at the start:

    agent       the guest agent's program; "" for a guest that says nothing
    roots       folder in which the guest gets its root
    say         a line for stderr
    console     text for the serial log
    exit        ends at once with this status, before any socket is there
    stubborn    ignores quit, SIGTERM and the guest's power-off
    uuid        says this UUID instead of its own
"""

import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys


def options(arguments):
    found = {}
    for i, word in enumerate(arguments):
        if word.startswith("-") and i + 1 < len(arguments):
            found.setdefault(word, []).append(arguments[i + 1])
    return found


def die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Monitor:
    def __init__(self, plan, uuid):
        self.plan = plan
        self.uuid = uuid
        self.forwards = []
        self.buffer = b""
        self.quit = False

    def human(self, line):
        words = line.split()
        if words[0] == "hostfwd_add":
            _, bind, host_port, guest_port = words[2].split(":")
            guest_port = int(guest_port)
            # A real listener, so that a forward that is forgotten is a leak.
            try:
                listener = socket.create_server((bind, int(host_port.rstrip("-"))))
            except OSError:
                return f"could not set up host forwarding rule '{words[2]}'\r\n"
            self.forwards.append((listener, guest_port))
            return ""
        if words == ["info", "usernet"]:
            lines = ["Hub -1 (net0):"]
            for listener, guest_port in self.forwards:
                port = listener.getsockname()[1]
                lines.append(f"  TCP[HOST_FORWARD]  14  127.0.0.1 {port}  10.0.2.15  {guest_port}  0  0")
            return "\r\n".join(lines) + "\r\n"
        return "unknown command\r\n"

    def answer(self, command):
        name = command["execute"]
        if name == "query-uuid":
            return {"UUID": self.plan.get("uuid", self.uuid)}
        if name == "human-monitor-command":
            return self.human(command["arguments"]["command-line"])
        if name == "quit":
            self.quit = not self.plan.get("stubborn")
        return {}

    def receive(self, connection, data):
        self.buffer += data
        while b"\n" in self.buffer:
            line, self.buffer = self.buffer.split(b"\n", 1)
            command = json.loads(line)
            answer = {"return": self.answer(command), "id": command.get("id")}
            connection.sendall(json.dumps(answer).encode() + b"\r\n")


def serve(monitor, listener, guest):
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    if guest is not None:
        selector.register(os.pidfd_open(guest.pid), selectors.EVENT_READ)
    client = None
    while not monitor.quit:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                # One client at a time, as QEMU does it.
                selector.unregister(listener)
                selector.register(client, selectors.EVENT_READ)
                monitor.buffer = b""
                client.sendall(b'{"QMP": {"version": {}, "capabilities": []}}\r\n')
            elif key.fileobj is client:
                try:
                    data = client.recv(65536)
                except ConnectionResetError:
                    data = b""
                if data:
                    monitor.receive(client, data)
                else:
                    selector.unregister(client)
                    client.close()
                    selector.register(listener, selectors.EVENT_READ)
            elif monitor.plan.get("stubborn"):
                selector.unregister(key.fileobj)
            else:
                return  # the guest has powered off


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    found = options(sys.argv[2:])
    uuid = found["-uuid"][0]
    if plan.get("say"):
        print(plan["say"], file=sys.stderr, flush=True)
    with open("serial.log", "a", encoding="utf-8") as console:
        console.write(plan.get("console", ""))
    if "exit" in plan:
        sys.exit(plan["exit"])
    if plan.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    guest = None
    if plan.get("agent"):
        root = os.path.join(plan["roots"], uuid)
        os.makedirs(os.path.join(root, "tmp"), exist_ok=True)
        with open("serial.log", "a", encoding="utf-8") as console:
            guest = subprocess.Popen(
                [plan["agent"], root, os.path.abspath("ch.sock")],
                stdout=console,
                stderr=console,
                preexec_fn=die_with_parent,
            )
    else:
        channel = socket.socket(socket.AF_UNIX)
        channel.bind("ch.sock")
        channel.listen()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("qmp.sock")
    listener.listen()
    serve(Monitor(plan, uuid), listener, guest)
    if guest is not None:
        guest.kill()
        guest.wait()


main()
