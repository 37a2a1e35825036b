/* bench/packing.c -- packs files of blocks (id,from,past the last,size) and prints how far above
 * the largest sum of sizes they end, and in what time: offsets [-q|-f] [-a ALIGNMENT] FILE.csv ...
 * -q: greedy only; -f: the short search of planning, not the long one. A number in the name
 * (A.1048576.csv) is a sufficient capacity. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "scheduler/algorithms/search_limit.h"
#include "scheduler/packing/offsets.h"

static LsBlock *read_blocks(LsArena *arena, const char *path, uint32_t *n)
{
    FILE *f = fopen(path, "r");
    LsBlock *block = NULL;
    uint32_t room = 0, from, past;
    int64_t size;
    char line[256];
    *n = 0;
    if (f == NULL)
        return NULL;
    while (fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "%*[^,#],%" SCNu32 ",%" SCNu32 ",%" SCNd64, &from, &past, &size) == 3
            && past > from && size >= 0) {
            block = ls_arena_grow(arena, block, *n, *n + 1u, sizeof *block, &room);
            block[(*n)++] = (LsBlock){size, from, past - 1, 0, 0};
        }
    fclose(f);
    return block;
}

static int64_t capacity(const char *path)
{
    const char *name = strrchr(path, '/'), *dot = strchr(name ? name : path, '.');
    return dot ? strtoll(dot + 1, NULL, 10) : 0;
}

static void bench(const char *path, int64_t alignment, LsPackEffort effort)
{
    LsArena *arena = ls_arena_new();
    uint32_t n;
    LsBlock *block = read_blocks(arena, path, &n);
    if (block == NULL) {
        printf("%s: no blocks\n", path);
    } else {
        const char *name = strrchr(path, '/');
        int64_t *offset = ls_arena_alloc(arena, n, sizeof *offset);
        int64_t bound = ls_offsets_bound(block, n), good = capacity(path);
        good = good > bound ? good : bound;
        double start = ls_cpu_seconds();
        int64_t end = ls_offsets(block, n, alignment, good, 0, effort, offset);
        printf("%-26s %6u blocks  live %13" PRId64 "  arena %13" PRId64 "  %+8.4f %%  %s %7.3f s\n",
               name ? name + 1 : path, n, bound, end, 100.0 * ((double)end / (double)bound - 1),
               end <= good ? "fits " : "ABOVE", ls_cpu_seconds() - start);
        fflush(stdout);
    }
    ls_arena_free(arena);
}

int main(int argc, char **argv)
{
    LsPackEffort effort = LS_PACK_LONG;
    int64_t alignment = 1;
    for (int k = 1; k < argc; k++) {
        if (strcmp(argv[k], "-q") == 0)
            effort = LS_PACK_QUICK;
        else if (strcmp(argv[k], "-f") == 0)
            effort = LS_PACK_FULL;
        else if (strcmp(argv[k], "-a") == 0 && k + 1 < argc && atoll(argv[k + 1]) > 0)
            alignment = atoll(argv[++k]);
        else
            bench(argv[k], alignment, effort);
    }
    return 0;
}
