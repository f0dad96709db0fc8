#!/usr/bin/env python3
"""A disk that logs: the file `disk` of a FUSE file system, every write and flush of which is appended to a log.

usage: recorder.py DIRECTORY IMAGE LOG

A loop device makes a block device of the file. It passes each write on at once, and each flush as an fsync, so that the log has
them in the order in which the disk got them. What was written before a flush is in the log before it.
"""
import os
import stat
import sys

import fusepy as fuse

import disk


class Recorder(fuse.Operations):
    def __init__(self, image, log):
        self.image = os.open(image, os.O_RDWR)
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.size = os.fstat(self.image).st_size

    def getattr(self, path, handle=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o700, "st_nlink": 2}
        if path == "/disk":
            return {"st_mode": stat.S_IFREG | 0o600, "st_nlink": 1, "st_size": self.size}
        raise fuse.FuseOSError(2)

    def read(self, path, size, offset, handle):
        return os.pread(self.image, size, offset)

    def write(self, path, data, offset, handle):
        # In the log before the answer: the caller of the program knows by the log's length what the disk has got.
        os.writev(self.log, [disk.RECORD.pack(disk.WRITE, offset, len(data)), data])
        return os.pwrite(self.image, data, offset)

    def fsync(self, path, data_only, handle):
        os.write(self.log, disk.RECORD.pack(disk.FLUSH, 0, 0))


if __name__ == "__main__":
    # One thread: a disk that works on one request after another. Without big_writes each write would have 4096 bytes at most,
    # so that none could be torn across blocks.
    fuse.FUSE(Recorder(*sys.argv[2:4]), sys.argv[1], foreground=True, nothreads=True, big_writes=True)
