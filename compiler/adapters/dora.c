/* compiler/adapters/dora.c -- see the header. With the ratio q = magnitude / norm of each row:
 * y = W x + bias + (q - 1) W x' + q s B A x', where x' is x after the adapter's dropout. */
#include "compiler/adapters/dora.h"

#include "compiler/onnx_file/onnx_wire.h"

#include <math.h>
#include <string.h>

const float *ls_dora_norms(LsEditor *u, const LsAdaptable *m)
{
    const int64_t all = ls_edit_count(m->weight), row = m->out > 0 ? all / m->out : 0;
    LsReals w;
    float *norm = ls_arena_alloc(u->cx->arena, (size_t)m->out + 1, sizeof *norm);
    if (u->weightless)          /* else all weights of the file would be read */
        return norm;
    double *sum = ls_arena_alloc(u->scratch, (size_t)m->out + 1, sizeof *sum);
    if (!ls_edit_reals(u, m->weight, &w)) {
        ls_error(u->cx, LS_NOWHERE, LS_E_DATA, NULL,
                 "the data of '%s' are missing: DoRA begins with its norms",
                 ls_text(m->weight->name));
        return NULL;
    }
    for (int64_t at = 0, n; at < all; at += n) {
        const LsFileReal *v = ls_reals_from(&w, at, &n);
        for (int64_t k = 0; k < n; k++)
            sum[m->turned ? (at + k) % m->out : (at + k) / row] += (double)v[k] * v[k];
    }
    ls_reals_let_go(&w);
    for (int64_t i = 0; i < m->out; i++)
        norm[i] = (float)sqrt(sum[i]);
    return norm;
}

/* A tensor as rows [of, ...]. */
static const char *rows(LsAdapterNodes *n, const LsAdaptable *m, const char *tensor, int64_t of,
                        const char *end)
{
    const int64_t shape[] = {of, -1};
    if (m->kind != LS_MODULE_CONV)
        return tensor;
    return ls_adapter_add(n, "Reshape", tensor, ls_adapter_ints(n, shape, 2, "lora_rows"), end);
}

/* The norms of the rows of W + s B A, [out]. */
static const char *norms(LsAdapterNodes *n, const LsAdaptable *m, const LsAdapted *of, int opset)
{
    LsArena *a = n->u->cx->arena;
    const int64_t last = 1;
    const char *w = ls_text(m->weight->name);
    w = m->turned ? ls_adapter_add(n, "Transpose", w, NULL, "lora_weight")
                  : rows(n, m, w, m->out, "lora_weight");
    const char *low = ls_adapter_add(n, "MatMul", rows(n, m, of->b, m->out, "lora_B.rows"),
                                     rows(n, m, of->a, of->rank, "lora_A.rows"), "lora_BA");
    low = ls_adapter_add(n, "Mul", low, ls_adapter_real(n, of->scale, "lora_scale"), "lora_sBA");
    const char *sum = ls_adapter_add(n, "Add", w, low, "lora_weight_sum");
    const char *axes = opset >= 18 ? ls_adapter_ints(n, &last, 1, "lora_axis") : NULL;
    Onnx__NodeProto *p = ls_adapter_node(n, "ReduceL2", sum, axes, &LS_DORA_NORM[1]);
    ls_adapter_int(a, p, "keepdims", 0);
    if (axes == NULL)
        ls_adapter_axis(a, p, last);
    return p->output[0];
}

/* W x' without the bias. */
static const char *product_of(LsAdapterNodes *n, const LsAdaptable *m, const char *x)
{
    Onnx__NodeProto *p =
        ls_adapter_node(n, m->node->op_type, x, m->node->input[1], "lora_product");
    for (size_t k = 0; k < m->node->n_attribute; k++)
        ls_adapter_attribute(n->u->cx->arena, p, m->node->attribute[k]);
    return p->output[0];
}

void ls_dora_result(LsAdapterNodes *n, const LsAdaptable *m, const LsAdapted *of, const char *x,
                    const char *low, int opset)
{
    const int64_t channels[] = {1, m->out, 1, 1, 1, 1, 1, 1};
    const char *norm = norms(n, m, of, opset);
    if (m->kind == LS_MODULE_CONV)
        norm = ls_adapter_add(n, "Reshape", norm,
                              ls_adapter_ints(n, channels, (int64_t)m->weight->n_dims,
                                              "lora_channels"),
                              "lora_norms");
    const char *ratio = ls_adapter_add(n, "Div", of->magnitude, norm, "lora_ratio"),
               *more = ls_adapter_add(n, "Sub", ratio, ls_adapter_real(n, 1, "lora_one"),
                                      "lora_more");
    const bool same = strcmp(x, ls_text(m->node->input[0])) == 0 && m->node->n_input < 3;
    const char *product = same ? m->node->output[0] : product_of(n, m, x);
    const char *direction = ls_adapter_add(n, "Mul", product, more, "lora_direction");
    low = ls_adapter_add(n, "Mul", low, ratio, "lora_low");
    ls_adapter_add(n, "Add", m->node->output[0],
                   ls_adapter_add(n, "Add", direction, low, "lora_change"), "lora_sum");
}
