/* tests/support/fuzz_driver.c -- tries files on a target (fuzz_target.h); libFuzzer's entry points.
 *
 * LS_FUZZ_TARGET names the target. With LS_FUZZ_SEEDS=FOLDER the program writes the target's first
 * files there and ends. */
#include "tests/support/fuzz_target.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static unsigned char *file_bytes(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL || fseek(f, 0, SEEK_END) != 0)
        return NULL;
    *n = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes =
        malloc(*n + (*n == 0)); /* exact: sanitizers see the first byte read behind it */
    *n = fread(bytes, 1, *n, f);
    fclose(f);
    return bytes;
}

void fuzz_bytes(const FuzzTarget *t, const unsigned char *bytes, size_t n)
{
    Dice d = {UINT64_C(0xcbf29ce484222325)};
    for (size_t k = 0; k < n; k++)
        d.state = (d.state ^ bytes[k]) * UINT64_C(0x100000001b3);
    d.state += d.state == 0;
    if (n > 0)
        t->try(bytes, n, 0, &d);
}

void fuzz_truncate(const FuzzTarget *t)
{
    for (int k = 0; k < 8 && t->seed[k] != NULL; k++) {
        size_t n = 0;
        unsigned char *bytes = file_bytes(t->seed[k], &n);
        for (size_t cut = 1; bytes != NULL && cut < n; cut++) {
            unsigned char *part = malloc(cut);
            memcpy(part, bytes, cut);
            fuzz_bytes(t, part, cut);
            free(part);
        }
        free(bytes);
    }
}

int fuzz_replay(const FuzzTarget *t)
{
    char path[512];
    struct dirent *entry;
    int tried = 0;
    snprintf(path, sizeof path, LS_SOURCE "/tests/findings/%s", t->name);
    DIR *folder = opendir(path);
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        size_t n = 0;
        snprintf(path, sizeof path, LS_SOURCE "/tests/findings/%s/%s", t->name, entry->d_name);
        unsigned char *bytes = entry->d_name[0] != '.' ? file_bytes(path, &n) : NULL;
        if (bytes == NULL)
            continue;
        printf("%s/%s\n", t->name, entry->d_name);
        fuzz_bytes(t, bytes, n);
        free(bytes);
        tried++;
    }
    if (folder != NULL)
        closedir(folder);
    return tried;
}

#ifdef LS_LIBFUZZER

static const FuzzTarget *target;

static void write_seeds(const char *folder)
{
    for (int k = 0; k < 8 && target->seed[k] != NULL; k++) {
        char path[512];
        size_t n = 0;
        unsigned char *bytes = file_bytes(target->seed[k], &n);
        snprintf(path, sizeof path, "%s/seed%d", folder, k);
        FILE *to = bytes != NULL ? fopen(path, "wb") : NULL;
        if (to != NULL) {
            fwrite(bytes, 1, n, to);
            fclose(to);
        }
        free(bytes);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("LS_FUZZ_TARGET"), *seeds = getenv("LS_FUZZ_SEEDS");
    static char dir[] = "/tmp/lowerset-test-XXXXXX";
    (void)argc, (void)argv;
    for (target = fuzz_target;
         target->name != NULL && (name == NULL || strcmp(name, target->name) != 0); target++)
        continue;
    if (target->name == NULL || mkdtemp(dir) == NULL || chdir(dir) != 0) {
        fprintf(stderr, "LS_FUZZ_TARGET is not one of:");
        for (target = fuzz_target; target->name != NULL; target++)
            fprintf(stderr, " %s", target->name);
        fprintf(stderr, "\n");
        exit(2);
    }
    if (target->open != NULL)
        target->open();
    if (seeds != NULL) {
        write_seeds(seeds);
        exit(0);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_bytes(target, data, size);
    return 0;
}

#endif
