/* codegen/program/rank_tables.h -- what a program for several ranks exchanges: its sums' and
 * slices' addresses, and the table LsRanks (runtime/ls_program.h). */
#ifndef LS_CODEGEN_PROGRAM_RANK_TABLES_H
#define LS_CODEGEN_PROGRAM_RANK_TABLES_H

#include "codegen/emit/text_emit.h"
#include "codegen/program/program_contents.h"

typedef struct LsRankTable LsRankTable;

/* Gives addresses to the state of c->update's graph: to slices and partial sums in spaces of their
 * own, as their bytes depend on the number of ranks; to the rest in the state; then to the sums, in
 * the order in which the plan completes them. NULL after a diagnostic. */
const LsRankTable *ls_rank_layout(LsCtx *cx, const LsCode *c);
/* Prints the LsRanks `ranks`. */
void ls_rank_table_print(const LsRankTable *t, const LsAddresses *a, LsEmit *e);

#endif
