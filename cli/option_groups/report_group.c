/* cli/option_groups/report_group.c -- see the header. */
#include "cli/option_groups/report_group.h"

#include "cli/option_groups/option_rows.h"

#define AT(field) offsetof(LsReportGroup, field)
static const LsOption reports[] = {
    {"--json", NULL, NULL, FLAG, AT(json),
     REPORT | LS_CMD_INSPECT | LS_CMD_CHECK | LS_CMD_SCHEDULE | LS_CMD_DP
         | LS_CMD_DATA,
     "summary as JSON on stdout"},
    {"--graph-json", NULL, "FILE", TEXT, AT(graph_json), REPORT,
     "write the training graph in the interchange format; with --stages that of each stage, to "
     "FILE.0.json, FILE.1.json ..."},
    {"--plan-json", NULL, "FILE", TEXT, AT(plan_json), REPORT,
     "write the schedule in the interchange format; with --stages that of a micro-batch of each "
     "stage"},
    {"--timeline", NULL, "FILE.svg", TEXT, AT(timeline), REPORT,
     "draw memory over time; a FILE with another ending than .svg gets the data as text"},
    {"--report", NULL, "FILE.html", TEXT, AT(page), REPORT,
     "write a page: memory over time, values that make the peak, values that are kept"},
    {"--tolerance", NULL, "X%", TEXT, AT(tolerance), REPORT,
     "with --against: how much worse is still accepted (default 0)"},
    {"--graph", NULL, "FILE.dot", TEXT, AT(dot), REPORT,
     "write the graph for Graphviz: kept and recomputed values"},
    {"--against", NULL, "PLAN.json", TEXT, AT(against), REPORT,
     "compare with an earlier --plan-json or --json: exit 6 if cost, peak or gap got worse, 2 "
     "if PLAN.json is of another model or batch, or its costs of another machine, precision or "
     "number of threads"},
    {"--markdown", NULL, "[=FILE]", MAYBE, AT(markdown), REPORT,
     "with --against: the comparison as Markdown, for the summary of a CI job; without FILE on "
     "stdout, in place of the report"},
    {"--update", NULL, NULL, FLAG, AT(update), REPORT,
     "with --against: PLAN.json becomes the plan of now, and exit 0, whatever got worse; it may be "
     "new"},
};
const LsOptionGroup ls_reports_group = GROUP("Reports", reports);
