"""Runs the pages' blocks of shell text, each page's in order and in one shell."""

import os
import re
import subprocess
import tempfile

import simulated
import harness
import pages
from harness import E2eTest, ending, limit

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
        machine = None
        if any(words[:1] == ["agent"] for block in runnable
               for words in pages.commands_in(block.text)):
            machine = simulated.add_machine(self)
        environment, names = {**self.world.environment, "IMAGES_DIR": harness.IMAGES}, {}
        if any(block.kind == "simulated" for block in runnable):
            fleet = simulated.Fleet(self, machine)
            environment |= {"QEMU_AGENT_TOKEN": fleet.agent_token, "ORCH_AUTH_TOKEN": fleet.token}
            names = {"http://gpu-host:8091": fleet.agent_url,
                     "https://fuse.example.org": fleet.url}
        environment["PATH"] = f"{self.program_folder(machine)}:{environment['PATH']}"
        for name, text in FILES.get(self.page, {}).items():
            self.world.write(name, text)
        self.run_in_shell(blocks, environment, names)

    def program_folder(self, machine):
        """Where shells find fuse."""
        if machine:
            return machine.bin
        folder = self.world.root / "bin"
        folder.mkdir()
        (folder / "fuse").symlink_to(harness.FUSE)
        return folder

    def run_in_shell(self, blocks, environment, names):
        """Does with each block what its mark says; `names` are put in place of a page's."""
        def filled(text):
            for name, real in names.items():
                text = text.replace(name, real)
            return text

        printed = None
        with tempfile.TemporaryDirectory(dir=self.world.root / "tmp") as notes, ending(
                subprocess.Popen(["bash", "-s"], stdin=subprocess.PIPE, env=environment, text=True,
                                 cwd=self.world.root / "work")) as shell:
            for block in blocks:
                if block.kind in ("run", "simulated"):
                    printed = self.run_block(shell, notes, block, filled(block.text))
                elif block.kind == "fusefile":
                    self.world.write("Fusefile", block.text)
                elif block.kind == "output":
                    self.assertIsNotNone(printed, f"{block.name}: output of nothing")
                    self.assertTrue(matches(filled(block.text), printed),
                                    f"{block.name}: expected\n{block.text}\ngot\n{printed}")

    def run_block(self, shell, notes, block, text):
        """Runs a block in the shell; what it printed, stdout and stderr together."""
        out, done = os.path.join(notes, "out"), os.path.join(notes, "done")
        os.mkfifo(done)
        # A command that fails ends the shell, unless it is the last one and is to.
        body = f"set -e\n{text}"
        if block.code:
            body = "\nset +e\n".join(body.rstrip("\n").rsplit("\n", 1))
        shell.stdin.write(f"trap 'echo $? >{done}' EXIT\n{{ {body}\n}} >{out} 2>&1 </dev/null\n"
                          f"code=$?; set +e; trap - EXIT; echo $code >{done}\n")
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
        try:
            kinds = {block.kind for block in pages.blocks_in(path)}
        except pages.MalformedPage:
            continue  # which names_test.py tells of
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
