"""Runs the pages' blocks of shell text, each page's in order and in one shell."""

import os
import re
import subprocess
import tempfile
import unittest

import simulated
import harness
import pages
from harness import E2eTest, limit

# Files that a page's reader has already.
FILES = {"README.md": {"train.py": "import sys\nprint('trained', *sys.argv[1:])\n"}}


def matches(wanted, got):
    """Whether `...` in the text stands for the rest: of a line, or of lines by itself."""
    pattern = ""
    for line in wanted.rstrip("\n").splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            words = [re.sub(r"(\\?\s)+", r"[ ]+", re.escape(part)) for part in line.split("...")]
            pattern += "[^\n]*".join(words) + r"[ ]*\n"
    return re.fullmatch(pattern, got if got.endswith("\n") else got + "\n") is not None


class PageTest(E2eTest):
    """The blocks of one page; a subclass names it."""

    page = None

    def run_blocks(self):
        blocks = pages.blocks_in(pages.ROOT / self.page)
        runnable = [block for block in blocks if block.kind in ("run", "simulated")]
        self.assertNotEqual(runnable, [])
        environment, replaced = self.world.environment, {}
        where = self.world.root / "work"
        machine = None
        if any(words[:1] == ["agent"] for block in runnable
               for words in pages.commands_in(block.text)):
            machine = simulated.add_machine(self)
        if any(block.kind == "simulated" for block in runnable):
            fleet = simulated.Fleet(self, machine)
            replaced = {"http://gpu-host:8091": fleet.agent_url,
                        "https://fuse.example.org": fleet.url}
            environment |= {"QEMU_AGENT_TOKEN": fleet.agent_token,
                            "ORCH_AUTH_TOKEN": fleet.token, "IMAGES_DIR": harness.IMAGES}
        path = machine.bin if machine else self.world.root / "bin"
        if machine is None:
            path.mkdir()
            (path / "fuse").symlink_to(harness.FUSE)
        environment |= {"PATH": f"{path}:{environment['PATH']}"}
        for name, text in FILES.get(self.page, {}).items():
            self.world.write(name, text)
        self.run_in(where, blocks, environment, replaced)

    def run_in(self, where, blocks, environment, replaced):
        def filled(text):
            for name, real in replaced.items():
                text = text.replace(name, real)
            return text

        with tempfile.TemporaryDirectory(dir=self.world.root / "tmp") as notes:
            shell = subprocess.Popen(["bash", "-s"], stdin=subprocess.PIPE, cwd=where,
                                     env=environment, text=True)
            self.addCleanup(shell.kill)
            before = None
            for block in blocks:
                if block.kind in ("run", "simulated"):
                    before = self.run_block(shell, notes, block, filled(block.text))
                elif block.kind == "fusefile":
                    (where / "Fusefile").write_text(block.text)
                elif block.kind == "output":
                    self.assertIsNotNone(before, f"{block.name}: output of nothing")
                    self.assertTrue(matches(filled(block.text), before),
                                    f"{block.name}: expected\n{block.text}\ngot\n{before}")
            shell.stdin.close()
            shell.wait(harness.PATIENCE)

    def run_block(self, shell, notes, block, text):
        """Runs a block in the shell; what it printed, stdout and stderr together."""
        out, done = os.path.join(notes, "out"), os.path.join(notes, "done")
        os.mkfifo(done)
        body = f"{{ set -e\n{text}\n}}" if block.code == 0 else f"{{ {text}\n}}"
        guard = f"trap 'echo $? >{done}' EXIT"
        shell.stdin.write(f"{guard}\n{body} >{out} 2>&1 </dev/null\ncode=$?\n"
                          f"set +e; trap - EXIT; echo $code >{done}\n")
        shell.stdin.flush()
        with open(done, encoding="ascii") as answer:
            code = int(answer.read())
        os.unlink(done)
        with open(out, encoding="utf-8", errors="replace") as text:
            printed = text.read()
        self.assertEqual(code, block.code, f"{block.name} exited with {code}:\n{block.text}"
                                           f"--- printed\n{printed}")
        return printed


def page_tests():
    """A class for each page that has something to run."""
    for path in pages.PAGES:
        kinds = {block.kind for block in pages.blocks_in(path)}
        if not kinds & {"run", "simulated"}:
            continue
        page = pages.name_of(path)

        @limit(600)
        def test_blocks(self):
            self.run_blocks()
        test_blocks.__doc__ = f"every command of {page} does what the page says"
        name = re.sub(r"\W", " ", path.stem).title().replace(" ", "") + "PageTest"
        yield name, type(name, (PageTest,), {"page": page, "test_blocks": test_blocks,
                                             "__module__": __name__})


globals().update(page_tests())

if __name__ == "__main__":
    harness.main()
