/* tests/runtime/test_cuda_step.c -- the trainer on a device against the trainer on the CPU, bit for
 * bit, over a fake CUDA runtime that works at once or as late as possible; and its messages about a
 * failing device. */
#define LS_TINY_CUDA
#include "runtime/engine/engine.h"
#include "tests/support/npz_util.h"
#include "tests/support/suite.h"
#include "tests/support/tiny_child.h"

#include <string.h>

enum { SAMPLES = 10, TEXT = TINY_TEXT };

typedef struct Fake {
    bool lazy, unrecordable, in_order;
    int devices, driver, fail_at;
    size_t room;
    const char *code, *last_kernel;
    unsigned order;             /* order of steps that a recording allows */
    const uint32_t *wait, *wait_of;     /* LsPhaseTable, of training */
} Fake;
static const Fake sound = {.devices = 1, .driver = 13000, .room = 1 << 20};
static int counts[4];           /* kernels run, launched one by one, replays; times that a replay
                                 * could choose between steps */

static void make_data(void)
{
    float x[SAMPLES * TF];
    int64_t label[SAMPLES];
    tiny_data(SAMPLES, x, label);
    write_npz("data.npz", 2, (NpzItem[]){{"x", LS_F32, 3, {SAMPLES, TC, TS}, x},
                                         {"label", LS_I64, 1, {SAMPLES}, label}});
}

/* The program without its device: the steps compute. */
static LsProgram here(int accumulate)
{
    LsProgram p = tiny_program(accumulate);
    p.phase.train.step = tiny_train;
    p.phase.eval.step = tiny_eval;
    p.accelerator.kind = NULL;
    return p;
}

static int parts;       /* of a batch; above 1, the last part of an update has a table of its own */

typedef struct Order { const Fake *fake; int accumulate; } Order;      /* fake NULL: the CPU */

static void set_fake(const Fake *fake, LsProgram *p, LsCudaProgram *cuda)
{
    fake_cudart.lazy = fake->lazy;
    fake_cudart.unrecordable = fake->unrecordable;
    fake_cudart.in_order = fake->in_order;
    fake_cudart.devices = fake->devices;
    fake_cudart.driver = fake->driver;
    fake_cudart.room = fake->room;
    fake_cudart.fail_at = fake->fail_at;
    fake_cudart.fail_with = cudaErrorECCUncorrectable;
    fake_cudart.order = fake->order;
    p->phase.train.wait = fake->wait;
    p->phase.train.wait_of = fake->wait_of;
    static LsCudaPart part[sizeof tiny_part / sizeof *tiny_part];
    memcpy(part, tiny_part, sizeof part);
    if (fake->last_kernel != NULL) {
        part[tiny_cuda.npart - 1].name = fake->last_kernel;
        cuda->part = part;
    }
    if (fake->code != NULL)
        cuda->fatbin = (const unsigned char *)fake->code;
    p->accelerator.program = cuda;
}

static int train(void *user, int argc, char **argv)
{
    const Order *o = user;
    LsProgram p = o->fake != NULL ? tiny_program(o->accumulate) : here(o->accumulate);
    LsCudaProgram cuda = tiny_cuda;
    if (o->fake != NULL)
        set_fake(o->fake, &p, &cuda);
    p.division.micro_batches = parts;
    if (parts > 1)
        p.phase.last = p.phase.train;
    int code = ls_trainer_main(&p, argc, argv);
    FILE *f = fopen("counts", "w");
    fprintf(f, "%d %d %d %d\n", fake_cudart.ran, fake_cudart.launched, fake_cudart.replayed,
            fake_cudart.apart);
    fclose(f);
    return fake_cudart.used != 0 ? 99 : code;           /* all device memory is given back */
}

/* Runs a trainer in a process of its own. */
static int run(const Fake *fake, int accumulate, const char *command)
{
    Order o = {fake, accumulate};
    char quiet[512];            /* what a run says of itself has its memory */
    snprintf(quiet, sizeof quiet, "%s --progress none", command);
    int code = tiny_child(train, &o, quiet);
    FILE *f = fopen("counts", "r");
    ck_assert_int_eq(
        fscanf(f, "%d %d %d %d", &counts[0], &counts[1], &counts[2], &counts[3]), 4);
    fclose(f);
    return code;
}

static void must(int want, const Fake *fake, int accumulate, const char *command)
{
    int got = run(fake, accumulate, command);
    ck_assert_msg(got == want, "%s: exit %d, not %d:\n%s%s", command, got, want, out_text,
                  err_text);
}

#define TOLD(part) ck_assert_msg(strstr(err_text, part) != NULL, "no '%s' in:\n%s", part, err_text)

static void check_same_file(const char *x, const char *y)
{
    LsFile a, b;
    LsError e = {0};
    ck_assert_msg(ls_file_map(&a, x, &e) && ls_file_map(&b, y, &e), "%s", e.text);
    ck_assert_msg(a.size == b.size && memcmp(a.data, b.data, a.size) == 0, "%s is not %s", x, y);
    ls_file_unmap(&a);
    ls_file_unmap(&b);
}

/* The log's lines without their times and speeds. */
static void read_log(const char *path, char *to)
{
    static const char *const of[] = {"\"time\":", "\"samples_per_second\":"};
    tiny_read(path, to, TEXT);
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(of[k]);
        for (char *at = to; (at = strstr(at, of[k])) != NULL; at += n)
            memset(at + n, '_', strcspn(at + n, ","));
    }
    for (char *at = to, *t = to;; at++) {       /* a time's length may differ */
        if (*at != '_')
            *t++ = *at;
        if (*at == '\0')
            break;
    }
}

static const struct { int accumulate; const char *options; int parts; } way[] = {
    {1, "--epochs 7", 1},
    {1, "--epochs 7 --drop-last --seed 3", 1},
    {3, "--epochs 7 --schedule=cosine:warmup=2", 1},
    {1, "--epochs 5 --val data.npz --save-every 2", 1},
    {2, "--epochs 6 --check-numerics --val data.npz", 1},
    {1, "--epochs 6 --trace trace.json --profile profile.json", 1},
    {1, "--steps 1", 1},
    {1, "--steps 2 --workers 0", 1},
    {1, "--epochs 6 --val data.npz", 2},
    {2, "--epochs 6 --check-numerics --trace trace.json", 3},
};

static void run_all(const Fake *fake, const char *name, int k)
{
    char command[512];
    snprintf(command, sizeof command,
             "--data data.npz %s --dump %s.npz --export %s.onnx --log %s.log "
             "--save %s.ck",
             way[k].options, name, name, name, name);
    parts = way[k].parts;
    must(0, fake, way[k].accumulate, command);
    parts = 0;
}

START_TEST(a_device_gives_the_bits_of_this_machine)
{
    static char here_out[TEXT], here_log[TEXT], there_log[TEXT];
    Fake fake = sound;
    fake.lazy = _i & 1;
    make_data();
    run_all(NULL, "here", _i / 2);
    strcpy(here_out, out_text);
    run_all(&fake, "there", _i / 2);
    ck_assert_str_eq(here_out, out_text);
    check_same_file("here.npz", "there.npz");
    check_same_file("here.onnx", "there.onnx");
    read_log("here.log", here_log);
    read_log("there.log", there_log);
    ck_assert_str_eq(here_log, there_log);
    ck_assert_int_eq(system("diff -r here.ck there.ck"), 0);
}
END_TEST

START_TEST(a_run_goes_on_from_a_checkpoint_of_the_other_machine)
{
    Fake fake = sound;
    fake.lazy = true;
    make_data();
    must(0, NULL, 1, "--data data.npz --epochs 6 --dump whole.npz");
    must(0, &fake, 1, "--data data.npz --epochs 6 --save ck --save-every 1");
    must(0, NULL, 1,
         "--data data.npz --epochs 6 --resume ck/step-000000007.safetensors --dump a.npz");
    must(0, &fake, 1,
         "--data data.npz --epochs 6 --resume ck/step-000000008.safetensors --dump b.npz");
    check_same_file("whole.npz", "a.npz");
    check_same_file("whole.npz", "b.npz");
}
END_TEST

START_TEST(all_steps_but_the_first_are_replayed)
{
    make_data();
    must(0, &sound, 1, "--data data.npz --drop-last --steps 20");
    ck_assert_int_eq(counts[0], 20 * 5);
    ck_assert_int_eq(counts[1], 5);
    ck_assert_int_eq(counts[2], 19);
    must(0, &sound, 1, "--data data.npz --drop-last --steps 20 --profile p.json --trace t.json");
    ck_assert_int_eq(counts[2], 19);    /* with its moments */
    must(0, &sound, 1, "--data data.npz --drop-last --steps 20 --check-numerics");
    ck_assert_int_eq(counts[2], 0);     /* watching values needs every step by itself */
}
END_TEST

/* After piece k, its steps and those before have been issued: so many kernels ran, as work is done
 * at once. */
static bool after_piece(void *self, uint32_t k)
{
    (void)self;
    printf("piece %u: %d ran; ", k, fake_cudart.ran);
    return true;
}

static int run_in_pieces(void *user, int argc, char **argv)
{
    static const uint32_t cut[] = {0, 2};
    LsProgram p = tiny_program(1);
    LsCudaProgram cuda = tiny_cuda;
    LsMemory m;
    LsEngine g;
    LsLoader l;
    LsLoss loss;
    LsError e = {0};
    (void)argc, (void)argv;
    set_fake(user, &p, &cuda);
    bool ok = ls_memory_open(&m, &p, &e) && ls_engine_open(&g, &p, &m, &e)
              && ls_loader_open(&l, &p, 0, &e)
              && ls_engine_cut(&g, (LsCuts){cut, 2, after_piece, NULL}, &e);
    for (int k = 0; k < 3 && ok; k++) {
        g.run.apply = k != 1;
        ls_engine_feed(&g, &l, &(LsBatch){.input = l.memory, .valid = TB});
        ok = ls_engine_run(&g, &p.phase.train, NULL, 0, &e)
             && ls_engine_loss(&g, &p.phase.train, g.slot, TB, &loss, &e);
        printf("%d ran, %d replays\n", fake_cudart.ran, fake_cudart.replayed);
    }
    fprintf(stderr, "%s", e.text);
    ls_loader_close(&l);
    ls_engine_close(&g);
    ls_memory_close(&m);
    return !ok;
}

START_TEST(a_phase_that_is_cut_is_issued_in_pieces)
{
    Fake fake = sound;
    ck_assert_int_eq(tiny_child(run_in_pieces, &fake, ""), 0);
    ck_assert_str_eq(out_text, "piece 0: 1 ran; piece 1: 3 ran; 5 ran, 0 replays\n"
                               "10 ran, 3 replays\n"
                               "piece 0: 11 ran; piece 1: 13 ran; 15 ran, 6 replays\n");
    ck_assert_str_eq(err_text, "");
}
END_TEST

START_TEST(steps_that_cannot_be_recorded_are_given_out_every_time)
{
    Fake fake = sound;
    make_data();
    fake.unrecordable = true;
    must(0, NULL, 1, "--data data.npz --drop-last --steps 20 --dump here.npz");
    must(0, &fake, 1, "--data data.npz --drop-last --steps 20 --dump there.npz");
    TOLD("note: steps cannot be recorded; their kernels are launched one by one: ");
    ck_assert_ptr_eq(strchr(err_text, '\n'), err_text + strlen(err_text) - 1);     /* once */
    ck_assert_int_eq(counts[1], 20 * 5);
    ck_assert_int_eq(counts[2], 0);
    check_same_file("here.npz", "there.npz");
}
END_TEST

START_TEST(a_diverging_run_is_told_by_its_own_step)
{
    static char here_err[TEXT];
    Fake fake = sound;
    fake.lazy = true;
    make_data();
    must(7, NULL, 1, "--data data.npz --epochs 100 --lr 1e38");
    strcpy(here_err, err_text);
    must(7, &fake, 1, "--data data.npz --epochs 100 --lr 1e38 --save ck --save-every 1");
    ck_assert_str_eq(here_err, err_text);
    must(7, &fake, 1, "--data data.npz --epochs 100 --lr 1e38 --check-numerics");
    TOLD("the first to give an infinity");
}
END_TEST

START_TEST(a_device_that_cannot_be_used_is_told_and_exits_5)
{
    static const struct { Fake fake; const char *part;
    } bad[] = {
        {{.devices = 0, .driver = 0, .room = 1 << 20}, "there is no NVIDIA driver here"},
        {{.devices = 1, .driver = 11040, .room = 1 << 20}, "it is for CUDA 11.4"},
        {{.devices = 0, .driver = 13000, .room = 1 << 20}, "no GPU"},
        {{.devices = 1, .driver = 13000, .room = 1000},
         "Paper GPU has 1000 of its 1000 bytes free"},
        {{.devices = 1, .driver = 13000, .room = 1 << 20, .code = "what is that, code?"},
         "compile again with --arch=90"},
        {{.devices = 1, .driver = 13000, .room = 1 << 20, .last_kernel = "lost_part"},
         "kernel lost_part is not in the device code: "},
    };
    make_data();
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        must(5, &bad[k].fake, 1, "--data data.npz --steps 3");
        TOLD(bad[k].part);
        ck_assert_ptr_eq(strchr(err_text, '\n'), err_text + strlen(err_text) - 1);
    }
}
END_TEST

START_TEST(a_device_that_breaks_is_told_with_the_step_and_saves_nothing)
{
    Fake fake = sound;
    fake.lazy = true;
    make_data();
    fake.fail_at = 23;          /* in the fifth step */
    must(5, &fake, 1, "--data data.npz --steps 9 --drop-last --export x.onnx --dump x.npz");
    TOLD("step 5: cannot ");
    TOLD("uncorrectable ECC error");
    ck_assert_int_ne(access("x.onnx", F_OK), 0);
    ck_assert_int_ne(access("x.npz", F_OK), 0);
    must(5, &fake, 1, "--data data.npz --steps 9 --drop-last --check-numerics");
    TOLD("step 5, node 'fc dw' (Gemm): ");
}
END_TEST

/* Logits, loss, gradient, then two updates that depend on the gradient alone. */
static const uint32_t tiny_wait[] = {0, 1, 2, 2}, tiny_wait_of[] = {0, 0, 1, 2, 3, 4};

START_TEST(steps_that_need_nothing_of_each_other_come_in_any_order)
{
    Fake fake = sound;
    const char *options =
        "--data data.npz --epochs 7 --val data.npz --dump %s.npz --export %s.onnx";
    char here[256], there[256];
    make_data();
    snprintf(here, sizeof here, options, "here", "here");
    snprintf(there, sizeof there, options, "there", "there");
    must(0, NULL, 1, here);
    fake.wait = tiny_wait;
    fake.wait_of = tiny_wait_of;
    for (unsigned order = 0; order < 12; order++) {
        fake.order = order;
        fake.lazy = order % 2;
        must(0, &fake, 1, there);
        check_same_file("here.npz", "there.npz");
        check_same_file("here.onnx", "there.onnx");
        ck_assert_int_eq(counts[3] > 0, order > 0);
    }
}
END_TEST

/* Otherwise the test above would prove nothing. */
START_TEST(a_step_that_does_not_wait_for_what_it_reads_is_wrong)
{
    static const uint32_t wait[] = {0, 1, 2}, wait_of[] = {0, 0, 1, 1, 2, 3};
    Fake fake = sound;
    int wrong = 0;
    fake.wait = wait;
    fake.wait_of = wait_of;
    make_data();
    must(0, NULL, 1, "--data data.npz --steps 6 --dump here.npz --export here.onnx");
    for (fake.order = 1; fake.order < 12; fake.order++) {
        must(0, &fake, 1, "--data data.npz --steps 6 --dump there.npz --export there.onnx");
        wrong += system("cmp -s here.onnx there.onnx") != 0;
    }
    ck_assert_int_gt(wrong, 0);
}
END_TEST

/* Ten timed runs for each of two slots decide; then the choice is printed once. */
START_TEST(the_faster_of_both_ways_is_taken)
{
    Fake fake = sound;
    fake.wait = tiny_wait;
    fake.wait_of = tiny_wait_of;
    make_data();
    must(0, NULL, 1, "--data data.npz --drop-last --steps 40 --export here.onnx");
    must(0, &fake, 1, "--data data.npz --drop-last --steps 20");
    ck_assert_str_eq(err_text, "");
    for (fake.order = 1; fake.order < 4; fake.order++) {
        fake.lazy = fake.order % 2;
        must(0, &fake, 1, "--data data.npz --drop-last --steps 40 --export there.onnx");
        check_same_file("here.onnx", "there.onnx");
        ck_assert_int_eq(counts[2], 39);
        ck_assert_int_ge(counts[3], 10);
        TOLD("note: steps one after the other take 0.");
        ck_assert_ptr_eq(strchr(err_text, '\n'), err_text + strlen(err_text) - 1);     /* once */
    }
}
END_TEST

START_TEST(what_cannot_be_recorded_apart_is_replayed_in_order)
{
    Fake fake = sound;
    fake.wait = tiny_wait;
    fake.wait_of = tiny_wait_of;
    fake.in_order = true;
    make_data();
    must(0, NULL, 1, "--data data.npz --drop-last --steps 40 --export here.onnx");
    must(0, &fake, 1, "--data data.npz --drop-last --steps 40 --export there.onnx");
    check_same_file("here.onnx", "there.onnx");
    ck_assert_int_eq(counts[2], 39);
    TOLD(
        "note: steps are replayed one after the other: step 1, node 'fc' (Gemm): cannot let a step "
        "wait for others");
    ck_assert_ptr_eq(strchr(err_text, '\n'), err_text + strlen(err_text) - 1);     /* once */
}
END_TEST

START_TEST(moments_are_recorded_in_the_order_of_the_plan)
{
    Fake fake = sound;
    fake.wait = tiny_wait;
    fake.wait_of = tiny_wait_of;
    fake.order = 5;
    make_data();
    must(0, &fake, 1, "--data data.npz --drop-last --steps 20 --profile p.json");
    ck_assert_int_eq(counts[2], 19);
    ck_assert_int_eq(counts[3], 0);
}
END_TEST

START_TEST(the_plan_counts_two_batches_on_a_device)
{
    char want[64];
    must(0, &sound, 1, "--print-plan");
    snprintf(want, sizeof want, "input ring %d ", 2 * (128 + 64));
    ck_assert_msg(strstr(out_text, want) != NULL, "%s", out_text);
}
END_TEST

int main(void)
{
    enum { WAYS = sizeof way / sizeof *way };
    TCase *tc = tcase_create("cuda_step");
    const TTest *const tests[] = {
        a_run_goes_on_from_a_checkpoint_of_the_other_machine, all_steps_but_the_first_are_replayed,
        a_phase_that_is_cut_is_issued_in_pieces,
        steps_that_cannot_be_recorded_are_given_out_every_time,
        steps_that_need_nothing_of_each_other_come_in_any_order,
        a_step_that_does_not_wait_for_what_it_reads_is_wrong,
        the_faster_of_both_ways_is_taken, what_cannot_be_recorded_apart_is_replayed_in_order,
        moments_are_recorded_in_the_order_of_the_plan,
        a_diverging_run_is_told_by_its_own_step, a_device_that_cannot_be_used_is_told_and_exits_5,
        a_device_that_breaks_is_told_with_the_step_and_saves_nothing,
        the_plan_counts_two_batches_on_a_device};
    tcase_add_checked_fixture(tc, enter_new_folder, leave_folder);
    tcase_add_loop_test(tc, a_device_gives_the_bits_of_this_machine, 0, 2 * WAYS);
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("cuda_step", tc);
}
