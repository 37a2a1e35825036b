/* runtime/predict/predict_npz.c -- predictions as an archive of arrays, [samples, ...] each, by the
 * outputs' names. The first array is written as its rows come; rows of the others wait in unnamed
 * files beside the archive. */
#include "runtime/data/npz.h"
#include "runtime/predict/predict_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Archive {
    LsNpz npz;
    LsNpzMember *member;
    FILE **wait;                /* by output; NULL: of the first */
    bool begun;
} Archive;

static FILE *unnamed(const char *beside, LsError *e)
{
    char path[LS_PATH + 16];
    snprintf(path, sizeof path, "%s.XXXXXX", beside);
    const int fd = mkstemp(path);
    FILE *f = NULL;
    if (fd >= 0) {
        unlink(path);
        f = fdopen(fd, "w+b");
        if (f == NULL)
            close(fd);
    }
    if (f == NULL)
        ls_fail(e, LS_EXIT_FAIL, "%s: cannot write beside it: %s", beside, strerror(errno));
    return f;
}

static bool begin(LsPredictFile *f, Archive *a, int k, LsError *e)
{
    const LsOutput *out = &f->outputs->output[k];
    int64_t dim[LS_TENSOR_RANK];
    memcpy(dim, out->t.dim, sizeof dim);
    dim[0] = f->samples * out->rows;
    return ls_npz_begin(&a->npz, out->name, out->type, out->t.rank, dim, e);
}

/* An archive of this form has offsets of 32 bits: what would not fit is known before it is made. */
static bool fits(const LsPredictFile *f, LsError *e)
{
    enum { HEADERS = 1024 };    /* of an array, without its name, which is there twice */
    int64_t bytes = 0, one;
    bool ok = true;
    for (int k = 0; k < f->outputs->n; k++) {
        const LsOutput *out = &f->outputs->output[k];
        ok &= !__builtin_mul_overflow(out->bytes, f->samples, &one)
              && !__builtin_add_overflow(bytes, one, &bytes)
              && !__builtin_add_overflow(bytes, HEADERS + 2 * (int64_t)strlen(out->name), &bytes);
    }
    return (ok && bytes <= UINT32_MAX)
           || ls_fail(e, LS_EXIT_USAGE,
                      "%s: predictions of %.3g GiB are more than the 4 GiB of an archive: name "
                      "fewer outputs (--predict-outputs), predict parts of the data, or write "
                      "FILE.csv",
                      f->path, ok ? (double)bytes * 0x1p-30 : INFINITY);
}

static bool npz_open(LsPredictFile *f, LsError *e)
{
    const int n = f->outputs->n;
    if (!fits(f, e))
        return false;
    Archive *a = f->own = calloc(1, sizeof *a);
    if (a == NULL || (a->member = calloc((size_t)n, sizeof *a->member)) == NULL
        || (a->wait = calloc((size_t)n, sizeof(FILE *))) == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --predict");
    if (!ls_npz_open(&a->npz, f->path, a->member, (uint32_t)n, e))
        return false;
    a->begun = true;
    for (int k = 1; k < n; k++)
        if ((a->wait[k] = unnamed(a->npz.out.through ? "predictions" : a->npz.out.path, e)) == NULL)
            return false;
    return begin(f, a, 0, e);
}

static bool npz_put(LsPredictFile *f, int64_t in_batch, LsError *e)
{
    Archive *a = f->own;
    for (int k = 0; k < f->outputs->n; k++) {
        const size_t bytes = (size_t)f->outputs->output[k].bytes;
        ls_output_read(f->outputs, k, in_batch, f->row);
        if (k == 0)
            ls_npz_write(&a->npz, f->row, bytes);
        else if (fwrite(f->row, 1, bytes, a->wait[k]) != bytes)
            return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write beside it: %s", f->path,
                           strerror(errno));
    }
    if (a->npz.out.err != 0)    /* a full disk is met now, not after all samples */
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write: %s", f->path,
                       strerror(a->npz.out.err));
    return true;
}

static bool append(LsPredictFile *f, Archive *a, int k, LsError *e)
{
    char part[1 << 14];
    size_t n;
    if (fflush(a->wait[k]) != 0 || fseek(a->wait[k], 0, SEEK_SET) != 0)
        return ls_fail(e, LS_EXIT_FAIL, "%s: cannot write beside it: %s", f->path, strerror(errno));
    if (!begin(f, a, k, e))
        return false;
    while ((n = fread(part, 1, sizeof part, a->wait[k])) > 0)
        ls_npz_write(&a->npz, part, n);
    return !ferror(a->wait[k])
           || ls_fail(e, LS_EXIT_FAIL, "%s: what lies beside it cannot be read", f->path);
}

static bool npz_close(LsPredictFile *f, bool whole, LsError *e)
{
    Archive *a = f->own;
    bool ok = whole;
    for (int k = 1; k < f->outputs->n && a->wait != NULL; k++) {
        ok = ok && append(f, a, k, e);
        if (a->wait[k] != NULL)
            fclose(a->wait[k]);
    }
    if (a->begun) {
        a->npz.out.err = ok || a->npz.out.err != 0 ? a->npz.out.err : EIO;
        ok = ls_npz_close(&a->npz, e) && ok;
    }
    free(a->member);
    free(a->wait);
    free(a);
    return ok;
}

const LsPredictKind ls_predict_npz = {"npz", npz_open, npz_put, npz_close};
