/* runtime/base/checksum.h -- the sums that ZIP, PNG and our checkpoints carry. */
#ifndef LS_RUNTIME_BASE_CHECKSUM_H
#define LS_RUNTIME_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* All three continue from the sum of what came before. */
uint32_t ls_crc32(uint32_t crc, const void *data, size_t n);        /* first call: 0 */
uint32_t ls_adler32(uint32_t sum, const void *data, size_t n);      /* first call: 1 */
uint64_t ls_fnv64(uint64_t sum, const void *data, size_t n);        /* first call: LS_FNV64 */
#define LS_FNV64 0xcbf29ce484222325u

#endif
