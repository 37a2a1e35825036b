/* cli/commands/data_cmd.c -- lowerset data: packs data sets, and shows them. */
#include "base/json_text.h"
#include "base/plain_text.h"
#include "cli/commands/commands.h"
#include "cli/options/option_values.h"
#include "cli/options/options.h"
#include "dataset/data_commands.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *why)
{
    fprintf(stderr, "lowerset data: %s\n", why);
    return LS_EXIT_USAGE;
}

/* A line with names from files. */
static void say(const char *who, const char *text)
{
    ls_plain_printf(stderr, "%s: %s", who, text);
    fputc('\n', stderr);
}

/* ---- options ---- */

/* "HxW": both; "N": one number, and height 0. False: neither. */
static bool parse_size(const char *text, int *height, int *width)
{
    int64_t v[2] = {0, 0};
    const char *end = text;
    for (int k = 0; k < 2; k++) {
        if (!ls_options_count(end, &end, &v[k]) || v[k] > 1 << 16)
            return false;
        if (*end == '\0') {
            *height = k == 0 ? 0 : (int)v[0];
            *width = (int)v[k];
            return true;
        }
        if (k == 1 || *end++ != 'x')
            return false;
    }
    return false;
}

static int take_sizes(const LsOptions *o, LsPackOptions *p)
{
    const char *size = o->data.size, *crop = o->data.crop;
    const char *want = "HxW or N, of pixels from 1 to 65536";
    if (size != NULL && !parse_size(size, &p->height, &p->width))
        return ls_options_bad("--size", size, want);
    if (size != NULL && p->height == 0) {
        p->side = p->width;
        p->width = 0;
    }
    if (crop != NULL && !parse_size(crop, &p->crop_height, &p->crop_width))
        return ls_options_bad("--crop", crop, want);
    if (crop != NULL && p->crop_height == 0)
        p->crop_height = p->crop_width;
    if (o->data.channels == 2)
        return ls_options_bad("--channels", "2", "1 or 3");
    return 0;
}

static int cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static int take_options(const LsOptions *o, LsPackOptions *p)
{
    static const char *const texts[] = {"bytes", "characters", NULL};
    const LsDataGroup *d = &o->data;
    const int text = ls_options_word("--text", d->text, texts, 0);
    *p = (LsPackOptions){.source = d->words.item + 1,
                         .sources = d->words.n - 1,
                         .to = o->output.file,
                         .channels = (int)d->channels,
                         .masks = d->masks,
                         .skip_bad = d->skip_bad,
                         .label_column = d->label_column,
                         .categories = d->categories,
                         .leave_out = d->leave_out,
                         .one_hot = d->one_hot,
                         .missing = d->missing,
                         .characters = text == 1,
                         .length = d->length,
                         .share_rows = d->pack,
                         .raw = d->raw,
                         .input_name = d->input_name,
                         .label_name = d->label_name,
                         .like = d->like,
                         .threads = d->threads > 0 ? (int)d->threads : cores()};
    if (text < 0)
        return LS_EXIT_USAGE;
    if (p->to == NULL)
        return fail("pack needs an output: -o FILE.lsd");
    if (p->sources == 0)
        return fail("pack needs a source: a folder of pictures, or files");
    if (d->check)
        return fail("--check is for show");
    return take_sizes(o, p);
}

/* ---- progress ---- */

typedef struct Progress {
    bool line, quiet, shown;
    double start, last;
} Progress;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void show_progress(void *to, int64_t done, int64_t all)
{
    Progress *p = to;
    const double t = now();
    if (!p->line || t - p->last < 0.2)
        return;
    p->last = t;
    p->shown = true;
    fprintf(stderr, "\r%" PRId64 " of %" PRId64 " samples, %.0f a second\033[K", done, all,
            (double)done / (t - p->start));
    fflush(stderr);
}

static void clear_progress(Progress *p)
{
    if (p->shown)
        fprintf(stderr, "\r\033[K");
    p->shown = false;
}

static void show_note(void *to, const char *text)
{
    Progress *p = to;
    clear_progress(p);
    if (!p->quiet)
        say("note", text);
}

/* ---- pack ---- */

static void print_result(const LsOptions *o, const LsPackOptions *p, const LsPackResult *r,
                         double seconds)
{
    if (o->reports.json) {
        printf("{\"schema\": 1, \"file\": ");
        ls_json_text(stdout, p->to);
        printf(", \"samples\": %" PRId64 ", \"bytes\": %" PRId64 ", \"left_out\": %" PRId64,
               r->samples, r->bytes, r->skipped);
        printf(", \"threads\": %d", p->threads);
        ls_json_number(stdout, "seconds", seconds);
        printf("}\n");
    } else if (!o->output.quiet) {
        ls_plain_printf(stdout, "%s: %lld samples, %lld bytes, %.3g s", p->to,
                        (long long)r->samples, (long long)r->bytes, seconds);
        if (r->skipped > 0)
            printf("; %" PRId64 " left out", r->skipped);
        printf("\n");
    }
}

static int pack(const LsOptions *o)
{
    LsPackOptions p;
    LsPackResult r;
    char why[LS_PACK_WHY];
    Progress progress = {
        .line = !o->output.quiet && isatty(2), .quiet = o->output.quiet, .start = now()};
    int code = take_options(o, &p);
    if (code != 0)
        return code;
    p.progress = show_progress;
    p.note = show_note;
    p.progress_to = &progress;
    code = ls_pack_run(&p, &r, why);
    clear_progress(&progress);
    if (code == 0)
        print_result(o, &p, &r, now() - progress.start);
    else
        say("lowerset data", why);
    return code;
}

/* ---- the command ---- */

/* An option of pack alone, if one was given; else NULL. */
static const char *pack_option(const LsOptions *o)
{
    const LsDataGroup *d = &o->data;
    const struct {
        bool given;
        const char *name;
    } row[] = {
        {d->size != NULL, "--size"},
        {d->crop != NULL, "--crop"},
        {d->channels > 0, "--channels"},
        {d->masks != NULL, "--masks"},
        {d->skip_bad, "--skip-bad"},
        {d->label_column != NULL, "--label-column"},
        {d->one_hot, "--one-hot"},
        {d->categories != NULL, "--categories"},
        {d->leave_out != NULL, "--leave-out"},
        {d->missing != NULL, "--missing"},
        {d->text != NULL, "--text"},
        {d->raw != NULL, "--raw"},
        {d->length > 0, "--length"},
        {d->pack, "--pack"},
        {d->like != NULL, "--like"},
        {d->input_name != NULL, "--input-name"},
        {d->label_name != NULL, "--label-name"},
        {d->threads > 0, "--threads"},
        {o->output.file != NULL, "--output"},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (row[k].given)
            return row[k].name;
    return NULL;
}

static int show(const LsOptions *o)
{
    char why[80];
    const char *other = pack_option(o);
    if (other != NULL) {
        snprintf(why, sizeof why, "%s is for pack", other);
        return fail(why);
    }
    if (o->data.words.n != 2)
        return fail("show takes one packed data set");
    char text[LS_PACK_WHY];
    const int code = ls_pack_show(o->data.words.item[1], o->data.check, o->reports.json, text);
    if (code != 0)
        say("lowerset data", text);
    return code;
}

int ls_data_main(int argc, char **argv)
{
    LsOptions o = {0};
    int code = ls_options_parse(&o, LS_CMD_DATA, argc, argv);
    const char *word = o.data.words.n > 0 ? o.data.words.item[0] : "";
    if (code == 0)
        code = strcmp(word, "pack") == 0   ? pack(&o)
               : strcmp(word, "show") == 0 ? show(&o)
                                           : fail("the first word is pack or show; see lowerset "
                                                  "data -h");
    free(o.data.words.item);
    return code;
}
