/* cli/option_groups/part_group.c -- see the header. */
#include "cli/option_groups/part_group.h"

#include "cli/option_groups/option_rows.h"
#include "compiler/updates/update_options.h"
#include "scheduler/cuts/stages.h"

#define AT(field) offsetof(LsPartGroup, field)
static const LsOption parts[] = {
    {"--accumulate", NULL, "K", INTEGER(1, MOST_COUNT), AT(accumulate), BUILD,
     "batches per update: equivalent to one batch K times as large (default 1)"},
    {"--microbatches", NULL, "M", INTEGER(1, MOST_COUNT), AT(microbatches), BUILD,
     "cut every batch of training into M equal parts, which run one after the other in the "
     "memory of one; the update is that of the whole batch, batch norms take each part's "
     "statistics (default 1)"},
    {"--sums", NULL, "tree|running", TEXT, AT(sums), BUILD,
     "how the gradients of an update's parts add up. tree: in a tree, whose bits are those of any "
     "number of ranks, with a partial sum for each binary digit of the parts; running: one after "
     "the other, with one partial sum and bits of its own (default tree)"},
    {"--mixed-parts", NULL, "refuse|own", TEXT, AT(mixed), BUILD,
     "where the model combines the samples of a batch, as in scores between all of them: refuse "
     "to cut batches into parts, or let each part have its own, which is another loss; batch "
     "norms always do (default refuse)"},
};
const LsOptionGroup ls_parts_group = GROUP(NULL, parts);

#undef AT
#define AT(field) offsetof(LsRankGroup, field)
static const LsOption ranks[] = {
    {"--ranks", NULL, "N|any", LS_OPTION_WHOLE_OR_ANY, 1, LS_MOST_RANKS, AT(count),
     LS_CMD_COMPILE | LS_CMD_PLAN,
     "train on N processes, each of which runs an equal block of every batch's parts "
     "(--microbatches, by default one for each); any: on as many as the program is told when it "
     "starts, 1 included; the result is that of one process, bit for bit (default 1)"},
    {"--comm", NULL, "ENGINE", TEXT, AT(comm), LS_CMD_COMPILE,
     "with --ranks or --stages: mpi links the program with MPI, for processes that mpirun or "
     "srun starts; sockets (default): it starts its ranks itself, or they find each other by TCP"},
};
const LsOptionGroup ls_ranks_group = GROUP(NULL, ranks);

#undef AT
#define AT(field) offsetof(LsPipeGroup, field)
static const LsOption pipe[] = {
    {"--stages", NULL, "K", INTEGER(1, LS_MOST_STAGES), AT(stages), LS_CMD_COMPILE | LS_CMD_PLAN,
     "cut the model into K stages of a pipeline, one rank each; --budget is that of a rank"},
    {"--order", NULL, "gpipe|1f1b|zb", TEXT, AT(order), LS_CMD_COMPILE | LS_CMD_PLAN,
     "with --stages, the order in which ranks run the micro-batches. gpipe: all forward, then "
     "all backward; 1f1b: one forward, one backward; zb: the same, with gradients of weights in "
     "what would be bubbles (default 1f1b; plan shows all side by side)"},
    {"--link", NULL, "SIZE,US", TEXT, AT(link), LS_CMD_PLAN,
     "with --stages, bytes per second and latency in microseconds of a link between two ranks; "
     "none: messages take no time (default 10GB,5)"},
};
const LsOptionGroup ls_pipe_group = GROUP(NULL, pipe);
