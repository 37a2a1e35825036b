/* runtime/cuda/cuda_image.h -- device code for several architectures in one piece.
 *
 * Where the toolkit's fatbinary is at hand the compiler makes one, and the driver chooses. Where
 * only NVRTC is, it puts its results one after the other behind a table of its own: little-endian
 *
 *     "LSIMAGE1"  u32 count, u32 0, count times {u32 kind, u32 arch, u64 offset, u64 bytes}
 *
 * offset: from the start of the table, a multiple of 64. */
#ifndef LS_CUDA_IMAGE_H
#define LS_CUDA_IMAGE_H

#include <stdint.h>

#define LS_IMAGE_MAGIC "LSIMAGE1"
/* Code for one architecture runs on it and on later ones of the same major number; "a" code on that
 * one only; PTX is compiled when it is loaded, for its architecture and all later ones. */
typedef enum { LS_IMAGE_CODE, LS_IMAGE_EXACT, LS_IMAGE_PTX } LsImageKind;
typedef struct LsImageHead { char magic[8]; uint32_t count, none; } LsImageHead;
typedef struct LsImageEntry { uint32_t kind, arch; uint64_t offset, bytes; } LsImageEntry;

/* What a device of that capability should be given of `image`: the best of the table, or all of it
 * when it is no such table. NULL: there is nothing for it. */
const void *ls_cuda_image_choose(const unsigned char *image, int major, int minor);

#endif
