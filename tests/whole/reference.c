/* tests/whole/reference.c -- compiles models, trains a few steps and compares with reference
 * numbers.
 *
 *   reference LOWERSET MANIFEST.json... [NAME-PART]     prints one row a model; 0 when all agree
 *
 * The manifest lists models with references in NPZ files: loss, outputs, gradients, parameters
 * after 3 steps of SGD and of Adam, running statistics. A tensor agrees when
 *   max|a - ref| <= tol * max(max|ref|, 1e-3 * largest of its group)
 * For sgd and adam, a and ref are the changes by the steps, with a tolerance of 4 ulps of the
 * parameter.
 *
 * In three steps a Relu's operand can come so close to zero that rounding decides its sign. If only
 * the changes by the steps are off, the model is trained again in double, where no operand is that
 * close to zero. If all agrees then, the row says "tie". */
#include "runtime/data/npz.h"
#include "tests/support/less.h"

#include <cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 8192, MAX_TENSORS = 4096 };

typedef enum { LOSS, OUT, GRAD, SGD, ADAM, STAT, NGROUPS } Group;
static const char *const group_name[NGROUPS] = {"loss", "out", "grad", "sgd", "adam", "stat"};

typedef struct Case {
    const cJSON *row;
    const char *folder, *lowerset;
    const char *precision;
    char work[256], model[1024], ref_path[1024], data[1024];
    LsFile ref, plain, sgd, adam;   /* reference; our dumps: lr 0, after 3 steps */
    char *names;                    /* members of ref, comma-separated */
    double worst[NGROUPS];          /* largest error over tolerance; <= 1 agrees */
    char note[1200];
} Case;

static const char *text(const cJSON *row, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(row, key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

static double tolerance(const Case *c, Group g)
{
    static const double least[NGROUPS] = {1e-5, 2e-5, 1e-4, 5e-4, 2e-3, 2e-5};
    const cJSON *t = cJSON_GetObjectItemCaseSensitive(c->row, "tolerance");
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(t, group_name[g]);
    return cJSON_IsNumber(v) ? v->valuedouble : least[g];
}

/* Runs a shell command; its output goes to the work folder. */
static bool shell(Case *c, const char *fmt, const char *a, const char *b)
{
    char command[LINE], line[LINE + 300];
    snprintf(command, sizeof command, fmt, a, b);
    snprintf(line, sizeof line, "cd '%s' && { %s ; } >log 2>&1", c->work, command);
    int status = system(line);
    if (status == 0)
        return true;
    snprintf(line, sizeof line, "%s/log", c->work);
    FILE *f = fopen(line, "r");
    char first[300] = "";
    if (f != NULL && fgets(first, sizeof first, f) == NULL)
        first[0] = '\0';
    if (f != NULL)
        fclose(f);
    snprintf(c->note, sizeof c->note, "exit %d: %s", WEXITSTATUS(status), first);
    c->note[strcspn(c->note, "\n")] = '\0';
    return false;
}

static bool find(const LsFile *f, const char *name, LsArray *a)
{
    LsError e = {0};
    bool found = false;
    return ls_npz_find(f, name, a, &found, &e) && found;
}

/* Copies a member into z, repeated to `count` elements when it has one. */
static bool put(LsNpz *z, const char *name, const LsArray *a, int rank, const int64_t *dim,
                int64_t count)
{
    LsError e = {0};
    LsElement type = ls_element_is_float(a->type) ? LS_F64 : LS_I64;
    if (!ls_npz_begin(z, name, type, rank, dim, &e))
        return false;
    for (int64_t i = 0; i < count; i++) {
        double r = ls_array_real(a, a->count == 1 ? 0 : i);
        int64_t k = ls_array_int(a, a->count == 1 ? 0 : i);
        ls_npz_write(z, type == LS_F64 ? (const void *)&r : (const void *)&k, 8);
    }
    return true;
}

/* The data file: the reference itself, or a copy with a label for every element. */
static bool prepare_data(Case *c)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(c->row, "loss_spec");
    const char *output = text(spec, "output");
    char name[512];
    LsArray label, out, in;
    snprintf(c->data, sizeof c->data, "%s", c->ref_path);
    snprintf(name, sizeof name, "out/%s", output);
    if (!find(&c->ref, "label", &label) || label.count != 1)
        return true;
    const cJSON *dims = cJSON_GetObjectItemCaseSensitive(
        cJSON_GetObjectItemCaseSensitive(c->row, "outputs"), output);
    snprintf(c->data, sizeof c->data, "%s/data.npz", c->work);
    LsNpz z;
    LsNpzMember room[16];
    LsError e = {0};
    if (!ls_npz_open(&z, c->data, room, 16, &e))
        return false;
    out = (LsArray){.rank = 0, .count = 1};
    int64_t batch = 1;
    const cJSON *input = cJSON_GetObjectItemCaseSensitive(c->row, "inputs")->child;
    for (; input != NULL; input = input->next) {
        snprintf(name, sizeof name, "in/%s", input->string);
        if (!find(&c->ref, name, &in) || !put(&z, input->string, &in, in.rank, in.dim, in.count))
            return false;
        batch = in.dim[0];
    }
    for (const cJSON *d = dims->child->next; d != NULL; d = d->next, out.rank++)
        out.count *= out.dim[out.rank] = cJSON_IsNumber(d) ? (int64_t)d->valuedouble : batch;
    return put(&z, "label", &label, out.rank, out.dim, out.count) && ls_npz_close(&z, &e);
}

static bool train(Case *c)
{
    const cJSON *spec = cJSON_GetObjectItemCaseSensitive(c->row, "loss_spec");
    const cJSON *lr = cJSON_GetObjectItemCaseSensitive(c->row, "sgd_lr");
    const char *kind = text(spec, "kind");
    kind = strcmp(kind, "softmax_ce") == 0 ? "ce" : kind;
    char shapes[2048] = "", compile[LINE], name[512], rate[64];
    const cJSON *input = cJSON_GetObjectItemCaseSensitive(c->row, "inputs")->child;
    int64_t most = 0;           /* elements of an input */
    for (; input != NULL; input = input->next) {
        LsArray in;
        snprintf(name, sizeof name, "in/%s", input->string);
        if (!find(&c->ref, name, &in))
            return false;
        most = in.count > most ? in.count : most;
        size_t at = strlen(shapes);
        at += (size_t)snprintf(shapes + at, sizeof shapes - at, " --shape '%s='", input->string);
        for (int k = 0; k < in.rank; k++)
            at += (size_t)snprintf(shapes + at, sizeof shapes - at, "%s%ld", k > 0 ? "x" : "",
                                   (long)in.dim[k]);
    }
    /* else what compiles and runs soonest */
    const bool whole = tests_do_all() && !tests_do_less();
    const char *soon = most > 20000 ? "-O1 --plan-effort=1" : "-O0 --plan-effort=1";
    snprintf(compile, sizeof compile, "'%s' compile '%s' -q %s%s --precision=%s --loss=%s "
             "--loss-input '%s'", c->lowerset, c->model, whole ? "-O1" : soon, shapes,
             c->precision, kind, text(spec, "output"));
    snprintf(rate, sizeof rate, "%g", cJSON_IsNumber(lr) ? lr->valuedouble : 0.05);
    char run[LINE];
    snprintf(run, sizeof run, "--data '%s' --no-shuffle --progress none", c->data);
    return shell(c, "%s --optimizer=sgd:momentum=0.9 --store-gradients -o sgd", compile, "")
        && shell(c, "./sgd %s --steps 1 --lr 0 --dump plain.npz", run, "")
        && shell(c, "./sgd %s --steps 3 --lr %s --dump sgd.npz", run, rate)
        && shell(c, "%s --optimizer=adam:eps=1e-5 -o adam", compile, "")
        && shell(c, "./adam %s --steps 3 --lr 0.001 --dump adam.npz", run, "");
}

/* Compares one reference tensor with ours. `every`: the reference has each every-th element
 * only. */
typedef struct Pair { LsArray ref, got, before; int64_t every; bool has_before, zero; } Pair;

static double ref_value(const Pair *p, int64_t i)
{
    return ls_array_real(&p->ref, i)
           - (p->has_before ? ls_array_real(&p->before, i * p->every) : 0);
}

static double got_value(const Pair *p, int64_t i)
{
    int64_t k = i * p->every;
    return ls_array_real(&p->got, k) - (p->has_before ? ls_array_real(&p->before, k) : 0);
}

static double largest(const Pair *p)
{
    double m = 0;
    for (int64_t i = 0; i < p->ref.count; i++)
        m = fmax(m, fabs(ref_value(p, i)));
    return m;
}

static double error_over_room(const Pair *p, double tol, double group_max)
{
    double most = 0, room = tol * fmax(largest(p), 1e-3 * group_max), before = 0;
    for (int64_t i = 0; i < p->before.count && p->has_before; i++)
        before = fmax(before, fabs(ls_array_real(&p->before, i)));
    room += before * 4 * 0x1p-23;
    if (p->zero)
        room = 1e-5 * group_max;
    for (int64_t i = 0; i < p->ref.count; i++) {
        double d = p->zero ? fabs(got_value(p, i)) : fabs(got_value(p, i) - ref_value(p, i));
        most = isnan(d) ? INFINITY : fmax(most, d);
    }
    return room > 0 ? most / room : most > 0 ? INFINITY : 0;
}

/* The real name behind "#k" members: entry k of `trainable`. */
static const char *real_name(const Case *c, const char *member)
{
    if (member[0] != '#')
        return member;
    const cJSON *t = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(c->row, "trainable"),
                                        atoi(member + 1));
    return t != NULL ? t->valuestring : member;
}

static bool is_zero_grad(const Case *c, const char *name)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->row, "zero_grad"), *v;
    cJSON_ArrayForEach(v, list)
        if (strcmp(v->valuestring, name) == 0)
            return true;
    return false;
}

typedef struct Source {
    const char *prefix;
    Group group;
    LsFile *from;
    const char *key;
    bool update;
} Source;

/* Matches member "PREFIX/NAME" or "PREFIX.everyK/NAME" of the reference with our dump. */
static bool match(Case *c, const Source *s, const char *member, Pair *p)
{
    size_t n = strlen(s->prefix);
    const char *slash = strchr(member, '/');
    char key[800];
    *p = (Pair){.every = 1};
    if (strncmp(member, s->prefix, n) != 0 || slash == NULL)
        return false;
    if (strncmp(member + n, ".every", 6) == 0)
        p->every = atol(member + n + 6);
    else if (member + n != slash)
        return false;
    const char *name = real_name(c, slash + 1);
    p->zero = is_zero_grad(c, name);
    if (p->zero && s->group == ADAM)
        return false;
    snprintf(key, sizeof key, "%s/%s", s->key, name);
    if (!find(&c->ref, member, &p->ref))
        return false;
    if (!find(s->from, key, &p->got)) {
        if (largest(p) == 0)            /* a parameter that the loss does not reach */
            return false;
        snprintf(c->note, sizeof c->note, "no %s in the dump", key);
        c->worst[s->group] = INFINITY;
        return false;
    }
    snprintf(key, sizeof key, "param/%s", name);
    p->has_before = s->update && find(&c->plain, key, &p->before);
    if (p->got.count != (p->every == 1 ? p->ref.count : p->got.count)
        || p->got.count <= (p->ref.count - 1) * p->every) {
        snprintf(c->note, sizeof c->note, "%s has %ld elements", key, (long)p->got.count);
        c->worst[s->group] = INFINITY;
        return false;
    }
    return true;
}

static void compare(Case *c, const Source *s)
{
    static Pair pair[MAX_TENSORS];
    static char label[MAX_TENSORS][128];
    int n = 0;
    double group_max = 0;
    char *copy = strdup(c->names), *save = NULL;
    for (char *m = strtok_r(copy, ", ", &save); m != NULL; m = strtok_r(NULL, ", ", &save))
        if (n < MAX_TENSORS && match(c, s, m, &pair[n])) {
            snprintf(label[n], sizeof label[n], "%.120s", m);
            group_max = fmax(group_max, largest(&pair[n]));
            n++;
        }
    free(copy);
    for (int k = 0; k < n; k++) {
        double r = error_over_room(&pair[k], tolerance(c, s->group), group_max);
        if (r > c->worst[s->group]) {
            c->worst[s->group] = r;
            if (r > 1)
                snprintf(c->note, sizeof c->note, "%.120s is off by %.3g of the tolerance",
                         label[k], r);
        }
    }
}

static void compare_loss(Case *c)
{
    LsArray ref, got;
    if (!find(&c->ref, "loss", &ref) || !find(&c->plain, "loss", &got)) {
        c->worst[LOSS] = INFINITY;
        return;
    }
    double r = ls_array_real(&ref, 0), g = ls_array_real(&got, 0);
    c->worst[LOSS] = fabs(r - g) / (tolerance(c, LOSS) * fabs(r));
    if (!(c->worst[LOSS] <= 1))
        snprintf(c->note, sizeof c->note, "loss %.9g, reference %.9g", g, r);
}

static bool open_file(LsFile *f, const char *folder, const char *name)
{
    char path[1400];
    LsError e = {0};
    snprintf(path, sizeof path, "%s%s%s", folder, folder[0] != '\0' ? "/" : "", name);
    return ls_file_map(f, strdup(path), &e);
}

static bool run_case(Case *c)
{
    static char names[1 << 20];
    snprintf(c->model, sizeof c->model, "%s/%s", c->folder, text(c->row, "file"));
    char *slash = strrchr(c->model, '/');
    snprintf(c->ref_path, sizeof c->ref_path, "%.*s/%s", (int)(slash - c->model), c->model,
             text(c->row, "reference"));
    if (!open_file(&c->ref, "", c->ref_path)) {
        snprintf(c->note, sizeof c->note, "cannot read %s", c->ref_path);
        return false;
    }
    ls_npz_names(&c->ref, names, sizeof names);
    c->names = names;
    if (!prepare_data(c) || !train(c))
        return false;
    if (!open_file(&c->plain, c->work, "plain.npz") || !open_file(&c->sgd, c->work, "sgd.npz")
        || !open_file(&c->adam, c->work, "adam.npz")) {
        snprintf(c->note, sizeof c->note, "a dump is missing");
        return false;
    }
    const Source source[] = {
        {"out", OUT, &c->plain, "out", false}, {"grad", GRAD, &c->plain, "grad", false},
        {"sgd", SGD, &c->sgd, "param", true},  {"adam", ADAM, &c->adam, "param", true},
        {"stat1", STAT, &c->plain, "stat", false}, {"stat3", STAT, &c->sgd, "stat", false}};
    compare_loss(c);
    for (size_t k = 0; k < sizeof source / sizeof *source; k++)
        compare(c, &source[k]);
    for (int g = 0; g < NGROUPS; g++)
        if (!(c->worst[g] <= 1))
            return false;
    return true;
}

static bool run_in(Case *c, const char *precision)
{
    c->precision = precision;
    snprintf(c->work, sizeof c->work, "/tmp/ls-reference-XXXXXX");
    if (mkdtemp(c->work) == NULL)
        return false;
    bool ok = run_case(c);
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", c->work);
    return system(command) == 0 && ok;
}

static bool run_row(const cJSON *row, const char *folder, const char *lowerset)
{
    static Case c, wide;
    c = wide = (Case){.row = row, .folder = folder, .lowerset = lowerset};
    bool ok = run_in(&c, "f32");
    bool tie = !ok && c.worst[LOSS] <= 1 && c.worst[OUT] <= 1 && c.worst[GRAD] <= 1
               && c.worst[STAT] <= 1 && c.worst[SGD] < INFINITY && c.worst[ADAM] < INFINITY
               && run_in(&wide, "f64");
    printf("%-4s %-40s", ok ? "ok" : tie ? "tie" : "FAIL", text(row, "file"));
    for (int g = 0; g < NGROUPS; g++)
        printf(" %8.3f", c.worst[g]);
    printf("  %s\n", c.note);
    if (tie) {
        printf("     %-40s", "in double");
        for (int g = 0; g < NGROUPS; g++)
            printf(" %8.3f", wide.worst[g]);
        printf("\n");
    }
    fflush(stdout);
    return ok || tie;
}

static cJSON *read_json(const char *path)
{
    LsFile f;
    LsError e = {0};
    if (!ls_file_map(&f, path, &e)) {
        fprintf(stderr, "reference: %s\n", e.text);
        exit(8);
    }
    cJSON *json = cJSON_ParseWithLength((const char *)f.data, f.size);
    ls_file_unmap(&f);
    return json;
}

/* A file whose program is much like that of another file: outside whole sets, one file of each kind
 * runs. One net is exported with every opset, for training and for evaluation: the first, a middle
 * and the last opset run. The net of dense blocks takes as long to compile as all others. */
static bool is_left_out(const char *file)
{
    static const char *const chosen[] = {"op9_train", "op13_eval", "op13_train_folded",
                                         "op17_train"};
    static const char *const left[] = {"jmp_cnn.onnx", "mnist_cntk_optimised", "densenet_bc"};
    bool out = strstr(file, "opsets/") != NULL;
    for (size_t k = 0; k < sizeof chosen / sizeof *chosen; k++)
        out &= strstr(file, chosen[k]) == NULL;
    for (size_t k = 0; k < sizeof left / sizeof *left; k++)
        out |= strstr(file, left[k]) != NULL;
    return out && !tests_do_all();
}

typedef struct Counts { int passed, failed; } Counts;

/* Runs the rows of a manifest whose file no manifest before it had; done gets their names. */
static void run_manifest(const char *manifest, const char *lowerset, const char *part, cJSON *done,
                         Counts *n)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", manifest);
    *strrchr(folder, '/') = '\0';
    cJSON *list = read_json(manifest), *row;
    cJSON_ArrayForEach(row, list) {
        const char *file = text(row, "file");
        if (text(row, "reference") == NULL || (part != NULL && strstr(file, part) == NULL)
            || is_left_out(file) || cJSON_HasObjectItem(done, file)
            || strstr(file, "gru_rows") != NULL)        /* recurrent operators are not read yet */
            continue;
        cJSON_AddTrueToObject(done, file);
        char base[1024];        /* "models/x.onnx" names its folder from the one above */
        snprintf(base, sizeof base, "%s", folder);
        if (strchr(file, '/') != NULL)
            *strrchr(base, '/') = '\0';
        *(run_row(row, base, lowerset) ? &n->passed : &n->failed) += 1;
    }
    cJSON_Delete(list);
}

static bool is_manifest(const char *word) { return strstr(word, ".json") != NULL; }

int main(int argc, char **argv)
{
    char *lowerset = argc > 2 ? realpath(argv[1], NULL) : NULL;
    if (lowerset == NULL) {
        fprintf(stderr, "usage: reference LOWERSET MANIFEST.json... [NAME-PART]\n");
        return 2;
    }
    const char *part = is_manifest(argv[argc - 1]) ? NULL : argv[argc - 1];
    cJSON *done = cJSON_CreateObject();
    Counts n = {0};
    printf("%-45s %8s %8s %8s %8s %8s %8s\n", "error / tolerance (<= 1 agrees)", "loss", "out",
           "grad", "sgd", "adam", "stat");
    for (int k = 2; k < argc && is_manifest(argv[k]); k++) {
        char *manifest = realpath(argv[k], NULL);
        if (manifest != NULL)
            run_manifest(manifest, lowerset, part, done, &n);
        else
            printf("skipped: '%s' is missing\n", argv[k]);
        free(manifest);
    }
    cJSON_Delete(done);
    free(lowerset);
    if (n.passed + n.failed == 0)
        return 77;
    printf("%d passed, %d failed\n", n.passed, n.failed);
    return n.failed != 0;
}
