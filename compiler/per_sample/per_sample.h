/* compiler/per_sample/per_sample.h -- gradients of every sample of a batch, and their norms. */
#ifndef LS_COMPILER_PER_SAMPLE_PER_SAMPLE_H
#define LS_COMPILER_PER_SAMPLE_PER_SAMPLE_H

#include "compiler/per_sample/sample_gradients.h"
#include "compiler/per_sample/batch_mixing.h"

/* A training graph whose backward part has the gradients of a sum over samples. */
typedef struct LsPerSample {
    LsCtx *cx;
    LsGraph *g;
    LsSamples samples;          /* of the values that the graph has before the pass */
    uint32_t nvalue;            /* of those values */
    const LsSampleGrads *o;
    LsValueId factor;           /* [batch]: of the samples in ls_weighed */
    LsValueId *each, *weighed;  /* by value, as far as computed */
} LsPerSample;

/* Terms of what is SUMMED are computed by ls_each. */
LsSampleRole ls_sample_role(const LsPerSample *p, LsValueId v);

/* The terms of a SUMMED value, [batch, shape of v], or the elements of a PLACED one, [batch, shape
 * of v without the samples along their axis]. None after an error. */
LsValueId ls_each(LsPerSample *p, LsValueId v);
/* The same of operand k of a node that adds up samples; of an operand that does not depend on
 * samples what it has for each of them, as a constant with a row for each sample. None: it has
 * nothing, or after an error. */
LsValueId ls_each_operand(LsPerSample *p, LsNodeId n, int k);

/* Whether the elements of a gradient belong to samples, as that of a trained state of a batch: each
 * sample has its own rows, and zeros elsewhere. Its terms with these zeros: [batch, shape of v].
 * None after an error. */
bool ls_is_of_samples(const LsPerSample *p, LsValueId v);
LsValueId ls_each_of_own(LsPerSample *p, LsValueId v);

/* The terms times p->factor, added up: the shape of v. Terms with a factor of 0 count as 0,
 * whatever they are. */
LsValueId ls_weighed(LsPerSample *p, LsValueId v);

/* The sum over samples that v is, or with p->factor the weighed one: from its terms if they are
 * there and that is the shorter way; `sums` says whether a weighed sum is both, for the planner to
 * choose. None after an error. */
LsValueId ls_gradient_from_terms(LsPerSample *p, LsValueId v, LsClippedSums sums);

/* Squared norms of the terms of a convolution's weight gradient, from pairs of positions or from
 * tiles; none: its kernel has no such form. */
LsValueId ls_conv_norm_by_pairs(LsPerSample *p, LsNodeId n);
LsValueId ls_conv_norm_by_tiles(LsPerSample *p, LsNodeId n);

/* Squared Euclidean norms of the terms: [batch]. Makes the terms of v only where that is the way.
 * None after an error. */
LsValueId ls_each_norm(LsPerSample *p, LsValueId v);
/* The predicted time of a node, ns; of all nodes from `first` on, where pointwise ones join their
 * readers. */
double ls_price(const LsPerSample *p, LsNodeId n);
double ls_price_since(const LsPerSample *p, uint32_t first);

/* Whether a node that makes a SUMMED value adds up samples, or is linear in operands that do. */
bool ls_adds_linearly(const LsPerSample *p, LsNodeId n);
/* Reports that the pass has no form of the node for single samples. Returns none. */
LsValueId ls_refuse_node(const LsPerSample *p, LsNodeId n);

/* Makes the random numbers of a forward graph those of `how`, or refuses them.
 * (compiler/per_sample/sample_randomness.c) */
bool ls_sample_randomness(LsCtx *, LsGraph *, LsRandomness how);

/* Appends what is asked for behind a graph with gradients: sets further entries of g->grad.
 * gradient_of: by value, the value that it is a gradient of, or a part of it. Refuses what mixes
 * samples. */
bool ls_per_sample(LsCtx *, LsGraph *, const LsSampleGrads *, const LsValueId *gradient_of);

#endif
