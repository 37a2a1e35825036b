/* compiler/ir/packed.h -- how reals lie in codes of 16, 8 or 4 bits: one block of bytes has the
 * codes, their scales, their zero points, and what codes of scales stand for. */
#ifndef LS_COMPILER_IR_PACKED_H
#define LS_COMPILER_IR_PACKED_H

#include <stdbool.h>
#include <stdint.h>

/* As LsPackedForm of runtime/ls_unpack.h, which says what the codes are. */
typedef enum {
    LS_CODES_FP4,
    LS_CODES_NF4,
    LS_CODES_U4,
    LS_CODES_I4,
    LS_CODES_U8,
    LS_CODES_I8,
    LS_CODES_BF16,
    LS_CODES_F16,
    LS_NCODES
} LsCodesForm;

/* `count` elements, a tensor of outer x axis x inner. Blocks of `block` elements along the axis
 * have one scale; block 0: each index along the axis has one. nested: the scales are codes
 * themselves. */
typedef struct LsPackedCodes {
    LsCodesForm form;
    int64_t count, axis, inner, block;
    bool zeros, nested;
} LsPackedCodes;

enum { LS_NESTED_SCALES = 256 };        /* that share a scale */

static inline int64_t ls_codes_bits(LsCodesForm f)
{
    return f >= LS_CODES_BF16 ? 16 : f >= LS_CODES_U8 ? 8 : 4;
}
static inline int64_t ls_codes_bytes(const LsPackedCodes *c)
{
    return (c->count * ls_codes_bits(c->form) + 7) / 8;
}
static inline int64_t ls_codes_scales(const LsPackedCodes *c)
{
    if (c->form >= LS_CODES_BF16)
        return 0;
    const int64_t blocks = c->block > 0 ? (c->axis + c->block - 1) / c->block : 0;
    return c->block > 0 ? c->count / c->axis * blocks : c->axis;
}

/* Where the parts begin, in bytes, each at a multiple of 64; 0: there are none. end: of all. */
typedef struct LsPackedParts { int64_t scales, zeros, nested, end; } LsPackedParts;
LsPackedParts ls_packed_parts(const LsPackedCodes *c);

/* "nf4", "int8"... */
const char *ls_codes_name(LsCodesForm f);

#endif
