/* runtime/base/checksum.h -- the checksums of ZIP, PNG and TFRecord. */
#ifndef LS_RUNTIME_BASE_CHECKSUM_H
#define LS_RUNTIME_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

/* They continue from the checksum of the preceding bytes. */
uint32_t ls_crc32(uint32_t crc, const void *data, size_t n);        /* first call: 0 */
/* CRC-32C (Castagnoli), of TensorFlow's records. */
uint32_t ls_crc32c(uint32_t crc, const void *data, size_t n);       /* first call: 0 */
uint32_t ls_adler32(uint32_t sum, const void *data, size_t n);      /* first call: 1 */

#endif
