/* tests/runtime/test_allocation.c -- the training loop allocates no memory: calls of malloc and its
 * variants, mmap and brk are counted from the third update to the last, with logging, evaluation,
 * checkpoints, reports and loader threads at work. */
#include "tests/support/npz_util.h"
#include "tests/support/tiny_program.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { COUNTS = 0 };            /* their allocators cannot be interposed */
static atomic_long calls;
#else
enum { COUNTS = 1 };
static atomic_long calls;

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    calls++;
    return __libc_malloc(n);
}
void *calloc(size_t n, size_t size)
{
    calls++;
    return __libc_calloc(n, size);
}
void *realloc(void *p, size_t n)
{
    calls++;
    return __libc_realloc(p, n);
}
void *aligned_alloc(size_t align, size_t n)
{
    calls++;
    return __libc_memalign(align, n);
}
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    calls++;
    return (void *)syscall(SYS_mmap, at, n, prot, flags, fd, offset);
}
int posix_memalign(void **p, size_t align, size_t n)
{
    calls++;
    *p = __libc_memalign(align, n);
    return *p ? 0 : 12;
}
#endif

enum { FIRST = 3, LAST = 60 };
static long at_first, at_last;

static void look(const LsRun *run)
{
    if (run->update == FIRST)
        at_first = calls;
    if (run->update == LAST)
        at_last = calls;
}

START_TEST(the_counters_count)
{
    long before = calls;
    void *volatile p = malloc(10);
    free(p);
    ck_assert(!COUNTS || calls > before);
}
END_TEST

START_TEST(nothing_is_allocated_between_the_first_steps_and_the_last)
{
    LsProgram p = tiny_program(1);
    char *argv[] = {"trainer",     "--data=synthetic:10", "--val=synthetic:7", "--epochs=20",
                    "--save=ck",   "--save-every=2",      "--keep-last=3",     "--log=log",
                    "--trace=t",   "--profile=p",         "--check-numerics",  "--dump=d.npz",
                    "--workers=2", "--threads=2",         "--progress=bar"};
    tiny_spy = look;
    ck_assert_int_eq(ls_trainer_main(&p, sizeof argv / sizeof argv[0], argv), 0);
    ck_assert_int_eq(at_last - at_first, 0);
    ck_assert(!COUNTS || at_first > 0);
}
END_TEST

int main(void)
{
    const TTest *test[] = {the_counters_count,
                           nothing_is_allocated_between_the_first_steps_and_the_last};
    return run_in_folder("allocation", 2, test);
}
