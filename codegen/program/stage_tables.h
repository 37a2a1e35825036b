/* codegen/program/stage_tables.h -- the stages of a pipeline: their messages, and the order of
 * their phases. */
#ifndef LS_CODEGEN_PROGRAM_STAGE_TABLES_H
#define LS_CODEGEN_PROGRAM_STAGE_TABLES_H

#include "codegen/program/phase_tables.h"

/* Gives the copies of state in other stages places behind the state. Returns them by cut->copy. */
const int64_t *ls_copies_place(const LsPipeCut *cut, const LsProblem *train, LsAddresses *a);
/* Sets up the phase of a stage by one of its plans, pointed at the stage's copies. False after
 * diagnostics. */
bool ls_stage_phase_init(LsCtx *cx, LsPhaseText *ph, const LsCode *c, uint32_t stage,
                         uint32_t plan);

/* Prints the stage that changes each state, or else reads it. */
void ls_state_stages_print(const LsCode *c, const LsPhaseText phase[], LsEmit *e);
/* Prints the array `stage` of LsStage, and what it needs. phase: of each stage by its first plan,
 * then likewise by the second one, with their tables printed. */
void ls_stages_print(const LsCode *c, const LsPhaseText phase[], LsEmit *e);

#endif
