/* runtime/cuda/cublaslt.c -- see cublaslt.h. */
#include "runtime/cuda/cublaslt.h"

#include "runtime/cuda/cublaslt_choice.h"
#include "runtime/cuda/cublaslt_product.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CANDIDATES = 8,             /* most algorithms that are timed */
    REDUCTIONS = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE,
                                /* of split sums: in the workspace, added in a fixed order */
};

struct LsCublas {
    LsCublasLibrary lib;
    cublasLtHandle_t handle;
    LsChoices choices;
    const LsStopwatch *tune;
    FILE *notes;
    LsBlasProduct *product; int nproduct, cap;
};

/* ---- calls ---- */

typedef struct Call {           /* a product with the addresses of its arguments */
    LsCublas *b;
    LsBlasProduct *q;
    void *const *arg;
    void *stream;
    cublasStatus_t status;
} Call;

/* Bytes of the room at arg_workspace that the library may use, whatever the room's alignment. */
static int64_t workspace_of(const LsCudaMatmul *p)
{
    int64_t bytes = p->arg_workspace >= 0 ? p->workspace - (LS_PRODUCT_ALIGNMENT - 1) : 0;
    return bytes > 0 ? bytes : 0;
}

static void *workspace_at(const Call *call)
{
    const LsCudaMatmul *p = call->q->p;
    uintptr_t room = workspace_of(p) > 0 ? (uintptr_t)call->arg[p->arg_workspace] : 0;
    return (void *)((room + LS_PRODUCT_ALIGNMENT - 1) / LS_PRODUCT_ALIGNMENT
                    * LS_PRODUCT_ALIGNMENT);
}

/* Element offsets of the matrices of call number `at`. */
static void call_offsets(const LsBlasProduct *q, int64_t at, int64_t offset[3])
{
    const LsCudaMatmul *p = q->p;
    offset[0] = offset[1] = offset[2] = 0;
    for (int k = p->naxis - 1; k >= 0; k--) {
        if (k == q->batch)
            continue;
        int64_t step = at % p->axis[k].count;
        at /= p->axis[k].count;
        offset[0] += step * p->axis[k].a;
        offset[1] += step * p->axis[k].b;
        offset[2] += step * ls_blas_apart(p, k);
    }
}

/* Bytes from one matrix of aux to the matrix for element `offset` of c. */
static int64_t aux_bytes(const LsCudaMatmul *p, int64_t offset)
{
    int64_t rows = offset / p->n, ld = ls_product_aux_ld(p->after, p->n);
    bool bits = p->after == LS_AFTER_RELU || p->after == LS_AFTER_DRELU;
    return bits ? rows * ld / 8 : rows * ld * ls_blas_result_bytes(p);
}

static cublasStatus_t call_once(const Call *call, int64_t at)
{
    const LsBlasProduct *q = call->q;
    const LsCudaMatmul *p = q->p;
    const LsCublas *b = call->b;
    const double alpha8 = p->alpha, beta8 = p->plus;
    const float alpha4 = (float)p->alpha, beta4 = p->plus;
    const bool wide = p->type == LS_PRODUCT_F64;
    const void *alpha = wide ? (const void *)&alpha8 : &alpha4;
    const void *beta = wide ? (const void *)&beta8 : &beta4;
    int64_t offset[3], bytes = ls_blas_bytes(p), result = ls_blas_result_bytes(p);
    call_offsets(q, at, offset);
    const char *x = (const char *)call->arg[p->arg_a] + bytes * offset[0];
    const char *y = (const char *)call->arg[p->arg_b] + bytes * offset[1];
    char *z = (char *)call->arg[p->arg_c] + result * offset[2];
    const char *w = p->plus ? (const char *)call->arg[p->arg_plus] + result * offset[2] : z;
    if (p->arg_aux >= 0) {
        const char *aux = (const char *)call->arg[p->arg_aux] + aux_bytes(p, offset[2]);
        cublasStatus_t s = b->lib.MatmulDescSetAttribute(
            q->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
        if (s != CUBLAS_STATUS_SUCCESS)
            return s;
    }
    return b->lib.Matmul(b->handle, q->desc, alpha, y, q->b, x, q->a, beta, w, q->c, z, q->c,
                         &q->algo, workspace_at(call), (size_t)workspace_of(p), call->stream);
}

/* Calls the library for all matrices; false: *job has the failure. */
static bool call_all(void *job)
{
    Call *call = job;
    const LsCudaMatmul *p = call->q->p;
    int vector = p->arg_sum_a >= 0 ? p->arg_sum_a : p->arg_sum_b >= 0 ? p->arg_sum_b : p->arg_bias;
    LsError e = {0};
    call->status = CUBLAS_STATUS_INVALID_VALUE;
    if (vector >= 0 && !ls_blas_vectors(&call->b->lib, call->q, call->arg[vector],
                                    p->arg_aux >= 0 ? call->arg[p->arg_aux] : NULL, &e))
        return false;
    for (int64_t k = 0; k < call->q->calls; k++)
        if ((call->status = call_once(call, k)) != CUBLAS_STATUS_SUCCESS)
            return false;
    return true;
}

/* ---- choosing ---- */

/* Alignment shared by all matrices of an operand, in bytes. */
static uint32_t alignment(const LsBlasProduct *q, int which)
{
    const LsCudaMatmul *p = q->p;
    uint64_t all = LS_BLAS_ALIGNMENT;
    for (int k = 0; k < p->naxis; k++) {
        int64_t apart = which == 0 ? p->axis[k].a : which == 1 ? p->axis[k].b : ls_blas_apart(p, k);
        all |= (uint64_t)(apart * (which == 2 ? ls_blas_result_bytes(p) : ls_blas_bytes(p)));
    }
    return (uint32_t)(all & -all);
}

static bool make_preference(const LsCublas *b, const LsBlasProduct *q,
                            cublasLtMatmulPreference_t *to, LsError *e)
{
    const uint64_t workspace = (uint64_t)workspace_of(q->p);
    const uint32_t reductions = REDUCTIONS;
    const uint32_t aligned[] = {alignment(q, 1), alignment(q, 0), alignment(q, 2)};
    const struct { cublasLtMatmulPreferenceAttributes_t name; const void *value; size_t size; }
    row[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &aligned[0], sizeof *aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &aligned[1], sizeof *aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &aligned[2], sizeof *aligned},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &aligned[2], sizeof *aligned},
    };
    if (!ls_blas_ok(&b->lib, b->lib.MatmulPreferenceCreate(to), "choose an algorithm", e))
        return false;
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (!ls_blas_ok(&b->lib, b->lib.MatmulPreferenceSetAttribute(*to, row[k].name, row[k].value,
                                                                     row[k].size),
                        "choose an algorithm", e))
            return false;
    return true;
}

static int product_text(const LsCudaMatmul *p, char *text, size_t room)
{
    static const char *const type[] = {"f32", "tf32", "f64", "bf16", "f16"};
    int n = snprintf(text, room, "%s%s %" PRId64 "x%" PRId64 "x%" PRId64 " %c%c", type[p->type],
                     p->wide ? " to f32" : "", p->m, p->n, p->k, p->turn_a ? 'T' : 'N',
                     p->turn_b ? 'T' : 'N');
    if ((p->row_a > 0 || p->row_c > 0) && n < (int)room)
        n += snprintf(text + n, room - (size_t)n, " rows %" PRId64 " %" PRId64, p->row_a, p->row_c);
    if (p->plus && n < (int)room)
        n += snprintf(text + n, room - (size_t)n, " plus");
    for (int k = 0; k < p->naxis && n < (int)room; k++)
        n += snprintf(text + n, room - (size_t)n, " %" PRId64 ":%" PRId64 ":%" PRId64,
                      p->axis[k].count, p->axis[k].a, p->axis[k].b);
    return n;
}

static void product_key(const LsCudaMatmul *p, char key[LS_CHOICE_KEY])
{
    int n = product_text(p, key, LS_CHOICE_KEY);
    if (n < LS_CHOICE_KEY)
        snprintf(key + n, LS_CHOICE_KEY - (size_t)n, " after %u in %" PRId64, ls_blas_epilogue(p),
                 workspace_of(p));
}

/* Loads the cached choice of an earlier run, if it is still valid. */
static bool recall(const LsCublas *b, LsBlasProduct *q, const char *key)
{
    const LsChoice *old = ls_choices_find(&b->choices, key);
    cublasLtMatmulHeuristicResult_t r = {0};
    if (old == NULL || (b->tune != NULL && !old->tuned))
        return false;
    if (b->lib.MatmulAlgoCheck(b->handle, q->desc, q->b, q->a, q->c, q->c, &old->algo, &r)
            != CUBLAS_STATUS_SUCCESS
        || r.workspaceSize > (size_t)workspace_of(q->p))
        return false;
    q->algo = old->algo;
    return true;
}

/* Times the candidates and returns the fastest, on a tie the first; -1: none runs. */
static int fastest(Call *call, const cublasLtMatmulHeuristicResult_t *r, int n)
{
    const LsStopwatch *w = call->b->tune;
    double least = 0;
    int best = -1;
    for (int k = 0; k < n; k++) {
        if (r[k].state != CUBLAS_STATUS_SUCCESS)
            continue;
        call->q->algo = r[k].algo;
        double ns = w->time(w->self, call_all, call);
        if (ns >= 0 && (best < 0 || ns < least)) {
            least = ns;
            best = k;
        }
    }
    return best;
}

static bool ask(Call *call, LsError *e)
{
    LsCublas *b = call->b;
    LsBlasProduct *q = call->q;
    cublasLtMatmulHeuristicResult_t r[CANDIDATES] = {0};
    cublasLtMatmulPreference_t pref = NULL;
    int n = 0, best = -1;
    char text[LS_CHOICE_KEY];
    bool made = make_preference(b, q, &pref, e);
    cublasStatus_t s = !made ? CUBLAS_STATUS_SUCCESS
                     : b->lib.MatmulAlgoGetHeuristic(b->handle, q->desc, q->b, q->a, q->c, q->c,
                                                     pref, CANDIDATES, r, &n);
    if (pref != NULL)
        b->lib.MatmulPreferenceDestroy(pref);
    if (!made)
        return false;
    if (s == CUBLAS_STATUS_SUCCESS && b->tune != NULL)
        best = fastest(call, r, n);
    for (int k = 0; k < n && best < 0; k++)
        if (r[k].state == CUBLAS_STATUS_SUCCESS)
            best = k;
    if (best >= 0) {
        q->algo = r[best].algo;
        return true;
    }
    product_text(q->p, text, sizeof text);
    return ls_fail(
        e, LS_EXIT_DEVICE,
        "%s has no algorithm for a product %s (epilogue %u) within %" PRId64 " bytes: %s",
        b->lib.name, text, ls_blas_epilogue(q->p), workspace_of(q->p),
        s == CUBLAS_STATUS_SUCCESS ? "none is deterministic" : b->lib.GetStatusString(s));
}

static bool choose(Call *call, LsError *e)
{
    LsCublas *b = call->b;
    LsChoice choice = {.tuned = b->tune != NULL};
    product_key(call->q->p, choice.key);
    if (recall(b, call->q, choice.key))
        return true;
    if (!ask(call, e))
        return false;
    choice.algo = call->q->algo;
    ls_choices_put(&b->choices, &choice);
    return true;
}

/* ---- the whole ---- */

bool ls_cublas_open(LsCublas **to, const LsCublasSetup *setup, LsError *e)
{
    LsCublas *b = calloc(1, sizeof *b);
    if (b == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!ls_cublas_library_open(&b->lib, setup->library, e)) {
        free(b);
        return false;
    }
    cublasStatus_t s = b->lib.Create(&b->handle);
    if (s != CUBLAS_STATUS_SUCCESS) {
        ls_fail(e, LS_EXIT_DEVICE, "%s does not start: %s (is there a device, and a driver as new "
                "as the library?)", b->lib.name, b->lib.GetStatusString(s));
        ls_cublas_library_close(&b->lib);
        free(b);
        return false;
    }
    ls_choices_open(&b->choices, setup->cache, b->lib.name, setup->device);
    b->tune = setup->tune;
    b->notes = setup->notes;
    *to = b;
    return true;
}

void ls_cublas_close(LsCublas *b)
{
    if (b == NULL)
        return;
    ls_choices_close(&b->choices);
    for (int k = 0; k < b->nproduct; k++)
        ls_blas_product_free(&b->lib, &b->product[k]);
    free(b->product);
    b->lib.Destroy(b->handle);
    ls_cublas_library_close(&b->lib);
    free(b);
}

void ls_cublas_tune(LsCublas *b, const LsStopwatch *watch) { b->tune = watch; }

const char *ls_cublas_name(const LsCublas *b) { return b->lib.name; }

/* The entry of that product, new at its first use; NULL after an error. */
static LsBlasProduct *product_of(LsCublas *b, const LsCudaMatmul *p, LsError *e)
{
    for (int k = 0; k < b->nproduct; k++)
        if (b->product[k].of == p)
            return &b->product[k];
    if (b->nproduct == b->cap) {
        int cap = b->cap > 0 ? 2 * b->cap : 64;
        LsBlasProduct *all = realloc(b->product, (size_t)cap * sizeof *all);
        if (all == NULL) {
            ls_fail(e, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        b->product = all;
        b->cap = cap;
    }
    LsBlasProduct *q = &b->product[b->nproduct++];
    *q = (LsBlasProduct){.p = p, .of = p};
    return q;
}

/* Prepares the product and chooses an algorithm in the first run, then runs. */
static bool attempt(Call *call, LsError *e)
{
    const LsCublas *b = call->b;
    LsBlasProduct *q = call->q;
    char text[LS_CHOICE_KEY];
    if (!q->chosen && !(q->chosen = ls_blas_product_make(&b->lib, q, e) && choose(call, e)))
        return false;
    if (call_all(call)) {
        q->ran = true;
        return true;
    }
    product_text(q->p, text, sizeof text);
    return ls_fail(e, LS_EXIT_DEVICE, "%s: a product %s (epilogue %u): %s", b->lib.name, text,
                   ls_blas_epilogue(q->p), b->lib.GetStatusString(call->status));
}

bool ls_cublas_multiply(LsCublas *b, LsRun *run, const LsCudaMatmul *p, void *const arg[],
                        const char *node, void *stream, LsError *e)
{
    Call call = {.b = b, .q = product_of(b, p, e), .arg = arg, .stream = stream};
    LsError why = {0};
    if (call.q == NULL)
        return false;
    bool may_part = p->behind != NULL && !call.q->ran && call.q->alone == NULL;
    bool ok = attempt(&call, may_part ? &why : e);
    if (!ok && may_part) {
        if (b->notes != NULL)
            fprintf(b->notes, "note: node '%s': %s; a kernel of the program does the product's "
                    "epilogue\n", node != NULL ? node : "", why.text);
        ok = ls_blas_product_part(&b->lib, call.q, e) && attempt(&call, e);
    }
    if (ok && call.q->alone != NULL)
        p->behind(run, arg);
    return ok;
}
