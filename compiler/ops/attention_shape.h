/* compiler/ops/attention_shape.h -- ATTENTION and its gradient: sizes, places of axes, the form in
 * products. */
#ifndef LS_COMPILER_OPS_ATTENTION_SHAPE_H
#define LS_COMPILER_OPS_ATTENTION_SHAPE_H

#include "compiler/ir/graph.h"

/* Among the four attention operators: the gradients; the operators with q, k and v in one
 * tensor. */
bool ls_attention_is_back(const LsGraph *g, LsNodeId n);
bool ls_attention_is_joint(const LsGraph *g, LsNodeId n);
/* Index of the mask operand; the operand may be absent. */
int ls_attention_mask(const LsGraph *g, LsNodeId n);
/* Likewise of the spans of segments. */
int ls_attention_spans(const LsGraph *g, LsNodeId n);

/* Sizes of an attention node; see compiler/ir/net.def. */
typedef struct LsAttentionSize {
    int64_t batch, heads, groups;       /* N H G */
    int64_t rows, cols, depth, width;   /* T S D E */
} LsAttentionSize;
LsAttentionSize ls_attention_size(const LsGraph *g, LsNodeId n);
enum { LS_DEEPEST_HEAD = 512 };     /* elements of a head, at most */
/* The heads are narrow enough for a GPU's kernels on tensor cores, which keep rows of q and y in
 * registers. */
bool ls_attention_fits_cores(const LsGraph *g, LsNodeId n);
/* Number of scores that take part: all, or those that a causal mask leaves. */
double ls_attention_scores(const LsGraph *g, LsNodeId n);

/* The place of the heads within a tensor of the node. */
typedef enum { LS_ATT_Q, LS_ATT_K, LS_ATT_V, LS_ATT_Y } LsAttentionPart;
typedef struct LsHeadsAt {
    int operand;                /* for q, k, v: the operand that holds them */
    int64_t from;               /* element at which the first head begins */
    int64_t sample, head, row;  /* strides in elements */
} LsHeadsAt;
LsHeadsAt ls_attention_heads(const LsGraph *g, LsNodeId n, LsAttentionPart part);

/* The axis of heads and the axis of tokens, of a tensor with this bit of by_token. */
static inline int ls_head_axis(const LsAttentionAttr *at, unsigned bit)
{
    return at->by_token & bit ? 2 : 1;
}
static inline int ls_token_axis(const LsAttentionAttr *at, unsigned bit)
{
    return at->by_token & bit ? 1 : 2;
}

/* y of an attention over in: q, k, v, mask (none: no mask). One node; or products and a softmax,
 * where heads are deeper than the kernels support or the mask depends on a parameter and so needs a
 * gradient. None after a diagnostic. */
LsValueId ls_attention(LsCtx *cx, LsGraph *g, const LsValueId in[4], const LsAttentionAttr *at);
/* The same as products and a softmax, with what the kernels lack. *scores, if wanted: [N,H,T,S] at
 * one stage. */
typedef enum {
    LS_SCORES_RAW,
    LS_SCORES_CAPPED,
    LS_SCORES_MASKED,
    LS_SCORES_SOFTMAX,
    LS_SCORES_STAGES
} LsScoresStage;
typedef struct LsOpenAttention {
    double cap;                 /* scores become cap tanh(score / cap); 0: they do not */
    LsScoresStage stage;
    LsValueId *scores;          /* NULL: not wanted */
    bool guard;                 /* rows in which the mask hides everything give 0, as the kernels
                                 * do; else NaN */
} LsOpenAttention;
LsValueId ls_attention_open(LsCtx *cx, LsGraph *g, const LsValueId in[4], const LsAttentionAttr *at,
                            const LsOpenAttention *o);
/* v depends on a parameter. */
bool ls_is_trained(LsCtx *cx, const LsGraph *g, LsValueId v);

#endif
