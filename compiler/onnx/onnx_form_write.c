/* compiler/onnx/onnx_form_write.c -- see onnx_form_write.h. */
#include "compiler/onnx/onnx_form_write.h"

#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/packed/packed_tensor.h"

#include <errno.h>
#include <string.h>

typedef struct Writer {
    LsCtx *cx;
    FILE *to;
    size_t hole;                /* zeros that are not written yet */
    float wide[LS_ARENA_PART / sizeof(float)];
} Writer;

static bool is_zero(const unsigned char *bytes, size_t n)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0;
}

static bool skip_hole(Writer *w)
{
    const off_t n = (off_t)w->hole;
    w->hole = 0;
    return n == 0 || fseeko(w->to, n, SEEK_CUR) == 0;
}

static bool put(Writer *w, const unsigned char *bytes, size_t n)
{
    if (n == LS_ARENA_PART && is_zero(bytes, n)) {
        w->hole += n;
        return true;
    }
    return skip_hole(w) && fwrite(bytes, 1, n, w->to) == n;
}

/* A file that ends with a hole gets its last byte. */
static bool end(Writer *w)
{
    return w->hole == 0
           || (fseeko(w->to, (off_t)w->hole - 1, SEEK_CUR) == 0 && fputc(0, w->to) == 0);
}

/* Reals of another type are widened part by part. */
static bool put_piece(Writer *w, const LsOnnxPiece *p)
{
    const size_t each = p->widen != 0 ? (size_t)ls_onnx_type_bytes(p->widen) : sizeof(float);
    bool ok = true;
    if (p->packed != NULL)
        return skip_hole(w) && ls_packed_write(p->packed, w->cx->arena, w->to);
    if (p->bytes == NULL)
        w->hole += p->n;
    for (size_t at = 0, n; p->bytes != NULL && at < p->n && ok; at += n) {
        n = p->n - at < LS_ARENA_PART ? p->n - at : LS_ARENA_PART;
        const unsigned char *from = p->bytes + at / sizeof(float) * each;
        if (p->widen != 0)
            ls_raw_to_floats(p->widen, from, n / sizeof(float), w->wide);
        else
            from = p->bytes + at;
        ok = put(w, p->widen != 0 ? (const unsigned char *)w->wide : from, n);
        ls_arena_let_go(w->cx->arena, p->bytes, (at + n) / sizeof(float) * each);
    }
    return ok;
}

bool ls_onnx_form_put(LsCtx *cx, const LsOnnxForm *f, FILE *to)
{
    Writer *w = ls_arena_alloc(cx->arena, 1, sizeof *w);
    w->cx = cx;
    w->to = to;
    for (uint32_t i = 0; i < f->npiece; i++)
        if (!put_piece(w, &f->piece[i]))
            return false;
    return end(w);
}

bool ls_onnx_form_write(LsCtx *cx, const LsOnnxForm *f, const char *path)
{
    FILE *to = fopen(path, "wb");
    bool ok = to != NULL && ls_onnx_form_put(cx, f, to);
    if (to != NULL)
        ok &= fclose(to) == 0;
    return ok
           || ls_error(cx, LS_NOWHERE, LS_E_IO, NULL, "cannot write '%s': %s", path,
                       strerror(errno));
}
