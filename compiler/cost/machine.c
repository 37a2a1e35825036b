/* compiler/cost/machine.c -- see machine.h. */
#include "compiler/cost/machine.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/read_file.h"

#define LS_COST_ROW(id, name, parent) {name, LS_COST_##parent},
#define LS_COST_ROW_BF16(id, name, parent) {name ".bf16", LS_COST_##id},
#define LS_COST_ROW_F16(id, name, parent) {name ".f16", (LsCostClass)(LS_COST_##id + LS_COST_BF16)},
const LsCostName ls_cost_class[LS_NCOSTS] = {
    LS_COST_CLASSES(LS_COST_ROW) LS_COST_CLASSES(LS_COST_ROW_BF16) LS_COST_CLASSES(LS_COST_ROW_F16)
};
#undef LS_COST_ROW
#undef LS_COST_ROW_BF16
#undef LS_COST_ROW_F16

static const char *const peak_name[LS_NPEAKS] = {"f32", "tf32", "f16", "bf16", "f64"};

enum { MAX_WORDS = 12, MAX_FILE = 65536 };
static const double most = 1e15;        /* limit of every figure: more is an error */

typedef struct Reader {
    LsMachine *m;
    const char *file;
    int line;
    bool given[LS_NCOSTS], version, memory, peak;
    char *err;
    size_t size;
} Reader;

__attribute__((format(printf, 2, 3)))
static bool fail(Reader *r, const char *fmt, ...)
{
    va_list ap;
    int n = snprintf(r->err, r->size, "%s:%d: ", r->file, r->line);
    va_start(ap, fmt);
    if (n >= 0 && (size_t)n < r->size)
        vsnprintf(r->err + n, r->size - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}

static bool number(const char *text, double least, double *v)
{
    char *end;
    *v = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*v) && *v >= least && *v <= most;
}

static bool read_number(Reader *r, const char *key, const char *text, double least, double *v)
{
    return number(text, least, v)
           || fail(r, "'%s': '%.40s' is not a number from %g to %g", key, text, least, most);
}

/* A share: "-" for "free", else above 0. */
static bool read_share(Reader *r, const char *key, const char *text, double *v)
{
    *v = 0;
    return strcmp(text, "-") == 0 || read_number(r, key, text, 1e-9, v);
}

/* Classes of kernels that no longer exist; files of earlier calibrations have them. */
static bool is_former(const char *name)
{
    static const char *const former[] = {"conv.dw.own", "conv.fused"};
    bool is = false;
    for (size_t k = 0; k < sizeof former / sizeof *former; k++) {
        size_t n = strlen(former[k]);
        is |= strncmp(name, former[k], n) == 0 && (name[n] == '\0' || name[n] == '.');
    }
    return is;
}

static bool read_class(Reader *r, char *const word[], int n)
{
    int k = 0;
    if (n != 6)
        return fail(r, "class needs a name, three shares and ns");
    while (k < LS_NCOSTS && strcmp(ls_cost_class[k].name, word[1]) != 0)
        k++;
    if (k == LS_NCOSTS)
        return is_former(word[1]) || fail(r, "there is no class '%.40s'", word[1]);
    if (r->given[k])
        return fail(r, "class '%s' is given twice", word[1]);
    r->given[k] = true;
    LsClassCost *c = &r->m->cost[k];
    return read_share(r, word[1], word[2], &c->compute) && read_share(r, word[1], word[3], &c->read)
           && read_share(r, word[1], word[4], &c->write)
           && read_number(r, word[1], word[5], 0, &c->launch);
}

static bool read_peaks(Reader *r, char *const word[], int n)
{
    for (int i = 1; i < n; i++) {
        char *eq = strchr(word[i], '=');
        int k = 0;
        if (eq != NULL)
            *eq = '\0';
        while (k < LS_NPEAKS && strcmp(peak_name[k], word[i]) != 0)
            k++;
        if (eq == NULL || k == LS_NPEAKS)
            return fail(r, "peak: '%.40s' is not one of f32= tf32= f16= bf16= f64=", word[i]);
        if (!read_number(r, peak_name[k], eq + 1, 1e-6, &r->m->peak[k]))
            return false;
    }
    r->peak = r->m->peak[LS_PEAK_F32] > 0;
    return true;
}

static bool read_cache(Reader *r, char *const word[], int n)
{
    return n != 3 ? fail(r, "cache needs bytes and a factor")
                  : read_number(r, "cache", word[1], 0, &r->m->cache)
                        && read_number(r, "cache", word[2], 1e-3, &r->m->near);
}

static bool read_word(Reader *r, char *const word[], int n)
{
    LsMachine *m = r->m;
    double v = 0;
    if (n < 2)
        return fail(r, "'%.40s' without a value", word[0]);
    if (strcmp(word[0], "class") == 0)
        return read_class(r, word, n);
    if (strcmp(word[0], "peak") == 0)
        return read_peaks(r, word, n);
    if (strcmp(word[0], "cache") == 0)
        return read_cache(r, word, n);
    if (strcmp(word[0], "name") == 0 && strlen(word[1]) < sizeof m->name) {
        strcpy(m->name, word[1]);
        return true;
    }
    if (strcmp(word[0], "kind") == 0) {
        m->gpu = strcmp(word[1], "gpu") == 0;
        return m->gpu || strcmp(word[1], "cpu") == 0 || fail(r, "kind: must be cpu or gpu");
    }
    const struct { const char *key; double least, most, *to;
    } row[] = {{"memory", 1e-6, most, &m->memory},
               {"overlap", 0, 1, &m->overlap},
               {"step", 0, most, &m->step},
               {"context", 0, most, &m->context},
               {"threads", 0, 4096, &v},
               {"lanes", 1, 1024, &v},
               {"probe.product", 0, most, &m->probe_product},
               {"probe.pass", 0, most, &m->probe_pass}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        if (strcmp(word[0], row[k].key) == 0) {
            if (!read_number(r, word[0], word[1], row[k].least, row[k].to))
                return false;
            if (*row[k].to > row[k].most)
                return fail(r, "'%s': more than %g", word[0], row[k].most);
            r->memory |= k == 0;
            m->threads = k == 4 ? (int)v : m->threads;
            m->lanes = k == 5 ? (int)v : m->lanes;
            return true;
        }
    return fail(r, "'%.40s' is not a word of machine files", word[0]);
}

static bool read_line(Reader *r, char *line)
{
    char *word[MAX_WORDS], *save = NULL;
    int n = 0;
    line[strcspn(line, "#\r")] = '\0';
    char *what = line + strspn(line, " \t");
    if (strncmp(what, "what", 4) == 0 && (what[4] == ' ' || what[4] == '\t')) {
        what += 4 + strspn(what + 4, " \t");
        snprintf(r->m->what, sizeof r->m->what, "%s", what);
        return true;
    }
    for (char *w = strtok_r(line, " \t", &save); w != NULL; w = strtok_r(NULL, " \t", &save)) {
        if (n == MAX_WORDS)
            return fail(r, "too many words");
        word[n++] = w;
    }
    if (n == 0)
        return true;
    if (strcmp(word[0], "lowerset-machine") == 0) {
        r->version = n == 2 && strcmp(word[1], "1") == 0;
        return r->version || fail(r, "a version that this program does not read");
    }
    return r->version ? read_word(r, word, n)
                      : fail(r, "not a machine file: it begins with 'lowerset-machine 1'");
}

static bool complete(Reader *r)
{
    r->line++;
    if (!r->version)
        return fail(r, "not a machine file: it begins with 'lowerset-machine 1'");
    if (!r->memory || !r->peak || !r->given[LS_COST_OTHER] || r->m->name[0] == '\0')
        return fail(r, "it ends without '%s'",
                    r->m->name[0] == '\0' ? "name" : !r->memory ? "memory"
                    : !r->peak                                  ? "peak f32="
                                                                : "class other");
    for (int k = 0; k < LS_NCOSTS; k++)
        if (!r->given[k])
            r->m->cost[k] = r->m->cost[ls_cost_class[k].parent];
    return true;
}

bool ls_machine_parse(LsMachine *m, const char *text, const char *file, char *err, size_t size)
{
    Reader r = {.m = m, .file = file, .err = err, .size = size};
    *m = (LsMachine){.lanes = 1, .near = 1};
    while (*text != '\0') {
        char line[512];
        size_t n = strcspn(text, "\n");
        r.line++;
        if (n >= sizeof line)
            return fail(&r, "a line of more than %zu bytes", sizeof line - 1);
        memcpy(line, text, n);
        line[n] = '\0';
        if (!read_line(&r, line))
            return false;
        text += n + (text[n] == '\n');
    }
    return complete(&r);
}

bool ls_machine_load(LsMachine *m, const char *path, char *err, size_t size)
{
    char why[256];
    char *text = ls_read_file(path, MAX_FILE, NULL, &(LsWhy){.text = why, .size = sizeof why});
    if (text == NULL)
        snprintf(err, size, "%s: %s", path, why);
    bool ok = text != NULL && ls_machine_parse(m, text, path, err, size);
    free(text);
    return ok;
}

static void put_share(FILE *to, double v)
{
    if (v > 0)
        fprintf(to, " %10.6g", v);
    else
        fprintf(to, " %10s", "-");
}

static bool has_figures_of(const LsMachine *m, int k, int other)
{
    const LsClassCost *a = &m->cost[k], *b = &m->cost[other];
    return a->compute == b->compute && a->read == b->read && a->write == b->write
           && a->launch == b->launch;
}

void ls_machine_write(FILE *to, const LsMachine *m, const char *note)
{
    fprintf(to, "lowerset-machine 1\n");
    if (note != NULL)
        fprintf(to, "# %s\n", note);
    fprintf(to, "name     %s\nwhat     %s\nkind     %s\nthreads  %d\npeak    ", m->name, m->what,
            m->gpu ? "gpu" : "cpu", m->threads);
    for (int k = 0; k < LS_NPEAKS; k++)
        if (m->peak[k] > 0)
            fprintf(to, " %s=%.6g", peak_name[k], m->peak[k]);
    fprintf(to, "      # operations per ns\nmemory   %.6g      # bytes per ns\n", m->memory);
    fprintf(to, "cache    %.6g %.6g      # bytes, times the memory's speed\n", m->cache, m->near);
    fprintf(to, "lanes    %d\noverlap  %.6g\nstep     %.6g\n", m->lanes, m->overlap, m->step);
    if (m->context > 0)
        fprintf(to, "context  %.9g\n", m->context);
    if (m->probe_product > 0 && m->probe_pass > 0)
        fprintf(to, "probe.product %.6g\nprobe.pass    %.6g\n", m->probe_product, m->probe_pass);
    fprintf(to, "#        %-22s %10s %10s %10s %8s\n", "", "of peak", "read", "write", "ns");
    for (int k = 0; k < LS_NCOSTS; k++) {
        if (k >= LS_COST_BF16 && has_figures_of(m, k, ls_cost_class[k].parent))
            continue;
        fprintf(to, "class    %-22s", ls_cost_class[k].name);
        put_share(to, m->cost[k].compute);
        put_share(to, m->cost[k].read);
        put_share(to, m->cost[k].write);
        fprintf(to, " %8.6g\n", m->cost[k].launch);
    }
}

double ls_machine_dot_rate(const LsMachine *m)
{
    const double brain = m->cost[LS_COST_CONV + LS_COST_BF16].compute,
                 real = m->cost[LS_COST_CONV].compute;
    if (brain != real && brain > 0 && real > 0)
        return brain / real;
    return m->peak[LS_PEAK_F32] > 0 ? m->peak[LS_PEAK_BF16] / m->peak[LS_PEAK_F32] : 0;
}

LsMachine ls_machine_with_threads(const LsMachine *m, int threads)
{
    static const double computing = 0.92, moving = 0.6;
    LsMachine other = *m;
    if (m->threads <= 0 || m->threads == threads)
        return other;
    const double times = (double)threads / m->threads;
    for (int k = 0; k < LS_NPEAKS; k++)
        other.peak[k] *= pow(times, computing);
    other.memory *= pow(times, moving);
    other.probe_product *= times;
    other.probe_pass *= times;
    other.threads = threads;
    return other;
}

LsMachine ls_machine_with_peak(const LsMachine *m, LsPeak peak)
{
    LsMachine fast = *m;
    if (m->peak[peak] > 0)
        fast.peak[LS_PEAK_F32] = m->peak[peak];
    return fast;
}

bool ls_machine_find(LsMachine *m, const char *name)
{
    char err[256];
    for (size_t k = 0; ls_machine_builtin(k) != NULL; k++)
        if (ls_machine_parse(m, ls_machine_builtin(k), "built in", err, sizeof err)
            && strcmp(m->name, name) == 0)
            return true;
    return false;
}
