/* cli/option_groups/sample_group.c -- see the header. */
#include "cli/option_groups/sample_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsSampleGroup, field)
static const LsOption samples[] = {
    {"--grads", NULL, "mean|per-sample|per-sample-norm", TEXT, AT(grads), BUILD,
     "what the trainer's --dump has beside the gradients of the mean loss: those of every "
     "sample (psgrad/) and their norms (psnorm/), or the norms alone (default mean: neither)"},
    {"--sample-norms", NULL, "auto|pairs|tiles|terms", TEXT, AT(norms), BUILD,
     "how norms of samples' gradients are computed: pairs (Gram matrices), tiles, terms (stored "
     "gradients), auto (the cheapest for each weight; default)"},
    {"--dp", NULL, "SPEC", TEXT, AT(privacy), BUILD & ~LS_CMD_CHECK,
     "private training: clip=1.0,noise=1.1,delta=1e-5[,expected-batch=N,sums=WAY]: every update "
     "draws samples at random, as many as the expected batch on average (default: batch times "
     "--accumulate); their gradients are clipped to a norm, and noise is added"},
};
const LsOptionGroup ls_samples_group = GROUP(NULL, samples);

#undef AT
#define AT(field) offsetof(LsEnsembleGroup, field)
static const LsOption ensemble[] = {
    {"--ensemble", NULL, "K", INTEGER(2, MOST_MEMBERS), AT(members), BUILD & ~LS_CMD_CHECK,
     "train K models of this architecture together, each with weights, statistics and a loss of "
     "its own"},
    {"--ensemble-lanes", NULL, "N", INTEGER(1, MOST_MEMBERS), AT(lanes),
     LS_CMD_COMPILE | LS_CMD_PLAN,
     "members of an ensemble that run at the same time, each on a thread and in an arena of its "
     "own (default 1: one after the other on all threads, in one arena)"},
    {"--ensemble-batches", NULL, "shared|each", TEXT, AT(batches), BUILD & ~LS_CMD_CHECK,
     "batches of an ensemble: all members train on the same one, or each on one of its own "
     "(default shared)"},
    {"--randomness", NULL, "error|different|same", TEXT, AT(randomness), BUILD,
     "with --grads, --dp or --ensemble, random numbers of the model, as in dropouts: refuse "
     "them, draw for every sample or member, or draw once for all (default error)"},
};
const LsOptionGroup ls_ensemble_group = GROUP(NULL, ensemble);
