/* cli/commands/inspect_cmd.c -- lowerset inspect. */
#include "cli/commands/commands.h"
#include "cli/job/job.h"
#include "compiler/inspect/onnx_inspect.h"

int ls_inspect_main(int argc, char **argv)
{
    LsOptions o = {0};
    LsJob job;
    bool trainable = true;
    int code = ls_options_parse(&o, LS_CMD_INSPECT, argc, argv);
    if (code != 0)
        return code;
    code = ls_job_start(&job, &o, true);
    job.pipeline.import.training = true;
    if (code == 0 && !ls_inspect(&job.cx, o.model, &job.pipeline.import, stdout, o.reports.json,
                                 o.output.verbose, &trainable))
        code = job.cx.exit_code != 0 ? job.cx.exit_code : LS_EXIT_MODEL;
    else if (code == 0 && !trainable)
        code = LS_EXIT_UNSUPPORTED;
    ls_job_end(&job);
    return code;
}
