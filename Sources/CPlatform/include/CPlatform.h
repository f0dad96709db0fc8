// System calls that Swift cannot see: `renameat2`, inode numbers of mounts, extended attributes without
// following links, open-file-description locks, cloning, `syncfs`. Every function returns -1 and sets errno on
// failure, as the calls themselves do. macOS branches are written from the manual pages and untested.
#ifndef DRYDOCK_CPLATFORM_H
#define DRYDOCK_CPLATFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// What one `statx` (Linux) or `fstatat` (macOS) says of a path, times in nanoseconds since 1970.
struct platform_status {
  uint64_t device, inode, mount, size, blocks, links;
  int64_t modified, changed;
  uint32_t mode, user, group;
  bool mount_root;
  /// The inode flag that asks backup programs to pass it over (where the file system tells).
  bool no_dump;
  /// Whether the inode is immutable or append-only (where the file system tells).
  bool fixed;
};

/// What `chattr` sets on an inode: its flags but for nodump, immutable, append-only and those that the file system sets by
/// itself; the project that its blocks are counted for; XFS's own flags and hints.
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

/// The flags of an open file or directory. ENOTTY or EOPNOTSUPP where the file system has none.
int platform_get_flags(int descriptor, struct platform_flags *flags);
/// Sets them, as far as a program may set them at all: look at the result.
int platform_set_flags(int descriptor, const struct platform_flags *flags);

/// The number of names that a file may have on the file system of `descriptor`; a small one where that is not known.
int64_t platform_link_limit(int descriptor);

/// Takes an open-file-description lock without waiting: EAGAIN or EACCES when somebody else holds it.
int platform_lock_range(int descriptor, bool exclusive, int64_t start, int64_t length);
/// Gives up what this open file description has locked of a range.
int platform_unlock_range(int descriptor, int64_t start, int64_t length);
/// 1 when an exclusive lock on the range would be refused, 0 when it is free. Needs no write permission.
int platform_range_is_locked(int descriptor, int64_t start, int64_t length);
/// `flock`, without waiting: EWOULDBLOCK when somebody else holds it.
int platform_lock_whole(int descriptor, bool exclusive);

/// Writes everything that the file system of `descriptor` holds in memory to disk.
int platform_sync_filesystem(int descriptor);
/// fsync; on macOS F_FULLFSYNC, which alone survives a power cut there.
int platform_sync(int descriptor);
/// Lets the system begin to write what it holds of a file, without waiting: a later sync has less to do.
void platform_begin_writing(int descriptor);
/// Asks the file system to put directories that are made in this one far from each other, where it knows how (ext4).
void platform_spread_directories(int descriptor);

/// Makes `target` share the blocks of `source`: EOPNOTSUPP, EXDEV or EINVAL where the file system cannot.
int platform_clone(int source, int target);
/// Copies up to `length` bytes inside the kernel, as `copy_file_range`: 0 at the end of the source.
ssize_t platform_copy_range(int source, int target, size_t length);

/// The next stretch of a file that is no hole, from `offset` on: 0, with where it starts and ends; ENXIO when there is none.
int platform_next_data(int descriptor, int64_t offset, int64_t *start, int64_t *end);

/// Opens a path below `directory` without crossing a mount or following any link.
int platform_open_beneath(int directory, const char *path, int flags);

/// Whether `descriptor` is on an overlay file system (OVERLAYFS_SUPER_MAGIC).
bool platform_is_overlay(int descriptor);

/// Whether `descriptor` is on a file system in memory, which tells no time of what is written through a mapping.
bool platform_is_memory(int descriptor);

/// Free bytes for this user on the file system of `descriptor`, or -1 when that is not known.
int64_t platform_free_space(int descriptor);

/// Sets blocks aside behind the end of a file, whose size stays. ENOSPC when there are none; EOPNOTSUPP where the file
/// system cannot.
int platform_reserve(int descriptor, int64_t start, int64_t length);

/// Reads directory entries: `next` returns NULL at the end (errno 0) or on failure (errno set).
typedef struct platform_directory platform_directory;
platform_directory *platform_directory_open(int descriptor);
/// The same for a descriptor that nobody else uses, and that is closed with it.
platform_directory *platform_directory_take(int descriptor);
const char *platform_directory_next(platform_directory *directory);
/// The same, and whether it is a directory (1), something else (2), or the file system does not tell (0).
const char *platform_directory_next_kind(platform_directory *directory, int *kind);
void platform_directory_close(platform_directory *directory);

/// All names in a directory, in no order, packed into memory that the caller frees: for each 8 bytes with the number of
/// its inode, one with its kind as above, the name and a NUL.
struct platform_names {
  uint8_t *bytes;
  size_t size;
};
int platform_list_names(int directory, struct platform_names *names);

/// When the inode of `name` was made, in nanoseconds since 1970: ENOTSUP where the file system does not tell.
int platform_birth(int directory, const char *name, int64_t *nanoseconds);

/// The time that the file system stamps changes with at this moment, in nanoseconds since 1970.
int64_t platform_stamp_time(void);

/// The inode that a name leads to, links followed: what a link of `/proc/PID/fd` leads to is neither opened nor asked
/// for over a network.
int platform_followed_inode(int directory, const char *name, uint64_t *device, uint64_t *inode);

/// Whether two threads share their table of descriptors, or their root and working directory: 0 when they do, 1 when
/// not, -1 when the kernel does not say.
int platform_shares_descriptors(int thread_a, int thread_b);
int platform_shares_directories(int thread_a, int thread_b);

/// The arguments that this process was started with, NULL at their end; NULL itself where the C library does not pass
/// them on. Swift reads them in `/proc`, which may be missing.
char *const *platform_arguments(void);

/// The process's own SIGKILL: what fault injection uses to die as a power cut would.
void platform_kill_self(void);

#endif
