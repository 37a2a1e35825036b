/* compiler/packed/packed_tensor.c -- the list, and the values of codes. */
#include "compiler/packed/packed_tensor.h"

#include "compiler/packed/four_bits.h"
#include "compiler/packed/half_bits.h"

#include <string.h>

LsPackedTensor *ls_packed_add(LsPackedTensors *all, const LsPackedTensor *t)
{
    LsPackedTensor *own = ls_arena_alloc(all->arena, 1, sizeof *own);
    *own = *t;
    all->tensor = ls_arena_grow(all->arena, all->tensor, all->n, all->n + 1, sizeof *all->tensor,
                                &all->cap);
    return all->tensor[all->n++] = own;
}

LsPackedTensor *ls_packed_named(const LsPackedTensors *all, const char *name)
{
    for (uint32_t k = 0; all != NULL && k < all->n; k++)
        if (strcmp(all->tensor[k]->name, name) == 0)
            return all->tensor[k];
    return NULL;
}

void ls_stored_floats(const LsStoredReals *r, int64_t from, int64_t n, float *to)
{
    if (r->as == LS_STORED_AS_F32) {
        memcpy(to, r->bytes + 4 * from, (size_t)n * 4);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, r->bytes + 2 * (from + i), 2);
        to[i] = r->as == LS_STORED_AS_BF16 ? ls_brain_value(bits) : ls_half_value(bits);
    }
}

/* The scale and the zero point of element i, in the order of the scales. */
static int64_t scale_of(const LsPackedCodes *c, int64_t i)
{
    const int64_t along = i / c->inner % c->axis;
    if (c->block == 0)
        return along;
    const int64_t blocks = (c->axis + c->block - 1) / c->block;
    return (i / c->inner / c->axis * blocks + along / c->block) * c->inner + i % c->inner;
}

static int code_at(LsCodesForm form, const uint8_t *b, int64_t i)
{
    const int four = i % 2 == 0 ? b[i / 2] & 15 : b[i / 2] >> 4;
    switch (form) {
    case LS_CODES_U4: return four;
    case LS_CODES_I4: return four >= 8 ? four - 16 : four;
    case LS_CODES_I8: return (int8_t)b[i];
    default:          return b[i];
    }
}

void ls_packed_values(const LsPackedTensor *t, float *to)
{
    const LsPackedCodes *c = &t->codes;
    const bool is_signed = c->form == LS_CODES_I4 || c->form == LS_CODES_I8;
    for (int64_t i = 0; i < c->count; i++) {
        const int64_t s = scale_of(c, i);
        float scale;
        memcpy(&scale, t->scale + 4 * s, 4);
        if (c->form <= LS_CODES_NF4) {
            to[i] = ls_four_bits_value((LsFourBits)c->form, t->code, i) * scale;
        } else {
            const int zero = !c->zeros ? 0 : is_signed ? (int8_t)t->zero[s] : t->zero[s];
            to[i] = (float)(code_at(c->form, t->code, i) - zero) * scale;
        }
    }
}
