"""Services of a Fusefile, in an image that can run containers."""

import hashlib
import io
import json
import subprocess
import tarfile
import unittest

import harness
from harness import E2eTest, IMAGES

# A server without a C library: its image is small enough for `copy`.
SERVER = r"""
typedef unsigned long word;
static long call(word n, word a, word b, word c, word d, word e) {
  register word r10 __asm__("r10") = d;
  register word r8 __asm__("r8") = e;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}
void _start(void) {
  static const char answer[] = "HTTP/1.0 200 OK\r\n\r\nhello from the service\n";
  static char request[4096];
  struct { unsigned short family, port; unsigned address; char rest[8]; } at = {2, 0x401f, 0, {0}};
  long one = 1, fd = call(41, 2, 1, 0, 0, 0);
  call(54, fd, 1, 2, (word)&one, 4);
  call(49, fd, (word)&at, sizeof at, 0, 0);
  call(50, fd, 16, 0, 0, 0);
  for (;;) {
    long connection = call(43, fd, 0, 0, 0, 0);
    call(0, connection, (word)request, sizeof request, 0, 0);
    call(1, connection, (word)answer, sizeof answer - 1, 0, 0);
    call(3, connection, 0, 0, 0, 0);
  }
}
"""


def archive(files):
    """A tar archive of names and bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


def container_image(program):
    """An image with one program, as `docker save` writes it."""
    layer = archive({"server": program})
    digest = "sha256:" + hashlib.sha256(layer).hexdigest()
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/server"]},
                         "rootfs": {"type": "layers", "diff_ids": [digest]}}).encode()
    name = hashlib.sha256(config).hexdigest() + ".json"
    manifest = [{"Config": name, "RepoTags": ["localhost/web:1"], "Layers": ["layer.tar"]}]
    return archive({"manifest.json": json.dumps(manifest).encode(), name: config,
                    "layer.tar": layer})


class ServicesTest(E2eTest):
    def bake(self):
        """The image `containers`, once for all runs."""
        listed = self.expect(self.world.fuse("image", "list", "-o", "json")).json()["images"]
        if not any(image["name"] == "containers" and "problem" not in image for image in listed):
            print(f"baking containers into {IMAGES}", flush=True)
            self.expect(self.world.fuse("image", "bake", "containers", "--with", "containers",
                                        timeout=900))

    @harness.limit(1500)
    @harness.serial
    def test_service(self):
        """a service is up before the job, which reaches its port"""
        self.bake()
        source = self.world.write("server.c", SERVER)
        program = self.world.root / "work/server"
        subprocess.run(["cc", "-static", "-nostdlib", "-O1", "-fno-stack-protector", "-s",
                        "-o", program, source], check=True)
        self.world.write("web.tar", container_image(program.read_bytes()))
        ask = ("import urllib.request as u; "
               "print(u.urlopen('http://127.0.0.1:8000/', timeout=60).read().decode(), end='')")
        text = ("version: 1\nname: served\nimage: containers\n"
                "resources: { cpus: 2, memory: 1GB }\n"
                "copy: [{ from: web.tar, to: web.tar }]\n"
                "services:\n  web:\n    image: docker-archive:/workspace/web.tar\n"
                "    ports: [8000]\n    restart: always\n"
                f"run: [python, -c, \"{ask}\"]\n")
        done = self.expect(self.world.fuse("run", self.world.write("served.yaml", text),
                                           timeout=600))
        self.assertEqual(done.text, "hello from the service\n")

        broken = text.replace("served", "broken").replace("/workspace/web.tar", "/nowhere.tar")
        done = self.expect(self.world.fuse("run", self.world.write("broken.yaml", broken),
                                           timeout=600), 125)
        self.expect_says(done, "agent start failed: services: web was not started", "/nowhere.tar")

    def test_without(self):
        """services in an image that cannot run them fail the create in words"""
        path = self.world.fusefile("bare", "true", more="services:\n  db: { image: postgres }\n")
        done = self.expect(self.world.fuse("run", path), 125)
        self.expect_says(done, "the image has nothing to run services with",
                         "fuse image bake NAME --with containers")
        self.assertEqual(self.world.qemus(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
