/* runtime/cuda/cuda_image.c -- see cuda_image.h. */
#include "runtime/cuda/cuda_image.h"

#include <stddef.h>
#include <string.h>

/* Rank of an entry for a device: 0 unsuitable; code for the device itself ranks above older code,
 * and that above PTX. */
static uint32_t suits(const LsImageEntry *t, uint32_t major, uint32_t minor)
{
    uint32_t device = 10 * major + minor;
    switch ((LsImageKind)t->kind) {
    case LS_IMAGE_EXACT: return t->arch == device ? 3000 : 0;
    case LS_IMAGE_CODE:  return t->arch / 10 == major && t->arch <= device ? 2000 + t->arch : 0;
    case LS_IMAGE_PTX:   return t->arch <= device ? 1000 + t->arch : 0;
    }
    return 0;
}

const void *ls_cuda_image_choose(const unsigned char *image, int major, int minor)
{
    LsImageHead head;
    LsImageEntry t;
    const unsigned char *best = NULL;
    uint32_t most = 0;
    if (memcmp(image, LS_IMAGE_MAGIC, sizeof head.magic) != 0)
        return image;
    memcpy(&head, image, sizeof head);
    for (uint32_t k = 0; k < head.count; k++) {
        memcpy(&t, image + sizeof head + k * sizeof t, sizeof t);
        uint32_t fit = suits(&t, (uint32_t)major, (uint32_t)minor);
        if (fit > most) {
            most = fit;
            best = image + t.offset;
        }
    }
    return best;
}
