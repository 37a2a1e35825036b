/* demo/same_outputs.c -- compares the loss and the outputs in two files that trainers wrote with
 * --dump.
 *
 *   same_outputs A.npz B.npz      prints a line per value; 0 when all are within TOLERANCE */
#include "runtime/data/npz.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOLERANCE 1e-6

typedef struct Pair { const char *path[2]; LsFile file[2]; } Pair;

/* Both arrays of a name; false with a message when they cannot be compared. */
static bool find(const Pair *p, const char *name, LsArray a[2])
{
    for (int k = 0; k < 2; k++) {
        LsError e = {0};
        bool found = false;
        if (!ls_npz_find(&p->file[k], name, &a[k], &found, &e) || !found) {
            fprintf(stderr, "%s: %s\n", p->path[k], e.code ? e.text : name);
            return false;
        }
    }
    if (a[0].count == a[1].count && a[0].type == a[1].type)
        return true;
    fprintf(stderr, "%s: not of one size and type\n", name);
    return false;
}

static bool compare(const Pair *p, const char *name)
{
    LsArray a[2];
    double worst = 0;
    if (!find(p, name, a))
        return false;
    size_t bytes = (size_t)(a[0].count * ls_element_bytes(a[0].type));
    for (int64_t i = 0; i < a[0].count; i++) {
        double d = fabs(ls_array_real(&a[0], i) - ls_array_real(&a[1], i));
        worst = d <= worst ? worst : d;         /* a NaN is kept */
    }
    printf("%-12s %8" PRId64 " numbers, greatest difference %g%s\n", name, a[0].count, worst,
           memcmp(a[0].data, a[1].data, bytes) == 0 ? " (bit for bit the same)" : "");
    return worst <= TOLERANCE;
}

int main(int argc, char **argv)
{
    static char names[1 << 16];
    Pair p = {0};
    bool same = true;
    int compared = 0;
    if (argc != 3) {
        fprintf(stderr, "usage: same_outputs A.npz B.npz\n");
        return 2;
    }
    for (int k = 0; k < 2; k++) {
        LsError e = {0};
        p.path[k] = argv[k + 1];
        if (!ls_file_map(&p.file[k], argv[k + 1], &e)) {
            fprintf(stderr, "same_outputs: %s\n", e.text);
            return 1;
        }
    }
    ls_npz_names(&p.file[0], names, sizeof names);
    for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", "))
        if (strcmp(name, "loss") == 0 || strncmp(name, "out/", 4) == 0) {
            same &= compare(&p, name);
            compared++;
        }
    return same && compared > 1 ? 0 : 1;
}
