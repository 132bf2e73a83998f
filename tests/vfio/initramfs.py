"""What the lab's machine boots from: busybox, modules and a script, as a cpio archive."""

import stat


def entry(name, mode, data=b"", number=0):
    """One file of a newc archive."""
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name.encode() + b"\0"
    return padded(head) + padded(data)


def padded(data):
    return data + b"\0" * (-len(data) % 4)


def initramfs(busybox, init, modules):
    """The archive.  The modules lie in /modules, whose list /modules/order has the order."""
    parts = [("bin", stat.S_IFDIR | 0o755, b"")]
    parts += [(name, stat.S_IFDIR | 0o755, b"") for name in ("proc", "sys", "dev", "modules")]
    parts += [("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes()),
              ("init", stat.S_IFREG | 0o755, init.read_bytes())]
    parts += [(f"modules/{path.name}", stat.S_IFREG | 0o644, path.read_bytes())
              for path in modules]
    order = "".join(f"{path.name}\n" for path in modules).encode()
    parts.append(("modules/order", stat.S_IFREG | 0o644, order))
    archive = b"".join(entry(name, mode, data, number)
                       for number, (name, mode, data) in enumerate(parts, 1))
    return archive + entry("TRAILER!!!", 0)
