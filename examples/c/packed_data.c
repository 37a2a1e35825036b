/* examples/c/packed_data.c -- a C program that trains on a packed data set: the file is mapped, and
 * each step reads its batch where it lies there. README.md has the commands.
 *   packed FILE.lsd EPOCHS RATE */
#include "net.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THREADS = 2 };

static void stop(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(1);
}

static uint64_t number(const unsigned char *p)
{
    uint64_t v = 0;
    for (int k = 8; k-- > 0;)
        v = v << 8 | p[k];
    return v;
}

/* docs/data.md: the description is JSON, a line for each field. */
typedef struct Packed {
    const unsigned char *file;
    char *text;
    long long samples;
} Packed;

static Packed map(const char *path)
{
    struct stat s;
    Packed d = {NULL, NULL, 0};
    const int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &s) != 0 || s.st_size < 64)
        stop("cannot read the data");
    void *at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        stop("cannot map the data");
    d.file = at;
    const uint64_t begin = number(d.file + 16), bytes = number(d.file + 24);
    if (memcmp(d.file, "\211LSD\r\n\032\n", 8) != 0 || number(d.file + 32) != (uint64_t)s.st_size
        || begin > (uint64_t)s.st_size || bytes > (uint64_t)s.st_size - begin)
        stop("this is no whole packed data set");
    if ((d.text = calloc(bytes + 1, 1)) == NULL)
        stop("out of memory");
    memcpy(d.text, d.file + begin, bytes);
    const char *samples = strstr(d.text, "\"samples\": ");
    d.samples = samples != NULL ? atoll(samples + strlen("\"samples\": ")) : 0;
    return d;
}

/* The column of that role, whose samples have `bytes` bytes of that type. */
static const unsigned char *column(const Packed *d, const char *role, const char *type,
                                   size_t bytes)
{
    char word[40];
    snprintf(word, sizeof word, "\"role\": \"%s\"", role);
    const char *at = strstr(d->text, word);
    snprintf(word, sizeof word, "\"type\": \"%s\"", type);
    const char *is = at != NULL ? strstr(at, "\"type\": ") : NULL;
    const char *offset = is != NULL ? strstr(is, "\"offset\": ") : NULL;
    const char *size = offset != NULL ? strstr(offset, "\"bytes\": ") : NULL;
    if (size == NULL || strncmp(is, word, strlen(word)) != 0
        || strtoull(size + strlen("\"bytes\": "), NULL, 10) != bytes * (size_t)d->samples)
        stop("the data do not fit the network: this program takes float32 and labels of int64");
    return d->file + strtoull(offset + strlen("\"offset\": "), NULL, 10);
}

static void *memory(size_t bytes)
{
    void *at = aligned_alloc(NET_ALIGN, (bytes + NET_ALIGN - 1) / NET_ALIGN * NET_ALIGN);
    if (at == NULL)
        stop("out of memory");
    return at;
}

int main(int n, char **arg)
{
    if (n != 4)
        stop("usage: packed FILE.lsd EPOCHS RATE");
    net_error e;
    void *state = memory(NET_STATE_BYTES), *arena = memory(NET_ARENA_BYTES);
    net *it = net_open(state, NET_STATE_BYTES, arena, NET_ARENA_BYTES, THREADS, 1, &e);
    if (it == NULL)
        stop(e.text);
    net_tensor x;
    net_input(0, &x);
    size_t each = sizeof(float);
    for (int k = 1; k < x.rank; k++)
        each *= (size_t)x.dim[k];
    const Packed d = map(arg[1]);
    const unsigned char *image = column(&d, "input", "float32", each),
                        *label = column(&d, "label", "int64", sizeof(int64_t));
    for (int epoch = 0; epoch < atoi(arg[2]); epoch++)
        for (long long k = 0; k + NET_BATCH <= d.samples; k += NET_BATCH) {
            const void *input[] = {image + (size_t)k * each, label + (size_t)k * sizeof(int64_t)};
            double loss;
            if (net_step(it, input, NET_BATCH, atof(arg[3]), &loss, &e) != NET_OK)
                stop(e.text);
            printf("%.9g\n", loss);
        }
    net_close(it);
    free(state), free(arena), free(d.text);
    return 0;
}
