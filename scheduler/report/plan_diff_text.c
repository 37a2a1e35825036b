/* scheduler/report/plan_diff_text.c -- see plan_diff_text.h. */
#include "scheduler/report/plan_diff_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/json_print.h"
#include "scheduler/report/html.h"

static bool budgets_differ(const LsPlanDiff *d)
{
    return (d->budget_then > 0 || d->budget_now > 0) && d->budget_then != d->budget_now;
}

static void print_figure(FILE *to, const LsPlanFigure *f)
{
    const bool part = f->unit == LS_FIGURE_PART;
    if (f->then < 0)
        fprintf(to, "  %-10s %22s -> %.*f%s\n", f->what, "?", part ? 2 : 0,
                part ? 100 * f->now : f->now, part ? " %" : "");
    else if (part)
        fprintf(to, "  %-10s %20.2f %% -> %.2f %%  %s\n", f->what, 100 * f->then, 100 * f->now,
                f->verdict);
    else
        fprintf(to, "  %-10s %22.0f -> %.0f  %+.2f %%  %s\n", f->what, f->then, f->now,
                100 * f->change, f->verdict);
}

void ls_plan_diff_print(FILE *to, const LsPlanDiff *d)
{
    if (d->other != NULL) {
        fprintf(to, "  not comparable: %s\n", d->other);
        return;
    }
    for (int k = 0; k < d->nfigure; k++)
        print_figure(to, &d->figure[k]);
    if (budgets_differ(d))
        fprintf(to, "  the arena budgets differ: %" PRId64 " -> %" PRId64 " bytes\n",
                d->budget_then, d->budget_now);
    if (d->parting != NULL)
        fprintf(to, "  %s\n", d->parting);
}

const char *ls_plan_diff_json(LsArena *arena, const LsPlanDiff *d)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddStringToObject(root, "verdict", d->other != NULL ? "not comparable"
                            : d->verdict == LS_AGAINST_WORSE  ? "worse"
                                                              : "no worse");
    if (d->other != NULL) {
        cJSON_AddStringToObject(root, "why", d->other);
        return ls_json_line(arena, root);
    }
    cJSON_AddNumberToObject(root, "tolerance", d->tolerance);
    cJSON *figures = cJSON_AddObjectToObject(root, "figures");
    for (int k = 0; k < d->nfigure; k++) {
        const LsPlanFigure *f = &d->figure[k];
        cJSON *o = cJSON_AddObjectToObject(figures, f->key);
        if (f->then >= 0)
            cJSON_AddNumberToObject(o, "then", f->then);
        cJSON_AddNumberToObject(o, "now", f->now);
        cJSON_AddStringToObject(o, "verdict", f->verdict);
    }
    return ls_json_line(arena, root);
}

/* ---- Markdown ---- */

/* Names come from models, which may come from anywhere: nothing in them is markup. */
static void put_text(FILE *to, const char *s)
{
    for (; *s != '\0'; s++) {
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            fputs("\xef\xbf\xbd", to);
        else
            fprintf(to, "%s%c", strchr("\\`*_{}[]<>#|&~", *s) != NULL ? "\\" : "", *s);
    }
}

static void put_value(FILE *to, LsFigureUnit unit, double v, double like)
{
    char text[24];
    if (v < 0)
        fputs("?", to);
    else if (unit == LS_FIGURE_BYTES)
        fputs(ls_page_bytes_like(text, (int64_t)v, (int64_t)like), to);
    else if (unit == LS_FIGURE_NS)
        fprintf(to, "%.4g ms", v * 1e-6);
    else
        fprintf(to, unit == LS_FIGURE_PART ? "%.2f %%" : "%.0f",
                unit == LS_FIGURE_PART ? 100 * v : v);
}

static void put_change(FILE *to, const LsPlanFigure *f)
{
    if (f->unit == LS_FIGURE_RUNS)
        fprintf(to, "%+.0f", f->now - f->then);
    else if (f->unit == LS_FIGURE_PART)
        fprintf(to, "%+.2f points", 100 * f->change);
    else
        fprintf(to, "%+.2f %%", 100 * f->change);
}

static const char *title_of(const LsPlanFigure *f)
{
    return f->unit == LS_FIGURE_NS     ? "time of a step"
           : f->unit == LS_FIGURE_PART ? "gap to the proven bound"
           : f->unit == LS_FIGURE_RUNS ? "runs that compute again"
                                       : f->what;
}

static void put_row(FILE *to, const LsPlanFigure *f, bool fresh)
{
    fprintf(to, "| %s | ", title_of(f));
    if (!fresh) {
        put_value(to, f->unit, f->then, f->then);
        fputs(" | ", to);
    }
    put_value(to, f->unit, f->now, f->then > 0 ? f->then : f->now);
    if (!fresh) {
        fputs(" | ", to);
        if (f->then >= 0)
            put_change(to, f);
        fprintf(to, " | %s%s%s", f->worse ? "**" : "", f->verdict, f->worse ? "**" : "");
    }
    fputs(" |\n", to);
}

/* With all digits of bytes, as the table rounds them. */
static void put_worse(FILE *to, const LsPlanDiff *d)
{
    bool first = true;
    for (int k = 0; k < d->nfigure; k++) {
        const LsPlanFigure *f = &d->figure[k];
        if (!f->worse)
            continue;
        fprintf(to, "%s%s ", first ? "\nGot worse: " : ", ", title_of(f));
        put_change(to, f);
        if (f->unit == LS_FIGURE_BYTES)
            fprintf(to, " (%.0f to %.0f bytes)", f->then, f->now);
        first = false;
    }
    if (!first)
        fputs(".\n", to);
}

static void put_figures(FILE *to, const LsPlanDiff *d, bool fresh)
{
    fputs(fresh ? "\n| | now |\n|---|--:|\n"
                : "\n| | before | after | change | |\n|---|--:|--:|--:|---|\n", to);
    for (int k = 0; k < d->nfigure; k++)
        put_row(to, &d->figure[k], fresh);
    if (fresh)
        return;
    put_worse(to, d);
    if (budgets_differ(d))
        fprintf(to, "\nThe budgets of the arena differ: %" PRId64 " before, %" PRId64
                " bytes after.\n",
                d->budget_then, d->budget_now);
    if (d->parting != NULL) {
        fprintf(to, "\n%c", toupper((unsigned char)d->parting[0]));
        put_text(to, d->parting + 1);
        fputs(".\n", to);
    }
}

void ls_plan_diff_markdown(FILE *to, const LsPlanDiff *d, const LsDiffFacts *facts)
{
    fputs("### Plan of ", to);
    put_text(to, facts->model);
    fprintf(to, ": %s\n\n", facts->fresh                     ? "new"
            : d->other != NULL                              ? "not comparable"
            : d->verdict == LS_AGAINST_WORSE                ? "worse"
                                                            : "no worse");
    fputs(facts->fresh ? "For " : "Against ", to);
    put_text(to, facts->against);
    if (!facts->fresh && d->other == NULL)
        fprintf(to, ", with a tolerance of %g %%", 100 * d->tolerance);
    fputs("; times are by the costs of ", to);
    put_text(to, facts->costs);
    fputs(".\n", to);
    if (d->other != NULL) {
        fputs("\nNot comparable: ", to);
        put_text(to, d->other);
        fputs(".\n", to);
    } else {
        put_figures(to, d, facts->fresh);
    }
    if (facts->ending != NULL) {
        fputs("\n", to);
        put_text(to, facts->ending);
        fputs("\n", to);
    }
    fputs("\n", to);
}
