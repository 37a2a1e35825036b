/* cli/commands/sweep_cmd.c -- lowerset sweep: the cost of every strategy over a range of
 * budgets. */
#include "cli/commands/commands.h"
#include "cli/job/job.h"
#include "cli/report/output.h"
#include "cli/report/paper_table.h"
#include "cli/commands/sweep_measure.h"
#include "scheduler/plan/budget_sweep.h"
#include "scheduler/strategies/strategy_names.h"
#include "scheduler/report/sweep_chart.h"
#include "scheduler/report/sweep_page.h"
#include "scheduler/report/plan_page.h"
#include "cli/options/option_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { POINTS = 17, CHOSEN = 5 };

static int cannot(const char *what, const char *path)
{
    fprintf(stderr, "lowerset: cannot %s '%s': %s\n", what, path, strerror(errno));
    return LS_EXIT_MODEL;
}

/* "all" or names separated by commas. 0 or the exit code. */
static int find_strategies(LsArena *arena, const char *text, LsSweep *sweep)
{
    if (text == NULL || strcmp(text, "all") == 0) {
        sweep->strategy = ls_sweep_strategies;
        while (ls_sweep_strategies[sweep->nstrategy] != NULL)
            sweep->nstrategy++;
        return 0;
    }
    const char **name = ls_arena_alloc(arena, strlen(text) + 1, sizeof *name);
    for (const char *at = text; ; at++) {
        size_t n = strcspn(at, ",");
        const char *one = ls_arena_printf(arena, "%.*s", (int)n, at);
        if (ls_strategy_find(one) == NULL)
            return ls_options_bad("--strategies", text,
                                  "all, or some of" LS_STRATEGY_WORDS ", separated by commas");
        name[sweep->nstrategy++] = one;
        at += n;
        if (*at == '\0')
            break;
    }
    sweep->strategy = name;
    return 0;
}

typedef struct Range { LsBudget from, to; uint32_t points; } Range;

static int find_range(const LsOptions *o, Range *r)
{
    const char *const text[2] = {o->sweep.from != NULL ? o->sweep.from : "20%",
                                 o->sweep.to != NULL ? o->sweep.to : "100%"};
    LsBudget *const end[2] = {&r->from, &r->to};
    for (int k = 0; k < 2; k++)
        if (!ls_budget_parse(text[k], end[k])
            || ls_budget_is_none(end[k]) || end[k]->least)
            return ls_options_bad(k == 0 ? "--from" : "--to", text[k], "a size like 2GiB or 80%");
    r->points = o->sweep.points > 0 ? (uint32_t)o->sweep.points : POINTS;
    return 0;
}

/* Sets budgets of the arena at equal distances from one end to the other. */
static int set_points(LsJob *job, const Range *r, LsSweep *sweep)
{
    int64_t from = ls_job_arena_budget(job, &r->from), to = ls_job_arena_budget(job, &r->to);
    if (from > to) {
        fprintf(stderr, "lowerset: --from is larger than --to: %" PRId64 " and %" PRId64
                " bytes of arena\n", from, to);
        return LS_EXIT_USAGE;
    }
    sweep->npoint = r->points;
    sweep->point = ls_arena_alloc(job->cx.arena, r->points, sizeof *sweep->point);
    for (uint32_t k = 0; k < r->points; k++) {
        double part = r->points > 1 ? (double)k / (r->points - 1) : 1;
        sweep->point[k].budget = from + (int64_t)((double)(to - from) * part);
    }
    return 0;
}

typedef struct Progress { const LsSweep *sweep; bool quiet; } Progress;

static void tell(void *context, uint32_t point)
{
    const Progress *p = context;
    if (!p->quiet)
        fprintf(stderr, "%s: budget %" PRIu32 " of %" PRIu32 ", %.1f %%\n", p->sweep->model,
                point + 1, p->sweep->npoint, ls_sweep_percent(p->sweep, &p->sweep->point[point]));
}

/* Contents of the output folder. */
typedef struct Folder {
    const LsJob *job;
    const LsSweep *sweep;
    const char *dir;
    uint32_t chosen[CHOSEN], nchosen;
} Folder;

static void put_csv(FILE *to, const Folder *f, uint32_t k) { (void)k, ls_sweep_csv(to, f->sweep); }
static void put_json(FILE *to, const Folder *f, uint32_t k)
{
    (void)k;
    ls_sweep_json(to, f->sweep);
}
static void put_overhead(FILE *to, const Folder *f, uint32_t k)
{
    (void)k;
    ls_sweep_svg(f->job->cx.arena, to, f->sweep, true);
}
static void put_memory(FILE *to, const Folder *f, uint32_t k)
{
    (void)k;
    ls_sweep_memory_svg(f->job->cx.arena, to, f->sweep, f->chosen, f->nchosen, true);
}
static void put_index(FILE *to, const Folder *f, uint32_t k)
{
    (void)k;
    ls_sweep_page(f->job->cx.arena, to, f->sweep, f->chosen, f->nchosen);
}
static void put_plan(FILE *to, const Folder *f, uint32_t point)
{
    const LsSweepCell *c = &f->sweep->point[point].cell[f->sweep->nstrategy - 1];
    LsPageFacts facts = {f->sweep->model, f->job->state_bytes, f->job->input_bytes};
    ls_report_plan(f->job->cx.arena, to, f->sweep->dag, &c->plan, c->report, &facts);
}

typedef struct Page {
    const Folder *folder;
    void (*put)(FILE *, const Folder *, uint32_t);
    uint32_t point;
} Page;

static void put_page(FILE *to, void *user)
{
    const Page *p = user;
    p->put(to, p->folder, p->point);
}

static int write_one(const Folder *f, const char *name,
                     void (*put)(FILE *, const Folder *, uint32_t), uint32_t point)
{
    Page page = {f, put, point};
    const char *path = ls_arena_printf(f->job->cx.arena, "%s/%s", f->dir, name);
    return ls_output_write(path, put_page, &page) ? 0 : LS_EXIT_MODEL;
}

static int write_all(const Folder *f)
{
    static const struct {
        const char *name;
        void (*put)(FILE *, const Folder *, uint32_t);
    } file[] = {{"sweep.csv", put_csv}, {"sweep.json", put_json}, {"overhead.svg", put_overhead},
                {"memory.svg", put_memory}, {"index.html", put_index}};
    if (mkdir(f->dir, 0777) != 0 && errno != EEXIST)
        return cannot("make folder", f->dir);
    int code = 0;
    for (size_t k = 0; code == 0 && k < sizeof file / sizeof *file; k++)
        code = write_one(f, file[k].name, file[k].put, 0);
    for (uint32_t k = 0; code == 0 && k < f->nchosen; k++)
        code = write_one(f, ls_sweep_page_name(f->job->cx.arena, f->sweep, f->chosen[k]), put_plan,
                         f->chosen[k]);
    return code;
}

static const char *folder(LsArena *arena, const LsOptions *o)
{
    const char *slash = strrchr(o->model, '/');
    char *name = ls_arena_strdup(arena, slash != NULL ? slash + 1 : o->model);
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot != name)
        *dot = '\0';
    return o->output.file != NULL ? o->output.file : ls_arena_printf(arena, "%s-sweep", name);
}

static int run(LsJob *job, LsSweep *sweep, const Range *range, const LsPlanOptions *want)
{
    const LsOptions *o = job->options;
    LsArena *arena = job->cx.arena;
    sweep->dag = job->dag;
    sweep->model = o->model;
    sweep->whole = job->whole;
    sweep->process = ls_job_process(job);
    sweep->floor = job->eval_plan.arena;
    int code = set_points(job, range, sweep);
    code = code != 0 ? code : ls_job_hints(job, &sweep->hinted);
    if (code != 0)
        return code;
    if (!ls_job_fits_machine(
            job, ls_process_total(&sweep->process, sweep->point[sweep->npoint - 1].budget)))
        return ls_job_failed(job);
    Progress progress = {sweep, o->output.quiet};
    if (!o->output.quiet)
        fprintf(stderr, "%s: planning %" PRIu32 " nodes\n", o->model, job->dag->nnode);
    ls_sweep_run(arena, sweep, want, tell, &progress);
    Folder f = {.job = job, .sweep = sweep, .dir = folder(arena, o)};
    f.nchosen = ls_sweep_choose(sweep, f.chosen, CHOSEN);
    if (o->sweep.measure)
        code = ls_sweep_measure(job, sweep, f.chosen, f.nchosen,
                                sweep->strategy != ls_sweep_strategies);
    code = code != 0 ? code : write_all(&f);
    if (code == 0) {
        ls_sweep_text(stdout, sweep);
        printf("%s/index.html shows it; sweep.csv, sweep.json, overhead.svg, memory.svg lie beside "
               "it\n", f.dir);
    }
    return code;
}

/* Rejects options that do not apply to the table of the paper. 0 or the exit code. */
static int check_table(const LsOptions *o)
{
    const struct { const char *name; bool given;
    } row[] = {{"--measure", o->sweep.measure},
               {"--keep", o->memory.keep.n > 0},
               {"--forget", o->memory.forget.n > 0},
               {"--recompute", o->memory.recompute != NULL},
               {"--from", o->sweep.from != NULL},
               {"--to", o->sweep.to != NULL},
               {"--points", o->sweep.points > 0},
               {"--strategies", o->sweep.strategies != NULL},
               {"--budget-of", o->memory.budget_of != NULL},
               {"--no-offsets", o->memory.no_offsets},
               {"--microbatches", o->parts.microbatches > 0}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (row[k].given) {
            fprintf(stderr, "lowerset: --table takes no %s\n", row[k].name);
            return LS_EXIT_USAGE;
        }
    return ls_output_check(o->output.file) ? 0 : LS_EXIT_MODEL;
}

int ls_sweep_main(int argc, char **argv)
{
    LsOptions o = {0};
    LsJob job;
    LsSweep sweep = {0};
    LsPlanOptions want = {0};
    LsHints hints;
    Range range;
    int code = ls_options_parse(&o, LS_CMD_SWEEP, argc, argv);
    code = code != 0 ? code : find_range(&o, &range);
    code = code != 0 ? code : ls_options_hints(&o, &hints);         /* invalid hints are reported
                                                                     * early */
    code = code != 0 ? code : ls_options_planning(&o, &want);
    code = code != 0 || !o.sweep.table ? code : check_table(&o);
    if (code != 0)
        return code;
    if (o.sweep.table)
        return ls_paper_table(&o);
    code = ls_job_start(&job, &o, !o.sweep.measure);
    job.graph_file = ls_job_is_graph(o.model);
    code = code != 0 ? code : ls_output_folder(folder(job.cx.arena, &o));
    code = code != 0 ? code : find_strategies(job.cx.arena, o.sweep.strategies, &sweep);
    code = code != 0 ? code : ls_job_load(&job);
    code = code != 0 ? code : run(&job, &sweep, &range, &want);
    ls_job_end(&job);
    return code;
}
