/* cli/option_groups/report_group.h -- reports about a plan. */
#ifndef LS_CLI_OPTION_GROUPS_REPORT_GROUP_H
#define LS_CLI_OPTION_GROUPS_REPORT_GROUP_H

#include "cli/option_groups/option_group.h"

/* Files about the plan. */
typedef struct LsReportGroup {
    bool json;
    const char *graph_json, *plan_json, *dot, *timeline, *page;
    const char *against, *tolerance;
    const char *markdown;       /* NULL: not asked for; "": on stdout */
    bool update;
} LsReportGroup;
extern const LsOptionGroup ls_reports_group;

#endif
