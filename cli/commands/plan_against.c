/* cli/commands/plan_against.c -- see the header. */
#include "cli/commands/plan_against.h"

#include "cli/job/told_times.h"
#include "cli/report/output.h"
#include "scheduler/plan/plan_json.h"
#include "scheduler/report/plan_diff_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int usage(const char *text)
{
    fprintf(stderr, "lowerset: %s\n", text);
    return LS_EXIT_USAGE;
}

bool ls_against_has_stdout(const LsOptions *o)
{
    return o->reports.markdown != NULL && o->reports.markdown[0] == '\0';
}

int ls_against_check(const LsOptions *o, LsAgainstPlan *a)
{
    const LsReportGroup *r = &o->reports;
    *a = (LsAgainstPlan){0};
    if (r->against == NULL && r->markdown != NULL)
        return usage("--markdown is for --against PLAN.json");
    if (r->against == NULL && r->update)
        return usage("--update is for --against PLAN.json");
    if (ls_against_has_stdout(o) && r->json)
        return usage("--json and --markdown both write to stdout: give one a file, as "
                     "--markdown=FILE");
    return ls_options_tolerance(o, &a->tolerance);
}

int ls_against_read(LsJob *job, LsAgainstPlan *a)
{
    char why[512];
    const LsReportGroup *r = &job->options->reports;
    if (r->against == NULL)
        return 0;
    if ((!ls_against_has_stdout(job->options) && !ls_output_check(r->markdown))
        || (r->update && !ls_output_check(r->against)))
        return LS_EXIT_MODEL;
    a->fresh = r->update && access(r->against, F_OK) != 0 && errno == ENOENT;
    if (a->fresh || ls_earlier_read(job->cx.arena, r->against, &a->then, why, sizeof why))
        return 0;
    fprintf(stderr, "lowerset: --against: '%s': %s\n", r->against, why);
    return LS_EXIT_MODEL;
}

/* The plan as --plan-json writes it, on the heap; NULL after a message. */
static char *plan_text(const LsJob *job, size_t *size)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, size);
    if (to != NULL) {
        ls_plan_write(to, job->dag, &job->plan, &job->report);
        if (fclose(to) == 0)
            return text;
    }
    free(text);
    fprintf(stderr, "lowerset: out of memory\n");
    return NULL;
}

static bool holds(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "rb");
    char *is = f != NULL ? malloc(size + 1) : NULL;
    const bool same = is != NULL && fread(is, 1, size + 1, f) == size
                      && memcmp(is, text, size) == 0;
    free(is);
    if (f != NULL)
        fclose(f);
    return same;
}

typedef struct Text { const char *text; size_t size; } Text;

static void put_plan(FILE *to, void *user)
{
    const Text *t = user;
    fwrite(t->text, 1, t->size, to);
}

/* Writes the plan, unless the file has it. *said: what was done. */
static int update(LsJob *job, const LsAgainstPlan *a, const char **said)
{
    const char *path = job->options->reports.against;
    size_t size = 0;
    char *text = plan_text(job, &size);
    Text t = {text, size};
    if (text == NULL)
        return LS_EXIT_MODEL;
    const bool same = !a->fresh && holds(path, text, size);
    const bool ok = same || ls_output_write(path, put_plan, &t);
    free(text);
    *said = ls_arena_printf(job->cx.arena, same ? "%s has this plan" : a->fresh
                            ? "%s is new: it holds this plan, %s" : "%s now holds this plan, %s",
                            path, job->report.hash);
    return ok ? 0 : LS_EXIT_MODEL;
}

typedef struct Markdown { const LsPlanDiff *diff; LsDiffFacts facts; } Markdown;

static void put_markdown(FILE *to, void *user)
{
    const Markdown *m = user;
    ls_plan_diff_markdown(to, m->diff, &m->facts);
}

static int write_markdown(LsJob *job, const LsAgainstPlan *a, const LsPlanDiff *diff,
                          const char *said)
{
    const LsReportGroup *r = &job->options->reports;
    Markdown m = {diff, {job->options->model, r->against, ls_job_costs_of(job), said, a->fresh}};
    if (r->markdown == NULL)
        return 0;
    if (!ls_against_has_stdout(job->options))
        return ls_output_write(r->markdown, put_markdown, &m) ? 0 : LS_EXIT_MODEL;
    put_markdown(stdout, &m);
    return 0;
}

static int code_of(const LsPlanDiff *diff)
{
    return diff->verdict == LS_AGAINST_WORSE   ? LS_EXIT_CHECK
           : diff->verdict == LS_AGAINST_OTHER ? LS_EXIT_USAGE
                                               : 0;
}

int ls_against_report(LsJob *job, const LsAgainstPlan *a)
{
    const LsReportGroup *r = &job->options->reports;
    const bool other = r->json || ls_against_has_stdout(job->options);
    FILE *to = other ? stderr : stdout;
    const char *said = NULL;
    if (r->against == NULL)
        return 0;
    /* Without an earlier plan the figures are compared with themselves. */
    const LsEarlier none = {.persistent = -1, .cost = -1, .base_cost = -1, .bound = -1,
                            .live_peak = -1, .arena = -1, .again = -1};
    const LsPlanDiff diff = ls_earlier_compare(job->cx.arena, a->fresh ? &none : &a->then, job->dag,
                                               &job->plan, &job->report, a->tolerance);
    if (!a->fresh) {
        fprintf(to, "%sagainst %s\n", other ? "" : "\n", r->against);
        ls_plan_diff_print(to, &diff);
        job->report.against = ls_plan_diff_json(job->cx.arena, &diff);
    }
    int code = r->update ? update(job, a, &said) : code_of(&diff);
    if (said != NULL)
        fprintf(to, "%s%s\n", other || !a->fresh ? "  " : "\n", said);
    const int written = write_markdown(job, a, &diff, said);
    return written != 0 ? written : code;
}
