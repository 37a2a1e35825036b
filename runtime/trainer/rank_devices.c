/* runtime/trainer/rank_devices.c -- see rank_devices.h. Rank 0 hears what the others have, and
 * decides for all. */
#include "runtime/trainer/rank_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAG = 0, NAME = 128 };

/* What a rank has. */
typedef struct Rank {
    char machine[NAME];
    int32_t local;              /* its number among the ranks of that machine */
    LsDeviceId device;
    bool joins;                 /* it can have messages in devices' memory; else: */
    char why[200];
} Rank;

/* What rank 0 found: ranks with the same device, the first with another kind of device than rank 0,
 * the first without such messages; -1: none. */
typedef struct Found {
    int32_t one, other, alien, without;
    char device[64], kind[64], why[200];
} Found;

static bool swap(LsTrainer *t, int rank, bool sends, void *data, int64_t bytes, LsError *e)
{
    return sends ? ls_comm_send_now(t->group.comm, rank, TAG, data, bytes, e)
                 : ls_comm_receive_now(t->group.comm, rank, TAG, data, bytes, e);
}

/* What other ranks sent is shown on this one's terminal. */
static void make_printable(char *text, size_t size)
{
    text[size - 1] = '\0';
    ls_make_printable(text);
}

/* of[0 .. size) of rank 0 get the other ranks' of[0]; or, `back`, become those of the others. */
static bool gather(LsTrainer *t, Rank *of, bool back, LsError *e)
{
    if (t->group.comm->rank > 0)
        return swap(t, 0, !back, of, sizeof *of, e);
    for (int k = 1; k < t->group.comm->size; k++) {
        if (!swap(t, k, back, &of[k], sizeof *of, e))
            return false;
        make_printable(of[k].machine, sizeof of[k].machine);
        make_printable(of[k].device.name, sizeof of[k].device.name);
        make_printable(of[k].why, sizeof of[k].why);
    }
    return true;
}

/* The same for all processes of a machine. Containers with a name of their own may have devices of
 * their own. */
static void name_machine(char *to, size_t size)
{
    char boot[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (f != NULL && fgets(boot, sizeof boot, f) != NULL)
        boot[strcspn(boot, "\n")] = '\0';
    if (f != NULL)
        fclose(f);
    const size_t n = (size_t)snprintf(to, size, "%s ", boot);
    gethostname(to + n, size - n - 1);
}

static void number_ranks(Rank *of, int n)
{
    for (int k = 0; k < n; k++)
        for (int j = of[k].local = 0; j < k; j++)
            of[k].local += strcmp(of[j].machine, of[k].machine) == 0;
}

static Found compare(const Rank *of, int n)
{
    Found f = {-1, -1, -1, -1, "", "", ""};
    for (int k = n - 1; k >= 0; k--) {
        for (int j = 0; j < k; j++)
            if (memcmp(of[j].device.id, of[k].device.id, sizeof of[k].device.id) == 0) {
                f.one = j;
                f.other = k;
                memcpy(f.device, of[k].device.name, sizeof f.device);
            }
        if (strcmp(of[k].device.name, of[0].device.name) != 0) {
            f.alien = k;
            memcpy(f.device, of[0].device.name, sizeof f.device);
            memcpy(f.kind, of[k].device.name, sizeof f.kind);
        }
        if (!of[k].joins) {
            f.without = k;
            memcpy(f.why, of[k].why, sizeof f.why);
        }
    }
    return f;
}

static bool decide(LsTrainer *t, const Found *f, bool wanted, LsError *e)
{
    const bool asked = t->o.comm != NULL && wanted;
    if (f->alien >= 0)      /* updates that every rank makes must have the same bits on all of
                             * them */
        return ls_fail(
            e, LS_EXIT_DEVICE,
            "rank %d has another kind of GPU (%s) than rank 0 (%s), on which kernels may round "
            "otherwise: all ranks need the same",
            f->alien, f->kind, f->device);
    if (f->one >= 0 && !t->o.share_gpus)
        return ls_fail(
            e, LS_EXIT_DEVICE,
            "ranks %d and %d have the same GPU (%s): a machine can run as many ranks as it has "
            "GPUs (CUDA_VISIBLE_DEVICES); with --share-gpus ranks share them",
            f->one, f->other, f->device);
    if (f->one >= 0 && asked)
        return ls_fail(
            e, LS_EXIT_DEVICE,
            "--comm=nccl: ranks %d and %d have the same GPU, and NCCL wants one for each rank",
            f->one, f->other);
    if (f->without >= 0 && asked)
        return ls_fail(e, LS_EXIT_DEVICE, "--comm=nccl: rank %d: %s", f->without, f->why);
    t->group.direct = wanted && f->one < 0 && f->without < 0;
    if (wanted && !t->group.direct && ls_is_first(t))
        fprintf(stderr, "note: ranks exchange gradients through their hosts' memory: %s%s\n",
                f->one >= 0 ? "they share GPUs" : "", f->one >= 0 ? "" : f->why);
    return true;
}

static bool choose(LsTrainer *t, Rank *of, LsError *e)
{
    const LsDeviceRanks *with = t->p->accelerator.ranks;
    const bool wanted = t->o.comm == NULL || strcmp(t->o.comm, "nccl") == 0;
    LsError why = {0};
    Found f;
    name_machine(of->machine, sizeof of->machine);
    if (!gather(t, of, false, e))
        return false;
    if (t->group.comm->rank == 0)
        number_ranks(of, t->group.comm->size);
    if (!gather(t, of, true, e) || !with->choose(of->local, &of->device, e))
        return false;
    of->joins = wanted && with->can_join(&why);
    snprintf(of->why, sizeof of->why, "%.199s", why.text);
    if (!gather(t, of, false, e))
        return false;
    if (t->group.comm->rank == 0)
        f = compare(of, t->group.comm->size);
    for (int k = 1; k < t->group.comm->size; k++)
        if ((t->group.comm->rank == 0 && !swap(t, k, true, &f, sizeof f, e))
            || (t->group.comm->rank == k && !swap(t, 0, false, &f, sizeof f, e)))
            return false;
    make_printable(f.device, sizeof f.device);
    make_printable(f.kind, sizeof f.kind);
    make_printable(f.why, sizeof f.why);
    return decide(t, &f, wanted, e);
}

bool ls_ranks_choose_devices(LsTrainer *t, LsError *e)
{
    if (t->p->accelerator.ranks == NULL || t->group.comm == NULL)
        return true;
    Rank *of = calloc((size_t)t->group.comm->size, sizeof *of);
    const bool ok = of != NULL ? choose(t, of, e) : ls_fail(e, LS_EXIT_FAIL, "out of memory");
    free(of);
    return ok;
}

bool ls_ranks_join_devices(LsTrainer *t, LsError *e)
{
    t->group.base = t->group.comm;
    if (!t->group.direct)
        return true;
    LsComm *c = t->p->accelerator.ranks->join(t->u.memory.device, t->group.base, e);
    t->group.comm = c != NULL ? c : t->group.comm;
    return c != NULL;
}
