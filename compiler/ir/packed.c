/* compiler/ir/packed.c -- see packed.h. */
#include "compiler/ir/packed.h"

static int64_t line(int64_t bytes) { return (bytes + 63) / 64 * 64; }

LsPackedParts ls_packed_parts(const LsPackedCodes *c)
{
    const int64_t n = ls_codes_scales(c);
    LsPackedParts at = {.end = line(ls_codes_bytes(c))};
    if (n > 0) {
        at.scales = at.end;
        at.end += line(c->nested ? n : 4 * n);
    }
    if (c->zeros) {
        at.zeros = at.end;
        at.end += line(n);
    }
    if (c->nested) {
        at.nested = at.end;
        at.end += line(4 * ((n + LS_NESTED_SCALES - 1) / LS_NESTED_SCALES + 1));
    }
    return at;
}

const char *ls_codes_name(LsCodesForm f)
{
    static const char *const name[LS_NCODES] = {"fp4",   "nf4",  "uint4", "int4",
                                                "uint8", "int8", "bf16",  "f16"};
    return name[f];
}
