#define _GNU_SOURCE
#include "CPlatform.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef __linux__
#include <linux/fs.h>
#include <linux/kcmp.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#else
#include <sys/clonefile.h>
#include <sys/mount.h>
#include <sys/param.h>
// The kernel has these since macOS 10.15; not every SDK declares them.
#ifndef F_OFD_SETLK
#define F_OFD_SETLK 90
#define F_OFD_GETLK 92
#endif
#endif

// What is in `#else` of `__linux__` is for macOS, written from its manual pages and headers, and untested.

// MARK: Status

int platform_status(int directory, const char *name, struct platform_status *out) {
#ifdef __linux__
  struct statx s;
  int flags = AT_SYMLINK_NOFOLLOW | (name[0] ? 0 : AT_EMPTY_PATH);
  if (statx(directory, name, flags, STATX_BASIC_STATS | STATX_MNT_ID, &s) != 0) return -1;
  out->device = makedev(s.stx_dev_major, s.stx_dev_minor);
  out->inode = s.stx_ino;
  out->mount = s.stx_mnt_id;
  out->size = s.stx_size;
  out->blocks = s.stx_blocks;
  out->links = s.stx_nlink;
  out->modified = s.stx_mtime.tv_sec * 1000000000LL + s.stx_mtime.tv_nsec;
  out->changed = s.stx_ctime.tv_sec * 1000000000LL + s.stx_ctime.tv_nsec;
  out->mode = s.stx_mode;
  out->user = s.stx_uid;
  out->group = s.stx_gid;
  out->mount_root = (s.stx_attributes & s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
  out->no_dump = (s.stx_attributes & s.stx_attributes_mask & STATX_ATTR_NODUMP) != 0;
  out->immutable = (s.stx_attributes & s.stx_attributes_mask & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
#else
  struct stat s;
  int result = name[0] ? fstatat(directory, name, &s, AT_SYMLINK_NOFOLLOW) : fstat(directory, &s);
  if (result != 0) return -1;
  out->device = (uint64_t)s.st_dev;
  out->inode = s.st_ino;
  out->mount = (uint64_t)s.st_dev;
  out->size = (uint64_t)s.st_size;
  out->blocks = (uint64_t)s.st_blocks;
  out->links = s.st_nlink;
  out->modified = s.st_mtimespec.tv_sec * 1000000000LL + s.st_mtimespec.tv_nsec;
  out->changed = s.st_ctimespec.tv_sec * 1000000000LL + s.st_ctimespec.tv_nsec;
  out->mode = s.st_mode;
  out->user = s.st_uid;
  out->group = s.st_gid;
  // The root of an APFS or HFS+ volume.
  out->mount_root = s.st_ino == 2;
  out->no_dump = (s.st_flags & UF_NODUMP) != 0;
  out->immutable = (s.st_flags & (UF_IMMUTABLE | UF_APPEND | SF_IMMUTABLE | SF_APPEND)) != 0;
#endif
  return 0;
}

// MARK: Renaming

int platform_exchange(int directory_a, const char *name_a, int directory_b, const char *name_b) {
#ifdef __linux__
  return renameat2(directory_a, name_a, directory_b, name_b, RENAME_EXCHANGE);
#else
  return renameatx_np(directory_a, name_a, directory_b, name_b, RENAME_SWAP);
#endif
}

int platform_rename_new(int directory_a, const char *name_a, int directory_b, const char *name_b) {
#ifdef __linux__
  return renameat2(directory_a, name_a, directory_b, name_b, RENAME_NOREPLACE);
#else
  return renameatx_np(directory_a, name_a, directory_b, name_b, RENAME_EXCL);
#endif
}

// MARK: Extended attributes

#ifdef __linux__
// There is no getxattrat before Linux 6.13, and fgetxattr rejects O_PATH descriptors: a name in an open directory is
// reached, without following it, through /proc.
static int attribute_path(char *path, size_t size, int directory, const char *name) {
  int length = snprintf(path, size, "/proc/self/fd/%d/%s", directory, name);
  if (length < 0 || (size_t)length >= size) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return 0;
}

// Since Linux 6.13; the walk calls it for each path, and the path through /proc takes as long again. 465 is its number on
// all architectures that Swift runs on.
static ssize_t list_attributes_at(int directory, const char *name, char *list, size_t size) {
  static atomic_bool is_missing;
  if (!atomic_load_explicit(&is_missing, memory_order_relaxed)) {
    int flags = name[0] ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;
    ssize_t count = syscall(465, directory, name, flags, list, size);
    // EPERM comes from a filter of system calls that does not know it.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    atomic_store_explicit(&is_missing, true, memory_order_relaxed);
  }
  errno = ENOSYS;
  return -1;
}

ssize_t platform_list_attributes(int directory, const char *name, char *list, size_t size) {
  ssize_t count = list_attributes_at(directory, name, list, size);
  if (count >= 0 || errno != ENOSYS) return count;
  if (name[0] == 0) return flistxattr(directory, list, size);
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return llistxattr(path, list, size);
}

ssize_t platform_get_attribute(int directory, const char *name, const char *attribute, void *value, size_t size) {
  if (name[0] == 0) return fgetxattr(directory, attribute, value, size);
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return lgetxattr(path, attribute, value, size);
}

int platform_set_attribute(int directory, const char *name, const char *attribute, const void *value, size_t size) {
  if (name[0] == 0) return fsetxattr(directory, attribute, value, size, 0);
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return lsetxattr(path, attribute, value, size, 0);
}

int platform_remove_attribute(int directory, const char *name, const char *attribute) {
  if (name[0] == 0) return fremovexattr(directory, attribute);
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return lremovexattr(path, attribute);
}
#else
static int attribute_descriptor(int directory, const char *name) {
  return name[0] ? openat(directory, name, O_RDONLY | O_SYMLINK | O_CLOEXEC | O_NONBLOCK) : dup(directory);
}

// Closes a descriptor, keeping the result and the errno of the call before.
static ssize_t closing(int descriptor, ssize_t result) {
  int error = errno;
  close(descriptor);
  errno = error;
  return result;
}

ssize_t platform_list_attributes(int directory, const char *name, char *list, size_t size) {
  int descriptor = attribute_descriptor(directory, name);
  return descriptor < 0 ? -1 : closing(descriptor, flistxattr(descriptor, list, size, 0));
}

ssize_t platform_get_attribute(int directory, const char *name, const char *attribute, void *value, size_t size) {
  int descriptor = attribute_descriptor(directory, name);
  return descriptor < 0 ? -1 : closing(descriptor, fgetxattr(descriptor, attribute, value, size, 0, 0));
}

int platform_set_attribute(int directory, const char *name, const char *attribute, const void *value, size_t size) {
  int descriptor = attribute_descriptor(directory, name);
  return descriptor < 0 ? -1 : (int)closing(descriptor, fsetxattr(descriptor, attribute, value, size, 0, 0));
}

int platform_remove_attribute(int directory, const char *name, const char *attribute) {
  int descriptor = attribute_descriptor(directory, name);
  return descriptor < 0 ? -1 : (int)closing(descriptor, fremovexattr(descriptor, attribute, 0));
}
#endif

int platform_set_modified(int directory, const char *name, int64_t nanoseconds) {
  int64_t seconds = nanoseconds / 1000000000LL, rest = nanoseconds % 1000000000LL;
  if (rest < 0) {
    seconds -= 1;
    rest += 1000000000LL;
  }
  struct timespec times[2] = {{.tv_sec = seconds, .tv_nsec = rest}, {.tv_sec = seconds, .tv_nsec = rest}};
  if (name[0] == 0) return futimens(directory, times);
  return utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
}

int platform_set_no_dump(int directory, const char *name, bool on) {
  int descriptor = name[0] ? openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                           : fcntl(directory, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) return -1;
#ifdef __linux__
  int flags = 0;
  int result = ioctl(descriptor, FS_IOC_GETFLAGS, &flags);
  if (result == 0) {
    flags = on ? flags | FS_NODUMP_FL : flags & ~FS_NODUMP_FL;
    result = ioctl(descriptor, FS_IOC_SETFLAGS, &flags);
  }
#else
  struct stat s;
  int result = fstat(descriptor, &s);
  if (result == 0) result = fchflags(descriptor, on ? s.st_flags | UF_NODUMP : s.st_flags & ~UF_NODUMP);
#endif
  int error = errno;
  close(descriptor);
  errno = error;
  return result;
}

// MARK: Inode flags

#ifdef __linux__
// The flags that users set and a copy can carry: not nodump (part of the metadata), immutable and append-only (such a
// path is never replaced), nor those that the file system maintains (dirty, compressed blocks, index, huge file,
// extents, verity, value in an inode, inline data).
static const uint32_t known_flags = 0xFFFFFFFFu & ~(uint32_t)(0x40 | 0x10 | 0x20 | 0x100 | 0x200 | 0x1000 | 0x40000 | 0x80000 |
                                                              0x100000 | 0x200000 | 0x400000 | 0x10000000 | 0x80000000u);
// Encryption and casefolding are inherited from the directory; they are only compared.
static const uint32_t settable_flags = known_flags & ~(uint32_t)(0x800 | 0x40000000);
// XFS: real-time inheritance, no symbolic links, extent size (own, inherited, of copies), no defragmentation, file streams.
static const uint32_t known_extended = 0x100 | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | 0x10000;
#else
// The user flags that a copy can carry, chosen like those of Linux.
static const uint32_t settable_flags = UF_OPAQUE | UF_HIDDEN;
#endif

int platform_get_flags(int descriptor, struct platform_flags *out) {
  memset(out, 0, sizeof *out);
#ifdef __linux__
  unsigned int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return -1;
  out->flags = flags & known_flags;
  struct fsxattr extended;
  if (ioctl(descriptor, FS_IOC_FSGETXATTR, &extended) != 0) return 0;
  out->project = extended.fsx_projid;
  out->extended = extended.fsx_xflags & known_extended;
  out->extent_size = extended.fsx_extsize;
  out->copy_extent_size = extended.fsx_cowextsize;
  return 0;
#else
  struct stat s;
  if (fstat(descriptor, &s) != 0) return -1;
  out->flags = s.st_flags & settable_flags;
  return 0;
#endif
}

int platform_set_flags(int descriptor, const struct platform_flags *wanted) {
#ifdef __linux__
  unsigned int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return -1;
  unsigned int changed = (flags & ~settable_flags) | (wanted->flags & settable_flags);
  if (changed != flags && ioctl(descriptor, FS_IOC_SETFLAGS, &changed) != 0) {
    // btrfs changes between no-copy-on-write and compression only through neither.
    unsigned int plain = flags & ~settable_flags;
    if (ioctl(descriptor, FS_IOC_SETFLAGS, &plain) != 0) return -1;
    if (ioctl(descriptor, FS_IOC_SETFLAGS, &changed) != 0) return -1;
  }
  struct fsxattr extended;
  if (ioctl(descriptor, FS_IOC_FSGETXATTR, &extended) != 0) return 0;
  struct fsxattr other = extended;
  other.fsx_projid = wanted->project;
  other.fsx_xflags = (extended.fsx_xflags & ~known_extended) | (wanted->extended & known_extended);
  other.fsx_extsize = wanted->extent_size;
  other.fsx_cowextsize = wanted->copy_extent_size;
  if (memcmp(&other, &extended, sizeof other) == 0) return 0;
  return ioctl(descriptor, FS_IOC_FSSETXATTR, &other);
#else
  struct stat s;
  if (fstat(descriptor, &s) != 0) return -1;
  uint32_t changed = (s.st_flags & ~settable_flags) | (wanted->flags & settable_flags);
  return changed == s.st_flags ? 0 : fchflags(descriptor, changed);
#endif
}

// MARK: Locks

int platform_lock_range(int descriptor, bool exclusive, int64_t start, int64_t length) {
  struct flock lock = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = start,
                       .l_len = length};
  return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int platform_unlock_range(int descriptor, int64_t start, int64_t length) {
  struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int platform_range_is_locked(int descriptor, int64_t start, int64_t length) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
  if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return -1;
  return lock.l_type == F_UNLCK ? 0 : 1;
}

int platform_lock_whole(int descriptor, bool exclusive) {
  return flock(descriptor, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
}

void platform_unlock_whole(int descriptor) { flock(descriptor, LOCK_UN); }

// MARK: Durability

int platform_sync_filesystem(int descriptor) {
#ifdef __linux__
  return syncfs(descriptor);
#else
  return fsync_volume_np(descriptor, SYNC_VOLUME_FULLSYNC | SYNC_VOLUME_WAIT);
#endif
}

void platform_spread_directories(int descriptor) {
#ifdef __linux__
  int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_TOPDIR_FL;
  (void)ioctl(descriptor, FS_IOC_SETFLAGS, &flags);
#else
  (void)descriptor;  // a hint for ext4 alone
#endif
}

void platform_begin_writing(int descriptor) {
#ifdef __linux__
  // A hint: where it fails, the later sync writes everything.
  (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
  (void)descriptor;  // macOS has no such hint
#endif
}

int platform_sync(int descriptor) {
#ifdef __linux__
  return fsync(descriptor);
#else
  // Network file systems have fsync alone.
  return fcntl(descriptor, F_FULLFSYNC) == 0 ? 0 : fsync(descriptor);
#endif
}

int platform_bypass_cache(int descriptor, bool bypass) {
#ifdef __linux__
  int flags = fcntl(descriptor, F_GETFL);
  if (flags < 0) return -1;
  return fcntl(descriptor, F_SETFL, bypass ? flags | O_DIRECT : flags & ~O_DIRECT);
#else
  return fcntl(descriptor, F_NOCACHE, bypass ? 1 : 0);
#endif
}

// MARK: Copying

int platform_clone(int source, int target) {
#ifdef __linux__
  return ioctl(target, FICLONE, source);
#else
  (void)source, (void)target;
  errno = EOPNOTSUPP;  // macOS clones into a new file only: platform_clone_new
  return -1;
#endif
}

int platform_clone_new(int source, int directory, const char *name) {
#ifdef __linux__
  (void)source, (void)directory, (void)name;
  errno = EOPNOTSUPP;  // platform_clone is used instead
  return -1;
#else
  return fclonefileat(source, directory, name, CLONE_NOOWNERCOPY);
#endif
}

ssize_t platform_copy_range(int source, int target, size_t length) {
#ifdef __linux__
  return copy_file_range(source, NULL, target, NULL, length, 0);
#else
  (void)source, (void)target, (void)length;
  errno = ENOSYS;  // macOS copies ranges through a buffer only
  return -1;
#endif
}

int platform_next_data(int descriptor, int64_t offset, int64_t *start, int64_t *end) {
  *start = lseek(descriptor, offset, SEEK_DATA);
  if (*start < 0) return -1;
  if (end == NULL) return 0;
  *end = lseek(descriptor, *start, SEEK_HOLE);
  return *end < 0 ? -1 : 0;
}

int platform_open_beneath(int directory, const char *path, int flags) {
#ifdef __linux__
  struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
  // Reading does not move the time of the last access, where this user may ask for that.
  if ((flags & O_ACCMODE) != O_WRONLY && (flags & (O_CREAT | O_PATH)) == 0) {
    how.flags |= O_NOATIME;
    int opened = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (opened >= 0 || errno != EPERM) return opened;
    how.flags &= ~(uint64_t)O_NOATIME;
  }
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
#else
  int opened = openat(directory, path, flags | O_CLOEXEC | O_NOFOLLOW_ANY);
  if (opened < 0) return -1;
  // A path without links and `..` crosses a mount if and only if it ends on another device.
  struct stat start, end;
  if (fstat(directory, &start) == 0 && fstat(opened, &end) == 0 && start.st_dev == end.st_dev) return opened;
  close(opened);
  errno = EXDEV;
  return -1;
#endif
}

int64_t platform_free_space(int descriptor) {
  // Not fstatvfs, whose counts have 32 bits on macOS.
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0) return -1;
  // File systems in memory or on a network may not count blocks.
  if (status.f_blocks == 0) return -1;
#ifdef __linux__
  int64_t block = status.f_frsize ? (int64_t)status.f_frsize : (int64_t)status.f_bsize;
#else
  int64_t block = status.f_bsize;
#endif
  return (int64_t)status.f_bavail * block;
}

void platform_return_large_blocks(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

bool platform_is_overlay(int descriptor) {
#ifdef __linux__
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 && (uint32_t)status.f_type == 0x794c7630u;
#else
  (void)descriptor;
  return false;  // macOS has no overlay file system
#endif
}

bool platform_is_memory(int descriptor) {
  struct statfs status;
#ifdef __linux__
  return fstatfs(descriptor, &status) == 0 && (uint32_t)status.f_type == 0x01021994u;
#else
  return fstatfs(descriptor, &status) == 0 && strcmp(status.f_fstypename, "tmpfs") == 0;
#endif
}

int platform_reserve(int descriptor, int64_t start, int64_t length) {
#ifdef __linux__
  return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, start, length);
#else
  (void)start;  // always the end of the file
  fstore_t store = {.fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE, .fst_offset = 0, .fst_length = length};
  return fcntl(descriptor, F_PREALLOCATE, &store) < 0 ? -1 : 0;
#endif
}

// MARK: Directories

int platform_list_names(int directory, struct platform_names *names) {
  // A second descriptor, since fdopendir takes it over and two readers must not share one position.
  int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
#ifdef __linux__
  // Listing does not move the time of the last access, where this user may ask for that.
  int own = openat(directory, ".", flags | O_NOATIME);
  if (own < 0 && errno == EPERM) own = openat(directory, ".", flags);
#else
  int own = openat(directory, ".", flags);
#endif
  DIR *stream = own < 0 ? NULL : fdopendir(own);
  if (stream == NULL) {
    if (own >= 0) close(own);
    return -1;
  }
  size_t capacity = 4096;
  names->size = 0;
  names->bytes = malloc(capacity);
  for (;;) {
    errno = 0;
    struct dirent *entry = names->bytes == NULL ? NULL : readdir(stream);
    if (entry == NULL) break;
    const char *name = entry->d_name;
    if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) continue;
    size_t length = strlen(name) + 1;
    if (capacity - names->size < 9 + length) {
      uint8_t *grown = realloc(names->bytes, capacity = 2 * capacity + length);
      if (grown == NULL) free(names->bytes);
      names->bytes = grown;
      if (grown == NULL) break;
    }
    uint64_t inode = entry->d_ino;
    uint8_t *end = names->bytes + names->size;
    memcpy(end, &inode, 8);
    end[8] = entry->d_type == DT_UNKNOWN ? 0 : entry->d_type == DT_DIR ? 1 : 2;
    memcpy(end + 9, name, length);
    names->size += 9 + length;
  }
  int error = names->bytes == NULL ? ENOMEM : errno;
  closedir(stream);
  if (error == 0) return 0;
  free(names->bytes);
  errno = error;
  return -1;
}

int platform_birth(int directory, const char *name, int64_t *nanoseconds) {
#ifdef __linux__
  struct statx s;
  if (statx(directory, name, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &s) != 0) return -1;
  if (!(s.stx_mask & STATX_BTIME)) {
    errno = ENOTSUP;
    return -1;
  }
  *nanoseconds = s.stx_btime.tv_sec * 1000000000LL + s.stx_btime.tv_nsec;
#else
  struct stat s;
  if (fstatat(directory, name, &s, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  *nanoseconds = s.st_birthtimespec.tv_sec * 1000000000LL + s.st_birthtimespec.tv_nsec;
#endif
  return 0;
}

int64_t platform_stamp_time(void) {
  struct timespec now;
#ifdef __linux__
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
#else
  clock_gettime(CLOCK_REALTIME, &now);
#endif
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// MARK: Processes

int platform_followed_inode(int directory, const char *name, uint64_t *device, uint64_t *inode) {
#ifdef __linux__
  struct statx s;
  if (statx(directory, name, AT_STATX_DONT_SYNC, STATX_INO, &s) != 0) return -1;
  *device = makedev(s.stx_dev_major, s.stx_dev_minor);
  *inode = s.stx_ino;
#else
  struct stat s;
  if (fstatat(directory, name, &s, 0) != 0) return -1;
  *device = (uint64_t)s.st_dev;
  *inode = s.st_ino;
#endif
  return 0;
}

#ifdef __linux__
// `struct procmap_query` and PROCMAP_QUERY of <linux/fs.h>, which Debian 12 does not have.
struct mapping_query {
  uint64_t size, flags, address, start, end, rights, page_size, offset, inode;
  uint32_t major, minor, name_size, build_id_size;
  uint64_t name, build_id;
};
#define QUERY_THIS_OR_NEXT_OF_A_FILE (0x10 | 0x20)

int platform_next_mapping(int maps, uint64_t address, struct platform_mapping *mapping) {
  struct mapping_query query = {.size = sizeof query, .flags = QUERY_THIS_OR_NEXT_OF_A_FILE, .address = address};
  if (ioctl(maps, _IOWR('f', 17, struct mapping_query), &query) != 0) return -1;
  *mapping = (struct platform_mapping){query.start, query.end, makedev(query.major, query.minor), query.inode};
  return 0;
}
#else
int platform_next_mapping(int maps, uint64_t address, struct platform_mapping *mapping) { return errno = ENOTTY, -1; }
#endif

bool platform_shares_tables(int thread_a, int thread_b) {
#ifdef __linux__
  return syscall(SYS_kcmp, thread_a, thread_b, KCMP_FILES, 0, 0) == 0 &&
         syscall(SYS_kcmp, thread_a, thread_b, KCMP_FS, 0, 0) == 0;
#else
  return thread_a == thread_b;
#endif
}

#ifdef __GLIBC__
static char *const *arguments;

// Only glibc passes the arguments to constructors.
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
  (void)count;
  arguments = values;
}

char *const *platform_arguments(void) { return arguments; }
#else
char *const *platform_arguments(void) { return NULL; }
#endif
