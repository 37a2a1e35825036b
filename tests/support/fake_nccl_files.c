/* tests/support/fake_nccl_files.c -- an NCCL for ranks that are processes, each with a fake CUDA
 * runtime (fake_cudart.c).
 *
 * A message is a file, written when the stream of its sender comes to it, and read by that of its
 * receiver, which waits for it. So messages of memory for which the stream does not wait give wrong
 * results. The sends of a group come before its receives. Messages without bytes, unknown ranks,
 * calls outside groups and unequal lengths end the process. FAKE_NCCL_TALLY names a file that gets
 * a line of each rank, with the bytes that it sent. */
#include "tests/support/fake_stream.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, OPS = 1024 };

typedef struct Id { char folder[128]; } Id;
typedef struct Op { char file[200]; char *data; size_t n; int sends; } Op;
typedef struct Comm { int rank, size; Id id; long long sent; int next[2][MOST]; } Comm;

int ncclGetVersion(int *version);
const char *ncclGetErrorString(int result);
int ncclGetUniqueId(Id *id);
int ncclCommInitRank(void **comm, int size, Id id, int rank);
int ncclCommDestroy(void *comm);
int ncclCommAbort(void *comm);
int ncclCommGetAsyncError(void *comm, int *result);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *data, size_t n, int type, int peer, void *comm, void *stream);
int ncclRecv(void *data, size_t n, int type, int peer, void *comm, void *stream);

static Op group[OPS];
static int ngroup = -1;         /* no group is open */
static void *group_stream;

static void never(const char *what)
{
    fprintf(stderr, "fake NCCL: %s\n", what);
    _exit(71);
}

int ncclGetVersion(int *version) { *version = 22000; return 0; }
const char *ncclGetErrorString(int result) { (void)result; return "some error"; }

int ncclGetUniqueId(Id *id)
{
    const char *at = getenv("TMPDIR");
    snprintf(id->folder, sizeof id->folder, "%.90s/fake-nccl-XXXXXX", at != NULL ? at : "/tmp");
    return mkdtemp(id->folder) == NULL;
}

int ncclCommInitRank(void **comm, int size, Id id, int rank)
{
    Comm *c = calloc(1, sizeof *c);
    if (c == NULL || size > MOST || rank < 0 || rank >= size || id.folder[0] != '/')
        never("a rank that cannot be");
    *c = (Comm){.rank = rank, .size = size, .id = id};
    *comm = c;
    return 0;
}

int ncclCommDestroy(void *comm)
{
    Comm *c = comm;
    const char *tally = getenv("FAKE_NCCL_TALLY");
    FILE *f = tally != NULL ? fopen(tally, "a") : NULL;
    if (f != NULL) {
        fprintf(f, "rank %d of %d sent %lld\n", c->rank, c->size, c->sent);
        fclose(f);
    }
    rmdir(c->id.folder);        /* the last one finds it empty */
    free(c);
    return 0;
}

int ncclCommAbort(void *comm) { free(comm); return 0; }
int ncclCommGetAsyncError(void *comm, int *result) { (void)comm; *result = 0; return 0; }

int ncclGroupStart(void)
{
    if (ngroup >= 0)
        never("a group in a group");
    ngroup = 0;
    return 0;
}

static void add(Comm *c, int from, int to, int peer, Op op, int type, void *stream)
{
    if (ngroup < 0 || ngroup == OPS || type != 0 || op.n == 0 || peer < 0 || peer >= c->size
        || peer == c->rank || stream == NULL)
        never("a message that NCCL does not take");
    snprintf(op.file, sizeof op.file, "%s/%d-%d-%d", c->id.folder, from, to,
             c->next[op.sends][peer]++);
    c->sent += op.sends ? (long long)op.n : 0;
    group_stream = stream;
    group[ngroup++] = op;
}

int ncclSend(const void *data, size_t n, int type, int peer, void *comm, void *stream)
{
    Comm *c = comm;
    add(c, c->rank, peer, peer, (Op){.data = (char *)(uintptr_t)data, .n = n, .sends = 1}, type,
        stream);
    return 0;
}

int ncclRecv(void *data, size_t n, int type, int peer, void *comm, void *stream)
{
    Comm *c = comm;
    add(c, peer, c->rank, peer, (Op){.data = data, .n = n}, type, stream);
    return 0;
}

static void write_message(const void *data)
{
    const Op *op = data;
    char part[220];
    snprintf(part, sizeof part, "%s.part", op->file);
    FILE *f = fopen(part, "wb");
    if (f == NULL || fwrite(op->data, 1, op->n, f) != op->n || fclose(f) != 0
        || rename(part, op->file) != 0)
        never("a message is not written");
}

static void read_message(const void *data)
{
    const Op *op = data;
    const struct timespec nap = {.tv_nsec = 50000};
    struct stat is;
    int f;
    while ((f = open(op->file, O_RDONLY)) < 0)
        nanosleep(&nap, NULL);
    if (fstat(f, &is) != 0 || (size_t)is.st_size != op->n
        || read(f, op->data, op->n) != (ssize_t)op->n)
        never("a message of another length");
    close(f);
    unlink(op->file);
}

/* The fake CUDA runtime does work as late as it can. Messages run at once, after what their stream
 * waits for. */
int ncclGroupEnd(void)
{
    int (*run)(void *);
    *(void **)&run = dlsym(RTLD_DEFAULT, "cudaStreamQuery");
    for (int sends = 1; sends >= 0; sends--)
        for (int k = 0; k < ngroup; k++)
            if (group[k].sends == sends)
                fake_stream_work(group_stream, sends ? write_message : read_message, &group[k],
                                 sizeof group[k]);
    if (run != NULL && ngroup > 0)
        run(group_stream);
    ngroup = -1;
    return 0;
}
