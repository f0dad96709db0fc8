#define _GNU_SOURCE
#include "CPlatform.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <sys/xattr.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#else
#include <sys/clonefile.h>
#include <sys/param.h>
#include <sys/mount.h>
#endif

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
  out->mount_root = s.st_ino == 2;
  out->no_dump = (s.st_flags & UF_NODUMP) != 0;
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
// There is no getxattrat before Linux 6.13, and fgetxattr refuses O_PATH descriptors: the way to a name in an
// open directory, without following it, leads through /proc.
static int attribute_path(char *path, size_t size, int directory, const char *name) {
  int length = name[0] ? snprintf(path, size, "/proc/self/fd/%d/%s", directory, name)
                       : snprintf(path, size, "/proc/self/fd/%d/.", directory);
  if (length < 0 || (size_t)length >= size) {
    errno = ENAMETOOLONG;
    return -1;
  }
  return 0;
}

ssize_t platform_list_attributes(int directory, const char *name, char *list, size_t size) {
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return llistxattr(path, list, size);
}

ssize_t platform_get_attribute(int directory, const char *name, const char *attribute, void *value, size_t size) {
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return lgetxattr(path, attribute, value, size);
}

int platform_set_attribute(int directory, const char *name, const char *attribute, const void *value, size_t size) {
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return lsetxattr(path, attribute, value, size, 0);
}

int platform_remove_attribute(int directory, const char *name, const char *attribute) {
  char path[64 + NAME_MAX];
  if (attribute_path(path, sizeof path, directory, name) != 0) return -1;
  return lremovexattr(path, attribute);
}
#else
static int attribute_descriptor(int directory, const char *name) {
  return name[0] ? openat(directory, name, O_RDONLY | O_SYMLINK | O_CLOEXEC | O_NONBLOCK) : dup(directory);
}

ssize_t platform_list_attributes(int directory, const char *name, char *list, size_t size) {
  int descriptor = attribute_descriptor(directory, name);
  if (descriptor < 0) return -1;
  ssize_t result = flistxattr(descriptor, list, size, 0);
  close(descriptor);
  return result;
}

ssize_t platform_get_attribute(int directory, const char *name, const char *attribute, void *value, size_t size) {
  int descriptor = attribute_descriptor(directory, name);
  if (descriptor < 0) return -1;
  ssize_t result = fgetxattr(descriptor, attribute, value, size, 0, 0);
  close(descriptor);
  return result;
}

int platform_set_attribute(int directory, const char *name, const char *attribute, const void *value, size_t size) {
  int descriptor = attribute_descriptor(directory, name);
  if (descriptor < 0) return -1;
  int result = fsetxattr(descriptor, attribute, value, size, 0, 0);
  close(descriptor);
  return result;
}

int platform_remove_attribute(int directory, const char *name, const char *attribute) {
  int descriptor = attribute_descriptor(directory, name);
  if (descriptor < 0) return -1;
  int result = fremovexattr(descriptor, attribute, 0);
  close(descriptor);
  return result;
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
  int descriptor = openat(directory, name[0] ? name : ".", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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

// MARK: Durability

int platform_sync_filesystem(int descriptor) {
#ifdef __linux__
  return syncfs(descriptor);
#else
  (void)descriptor;
  sync();
  return fcntl(descriptor, F_FULLFSYNC);
#endif
}

void platform_spread_directories(int descriptor) {
#ifdef __linux__
  int flags = 0;
  if (ioctl(descriptor, FS_IOC_GETFLAGS, &flags) != 0) return;
  flags |= FS_TOPDIR_FL;
  (void)ioctl(descriptor, FS_IOC_SETFLAGS, &flags);
#else
  (void)descriptor;
#endif
}

void platform_begin_writing(int descriptor) {
#ifdef __linux__
  // A hint: where it fails, the sync does all of it.
  (void)sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE);
#else
  (void)descriptor;
#endif
}

int platform_sync(int descriptor) {
#ifdef __linux__
  return fsync(descriptor);
#else
  return fcntl(descriptor, F_FULLFSYNC);
#endif
}

// MARK: Copying

int platform_clone(int source, int target) {
#ifdef __linux__
  return ioctl(target, FICLONE, source);
#else
  (void)source, (void)target;
  errno = EOPNOTSUPP;  // fclonefileat makes its own target: the copy below is used instead
  return -1;
#endif
}

ssize_t platform_copy_range(int source, int target, size_t length) {
#ifdef __linux__
  return copy_file_range(source, NULL, target, NULL, length, 0);
#else
  (void)source, (void)target, (void)length;
  errno = ENOSYS;
  return -1;
#endif
}

int platform_next_data(int descriptor, int64_t offset, int64_t *start, int64_t *end) {
  *start = lseek(descriptor, offset, SEEK_DATA);
  if (*start < 0) return -1;
  *end = lseek(descriptor, *start, SEEK_HOLE);
  return *end < 0 ? -1 : 0;
}

int platform_open_beneath(int directory, const char *path, int flags) {
#ifdef __linux__
  struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                         .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
#else
  return openat(directory, path, flags | O_CLOEXEC | O_NOFOLLOW_ANY);
#endif
}

int64_t platform_free_space(int descriptor) {
  struct statvfs status;
  if (fstatvfs(descriptor, &status) != 0) return -1;
  // One that lives in memory, or over a network, may not count its blocks.
  if (status.f_blocks == 0) return -1;
  return (int64_t)status.f_bavail * (int64_t)status.f_frsize;
}

bool platform_is_overlay(int descriptor) {
#ifdef __linux__
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 && (uint32_t)status.f_type == 0x794c7630u;
#else
  (void)descriptor;
  return false;
#endif
}

bool platform_is_memory(int descriptor) {
#ifdef __linux__
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 && (uint32_t)status.f_type == 0x01021994u;
#else
  (void)descriptor;
  return false;
#endif
}

int platform_reserve(int descriptor, int64_t start, int64_t length) {
#ifdef __linux__
  return fallocate(descriptor, FALLOC_FL_KEEP_SIZE, start, length);
#else
  (void)descriptor, (void)start, (void)length;
  errno = EOPNOTSUPP;
  return -1;
#endif
}

// MARK: Directories

platform_directory *platform_directory_open(int descriptor) {
  // A descriptor of its own: fdopendir takes it over, and two readers must not share one position.
  int own = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (own < 0) return NULL;
  DIR *stream = fdopendir(own);
  if (stream == NULL) close(own);
  return (platform_directory *)stream;
}

const char *platform_directory_next(platform_directory *directory) {
  int kind;
  return platform_directory_next_kind(directory, &kind);
}

const char *platform_directory_next_kind(platform_directory *directory, int *kind) {
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir((DIR *)directory);
    if (entry == NULL) return NULL;
    const char *name = entry->d_name;
    if (name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0))) continue;
    *kind = entry->d_type == DT_UNKNOWN ? 0 : entry->d_type == DT_DIR ? 1 : 2;
    return name;
  }
}

void platform_directory_close(platform_directory *directory) { closedir((DIR *)directory); }

void platform_kill_self(void) { kill(getpid(), SIGKILL); }
