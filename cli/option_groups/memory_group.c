/* cli/option_groups/memory_group.c -- see the header. */
#include "cli/option_groups/memory_group.h"

#include "cli/option_groups/option_rows.h"
#include "scheduler/graph/recompute_policy.h"
#include "scheduler/strategies/strategy_names.h"

#define AT(field) offsetof(LsMemoryGroup, field)
static const LsOption memory[] = {
    {"--budget", NULL, "SIZE|%|min", TEXT, AT(budget), MEMORY,
     "limit on all memory of the program, or on the arena of a GRAPH; %: limit on the arena, as "
     "a part of the arena without recomputation; min: the least budget that has a plan "
     "(default: no limit)"},
    {"--max-batch", NULL, NULL, FLAG, AT(max_batch), LS_CMD_PLAN,
     "find the largest batch within --budget, for every strategy"},
    {"--budget-of", NULL, "none|store-all", TEXT, AT(budget_of), SEARCH,
     "memory that % refers to: the arena without recomputation, or the live peak with every "
     "result made once and none in place (default none)"},
    {"--strategy", NULL, "NAME", TEXT, AT(strategy), MEMORY,
     "how the plan is found, one of" LS_STRATEGY_WORDS " (default auto)"},
    {"--keep", NULL, "GLOB", LIST, AT(keep), SEARCH,
     "values that are computed once and kept: names of values or nodes; may be repeated"},
    {"--forget", NULL, "GLOB", LIST, AT(forget), SEARCH,
     "values that the backward part computes again: names of values or nodes; may be repeated"},
    {"--recompute", NULL, LS_RECOMPUTE_NAMES, TEXT, AT(recompute), SEARCH,
     "what may run again. " LS_RECOMPUTE_MEANINGS ", which only compile and plan take (default "
     "auto)"},
    {"--tiles", NULL, "N@SIZE|Nrows@SIZE|Ntokens@SIZE|auto|off", TEXT, AT(tiles), BUILD,
     "compute values of SIZE bytes or more in N parts of the samples, of the rows of one picture "
     "(--batch=1) or of the tokens of all samples, which are never in memory together; results "
     "are the same, bit for bit. "
     "auto: as a --budget in bytes, or min, needs "
     "(default: where a budget in bytes has no plan otherwise)"},
    {"--no-tiles", NULL, NULL, FLAG, AT(no_tiles), MEMORY & ~LS_CMD_GRAPH,
     "as --tiles=off: values stay whole"},
    {"--plan-time", NULL, "SECONDS", TEXT, AT(plan_time), SEARCH,
     "work of the search for a plan, in seconds of one core of 2023 (default 2, with large values "
     "in --tiles 8)"},
    {"--plan-effort", NULL, "PERCENT", INTEGER(1, 10000), AT(plan_effort), SEARCH,
     "moves of that search, in percent of the usual number, however long --plan-time is; below "
     "100 its work shrinks, too (default 100, with --stages 10)"},
    {"--prove", NULL, NULL, FLAG, AT(prove), SEARCH, "spend more work on the lower bounds"},
    {"--no-inplace", NULL, NULL, FLAG, AT(no_inplace), SEARCH,
     "give every result a place of its own: none overwrites an operand"},
    {"--no-offsets", NULL, NULL, FLAG, AT(no_offsets), REPORT | LS_CMD_SWEEP,
     "of a GRAPH: give values no offsets; the budget limits live bytes, as in papers"},
    {"--no-alternatives", NULL, NULL, FLAG, AT(no_alternatives), BUILD,
     "recompute no operand inside the kernel that reads it"},
    {"--store-gradients", NULL, NULL, FLAG, AT(store_gradients), BUILD,
     "write every gradient to memory, so that --dump has it; no update computes its own"},
    {"--no-epilogues", NULL, NULL, FLAG, AT(no_epilogues), BUILD | GPU,
     "GPUs: compute activations and bias gradients in kernels of their own, not in products"},
};
const LsOptionGroup ls_memory_group = GROUP("Memory", memory);

#undef AT
#define AT(field) offsetof(LsSweepGroup, field)
static const LsOption sweep[] = {
    {"--from", NULL, "SIZE|%", TEXT, AT(from), SWEEP, "smallest budget (default 20%)"},
    {"--to", NULL, "SIZE|%", TEXT, AT(to), SWEEP, "largest budget (default 100%)"},
    {"--points", NULL, "N", INTEGER(1, 1000), AT(points), SWEEP,
     "number of budgets, evenly spaced from the smallest to the largest (default 17)"},
    {"--strategies", NULL, "all|NAME,NAME,...", TEXT, AT(strategies), SWEEP,
     "strategies to compare, some of" LS_STRATEGY_WORDS " (default all, which takes -tc and -mc "
     "in place of the name without)"},
    {"--table", NULL, NULL, FLAG, AT(table), SWEEP,
     "write the table of Kusumoto et al. 2019 instead: for MODEL, or for their networks if "
     "there is no MODEL"},
    {"--measure", NULL, NULL, FLAG, AT(measure), LS_CMD_SWEEP,
     "build and run the plans that get a page: those of auto, or of all --strategies"},
};
const LsOptionGroup ls_sweep_group = GROUP("Sweep", sweep);
