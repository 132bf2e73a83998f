"""Health checks: probed in the guest, waited for, shown."""

import json
import unittest

from harness import E2eTest, wait_until

# busybox has a web server, but not in every build: one connection at a time will do.
SERVER = """mkdir -p /srv
cat >/srv/answer <<'END'
#!/bin/sh
read -r line
if [ -e /srv/broken ]; then status='503 Broken'; else status='200 OK'; fi
printf 'HTTP/1.0 %s\\r\\n\\r\\nhello\\n' "$status"
END
chmod +x /srv/answer
sleep 2
while :; do nc -l -p 8080 -e /srv/answer 2>/dev/null || sleep 0.2; done"""


class HealthTest(E2eTest):
    def test_http(self):
        """up --wait-healthy returns when the probe passes, and the verdict is kept current"""
        more = ("healthcheck:\n  http: { port: 8080, path: /healthz }\n  interval: 1s\n"
                "  retries: 2\n  start_period: 1m\n")
        path = self.world.fusefile("web", SERVER, more=more)
        done = self.expect(self.world.fuse("up", path, "--wait-healthy"))
        self.expect_says(done, "wait for its health check")
        [listed] = self.world.environments()
        self.assertEqual(listed["health"]["state"], "passing")
        self.assertNotIn("failures", listed["health"])
        self.expect_says(self.world.fuse("ps"), "HEALTH", "passing")
        # As stock tools read it: compact, state first.
        raw = self.expect(self.world.fuse("exec", "fuse-web", "--", "cat", "/fuse/health.json"))
        self.assertTrue(raw.text.startswith('{"state":"passing","since":"'), raw.text)

        self.expect(self.world.fuse("exec", "fuse-web", "--", "touch", "/srv/broken"))

        def in_guest():
            return json.loads(self.world.fuse("exec", "fuse-web", "--", "cat",
                                              "/fuse/health.json").out)
        wait_until(lambda: in_guest()["state"] == "failing", "the probe fails")
        self.assertIn("503 Broken", in_guest()["message"])
        wait_until(lambda: self.world.environments()[0]["health"]["state"] == "failing",
                   "the orchestrator knows")
        self.expect_says(self.world.fuse("environment", "get", "web"), "failing", "503 Broken")
        self.assertEqual(self.world.environments()[0]["state"], "running")
        self.remove("fuse-web")

    def test_exec(self):
        """up --wait-healthy fails with the probe's last message"""
        more = ("env:\n  WORD: { value: its own }\n"
                "healthcheck:\n  exec: [sh, -c, 'echo not yet, says $WORD; exit 3']\n"
                "  interval: 1s\n  retries: 2\n")
        path = self.world.fusefile("sick", "sleep 1000", more=more)
        done = self.expect(self.world.fuse("up", path, "--wait-healthy"), 1)
        self.expect_says(done, "fuse-sick is not healthy, ", "sh exited with 3: not yet, says "
                         "its own", "fuse rm fuse-sick")
        self.remove("fuse-sick")


if __name__ == "__main__":
    unittest.main(verbosity=2)
