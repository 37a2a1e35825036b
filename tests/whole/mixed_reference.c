/* tests/whole/mixed_reference.c -- loss and gradients in 16 bits beside references in double, with
 * the tolerances of wave2/mixed/error_statistics.json in ../shared/inputs or, for one small
 * network, in tests/data/inputs: those of PyTorch's autocast and of emulated storage in 16 bits.
 *
 *   mixed_reference LOWERSET STATISTICS.json... [NAME-PART]   prints a row for each network and
 * type
 *
 * An error is the Euclidean norm of the difference over that of the reference: of all parameters
 * together, and of each parameter, there over at least 1e-3 of the norm of all. By default the two
 * networks whose tolerances are sharp. A network that two files have is that of the first. */
#include "runtime/data/npz.h"
#include "tests/support/less.h"

#include <cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT = 4096, MOST = 512 };

typedef struct Sums { double error, ref, dot, got; } Sums;     /* squares; products */

typedef struct Case {
    const cJSON *net, *tolerance;
    const char *lowerset, *type;
    char folder[1024], work[64], note[600];
    LsFile ref, dump;
} Case;

static double number(const cJSON *of, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(of, key);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

static const char *model_of(const Case *c)
{
    return cJSON_GetObjectItemCaseSensitive(c->net, "model")->valuestring;
}

static bool find(const LsFile *f, const char *name, LsArray *a)
{
    LsError e = {0};
    bool found = false;
    return ls_npz_find(f, name, a, &found, &e) && found;
}

static bool fails(Case *c, const char *what, double is, double most)
{
    if (is <= most)
        return false;
    snprintf(c->note, sizeof c->note, "%s: %.3g, at most %.3g", what, is, most);
    return true;
}

/* The sums over the elements of one gradient that the reference has: all, or every K-th. */
static bool compare(const Case *c, const char *param, Sums *s)
{
    char key[600], names[1 << 16], *save = NULL;
    LsArray ref, got;
    int64_t every = 1;
    *s = (Sums){0};
    snprintf(key, sizeof key, "grad/%s", param);
    if (!find(&c->dump, key, &got))
        return false;
    if (!find(&c->ref, key, &ref)) {
        ls_npz_names(&c->ref, names, sizeof names);
        char *m = strtok_r(names, ", ", &save);
        while (
            m != NULL
            && (strncmp(m, "grad.every", 10) != 0 || strcmp(m + strcspn(m, "/") + 1, param) != 0))
            m = strtok_r(NULL, ", ", &save);
        if (m == NULL || !find(&c->ref, m, &ref))
            return false;
        every = atol(m + 10);
    }
    for (int64_t i = 0; i < ref.count; i++) {
        double r = ls_array_real(&ref, i), g = ls_array_real(&got, i * every);
        s->error += (g - r) * (g - r);
        s->ref += r * r;
        s->dot += g * r;
        s->got += g * g;
    }
    return true;
}

static bool gradients(Case *c, double *error)
{
    static Sums each[MOST];
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(c->tolerance, "per_parameter"), *p;
    Sums all = {0};
    int n = 0;
    cJSON_ArrayForEach(p, list) {
        if (n == MOST || !compare(c, p->string, &each[n])) {
            snprintf(c->note, sizeof c->note, "no gradient of %s", p->string);
            return false;
        }
        all.error += each[n].error;
        all.ref += each[n].ref;
        all.dot += each[n].dot;
        all.got += each[n++].got;
    }
    *error = sqrt(all.error / all.ref);
    if (n == 0 || fails(c, "all gradients", *error, number(c->tolerance, "all"))
        || fails(c, "1 - cosine", 1 - all.dot / sqrt(all.got * all.ref),
                 1 - number(c->tolerance, "cosine")))
        return false;
    n = 0;
    cJSON_ArrayForEach(p, list) {
        double own = sqrt(each[n].error) / fmax(sqrt(each[n].ref), 1e-3 * sqrt(all.ref));
        n++;
        if (fails(c, p->string, own, p->valuedouble))
            return false;
    }
    return true;
}

/* Compiles and runs one step, with the learning rate 0. */
static bool train(Case *c)
{
    char command[TEXT];
    LsError e = {0};
    snprintf(command, sizeof command,
             "cd '%s' && '%s' compile '%s/%s' -q -O1 --plan-effort=1 --precision=%s "
             "--store-gradients -o net >log 2>&1 && "
             "./net --data '%s/%.*s.ref.npz' --no-shuffle --progress none --steps 1 --lr 0 --dump "
             "dump.npz >>log 2>&1",
             c->work, c->lowerset, c->folder, model_of(c), c->type, c->folder,
             (int)strlen(model_of(c)) - 5, model_of(c));
    if (system(command) != 0) {
        snprintf(c->note, sizeof c->note, "it does not train: see %s/log", c->work);
        return false;
    }
    snprintf(command, sizeof command, "%s/dump.npz", c->work);
    bool ok = ls_file_map(&c->dump, strdup(command), &e);
    snprintf(command, sizeof command, "%s/%.*s.ref.npz", c->folder, (int)strlen(model_of(c)) - 5,
             model_of(c));
    return ls_file_map(&c->ref, strdup(command), &e) && ok;
}

static bool run_case(Case *c)
{
    LsArray loss;
    double error = NAN, want = number(c->net, "loss_f64");
    bool ok = train(c) && find(&c->dump, "loss", &loss)
              && !fails(c, "loss", fabs(ls_array_real(&loss, 0) - want) / want,
                        number(c->tolerance, "loss"))
              && gradients(c, &error);
    printf("%-4s %-28s %-5s error of all gradients %.4f, tolerance %.4f %s\n", ok ? "ok" : "FAIL",
           model_of(c), c->type, error, number(c->tolerance, "all"), c->note);
    return ok;
}

static char *read_all(const char *path)
{
    LsFile f;
    LsError e = {0};
    return ls_file_map(&f, strdup(path), &e) ? strndup((const char *)f.data, f.size) : NULL;
}

typedef struct Counts { int run, failed; } Counts;

static void run_net(const cJSON *net, const char *file, const char *lowerset, Counts *n)
{
    static const char *const type[] = {"bf16", "f16"};
    for (int k = 0; k < 2; k++) {
        Case c = {
            .net = net, .lowerset = lowerset, .type = type[k], .work = "/tmp/ls-mixed-XXXXXX"};
        const cJSON *tolerance = cJSON_GetObjectItemCaseSensitive(net, "tolerance");
        c.tolerance = cJSON_GetObjectItemCaseSensitive(tolerance, type[k]);
        snprintf(c.folder, sizeof c.folder, "%.*s/..", (int)(strrchr(file, '/') - file), file);
        bool ok = mkdtemp(c.work) != NULL && run_case(&c);
        char command[200];
        snprintf(command, sizeof command, "rm -rf %s", c.work);
        n->failed += !ok || (ok && system(command) != 0);
        n->run++;
    }
}

static bool is_chosen(const char *model, const char *part)
{
    bool sharp = strstr(model, "jmp_cnn") != NULL || strstr(model, "gpt_op17") != NULL;
    return (sharp || tests_do_all()) && (part == NULL || strstr(model, part) != NULL);
}

/* Runs the networks of a file that no file before it had; done gets their names. */
static void run_file(const char *file, const char *lowerset, const char *part, cJSON *done,
                     Counts *n)
{
    char *text = read_all(file);
    if (text == NULL) {
        printf("skipped: there is no %s\n", file);
        return;
    }
    cJSON *all = cJSON_Parse(text), *net;
    cJSON_ArrayForEach(net, cJSON_GetObjectItemCaseSensitive(all, "nets")) {
        const char *model = cJSON_GetObjectItemCaseSensitive(net, "model")->valuestring;
        if (!is_chosen(model, part) || cJSON_HasObjectItem(done, model))
            continue;
        cJSON_AddTrueToObject(done, model);
        run_net(net, file, lowerset, n);
    }
    cJSON_Delete(all);
    free(text);
}

static bool is_file(const char *word) { return strstr(word, ".json") != NULL; }

int main(int argc, char **argv)
{
    char *lowerset = argc > 2 ? realpath(argv[1], NULL) : NULL;
    if (lowerset == NULL) {
        fprintf(stderr, "usage: mixed_reference LOWERSET STATISTICS.json... [NAME-PART]\n");
        return 2;
    }
    const char *part = is_file(argv[argc - 1]) ? NULL : argv[argc - 1];
    cJSON *done = cJSON_CreateObject();
    Counts n = {0};
    for (int k = 2; k < argc && is_file(argv[k]); k++)
        run_file(argv[k], lowerset, part, done, &n);
    cJSON_Delete(done);
    free(lowerset);
    printf("%d passed, %d failed\n", n.run - n.failed, n.failed);
    return n.failed == 0 && n.run > 0 ? 0 : 1;
}
