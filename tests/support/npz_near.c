/* tests/support/npz_near.c -- compares two archives that --dump wrote.
 *   npz_near A.npz B.npz TOLERANCE [PREFIX]
 * Every member of A, or every member whose name begins with PREFIX, must be in B and near it: the
 * largest difference is within TOLERANCE times the largest value. Prints the worst member; exits 1
 * if its difference is larger. */
#include "runtime/data/npz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool open_member(const LsFile *f, const char *name, LsArray *a)
{
    LsError e = {0};
    bool found = false;
    if (ls_npz_find(f, name, a, &found, &e) && found)
        return true;
    fprintf(stderr, "%s: no %s %s\n", f->path, name, e.text);
    return false;
}

/* The largest difference over the largest value of either; 0 for zeros. */
static double distance(const LsArray *a, const LsArray *b)
{
    double most = 0, far = 0;
    if (a->count != b->count)
        return INFINITY;
    for (int64_t i = 0; i < a->count; i++) {
        double x = ls_array_real(a, i), y = ls_array_real(b, i), d = fabs(x - y);
        most = fmax(most, fmax(fabs(x), fabs(y)));
        far = d <= far ? far : d;       /* a NaN is far */
    }
    return far == 0 ? 0 : far / most;
}

int main(int argc, char **argv)
{
    LsError e = {0};
    LsFile a, b;
    static char names[1 << 20];
    char worst[300] = "";
    double most = -1;
    if (argc < 4 || argc > 5 || !ls_file_map(&a, argv[1], &e) || !ls_file_map(&b, argv[2], &e)) {
        fprintf(stderr, "npz_near: %s\n",
                argc < 4 || argc > 5 ? "A.npz B.npz TOLERANCE [PREFIX]" : e.text);
        return 2;
    }
    ls_npz_names(&a, names, sizeof names);
    for (char *save = NULL, *n = strtok_r(names, ", ", &save); n != NULL;
         n = strtok_r(NULL, ", ", &save)) {
        LsArray x, y;
        if (argc > 4 && strncmp(n, argv[4], strlen(argv[4])) != 0)
            continue;
        if (!open_member(&a, n, &x) || !open_member(&b, n, &y))
            return 1;
        double d = distance(&x, &y);
        if (!(d <= most)) {
            most = d;
            snprintf(worst, sizeof worst, "%s", n);
        }
    }
    printf("%.2g at %s\n", most, worst);
    return most >= 0 && most <= atof(argv[3]) ? 0 : 1;
}
