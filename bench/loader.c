/* bench/loader.c -- pictures a second of the trainer's loader alone, of batches of 32:
 * loader_bench DATA.npz SIZE HOW WORKERS SECONDS. HOW: as --augment; none: samples as they are. */
#include "runtime/base/clock.h"
#include "runtime/data/batch_loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 32 };

static int told(const LsError *e)
{
    fprintf(stderr, "loader_bench: %s\n", e->text);
    return 1;
}

/* Batches for some time; then the time of each picture. */
static bool measure(LsLoader *l, const LsPass *pass, double seconds, LsError *e)
{
    enum { WARM = 4 };
    int64_t pictures = 0, start = 0;
    ls_loader_begin(l, pass);
    for (int64_t k = 0; k < pass->end; k++) {
        if (ls_loader_next(l, e) == NULL)
            return false;
        ls_loader_release(l);
        pictures += k >= WARM ? BATCH : 0;
        start = k + 1 == WARM ? ls_now_ns() : start;
        if (k > WARM && (double)(ls_now_ns() - start) > seconds * 1e9)
            break;
    }
    printf("%.1f\n", (double)pictures / ((double)(ls_now_ns() - start) / 1e9));
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: loader_bench DATA.npz SIZE HOW WORKERS SECONDS\n");
        return 2;
    }
    const int64_t size = strtoll(argv[2], NULL, 10);
    const int workers = (int)strtol(argv[4], NULL, 10);
    const bool plain = strcmp(argv[3], "none") == 0;
    LsInput input[] = {
        {.t = {.name = "x", .rank = 4, .dim = {BATCH, 3, size, size}, .at = {LS_AT_INPUT, 0}}},
        {.t = {.name = "label",
               .type = LS_DT_I64,
               .rank = 1,
               .dim = {BATCH},
               .at = {LS_AT_INPUT, 1}},
         .is_label = true}};
    const LsProgram p = {.about.model = "bench", .real_bytes = 4, .division.samples = BATCH,
                         .input = input, .ninput = 2, .target.classes = 1000};
    const LsDataOptions o = {
        .data = argv[1], .mean = "0.485,0.456,0.406", .std = "0.229,0.224,0.225"};
    LsAugment how;
    LsAugmenter a = {0};
    LsDataset d;
    LsLoader l;
    LsError e = {0};
    if (!ls_dataset_open(&d, &p, &o, &e)
        || (!plain && (!ls_augment_parse(&how, argv[3], &e)
                       || !ls_augmenter_open(&a, &how, &d, 1, workers > 0 ? workers : 1, &e)))
        || !ls_loader_open(&l, &p, workers, &e))
        return told(&e);
    const LsPass pass = {.data = &d, .augment = plain ? NULL : &a, .seed = 1, .shuffle = true,
                         .end = INT64_MAX};
    const bool ok = measure(&l, &pass, strtod(argv[5], NULL), &e);
    ls_loader_close(&l);
    ls_augmenter_close(&a);
    ls_dataset_close(&d);
    return ok ? 0 : told(&e);
}
