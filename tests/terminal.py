#!/usr/bin/env python3
"""terminal.py KEYS COMMAND... - run a command on a terminal of its own and type at it.

KEYS is a Python bytes literal without its b''. After each carriage return (and each Ctrl-C) it
waits for the next prompt, "> " or "... ". Prints what the terminal showed; exits with the command's
code.
"""
import ast
import os
import pty
import re
import select
import sys
import time

PROMPTS = (b"> ", b"... ")


def main():
    keys, command = ast.literal_eval(f"b'{sys.argv[1]}'"), sys.argv[2:]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", NO_COLOR="1")
        os.execvp(command[0], command)
    shown = b""

    def read_until(prompts):
        nonlocal shown
        since, end = len(shown), time.monotonic() + 60
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.1)[0]:
                if any(p in shown[since:] for p in prompts):
                    return
                continue
            try:
                piece = os.read(terminal, 65536)
            except OSError:  # the command has ended
                return
            if not piece:
                return
            shown += piece
        sys.exit(f"no prompt within a minute; the terminal shows {shown!r}")

    read_until(PROMPTS)
    for part in re.findall(rb"[^\r\x03]*[\r\x03]|[^\r\x03]+", keys):
        os.write(terminal, part)
        if part[-1:] in b"\r\x03":
            read_until(PROMPTS)
    read_until(())
    sys.stdout.write(shown.decode(errors="replace"))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
