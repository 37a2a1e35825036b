/* tests/support/attention_cases.h -- attention nodes of ragged sizes for the rig of kernels: both
 * orders of heads and tokens, grouped queries, masks of every kind, segments, causal with columns
 * before. */
#ifndef LS_TESTS_SUPPORT_ATTENTION_CASES_H
#define LS_TESTS_SUPPORT_ATTENTION_CASES_H

#include "compiler/ops/attention_shape.h"
#include "tests/support/kernel_rig.h"

typedef enum { NO_MASK, ADDED, BOOLS } Mask;

enum { JOINT = 16 };

typedef struct Case {
    int64_t batch, heads, groups, rows, cols, depth, width;
    unsigned by_token;          /* with JOINT: q, k and v in one tensor */
    bool causal;
    int64_t past;
    Mask mask;
    LsShape mask_shape;         /* rank 0: that of the scores */
    bool keep;
    double fill;
    int64_t cut;                /* tokens of the longest segment; 0: there are no segments */
} Case;

static const Case cases[] = {
    {1, 1, 1, 1, 1, 1, 1, 0, false, 0, NO_MASK, {0}, 0, 0, 0},
    {2, 3, 3, 19, 17, 5, 7, 0, false, 0, NO_MASK, {0}, 0, 0, 0},
    {2, 4, 4, 33, 33, 16, 16, 15, true, 0, NO_MASK, {0}, 0, 0, 0},
    {1, 4, 2, 30, 45, 8, 12, 5, false, 0, NO_MASK, {0}, 0, 0, 0},       /* two heads to a group */
    {1, 6, 1, 40, 31, 20, 9, 10, true, 3, NO_MASK, {0}, 0, 0, 0},
    {1, 2, 2, 120, 500, 24, 24, 15, true, 300, NO_MASK, {0}, 0, 0, 0},     /* several blocks */
    {1, 1, 1, 600, 600, 32, 40, 0, true, 0, NO_MASK, {0}, 0, 0, 0},        /* several units */
    {1, 2, 1, 20, 210, 100, 70, 0, false, 0, NO_MASK, {0}, 0, 0, 0},       /* deep heads */
    {1, 1, 1, 9, 70, 170, 3, 3, true, 61, NO_MASK, {0}, 0, 0, 0},
    {2, 3, 3, 20, 35, 8, 8, 0, false, 0, ADDED, {0}, 0, 0, 0},
    {2, 2, 2, 37, 37, 8, 8, 15, true, 0, ADDED, {4, {1, 2, 1, 37}}, 0, 0, 0},
    {2, 2, 1, 11, 40, 8, 8, 7, false, 0, ADDED, {4, {2, 1, 11, 1}}, 0, 0, 0},
    {2, 2, 2, 21, 34, 8, 8, 0, false, 0, BOOLS, {0}, true, -3.4e38, 0},
    {2, 2, 2, 34, 34, 8, 8, 15, true, 2, BOOLS, {4, {2, 1, 1, 34}}, false, -1e9, 0},
    /* moves nothing */
    {1, 2, 2, 14, 9, 8, 8, 2, false, 0, BOOLS, {4, {1, 1, 14, 9}}, true, 0.5, 0},
    {1, 4, 2, 70, 100, 64, 64, 15, true, 30, NO_MASK, {0}, 0, 0, 0},
    {1, 2, 2, 66, 75, 13, 38, 6, false, 0, ADDED, {4, {1, 1, 1, 75}}, 0, 0, 0},
    {2, 3, 3, 35, 35, 8, 8, JOINT | 15, true, 0, NO_MASK, {0}, 0, 0, 0},
    {2, 4, 2, 21, 21, 16, 12, JOINT | 7, false, 0, ADDED, {4, {2, 1, 1, 21}}, 0, 0, 0},
    {1, 6, 1, 33, 33, 4, 20, JOINT | 15, true, 2, BOOLS, {4, {1, 1, 33, 33}}, true, -1e9, 0},
    {1, 2, 2, 80, 80, 64, 64, JOINT | 15, true, 0, NO_MASK, {0}, 0, 0, 0},
    {2, 2, 1, 37, 37, 8, 12, 15, true, 0, NO_MASK, {0}, 0, 0, 9},
    {2, 3, 3, 40, 40, 8, 8, JOINT | 15, true, 0, ADDED, {4, {2, 1, 1, 40}}, 0, 0, 17},
    {1, 2, 2, 620, 620, 24, 20, 15, true, 0, NO_MASK, {0}, 0, 0, 250},  /* several blocks, units */
    {1, 1, 1, 500, 500, 16, 16, 0, true, 0, NO_MASK, {0}, 0, 0, 3},
    {2, 2, 2, 300, 300, 8, 8, 5, false, 0, NO_MASK, {0}, 0, 0, 270},  /* in both directions */
    {1, 2, 2, 70, 70, 8, 8, 0, false, 0, BOOLS, {4, {1, 1, 70, 70}}, true, -INFINITY, 20},
    {1, 1, 1, 260, 260, 170, 3, 3, true, 0, BOOLS, {4, {1, 1, 1, 260}}, true, -1e9, 100},
};
enum { NCASES = sizeof cases / sizeof *cases };

static inline LsShape turned(const Case *c, unsigned bit, int64_t heads, int64_t tokens,
                             int64_t size)
{
    return c->by_token & bit ? SHAPE(c->batch, tokens, heads, size)
                             : SHAPE(c->batch, heads, tokens, size);
}

static inline LsValueId mask_operand(Rig *r, const Case *c)
{
    LsShape all = SHAPE(c->batch, c->heads, c->rows, c->cols);
    LsShape s = c->mask_shape.rank > 0 ? c->mask_shape : all;
    LsValueId m = rig_operand(r, c->mask == BOOLS ? LS_BOOL : LS_REAL, LS_ROW, s);
    for (int64_t i = 0; i < ls_count(&s); i++)
        if (c->mask == ADDED && i % 5 == 2)
            rig_set(r, m, i, -INFINITY);
        else if (c->mask == BOOLS && i % s.dim[3] == 0)
            rig_set(r, m, i, c->keep);      /* no row is left without a score */
    return m;
}

/* Ragged segments, others in each sample. */
static inline LsValueId spans_operand(Rig *r, const Case *c)
{
    const LsValueId v = rig_operand(r, LS_I32, LS_ROW, SHAPE(c->batch, c->rows, 2));
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t first = 0, end; first < c->rows; first = end) {
            end = first + 1 + (first * 7 + n * 5 + 3 * c->cut / 4) % c->cut;
            end = end < c->rows ? end : c->rows;
            for (int64_t i = first; i < end; i++) {
                rig_set(r, v, (n * c->rows + i) * 2, (double)first);
                rig_set(r, v, (n * c->rows + i) * 2 + 1, (double)end);
            }
        }
    return v;
}

/* Operands behind q, k, v: mask and spans, as far as they are there. */
static inline int count_in(int nq, const LsValueId in[])
{
    return ls_is(in[nq + 1]) ? nq + 2 : ls_is(in[nq]) ? nq + 1 : nq;
}

static inline LsNodeId forward(Rig *r, const Case *c, LsValueId in[5], LsAttr *at)
{
    *at = (LsAttr){.attention = {.scale = 0.7, .by_token = c->by_token % JOINT, .causal = c->causal,
                                 .past = c->past, .keep = c->keep, .fill = c->fill}};
    LsShape y = turned(c, LS_Y_BY_TOKEN, c->heads, c->rows, c->width);
    LsNodeId n;
    in[3] = c->mask != NO_MASK ? mask_operand(r, c) : (LsValueId){0};
    in[4] = c->cut > 0 ? spans_operand(r, c) : (LsValueId){0};
    if (c->by_token & JOINT) {
        int64_t columns = c->heads * c->depth + c->groups * (c->depth + c->width);
        at->attention.heads = c->heads, at->attention.groups = c->groups;
        at->attention.depth = c->depth, at->attention.width = c->width;
        in[0] = rig_operand(r, LS_REAL, LS_ROW, SHAPE(c->batch, c->rows, columns));
        in[1] = in[3], in[2] = in[4];
        n = rig_node(r, LS_OP_ATTENTION_JOINT, count_in(1, in), in, 2, at);
    } else {
        const LsShape k = turned(c, LS_K_BY_TOKEN, c->groups, c->cols, c->depth);
        in[0] = rig_operand(r, LS_REAL, LS_ROW,
                            turned(c, LS_Q_BY_TOKEN, c->heads, c->rows, c->depth));
        in[1] = rig_operand(r, LS_REAL, LS_ROW, k);
        in[2] = rig_operand(r, LS_REAL, LS_ROW,
                            turned(c, LS_V_BY_TOKEN, c->groups, c->cols, c->width));
        n = rig_node(r, LS_OP_ATTENTION, count_in(3, in), in, 2, at);
    }
    rig_result(r, n, 0, LS_REAL, LS_ROW, y);
    rig_result(r, n, 1, LS_REAL, LS_ROW, SHAPE(c->batch, c->heads, c->rows, 1));
    return n;
}

static inline LsNodeId backward(Rig *r, LsNodeId fwd, const LsValueId in[5], const LsAttr *at)
{
    LsValueId y = ls_out(r->g, fwd, 0), lse = ls_out(r->g, fwd, 1);
    LsValueId dy = rig_operand(r, LS_REAL, LS_ROW, *ls_shape(r->g, y));
    LsValueId operand[] = {dy, y, lse, in[0], in[1], in[2], in[3], in[4]};
    bool joint = ls_attention_is_joint(r->g, fwd);
    int nin = 3 + r->g->node[fwd.i].nin, nout = joint ? 1 : 3;
    LsNodeId n = rig_node(r, joint ? LS_OP_ATTENTION_JOINT_GRAD : LS_OP_ATTENTION_GRAD, nin,
                          operand, nout, at);
    for (int k = 0; k < nout; k++)
        rig_result(r, n, k, LS_REAL, LS_ROW, *ls_shape(r->g, in[k]));
    return n;
}

#endif
