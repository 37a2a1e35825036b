/* compiler/updates/decay_groups.h -- which parameters have weight decay. */
#ifndef LS_COMPILER_UPDATES_DECAY_GROUPS_H
#define LS_COMPILER_UPDATES_DECAY_GROUPS_H

#include "compiler/updates/update_options.h"

/* Whether p decays: not if a glob of o->no_decay matches its name; nor, with o->spares_vectors, if
 * it is a bias or belongs to a norm: its rank is at most 1, a norm reads it, or it has one axis
 * longer than 1 and only pointwise nodes read it. */
bool ls_decays(const LsGraph *g, LsValueId p, const LsOptimizerOptions *o);
/* An error for each glob that matches no trained parameter. */
bool ls_decay_groups_check(LsCtx *cx, const LsGraph *g, const LsOptimizerOptions *o);

#endif
