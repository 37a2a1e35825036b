/* tests/whole/test_strangers.c -- ranks that meet over TCP, through the command line, while others
 * call at their addresses: strangers, and ranks of other runs, end nothing and learn nothing; ranks
 * know each other by a token. */
#include "tests/support/command_line.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PORT = 20201 };
static char host[40];
static const char run[] =
    "--data synthetic:16 --progress none --steps 9 --epochs 100 --seed 5417 --lr 0.0625";

static void make_net(void)
{
    const unsigned pid = (unsigned)getpid();
    snprintf(host, sizeof host, "127.%u.%u.1", pid / 254 % 100 + 20, pid % 254);
    unsetenv("LOWERSET_TOKEN");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=9 --size=4 -o mlp.onnx");
    MUST(LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 mlp.onnx --batch=4 --microbatches=2 "
                  "--ranks=2 -o two");
    MUST("./two %s --dump right.npz", run);
}

static const char *program = "two";

/* Starts a rank, whose errors and notes are in NAME.txt. */
static pid_t start(const char *name, int rank, const char *more)
{
    char line[1000];
    snprintf(line, sizeof line, "exec ./%s %s --peers %s:%d,%s:%d --rank %d %s >/dev/null 2>%s.txt",
             program, run, host, PORT, host, PORT + 1, rank, more, name);
    const pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void check_end(pid_t pid, const char *name, int code)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    sh("cat %s.txt", name);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == code, "%s: %d, not %d: %s", name,
                  WEXITSTATUS(status), code, text);
}

/* Says something at rank 0's address; returns the bytes of the answer. */
static size_t call(const void *what, size_t n, char *answer, size_t most)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    const struct timeval limit = {10, 0};
    size_t got = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, host, &a.sin_addr);
    while (connect(fd, (struct sockaddr *)(void *)&a, sizeof a) != 0) {
        close(fd);
        usleep(10000);
        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ck_assert_int_eq(send(fd, what, n, MSG_NOSIGNAL), (ssize_t)n);
    shutdown(fd, SHUT_WR);
    for (ssize_t more; got < most && (more = recv(fd, answer + got, most - got, 0)) > 0; )
        got += (size_t)more;
    close(fd);
    return got;
}

static void check_same(void) { ck_assert_msg(same_arrays("right.npz", "met.npz", ""), "%s", text); }

START_TEST(a_packet_ends_no_run_and_is_told_nothing)
{
    char packet[728] = "LSRANK?", answer[2000];
    const pid_t zero = start("zero", 0, "--dump met.npz");
    for (int version = 1; version < 9; version += 6)
        for (int rank = -5; rank < 9; rank += 6) {
            const int number[5] = {version, 2, rank, 0, 0};
            memcpy(packet + 8, number, sizeof number);
            ck_assert_uint_eq(call(packet, sizeof packet, answer, sizeof answer), 0);
        }
    memcpy(packet, "LSRANK2?", 8);
    const size_t n = call(packet, sizeof packet, answer, sizeof answer);
    ck_assert_msg(n < 100, "%d bytes", (int)n);
    ck_assert(memmem(answer, n, "5417", 4) == NULL && memmem(answer, n, "plan", 4) == NULL);
    const pid_t one = start("one", 1, "");
    check_end(zero, "zero", 0);
    check_end(one, "one", 0);
    check_same();
}
END_TEST

START_TEST(ranks_know_each_other_by_a_token)
{
    MUST("printf ' the token of this run \\n' >token; printf 'the t0ken of this run' >other; "
         "printf short >short; head -c 1100 /dev/zero | tr '\\0' x >long; true");
    const pid_t zero = start("zero", 0, "--token-file token --dump met.npz");
    check_end(start("without", 1, ""), "without", 9);
    ck_assert_msg(strstr(text, "for rank 0 is of another program than this rank, or has a token")
                      != NULL,
                  "%s", text);
    check_end(start("wrong", 1, "--token-file other"), "wrong", 9);
    ck_assert_msg(strstr(text, "for rank 0 has another token than this rank, or none") != NULL,
                  "%s", text);
    check_end(start("rate", 1, "--token-file token --lr 0.5"), "rate", 9);
    ck_assert_msg(strstr(text, "do not run the same: ") != NULL && strstr(text, "lr 0.5,") != NULL,
                  "%s", text);
    setenv("LOWERSET_TOKEN", "the token of this run", 1);
    const pid_t one = start("one", 1, "");
    check_end(zero, "zero", 0);
    ck_assert_msg(strstr(text, "note: rank 1 was turned away") != NULL, "%s", text);
    check_end(one, "one", 0);
    check_same();
    setenv("LOWERSET_TOKEN", "a variable's", 1);
    static const struct { const char *more, *text; } row[] = {
        {"", "LOWERSET_TOKEN has a token of 12 characters: it must have 16 or more"},
        {"--token-file short", "short has a token of 5 characters"},
        {"--token-file long", "long is no token: it must be a text of at most 1023 characters"},
        {"--token-file none", "--token-file: cannot read none: No such file"},
    };
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        check_end(start("row", 1, row[k].more), "row", 2);
        ck_assert_msg(strstr(text, row[k].text) != NULL, "%s", text);
    }
    MUST("./two %s", run);      /* ranks of one machine need none */
    ck_assert_int_eq(sh("./two %s --token-file token", run), 2);
    ck_assert_msg(strstr(text, "--token-file is for --peers") != NULL, "%s", text);
    unsetenv("LOWERSET_TOKEN");
}
END_TEST

START_TEST(a_rank_listens_at_its_own_address_or_not_at_all)
{
    ck_assert_int_eq(sh("./two %s --peers 192.0.2.7:%d,%s:%d --rank 0", run, PORT, host, PORT + 1),
                     2);
    ck_assert_msg(strstr(text, "of rank 0 is no address of this machine; start rank 0 where it is")
                      != NULL,
                  "%s", text);
    const pid_t zero = start("zero", 0, "--dump met.npz");
    char answer[9];
    call("GET /\n", 6, answer, sizeof answer);
    check_end(start("twice", 0, ""), "twice", 9);
    ck_assert_msg(strstr(text, "rank 0 cannot listen at ") != NULL, "%s", text);
    const pid_t one = start("one", 1, "");
    check_end(zero, "zero", 0);
    check_end(one, "one", 0);
    check_same();
}
END_TEST

/* Ranks that go on from checkpoints of the same step whose weights differ. */
START_TEST(replicas_that_differ_end_the_run)
{
    MUST("./two %s --save a", run);
    MUST("./two --data synthetic:16 --progress none --steps 9 --epochs 100 --seed 5417 --lr 0.125 "
         "--save b");
    char more[2][80];
    for (int k = 0; k < 2; k++)
        snprintf(more[k], sizeof more[k], "--steps 12 --resume %c/step-000000009.safetensors",
                 'a' + k);
    const pid_t zero = start("zero", 0, more[0]), one = start("one", 1, more[1]);
    check_end(zero, "zero", 2);
    const bool tells = strstr(text, "rank 1 begins with other weights than rank 0") != NULL;
    check_end(one, "one", 2);
    ck_assert(tells != (strstr(text, "rank 1 begins with other weights than rank 0") != NULL));
    /* --compare-replicas reaches the ranks: one that compares more often than the other is of
     * another run. */
    const pid_t two = start("zero", 0, "--compare-replicas 1 --dump met.npz");
    check_end(start("never", 1, "--compare-replicas 0"), "never", 9);
    ck_assert_msg(strstr(text, "replicas compared 1") != NULL
                      && strstr(text, "replicas compared 0") != NULL,
                  "%s", text);
    const pid_t again = start("one", 1, "--compare-replicas 1");
    check_end(two, "zero", 0);
    check_end(again, "one", 0);
    check_same();
}
END_TEST

/* ---- memory that is damaged ---- */

enum { PATTERN = 64 };

/* The first weights of a checkpoint that are not 0. */
static void read_pattern(const char *path, unsigned char to[PATTERN])
{
    static unsigned char data[1 << 16];
    uint64_t header;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(data, 1, sizeof data, f);
    fclose(f);
    memcpy(&header, data, sizeof header);
    for (size_t at = 8 + header; at + PATTERN <= n; at += 4) {
        bool full = true;
        for (int k = 0; k < PATTERN; k += 4)
            full &= (data[at + (size_t)k] | data[at + (size_t)k + 1]) != 0;
        memcpy(to, data + at, PATTERN);
        if (full)
            return;
    }
    ck_abort_msg("no weights in %s", path);
}

/* Flips a bit of the pattern wherever a process may write. Returns how often; -1: its memory cannot
 * be opened. */
static int damage(pid_t pid, const unsigned char of[PATTERN])
{
    static unsigned char part[1 << 20];
    const unsigned long most = 1ul << 30;       /* sanitizers map terabytes of their own */
    char path[64], line[512];
    int found = 0;
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    const int memory = open(path, O_RDWR);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "r");
    if (memory < 0 || maps == NULL)
        return -1;
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        char may[5];
        if (sscanf(line, "%lx-%lx %4s", &from, &to, may) != 3 || may[1] != 'w' || to - from > most)
            continue;
        for (unsigned long at = from; at < to; at += sizeof part - PATTERN) {
            const ssize_t got =
                pread(memory, part, to - at < sizeof part ? to - at : sizeof part, (off_t)at);
            const unsigned char *end = part + (got > 0 ? got : 0), *hit = part;
            while ((hit = memmem(hit, (size_t)(end - hit), of, PATTERN)) != NULL) {
                const unsigned char other = hit[0] ^ 1;
                found += pwrite(memory, &other, 1, (off_t)(at + (unsigned long)(hit - part))) == 1;
                hit++;
            }
        }
    }
    fclose(maps);
    close(memory);
    return found;
}

/* A bit of one rank's weights changes in the middle of the run, which does not train them. */
START_TEST(a_damaged_replica_ends_the_run)
{
    unsigned char weights[PATTERN];
    static const char more[] =
        "--steps 1000000000 --epochs 1000000000 --compare-replicas 50 --log steps";
    struct stat steps = {.st_size = 0};
    MUST("./two %s --lr 0 --save still && mv $(ls still/* | tail -n 1) still.safetensors", run);
    read_pattern("still.safetensors", weights);
    MUST(LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 mlp.onnx --batch=4 --microbatches=2 "
                  "--ranks=2 --freeze fc1.weight -o ice");
    program = "ice";
    const pid_t zero = start("zero", 0, more), one = start("one", 1, more);
    program = "two";
    while (stat("steps", &steps) != 0 || steps.st_size == 0)    /* they train */
        usleep(10000);
    const int found = damage(one, weights);
    if (found <= 0) {           /* as where no process may see another one's memory */
        kill(zero, SIGKILL);
        kill(one, SIGKILL);
        waitpid(zero, NULL, 0);
        waitpid(one, NULL, 0);
        ck_assert_msg(found < 0, "no weights in the rank's memory");
        fprintf(stderr, "note: /proc/PID/mem cannot be opened; left out\n");
        return;
    }
    check_end(zero, "zero", 9);
    static char all[1 << 16];
    strcpy(all, text);
    check_end(one, "one", 9);
    strcat(all, text);
    const char *told = strstr(all, "the parameters of rank 1 are not those of rank 0"),
               *step = strstr(all, "after step ");
    ck_assert_msg(told != NULL && step != NULL && atol(step + 11) % 50 == 0 && atol(step + 11) > 0,
                  "%s", all);
    ck_assert_ptr_null(strstr(told + 1, "the parameters of rank 1"));
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_packet_ends_no_run_and_is_told_nothing,
        ranks_know_each_other_by_a_token,
        a_rank_listens_at_its_own_address_or_not_at_all,
        replicas_that_differ_end_the_run,
        a_damaged_replica_ends_the_run,
    };
    TCase *tc = tcase_create("strangers");
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_command_lines("strangers", tc, make_net);
}
