/* codegen/fusion/inline_bodies.h -- merging of FUSED bodies: the statements that make some values
 * move into the loop of their reader. */
#ifndef LS_CODEGEN_FUSION_INLINE_BODIES_H
#define LS_CODEGEN_FUSION_INLINE_BODIES_H

#include "compiler/passes/fuse.h"

enum {
    LS_MERGE_STMT = 48, LS_MERGE_IN = 48,   /* limits of a merged body; keep kernels readable */
    LS_MERGE_VALUES = 12,                   /* most values inlined */
};

typedef struct LsValueSet { LsValueId v[LS_MERGE_VALUES]; int n; } LsValueSet;

void ls_value_set_put(LsValueSet *set, LsValueId v);    /* does nothing if v is there or the set is
                                                         * full */

typedef struct LsMerge {                    /* a body under construction */
    const LsGraph *g;
    const LsValueSet *set;                  /* the values that are inlined */
    LsStmt stmt[LS_MERGE_STMT];
    struct { uint32_t node; int stmt; } from[LS_MERGE_STMT];
    LsValueId in[LS_MERGE_IN];              /* operands */
    int nstmt, nin;
    bool full;                              /* the body did not fit: all else is void */
} LsMerge;

/* The body of a FUSED node; NULL for other nodes. */
const LsFused *ls_body_of(const LsGraph *g, LsNodeId n);
/* The statement of a FUSED node that only applies it to its operands in order; NULL: the node does
 * more. */
const LsStmt *ls_only_statement(const LsGraph *g, LsNodeId n);
/* The first node that reads v, or none. *shared: another node reads v, too, or v is an output, a
 * gradient or the loss. */
LsNodeId ls_first_reader(const LsGraph *g, LsValueId v, bool *shared);
/* The statement of v's maker that gives v; -1: none, or v is a reduction or a part of a
 * statement. */
int ls_root_statement(const LsGraph *g, LsValueId v);
/* Bit s: v needs statement s of its maker, which has at most LS_MERGE_STMT. 0 if v has no root
 * statement. */
uint64_t ls_needed_statements(const LsGraph *g, LsValueId v);

/* The argument for v: the statement that makes v if v is inlined, else the complement of its place
 * among the operands. */
int16_t ls_merge_operand(LsMerge *m, LsValueId v);
/* Adds statement s of FUSED node n and the statements it needs; returns its place. */
int16_t ls_merge_statement(LsMerge *m, LsNodeId n, int s);
/* Makes a body of the merged statements, otherwise a copy of `like`, with room for nout results. */
LsFused *ls_merge_body(struct LsArena *a, const LsMerge *m, const LsFused *like, int nout);

#endif
