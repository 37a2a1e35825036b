/* cli/commands/check_cmd.c -- lowerset check: of a model, or of a plan. */
#include "cli/commands/check_model.h"
#include "cli/commands/check_plan.h"
#include "cli/commands/commands.h"
#include "cli/job/job.h"

int ls_check_main(int argc, char **argv)
{
    LsOptions o = {0};
    int code = ls_options_parse(&o, LS_CMD_CHECK, argc, argv);
    if (code != 0)
        return code;
    return o.check.graph != NULL || ls_job_is_graph(o.model) ? ls_check_plan(&o)
                                                             : ls_check_model(&o);
}
