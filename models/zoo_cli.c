/* models/zoo_cli.c -- `lowerset model`: options in, one ONNX file out. */
#include "models/zoo_cli.h"

#include "base/nearest_name.h"

#include <inttypes.h>
#include <string.h>

enum { OK = 0, NOT_WRITTEN = 1, USAGE = 2 };

static bool takes(const LsModel *m, int id) { return id < LS_OPT_SIZE || m->preset[id] != 0; }

static const char *near_option(const LsModel *m, const char *name)
{
    const char *best = NULL;
    int least = 3;
    for (int i = 0; i < LS_NOPTS; i++) {
        int d = ls_spelling_distance(name, ls_model_options[i].name);
        if (takes(m, i) && d < least) {
            least = d;
            best = ls_model_options[i].name;
        }
    }
    return best;
}

static const char *near_model(const char *name)
{
    const char *best = NULL;
    int least = 4;
    for (size_t i = 0; ls_model_at(i) != NULL; i++) {
        int d = ls_spelling_distance(name, ls_model_at(i)->name);
        if (d < least) {
            least = d;
            best = ls_model_at(i)->name;
        }
    }
    return best;
}

void ls_model_list(FILE *to)
{
    char err[256];
    for (size_t i = 0; ls_model_at(i) != NULL; i++) {
        const LsModel *m = ls_model_at(i);
        LsModelRequest r = ls_model_request(m);
        LsModelInfo info = {0};
        ls_model_count(&r, &info, err, sizeof err);
        fprintf(to, "%-12s %11" PRId64 "  %s\n", m->name, info.parameters, m->help);
    }
}

/* Prints the preset of an option as a user would type it. */
static void print_preset(FILE *to, const LsModelOption *o, int id, int64_t v)
{
    const char *word = o->choice;
    if (id == LS_OPT_DROPOUT) {
        fprintf(to, "%g", (double)v / 10000);
    } else if (word == NULL) {
        fprintf(to, "%" PRId64, v);
    } else {
        for (; v > 1; v--)
            word = strchr(word, '|') + 1;
        fprintf(to, "%.*s", (int)strcspn(word, "|"), word);
    }
}

void ls_model_help(FILE *to, const LsModel *m)
{
    fprintf(to, "usage: lowerset model %s [options] -o FILE.onnx\n%s\n\noptions:\n", m->name,
            m->help);
    for (int i = 0; i < LS_NOPTS; i++) {
        const LsModelOption *o = &ls_model_options[i];
        char left[64];
        if (!takes(m, i))
            continue;
        snprintf(left, sizeof left, "--%s=%s", o->name, o->choice != NULL ? o->choice : "N");
        fprintf(to, "  %-30s %s (", left, o->help);
        print_preset(to, o, i, m->preset[i]);
        fprintf(to, ")\n");
    }
    fprintf(to, "  %-30s %s\n", "-v", "say what was written");
}

void ls_model_table(FILE *to)
{
    for (int i = 0; i < LS_NOPTS; i++)
        fprintf(to, "model --%s\n", ls_model_options[i].name);
    fprintf(to, "model -o\nmodel -v\nmodel --list\n");
}

typedef struct Line {
    LsModelRequest request;
    const char *path;
    bool verbose;
    const char *given[LS_NOPTS];        /* as typed; NULL: not yet */
} Line;

static int complain(const char *what, const char *hint)
{
    fprintf(stderr, "lowerset model: %s\n", what);
    if (hint != NULL)
        fprintf(stderr, "  hint: %s\n", hint);
    return USAGE;
}

static int given_twice(const char *name, const char *first, const char *second)
{
    char what[200];
    snprintf(what, sizeof what, "%s is given twice: '%.60s' and '%.60s'", name, first, second);
    return complain(what, NULL);
}

/* Records the value of an option; a second value is an error. */
static int note(Line *l, const char *name, const char *value)
{
    for (int i = 0; i < LS_NOPTS; i++) {
        if (strcmp(ls_model_options[i].name, name) != 0)
            continue;
        if (l->given[i] != NULL)
            return given_twice(name, l->given[i], value);
        l->given[i] = value;
    }
    return OK;
}

/* Parses --name=value or --name value at argv[*i], and moves *i past it. */
static int take_option(Line *l, int argc, char **argv, int *i)
{
    char name[LS_SPELLING_MOST + 1], err[256], hint[64];
    const char *word = argv[*i] + 2, *value = strchr(word, '=');
    size_t n = value != NULL ? (size_t)(value - word) : strlen(word);
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    const char *best = near_option(l->request.model, name);
    bool known = best != NULL && strcmp(best, name) == 0;
    if (value != NULL)
        value++;
    else if (known && *i + 1 >= argc)
        return snprintf(err, sizeof err, "--%s needs a value", name), complain(err, NULL);
    else
        value = known ? argv[++*i] : "";
    if (ls_model_set(&l->request, name, value, err, sizeof err))
        return note(l, name, value);
    if (known)
        return complain(err, NULL);
    if (best == NULL)
        snprintf(hint, sizeof hint, "lowerset model %s --help", l->request.model->name);
    else
        snprintf(hint, sizeof hint, "did you mean --%s?", best);
    return complain(err, hint);
}

static int take_arguments(Line *l, int argc, char **argv)
{
    char err[256];
    for (int i = 3; i < argc; i++) {
        int code = OK;
        if (strcmp(argv[i], "-v") == 0)
            l->verbose = true;
        else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc && l->path != NULL)
            code = given_twice("-o", l->path, argv[i + 1]);
        else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            l->path = argv[++i];
        else if (strncmp(argv[i], "--", 2) == 0)
            code = take_option(l, argc, argv, &i);
        else
            code = (snprintf(err, sizeof err, "unexpected argument '%s'", argv[i]),
                    complain(err, NULL));
        if (code != OK)
            return code;
    }
    return l->path != NULL ? OK : complain("-o FILE.onnx is missing", NULL);
}

static bool asks_help(int argc, char **argv)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int no_model(const char *name)
{
    char what[128], hint[64];
    const char *best = near_model(name);
    snprintf(what, sizeof what, "there is no model '%s'", name);
    snprintf(hint, sizeof hint, "did you mean %s?", best != NULL ? best : "");
    return complain(what, best != NULL ? hint : "lowerset model --list names them");
}

static void print_usage(FILE *to)
{
    fprintf(to, "usage: lowerset model NAME [options] -o FILE.onnx\n"
                "       lowerset model NAME --help\n"
                "       lowerset model --list\n");
}

int ls_model_main(int argc, char **argv)
{
    char err[256];
    LsModelInfo info;
    if (argc > 2 && strcmp(argv[2], "--list") == 0)
        return ls_model_list(stdout), OK;
    const LsModel *m = argc > 2 ? ls_model_find(argv[2]) : NULL;
    if (asks_help(argc, argv))
        return m != NULL ? ls_model_help(stdout, m) : print_usage(stdout), OK;
    if (argc < 3)
        return print_usage(stderr), USAGE;
    if (m == NULL)
        return no_model(argv[2]);
    Line l = {.request = ls_model_request(m)};
    int code = take_arguments(&l, argc, argv);
    if (code != OK)
        return code;
    code = ls_model_write(&l.request, l.path, &info, err, sizeof err);
    if (code != OK)
        fprintf(stderr, "lowerset model: %s\n", err);
    else if (l.verbose)
        fprintf(stderr, "%s: %s, %" PRId64 " parameters, %" PRIu32 " nodes\n", l.path, m->name,
                info.parameters, info.nodes);
    return code;
}
