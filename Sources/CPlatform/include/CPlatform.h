// System calls that Swift cannot see: `renameat2`, mount ids, extended attributes without following links,
// open-file-description locks, cloning, `syncfs`. Like the calls themselves, functions return -1 and set errno on
// failure. The macOS branches are untested.
#ifndef DRYDOCK_CPLATFORM_H
#define DRYDOCK_CPLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The status of a path from one `statx` (Linux) or `fstatat` (macOS). Times are in nanoseconds since 1970.
struct platform_status {
  uint64_t device, inode, mount, size, blocks, links;
  int64_t modified, changed;
  uint32_t mode, user, group;
  bool mount_root;
  /// The inode flag that asks backup programs to skip the path, where the file system reports it.
  bool no_dump;
  /// Whether the inode is immutable or append-only, where the file system reports it.
  bool immutable;
};

/// What `chattr` sets on an inode: the flags except nodump, immutable, append-only and those that the file system
/// maintains; the quota project; XFS's flags and hints. On macOS the user flags alone.
struct platform_flags {
  uint32_t flags, project, extended, extent_size, copy_extent_size;
};

/// The status of `name` in `directory`, of the link itself when it is one; of `directory` when `name` is "".
int platform_status(int directory, const char *name, struct platform_status *status);

/// Exchanges two paths in one step. ENOSYS or EINVAL where the file system cannot.
int platform_exchange(int directory_a, const char *name_a, int directory_b, const char *name_b);
/// Renames, and fails with EEXIST when the target exists.
int platform_rename_new(int directory_a, const char *name_a, int directory_b, const char *name_b);

// Extended attributes. `name` in `directory`, never followed when it is a link; "" means `directory` itself.
ssize_t platform_list_attributes(int directory, const char *name, char *list, size_t size);
ssize_t platform_get_attribute(int directory, const char *name, const char *attribute, void *value, size_t size);
int platform_set_attribute(int directory, const char *name, const char *attribute, const void *value, size_t size);
int platform_remove_attribute(int directory, const char *name, const char *attribute);

/// Sets the modification time (and the access time to the same), never following a link.
int platform_set_modified(int directory, const char *name, int64_t nanoseconds);

/// Sets or clears the nodump flag of a file or directory. ENOTTY or EOPNOTSUPP where the file system has none.
int platform_set_no_dump(int directory, const char *name, bool on);

/// The flags of an open file or directory. ENOTTY or EOPNOTSUPP where the file system has no flags.
int platform_get_flags(int descriptor, struct platform_flags *flags);
/// Sets the flags that a program may set; read them back to see the result.
int platform_set_flags(int descriptor, const struct platform_flags *flags);

/// Takes an open-file-description lock without waiting: EAGAIN or EACCES when another description holds it.
int platform_lock_range(int descriptor, bool exclusive, int64_t start, int64_t length);
/// Releases what this open file description has locked of a range.
int platform_unlock_range(int descriptor, int64_t start, int64_t length);
/// 1 when an exclusive lock on the range would be refused, 0 when it is free. Needs no write permission.
int platform_range_is_locked(int descriptor, int64_t start, int64_t length);
/// `flock`, without waiting: EWOULDBLOCK when another description holds it.
int platform_lock_whole(int descriptor, bool exclusive);

/// Releases that lock, also for copies of the descriptor.
void platform_unlock_whole(int descriptor);

/// A part of a process's memory that is a file's content. The device is as in `platform_status`.
struct platform_mapping {
  uint64_t start, end, device, inode;
};
/// The first mapping of a file at or above an address, by an open `/proc/PID/maps`. ENOENT when there is none, ESRCH when the process
/// has no memory, ENOTTY before Linux 6.11.
int platform_next_mapping(int maps, uint64_t address, struct platform_mapping *mapping);

/// Writes all cached data of the file system of `descriptor` to disk.
int platform_sync_filesystem(int descriptor);
/// fsync; on macOS F_FULLFSYNC, which alone survives a power failure there.
int platform_sync(int descriptor);
/// Whether writes of whole blocks go past the page cache (O_DIRECT; on macOS F_NOCACHE). EINVAL where the file system
/// cannot.
int platform_bypass_cache(int descriptor, bool bypass);
/// Starts writing the cached data of a file, without waiting, so that a later sync has less to do.
void platform_begin_writing(int descriptor);
/// Asks the file system to place new directories in this one far from each other (ext4).
void platform_spread_directories(int descriptor);

/// Makes `target` share the blocks of `source`: EOPNOTSUPP, EXDEV or EINVAL where the file system cannot.
int platform_clone(int source, int target);
/// Makes the new file `name` in `directory` a clone of `source`, with its metadata (macOS only).
int platform_clone_new(int source, int directory, const char *name);
/// Copies up to `length` bytes inside the kernel, as `copy_file_range`: 0 at the end of the source.
ssize_t platform_copy_range(int source, int target, size_t length);

/// The next range of a file from `offset` on that is not a hole; ENXIO when there is none. Its end is only looked for where
/// it is wanted (not NULL).
int platform_next_data(int descriptor, int64_t offset, int64_t *start, int64_t *end);

/// Opens a path below `directory` without crossing a mount or following any link.
int platform_open_beneath(int directory, const char *path, int flags);

/// Has the allocator return large blocks to the system as soon as they are freed (glibc; elsewhere nothing).
void platform_return_large_blocks(void);

/// Whether `descriptor` is on an overlay file system (OVERLAYFS_SUPER_MAGIC).
bool platform_is_overlay(int descriptor);

/// Whether `descriptor` is on a file system in memory, where writing through a mapping need not change any time.
bool platform_is_memory(int descriptor);

/// Free bytes for this user on the file system of `descriptor`, or -1 when that is not known.
int64_t platform_free_space(int descriptor);

/// Reserves blocks after the end of a file without changing its size. ENOSPC when there are none; EOPNOTSUPP where the
/// file system cannot.
int platform_reserve(int descriptor, int64_t start, int64_t length);

/// All names in a directory, unordered, packed into memory that the caller frees: for each the inode number (8 bytes),
/// the kind (1 byte: 1 is a directory, 2 another kind, 0 unknown), the name and a NUL.
struct platform_names {
  uint8_t *bytes;
  size_t size;
};
int platform_list_names(int directory, struct platform_names *names);

/// When the inode of `name` was created, in nanoseconds since 1970: ENOTSUP where the file system does not record it.
int platform_birth(int directory, const char *name, int64_t *nanoseconds);

/// The time with which the file system stamps a change now, in nanoseconds since 1970.
int64_t platform_stamp_time(void);

/// The inode that a name leads to, following links. The target of a link in `/proc/PID/fd` is not opened, and not
/// queried over a network.
int platform_followed_inode(int directory, const char *name, uint64_t *device, uint64_t *inode);

/// Whether two threads share their descriptor table, and their root and working directory; false where the kernel does not
/// report it.
bool platform_shares_tables(int thread_a, int thread_b);

/// The arguments of this process, terminated by NULL; NULL where the C library does not provide them. Swift reads them
/// from `/proc`, which may be missing.
char *const *platform_arguments(void);

#endif
