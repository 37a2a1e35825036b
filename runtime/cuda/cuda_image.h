/* runtime/cuda/cuda_image.h -- device code for several architectures in one image.
 *
 * With the toolkit's fatbinary tool, the compiler makes a fatbinary and the driver chooses. With
 * NVRTC only, the compiler concatenates the results behind a table of its own format,
 * little-endian:
 *
 *     "LSIMAGE1"  u32 count, u32 0, count times {u32 kind, u32 arch, u64 offset, u64 bytes}
 *
 * offset: from the start of the table, a multiple of 64. */
#ifndef LS_CUDA_IMAGE_H
#define LS_CUDA_IMAGE_H

#include <stdint.h>

#define LS_IMAGE_MAGIC "LSIMAGE1"
/* Code for one architecture runs on it and on later minor versions of the same major version; "a"
 * code on that one only; PTX is compiled at load time, for its architecture and all later ones. */
typedef enum { LS_IMAGE_CODE, LS_IMAGE_EXACT, LS_IMAGE_PTX } LsImageKind;
typedef struct LsImageHead { char magic[8]; uint32_t count, none; } LsImageHead;
typedef struct LsImageEntry { uint32_t kind, arch; uint64_t offset, bytes; } LsImageEntry;

/* The code in `image` to load on a device of that compute capability: the best entry of the table,
 * or all of image if it has no such table. NULL: no entry fits. */
const void *ls_cuda_image_choose(const unsigned char *image, int major, int minor);

#endif
