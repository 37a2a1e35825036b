/* cli/report/stage_files.c -- see the header. */
#include "cli/report/stage_files.h"

#include "cli/report/output.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/plan/plan_json.h"

#include <inttypes.h>
#include <string.h>

/* FILE.json: FILE.0.json; a name without an ending gets the number at its end. */
static const char *file_of(LsArena *a, const char *path, uint32_t stage)
{
    const char *name = strrchr(path, '/');
    const char *end = strrchr(name != NULL ? name : path, '.');
    const int stem = (int)(end != NULL ? (size_t)(end - path) : strlen(path));
    return ls_arena_printf(a, "%.*s.%" PRIu32 "%s", stem, path, stage, path + stem);
}

bool ls_stage_files_check(LsArena *arena, const LsOptions *o)
{
    const char *const path[] = {o->reports.graph_json, o->reports.plan_json};
    for (uint32_t k = 0; k < 2 * (uint32_t)o->pipe.stages; k++)
        if (path[k % 2] != NULL && !ls_output_check(file_of(arena, path[k % 2], k / 2)))
            return false;
    return true;
}

typedef struct Stage { LsDag dag; const LsPlan *plan; } Stage;

static void put_graph(FILE *to, void *user) { ls_dag_write(to, &((const Stage *)user)->dag); }

/* The budget is that of all micro-batches under way, so the plan of one claims none. */
static void put_plan(FILE *to, void *user)
{
    const Stage *s = user;
    ls_plan_write(to, &s->dag, s->plan, NULL);
}

bool ls_stage_files_write(LsJob *job, const LsPipelinePlan *of)
{
    LsArena *a = job->cx.arena;
    const LsOptions *o = job->options;
    for (uint32_t k = 0; k < of->cut.k; k++) {
        const char *name =
            ls_arena_printf(a, "%s, stage %" PRIu32 " of %" PRIu32, job->dag->name, k, of->cut.k);
        Stage s = {ls_pipe_graph_alone(a, &of->plan[k].graph, name),
                   &of->plan[k].layout.of[LS_PIPE_USUAL].plan};
        if (o->reports.graph_json != NULL &&
            !ls_output_write(file_of(a, o->reports.graph_json, k), put_graph, &s))
            return false;
        if (o->reports.plan_json != NULL &&
            !ls_output_write(file_of(a, o->reports.plan_json, k), put_plan, &s))
            return false;
    }
    return true;
}
