#!/usr/bin/env python3
"""Runs a program at a terminal of its own and answers its questions: at_terminal.py ANSWER PROGRAM ARGUMENT…

Every question (what ends in a colon and a space) gets the same answer. The exit code is the program's.
"""
import os, pty, sys

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
    if seen.rstrip(b"\x1b[K").endswith(b": "):
        os.write(terminal, answer.encode() + b"\n")
        seen = b""
sys.stderr.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
