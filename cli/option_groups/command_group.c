/* cli/option_groups/command_group.c -- see the header. */
#include "cli/option_groups/command_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsCheckGroup, field)
static const LsOption check[] = {
    {"--data", NULL, "SPEC", TEXT, AT(data), LS_CMD_CHECK,
     "data to run on, written as for TRAINER --data (default: synthetic)"},
    {"--elements", NULL, "N", INTEGER(1, MOST_COUNT), AT(elements), LS_CMD_CHECK,
     "number of gradient elements to check (default: two of each parameter, at most 200)"},
    {"--graph", NULL, "GRAPH.json", TEXT, AT(graph), LS_CMD_CHECK | LS_CMD_SCHEDULE,
     "training graph that PLAN.json belongs to"},
    {"--against", NULL, "REF.npz", TEXT, AT(against), LS_CMD_CHECK,
     "compare loss, out/NAME and grad/PARAM with those of the file, which were made with --data"},
};
const LsOptionGroup ls_check_group = GROUP("Check", check);

#undef AT
#define AT(field) offsetof(LsCalibrateGroup, field)
static const LsOption calibrate[] = {
    {"--threads", NULL, "N", INTEGER(1, 4096), AT(threads), LS_CMD_CALIBRATE,
     "threads that the programs run with (default: all cores)"},
    {"--quick", NULL, NULL, FLAG, AT(quick), LS_CMD_CALIBRATE, "fewer programs, for less time"},
};
const LsOptionGroup ls_calibrate_group = GROUP("Calibration", calibrate);

#undef AT
#define AT(field) offsetof(LsDpGroup, field)
static const LsOption dp[] = {
    {"--sample-rate", NULL, "Q", TEXT, AT(sample_rate), LS_CMD_DP,
     "probability, 0 to 1, with which a step takes a sample; needs --steps"},
    {"--steps", NULL, "N", INTEGER(1, MOST_STEPS), AT(steps), LS_CMD_DP, "number of updates"},
    {"--samples", NULL, "N", INTEGER(1, MOST_STEPS), AT(samples), LS_CMD_DP,
     "number of training samples; with --batch and --epochs in place of --sample-rate and "
     "--steps"},
    {"--batch", NULL, "N", INTEGER(1, MOST_BATCH), AT(batch), LS_CMD_DP,
     "samples that a step takes on average"},
    {"--epochs", NULL, "N", INTEGER(1, MOST_COUNT), AT(epochs), LS_CMD_DP,
     "passes over the samples, each of samples / batch steps, rounded up"},
    {"--noise", NULL, "S", TEXT, AT(noise), LS_CMD_DP,
     "deviation of the noise on the sum of clipped gradients, in clipping norms; 0, or at least "
     "0.01, as less counts as none"},
    {"--epsilon", NULL, "E", TEXT, AT(epsilon), LS_CMD_DP,
     "search for the least noise, a multiple of 0.0001, that keeps epsilon within E"},
    {"--delta", NULL, "D", TEXT, AT(delta), LS_CMD_DP,
     "probability, above 0 and below 1, with which epsilon need not hold: well below 1 / samples"},
};
const LsOptionGroup ls_dp_group = GROUP("Privacy", dp);
