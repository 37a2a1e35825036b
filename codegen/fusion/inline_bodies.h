/* codegen/fusion/inline_bodies.h -- one body out of several: the statements that make some values taken into the
 * loop of a reader. */
#ifndef LS_CODEGEN_FUSION_INLINE_BODIES_H
#define LS_CODEGEN_FUSION_INLINE_BODIES_H

#include "compiler/passes/fuse.h"

enum {
    LS_MERGE_STMT = 48, LS_MERGE_IN = 48,   /* most of a merged body; keeps kernels readable */
    LS_MERGE_VALUES = 12,                   /* most values taken in */
};

typedef struct LsValueSet { LsValueId v[LS_MERGE_VALUES]; int n; } LsValueSet;

void ls_value_set_put(LsValueSet *set, LsValueId v);    /* nothing when it is there, or full */

typedef struct LsMerge {                    /* a body under construction */
    const LsGraph *g;
    const LsValueSet *set;                  /* the values that are taken in */
    LsStmt stmt[LS_MERGE_STMT];
    struct { uint32_t node; int stmt; } from[LS_MERGE_STMT];
    LsValueId in[LS_MERGE_IN];              /* operands */
    int nstmt, nin;
    bool full;                              /* it did not fit: the rest is void */
} LsMerge;

/* The body of a FUSED node; NULL of another. */
const LsFused *ls_body_of(const LsGraph *g, LsNodeId n);
/* The one statement of a FUSED node that applies it to its operands in order; NULL: it is more. */
const LsStmt *ls_only_statement(const LsGraph *g, LsNodeId n);
/* The first node that reads v; none: nobody does. *shared: another node does, too, or it is an output, a
 * gradient or the loss. */
LsNodeId ls_first_reader(const LsGraph *g, LsValueId v, bool *shared);
/* The statement of its maker that gives v; -1: none, a reduction, or a part of a statement. */
int ls_root_statement(const LsGraph *g, LsValueId v);
/* Bit s: v needs statement s of its maker, which has at most LS_MERGE_STMT; 0 where it has no root
 * statement. */
uint64_t ls_needed_statements(const LsGraph *g, LsValueId v);

/* An argument for v: the statement that makes it if it is taken in, else the complement of its
 * place among the operands. */
int16_t ls_merge_operand(LsMerge *m, LsValueId v);
/* Statement s of FUSED node n, with what it needs: its place among the statements. */
int16_t ls_merge_statement(LsMerge *m, LsNodeId n, int s);
/* The merged statements as a body like another, with room for nout results. */
LsFused *ls_merge_body(struct LsArena *a, const LsMerge *m, const LsFused *like, int nout);

#endif
