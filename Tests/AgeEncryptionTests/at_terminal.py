#!/usr/bin/env python3
"""Runs a program at a terminal of its own and answers its questions: at_terminal.py ANSWER PROGRAM ARGUMENT…

Every question (what ends in a colon and a space, or in [y/N]) gets the same answer, after the shell command in
BEFORE_ANSWER, if there is one. The exit code is the program's.
"""
import os, pty, subprocess, sys

answer, arguments = sys.argv[1], sys.argv[2:]
process, terminal = pty.fork()
if process == 0:
    os.execvp(arguments[0], arguments)
seen = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:  # how a terminal says that nobody is left at its other side
        break
    if not piece:
        break
    seen += piece
    if seen.rstrip(b"\x1b[K").endswith(b": ") or seen.rstrip().endswith(b"[y/N]"):
        if "BEFORE_ANSWER" in os.environ:
            subprocess.run(os.environ["BEFORE_ANSWER"], shell=True, stdin=subprocess.DEVNULL)
        os.write(terminal, answer.encode() + b"\n")
        seen = b""
sys.stderr.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
