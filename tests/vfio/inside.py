"""Runs the checks in the lab's machine, one after another.

The report goes to standard output: a line for each check, "ok NAME", "FAIL NAME: WHY"
or "skip NAME: WHY", in the end "done".  LAB_ONLY names parts of names, with commas.
"""

import os
import time
import traceback

import binding
import ending
import mediated
import passing
from lab import Failed, Lab, Skip


def checks():
    """The checks in their order: each takes the lab as those before it leave it."""
    for module in (binding, passing, mediated, ending):
        for name, value in vars(module).items():
            if name.startswith("check_") and value.__module__ == module.__name__:
                yield value.__doc__.splitlines()[0].rstrip("."), value


def run_check(lab, name, check):
    start = time.monotonic()
    try:
        check(lab)
    except Skip as why:
        return f"skip {name}: {why}"
    except Failed as why:
        return f"FAIL {name}: {why}"
    except Exception:  # whatever it is, the next check goes on
        return f"FAIL {name}: {traceback.format_exc()}"
    return f"ok {name} ({time.monotonic() - start:.1f} s)"


def show_logs(lab):
    for path in lab.diagnosis():
        if path.exists():
            print(f"--- {path}\n{path.read_text(errors='replace')[-3000:]}", flush=True)


def main():
    only = [part for part in os.environ.get("LAB_ONLY", "").split(",") if part]
    with open("/proc/uptime", encoding="ascii") as uptime:
        print(f"note the machine is up after {uptime.read().split()[0]} s", flush=True)
    lab = Lab()
    print(f"note guests run with {lab.accel}", flush=True)
    for name, check in checks():
        if only and not any(part in name for part in only):
            continue
        line = run_check(lab, name, check)
        print(line, flush=True)
        if line.startswith("FAIL"):
            show_logs(lab)
    print("done", flush=True)


main()
