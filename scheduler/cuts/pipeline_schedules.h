/* scheduler/cuts/pipeline_schedules.h -- in which order a rank runs the phases of the
 * micro-batches.
 *
 * gpipe: all F, then B and W of each micro-batch (Huang et al. 2019, arXiv:1811.06965). 1f1b: rank
 * i of K runs K - i times F, then B, W and F in turn (Narayanan et al. 2019, 2021). zb: as 1f1b,
 * but rank i runs W of i micro-batches late, in what would be bubbles (ZB-H1 of Qi et al. 2023,
 *     arXiv:2401.10241). No rank holds more micro-batches than rank 0 of 1f1b.
 *
 * Each phase takes the micro-batches in rising order, so that sums over micro-batches and running
 * statistics are those of a single process, bit for bit. */
#ifndef LS_SCHEDULER_CUTS_PIPELINE_SCHEDULES_H
#define LS_SCHEDULER_CUTS_PIPELINE_SCHEDULES_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum { LS_PHASE_F, LS_PHASE_B, LS_PHASE_W, LS_PHASES } LsPipePhase;
typedef enum { LS_ORDER_GPIPE, LS_ORDER_1F1B, LS_ORDER_ZB, LS_ORDERS } LsOrderKind;
/* What a micro-batch keeps between F and B, named by when things are made again. NEVER: what B
 * reads. ALWAYS: only what the stage received. EXCEPT_LAST: as ALWAYS, but one micro-batch as
 * NEVER. AUTO: what the planner chooses. */
typedef enum { LS_KEEP_NEVER, LS_KEEP_EXCEPT_LAST, LS_KEEP_ALWAYS, LS_KEEP_AUTO } LsKeepMode;

typedef struct LsRankStep { LsPipePhase phase; uint32_t micro; } LsRankStep;    /* micro: from 0 */
typedef struct LsRankOrder { LsRankStep *step; uint32_t n; } LsRankOrder;

extern const char *const ls_order_name[LS_ORDERS + 1];      /* ends with NULL */

/* The order of rank `rank` of `ranks` for `micros` micro-batches: F, B and W once each, B after F
 * and W after B. */
LsRankOrder ls_rank_order(LsArena *arena, LsOrderKind kind, uint32_t rank, uint32_t ranks,
                          uint32_t micros);

/* The most micro-batches of which F has begun and phase `end`, B or W, has not ended, at any
 * time. */
uint32_t ls_rank_order_slots(const LsRankOrder *order, LsPipePhase end);

#endif
