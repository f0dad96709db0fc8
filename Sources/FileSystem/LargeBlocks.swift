import CPlatform

/// Has freed memory of large arrays and buffers returned to the system, whatever is allocated between them. Otherwise glibc
/// keeps larger and larger ones in its heap, which they fragment: a restore of 100,000 files then takes twice the memory.
package func returnLargeBlocks() { platform_return_large_blocks() }
