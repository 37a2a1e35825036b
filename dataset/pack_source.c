/* dataset/pack_source.c -- which kind of source it is; what all kinds share. */
#include "dataset/pack_source.h"

#include "runtime/base/interrupt.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

void ls_pack_note(const LsPackOptions *o, const char *fmt, ...)
{
    char text[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ls_make_printable(text);
    if (o->note != NULL)
        o->note(o->progress_to, text);
}

static const struct Kind {
    const char *ending; /* NULL: a folder */
    const char *what;
    bool (*pack)(const LsPackOptions *o, LsPack *p, LsPackResult *r, LsError *e);
} kind[] = {
    {NULL, "folders of pictures", ls_pack_pictures},
    {".csv", "tables", ls_pack_table},
    {".tsv", "tables", ls_pack_table},
    {".jsonl", "JSON lines", ls_pack_lines},
    {".bin", "tokens", ls_pack_tokens},
    {".txt", "texts", ls_pack_text},
    {".npy", "arrays", ls_pack_arrays},
    {".npz", "arrays", ls_pack_arrays},
};

static bool ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcasecmp(s + n - m, end) == 0;
}

static const struct Kind *kind_of(const char *source, LsError *e)
{
    struct stat st;
    if (stat(source, &st) != 0) {
        ls_fail(e, LS_EXIT_DATA, "%s: cannot read: %s", source, strerror(errno));
        return NULL;
    }
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++)
        if (kind[k].ending == NULL ? S_ISDIR(st.st_mode) : ends_with(source, kind[k].ending))
            return &kind[k];
    ls_fail(e, LS_EXIT_DATA,
            "%s: no known kind of data; a source is a folder of pictures, or a "
            ".csv, .tsv, .jsonl, .bin, .txt, .npy or .npz file",
            source);
    return NULL;
}

/* Options that would have no effect are refused. */
static bool options_fit(const LsPackOptions *o, const struct Kind *k, LsError *e)
{
    const bool pictures = k->pack == ls_pack_pictures, table = k->pack == ls_pack_table,
               lines = k->pack == ls_pack_lines;
    const struct {
        bool given, takes;
        const char *name;
    } rule[] = {
        {o->width || o->side, pictures, "--size"},
        {o->crop_width > 0, pictures, "--crop"},
        {o->channels > 0, pictures, "--channels"},
        {o->masks != NULL, pictures, "--masks"},
        {o->skip_bad, pictures, "--skip-bad"},
        {o->label_column != NULL, table, "--label-column"},
        {o->one_hot, table, "--one-hot"},
        {o->categories != NULL, table, "--categories"},
        {o->leave_out != NULL, table, "--leave-out"},
        {o->missing != NULL, table, "--missing"},
        {o->characters, k->pack == ls_pack_text, "--text=characters"},
        {o->length > 0, lines, "--length"},
        {o->share_rows, lines, "--pack"},
        {o->raw != NULL, k->pack == ls_pack_tokens, "--raw"},
        {o->like != NULL, pictures || table, "--like"},
    };
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++)
        if (rule[i].given && !rule[i].takes)
            return ls_fail(e, LS_EXIT_USAGE, "%s is not for %s: %s", rule[i].name, k->what,
                           o->source[0]);
    return true;
}

bool ls_pack(const LsPackOptions *o, LsPackResult *r, LsError *e)
{
    const struct Kind *first = NULL;
    LsPack pack;
    *r = (LsPackResult){0};
    for (int k = 0; k < o->sources; k++) {
        const struct Kind *of = kind_of(o->source[k], e);
        if (of == NULL)
            return false;
        if (first != NULL && first->pack != of->pack)
            return ls_fail(e, LS_EXIT_USAGE,
                           "%s are %s, and %s %s: sources of one kind become one "
                           "data set",
                           o->source[0], first->what, o->source[k], of->what);
        first = of;
    }
    if (first == NULL)
        return ls_fail(e, LS_EXIT_USAGE, "no source given");
    if (!options_fit(o, first, e) || !ls_pack_open(&pack, o->to, e))
        return false;
    pack.source = o->source;
    pack.sources = o->sources;
    const bool ok = first->pack(o, &pack, r, e);
    r->samples = pack.samples;
    r->bytes = pack.out.at;
    return ok;
}

int ls_pack_run(const LsPackOptions *o, LsPackResult *r, char why[LS_PACK_WHY])
{
    LsError e = {0};
    ls_interrupt_catch();
    ls_pack(o, r, &e);
    snprintf(why, LS_PACK_WHY, "%s", e.text);
    return (int)e.code;
}
