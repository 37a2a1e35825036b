/* tests/export/export_check.c -- checks that exports train like their networks.
 *
 *   export_check LOWERSET FOLDER [CASES]
 *
 * FOLDER/NET/CALL.onnx are the exports that make.py writes, data.npz and ref.npz beside them are
 * one batch and the curve of the network itself: 30 steps of plain SGD. Each export is compiled,
 * trained likewise and compared:
 *   loss    of every step, to 1e-4 of it
 *   grad    of the first step, to 1e-3 of the tensor's largest value
 *   end     parameters and running statistics after the last step, likewise
 * Prints a row an export, with one of these outcomes:
 *   equal     all agree
 *   renamed   losses and what is there agree, but some parameters have other names
 *   warned    something differs; the compiler has a warning
 *   SILENT    something differs, and the compiler says nothing
 *   refused   the compiler has an error
 *   broken    the trainer fails
 * CASES lists the expected outcomes, one on a line: NET CALL OUTCOME [OPTION...] [: TEXT]. The
 * options go to the compiler; TEXT is part of its messages. OUTCOME may also be `told`: warned or
 * refused, or `safe`: any except SILENT and broken. A line whose export is not in FOLDER is left
 * out. Without CASES all exports must be safe. Every third case runs; with LS_WHOLE all, with
 * LS_SANITIZED every sixth. */
#include "runtime/data/npz.h"
#include "tests/support/less.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE = 4096, MAX_CASES = 512, STEPS = 30 };

static const char *lowerset, *folder;
static char work[64];

typedef struct Case {
    char net[64], call[64], want[16], options[512], text[256];
    char files[600], out[128]; /* FOLDER/NET; the case's own folder */
    LsFile ref, first, last;
    double loss, grad, end; /* largest errors, of what was said above */
    int absent;             /* parameters of the network that the trainer does not have */
    char says[300];         /* the compiler's first error or warning, or the difference */
} Case;

static bool open_file(LsFile *f, const char *dir, const char *name)
{
    char path[800];
    LsError e = {0};
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return ls_file_map(f, strdup(path), &e);
}

static bool find(const LsFile *f, const char *name, LsArray *a)
{
    LsError e = {0};
    bool found = false;
    return ls_npz_find(f, name, a, &found, &e) && found;
}

/* Runs a command in the case's folder; its messages go to `log` there. Exit code. */
static int run(const Case *c, const char *log, const char *command)
{
    char line[LINE];
    snprintf(line, sizeof line, "cd '%s' && { %s ; } >/dev/null 2>%s", c->out, command, log);
    int status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* All output of the compiler; false: none. */
static bool messages(const Case *c, char *text, size_t n)
{
    char path[200];
    snprintf(path, sizeof path, "%s/compile.log", c->out);
    FILE *f = fopen(path, "r");
    size_t got = f != NULL ? fread(text, 1, n - 1, f) : 0;
    text[got] = '\0';
    if (f != NULL)
        fclose(f);
    return got > 0;
}

/* The first message, without the file's name. */
static void quote(Case *c)
{
    static char text[1 << 16];
    messages(c, text, sizeof text);
    const char *at = strstr(text, ".onnx: ");
    at = at != NULL ? at + 7 : text;
    snprintf(c->says, sizeof c->says, "%.*s", (int)strcspn(at, "\n"), at);
}

static double largest(const LsArray *a)
{
    double m = 0;
    for (int64_t i = 0; i < a->count; i++)
        m = fmax(m, fabs(ls_array_real(a, i)));
    return m;
}

/* The largest difference over the largest value, of the reference or `least`. */
static double distance(const LsArray *ref, const LsArray *got, double least)
{
    double far = 0;
    if (ref->count != got->count)
        return INFINITY;
    for (int64_t i = 0; i < ref->count; i++) {
        double d = fabs(ls_array_real(ref, i) - ls_array_real(got, i));
        far = d <= far ? far : d; /* a NaN is far */
    }
    return far / fmax(largest(ref), least);
}

/* Compares the members "PREFIX..." of the reference with those of `got`. Returns the worst
 * distance. Tensors that are small beside the largest tensor are less precise: the gradient of a
 * bias before a batch norm consists of rounding errors. */
static double compare(Case *c, const LsFile *got, const char *prefix)
{
    static char names[1 << 16];
    double worst = 0, group = 0;
    LsArray a, b;
    ls_npz_names(&c->ref, names, sizeof names);
    char *copy = strdup(names), *save = NULL;
    for (int pass = 0; pass < 2; pass++, strcpy(copy, names))
        for (char *m = strtok_r(copy, ", ", &save); m != NULL; m = strtok_r(NULL, ", ", &save)) {
            if (strncmp(m, prefix, strlen(prefix)) != 0 || !find(&c->ref, m, &a))
                continue;
            if (pass == 0)
                group = fmax(group, largest(&a));
            else if (!find(got, m, &b))
                c->absent += strcmp(prefix, "param/") == 0 || strcmp(prefix, "stat/") == 0;
            else {
                double d = distance(&a, &b, 0.01 * group);
                if (d > worst) {
                    worst = d;
                    if (d > 1e-3 && c->says[0] == '\0')
                        snprintf(c->says, sizeof c->says, "%.200s is off by %.2g", m, d);
                }
            }
        }
    free(copy);
    return worst;
}

/* The worst of the losses in the trainer's log. */
static double compare_losses(Case *c)
{
    char path[200], line[LINE];
    LsArray ref;
    int step = 0;
    double worst = 0;
    snprintf(path, sizeof path, "%s/steps.json", c->out);
    FILE *f = fopen(path, "r");
    if (f == NULL || !find(&c->ref, "loss", &ref) || ref.count < STEPS)
        return INFINITY;
    while (fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, "\"loss\":");
        if (at == NULL || step == STEPS)
            continue;
        double want = ls_array_real(&ref, step), d = fabs(atof(at + 7) - want) / fabs(want);
        worst = d <= worst ? worst : d;
        if (!(d <= 1e-4) && c->says[0] == '\0')
            snprintf(c->says, sizeof c->says, "loss of step %d is %.6g, not %.6g", step,
                     atof(at + 7), want);
        step++;
    }
    fclose(f);
    return step == STEPS ? worst : INFINITY;
}

static void compare_all(Case *c)
{
    c->loss = compare_losses(c);
    c->grad = compare(c, &c->first, "grad/");
    c->end = fmax(compare(c, &c->last, "param/"), compare(c, &c->last, "stat/"));
}

/* The trainer's exit code, 7 when the loss is no longer finite. */
static int train(Case *c)
{
    char command[LINE];
    LsArray lr;
    if (!find(&c->ref, "lr", &lr))
        return 8;
    static const char data[] = "--no-shuffle --progress none --threads 1";
    snprintf(
        command, sizeof command,
        "./t --data '%s/data.npz' %s --lr 0 --steps 1 --dump first.npz "
        "&& ./t --data '%s/data.npz' %s --lr %.9g --epochs %d --log steps.json --dump last.npz",
        c->files, data, c->files, data, ls_array_real(&lr, 0), STEPS);
    int code = run(c, "train.log", command);
    if (code == 0 &&
        (!open_file(&c->first, c->out, "first.npz") || !open_file(&c->last, c->out, "last.npz")))
        code = 8;
    return code;
}

static int batch_of(const Case *c)
{
    LsFile f;
    LsArray x;
    return open_file(&f, c->files, "data.npz") && find(&f, "x", &x) ? (int)x.dim[0] : 1;
}

/* Compiles, trains and compares. Returns the outcome. */
static const char *outcome(Case *c)
{
    static char said[1 << 16];
    char command[LINE];
    if (!open_file(&c->ref, c->files, "ref.npz"))
        return "broken";
    snprintf(command, sizeof command,
             "'%s' compile '%s/%s.onnx' --batch %d -O0 --strategy=none "
             "--optimizer sgd:momentum=0 --store-gradients %s -o t",
             lowerset, c->files, c->call, batch_of(c), c->options);
    int code = run(c, "compile.log", command);
    if (code != 0) {
        quote(c);
        return code < 6 ? "refused" : "broken";
    }
    code = train(c);
    if (code != 0 && code != 7) {
        snprintf(c->says, sizeof c->says, "the trainer fails, exit %d", code);
        return "broken";
    }
    c->loss = c->grad = c->end = INFINITY;
    if (code == 7)
        snprintf(c->says, sizeof c->says, "diverges");
    else
        compare_all(c);
    if (c->loss <= 1e-4 && c->grad <= 1e-3 && c->end <= 1e-3)
        return c->absent > 0 ? "renamed" : "equal";
    quote(c);
    if (!messages(c, said, sizeof said) || strstr(said, "warning: ") == NULL)
        return "SILENT";
    return "warned";
}

static bool one_of(const char *word, const char *list)
{
    const char *at = strstr(list, word);
    return at != NULL && (at[strlen(word)] == ' ' || at[strlen(word)] == '\0');
}

static bool wanted(const char *got, const char *want)
{
    if (strcmp(want, "told") == 0)
        return one_of(got, "warned refused");
    if (strcmp(want, "safe") == 0)
        return one_of(got, "equal renamed warned refused");
    return strcmp(got, want) == 0;
}

static bool print_row(const Case *c, const char *got, bool right, bool spoken)
{
    char path[200];
    snprintf(path, sizeof path, "%s/row", c->out);
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return false;
    fprintf(f, "%-16s %-13s %-8s", c->net, c->call, got);
    if (strcmp(got, "refused") != 0 && strcmp(got, "broken") != 0)
        fprintf(f, " %8.1e %8.1e %8.1e", c->loss, c->grad, c->end);
    fprintf(f, "%s%s%s%s", c->options[0] != '\0' ? "  " : "", c->options,
            c->says[0] != '\0' ? "  " : "", c->says);
    if (c->absent > 0 && strcmp(got, "renamed") == 0)
        fprintf(f, "  %d under other names", c->absent);
    if (!right)
        fprintf(f, "  NOT %s", c->want);
    if (!spoken)
        fprintf(f, "  NO WORD OF \"%s\"", c->text);
    fprintf(f, "\n");
    return fclose(f) == 0;
}

/* Runs in a process of its own and writes the row. Returns 0 for the expected outcome. */
static int run_case(Case *c, int number)
{
    static char said[1 << 16];
    snprintf(c->out, sizeof c->out, "%s/%d", work, number);
    if (mkdir(c->out, 0700) != 0)
        return 1;
    const char *got = outcome(c);
    bool right = wanted(got, c->want);
    bool spoken =
        c->text[0] == '\0' || (messages(c, said, sizeof said) && strstr(said, c->text) != NULL);
    return print_row(c, got, right, spoken) && right && spoken ? 0 : 1;
}

static int read_cases(const char *path, Case *c)
{
    char line[LINE];
    int n = 0;
    FILE *f = fopen(path, "r");
    while (f != NULL && n < MAX_CASES && fgets(line, sizeof line, f) != NULL) {
        Case *k = &c[n];
        *k = (Case){0};
        line[strcspn(line, "\n#")] = '\0';
        char *text = strstr(line, " : ");
        if (text != NULL) {
            *text = '\0';
            snprintf(k->text, sizeof k->text, "%s", text + 3);
        }
        n += sscanf(line, "%63s %63s %15s %511[^\n]", k->net, k->call, k->want, k->options) >= 3;
    }
    if (f != NULL)
        fclose(f);
    return n;
}

static int all_cases(Case *c)
{
    char pattern[600];
    glob_t found;
    int n = 0;
    snprintf(pattern, sizeof pattern, "%s/*/*.onnx", folder);
    if (glob(pattern, 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc && n < MAX_CASES; i++) {
        c[n] = (Case){0};
        strcpy(c[n].want, "safe");
        n += sscanf(found.gl_pathv[i] + strlen(folder), "/%63[^/]/%63[^.]", c[n].net, c[n].call) ==
             2;
    }
    globfree(&found);
    return n;
}

static bool here(Case *c)
{
    char dir[600], path[800];
    snprintf(dir, sizeof dir, "%.500s/%.63s", folder, c->net);
    snprintf(path, sizeof path, "%s/%.31s.onnx", dir, c->call);
    strcpy(c->files, dir);
    return access(path, R_OK) == 0;
}

/* Waits for one process; prints nothing: rows are printed in order at the end. */
static void wait_one(int n, const pid_t pid[], int result[])
{
    int status;
    pid_t done = wait(&status);
    for (int i = 0; i < n; i++)
        if (pid[i] == done)
            result[i] = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_all(int n, Case *c)
{
    static pid_t pid[MAX_CASES];
    static int result[MAX_CASES];
    long cores = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
    int failed = 0;
    for (int i = 0; i < n; i++) {
        if (running == cores) {
            wait_one(i, pid, result);
            running--;
        }
        pid[i] = fork();
        if (pid[i] == 0)
            _exit(run_case(&c[i], i));
        running++;
    }
    for (; running > 0; running--)
        wait_one(n, pid, result);
    for (int i = 0; i < n; i++) {
        char path[200], row[LINE] = "";
        snprintf(path, sizeof path, "%s/%d/row", work, i);
        FILE *f = fopen(path, "r");
        if (f == NULL || fgets(row, sizeof row, f) == NULL)
            snprintf(row, sizeof row, "%-16.63s %-13.31s has no row\n", c[i].net, c[i].call);
        if (f != NULL)
            fclose(f);
        fputs(row, stdout);
        failed += result[i] != 0;
    }
    return failed;
}

int main(int argc, char **argv)
{
    static Case c[MAX_CASES];
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "export_check LOWERSET FOLDER [CASES]\n");
        return 2;
    }
    lowerset = realpath(argv[1], NULL);
    folder = realpath(argv[2], NULL);
    snprintf(work, sizeof work, "/tmp/lowerset-test-XXXXXX");
    if (lowerset == NULL || folder == NULL || mkdtemp(work) == NULL) {
        fprintf(stderr, "%s or %s is not there\n", argv[1], argv[2]);
        return 2;
    }
    int n = argc == 4 ? read_cases(argv[3], c) : all_cases(c), kept = 0;
    for (int i = 0; i < n; i += tests_do_less() ? 6 : tests_do_all() ? 1 : 3)
        if (here(&c[i]))
            c[kept++] = c[i];
    printf("%-16s %-13s %-8s %8s %8s %8s\n", "network", "call", "outcome", "loss", "grad", "end");
    fflush(stdout);
    int failed = run_all(kept, c);
    char clean[100];
    snprintf(clean, sizeof clean, "rm -rf '%s'", work);
    if (system(clean) != 0)
        fprintf(stderr, "%s stays\n", work);
    printf("%d of %d as they should be\n", kept - failed, kept);
    return failed > 0 || kept == 0;
}
