/* tests/runtime/test_long_names.c -- names of any length pass through all files that a trainer
 * reads and writes. */
#include "tests/support/same_file.h"
#include "tests/support/tiny_run.h"

#include <signal.h>

static char long_name[4][5001];
static LsStateTensor state[7];
static LsInput input[2];
static LsStep step[5];
static LsWatch watch[3];

/* Begins with `first`, so that names of one length differ. */
static const char *name_of(int k, int length, char first)
{
    memset(long_name[k], 'n', (size_t)length);
    long_name[k][0] = first;
    long_name[k][length / 2] = '"';     /* two bytes in JSON */
    long_name[k][length] = '\0';
    return long_name[k];
}

/* The tiny program with a weight, an input, a step and the model called by `length` bytes. */
static LsProgram named(int length)
{
    LsProgram p = tiny_program(1);
    memcpy(state, p.state, sizeof state);
    memcpy(input, p.input, sizeof input);
    memcpy(step, p.phase.train.step, sizeof step);
    memcpy(watch, p.phase.train.watch, sizeof watch);
    state[0].t.name = watch[1].t.name = name_of(0, length, 'w');
    input[0].t.name = name_of(1, length, 'x');
    step[0].name = name_of(2, length, 's');
    p.about.model = name_of(3, length, 'm');
    p.state = state;
    p.input = input;
    p.phase.train.step = step;
    p.phase.train.watch = watch;
    return p;
}

static void write_data(const char *folder)
{
    char name[5100];
    tiny_data(SAMPLES, features, labels);
    snprintf(name, sizeof name, "%s%s", folder, input[0].t.name);
    write_npz("data.npz", 2, (NpzItem[]){{name, LS_F32, 3, {SAMPLES, TC, TS}, features},
                                         {"label", LS_I64, 1, {SAMPLES}, labels}});
}

static void must(const LsProgram *p, int code, const char *command)
{
    int got = run_program(p, command);
    ck_assert_msg(got == code, "exit %d, not %d:\n%s%s", got, code, out_text, err_text);
}

/* The file has the name as JSON writes it. */
static void check_json_has(const char *path, const char *name)
{
    static char text[1 << 17], want[10100];
    size_t n = 0;
    tiny_read(path, text, sizeof text);
    for (const char *p = name; *p; p++) {
        if (*p == '"')
            want[n++] = '\\';
        want[n++] = *p;
    }
    want[n] = '\0';
    ck_assert_msg(strstr(text, want) != NULL, "%s lacks a name of %zu bytes", path, strlen(name));
}

static void check_member(const char *path, const char *folder, const char *name)
{
    LsFile f;
    LsError e = {0};
    LsArray a;
    bool found;
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    ck_assert_msg(ls_npz_find_in(&f, folder, name, &a, &found, &e) && found, "%s%s", folder, name);
    ck_assert_int_eq(a.count, TM * TF);
    ls_file_unmap(&f);
}

static const int length_of[] = {255, 256, 1023, 1024, 5000};
enum { NLENGTHS = sizeof length_of / sizeof length_of[0] };

START_TEST(names_of_any_length_are_saved_resumed_dumped_and_exported)
{
    for (int k = 0; k < NLENGTHS; k++) {
        LsProgram p = named(length_of[k]);
        write_data(k % 2 ? "in/" : "");
        must(&p, 0, "--data data.npz --epochs 2 --dump whole.npz --export whole.onnx");
        must(&p, 0, "--data data.npz --epochs 2 --save ck --save-every 1 --overwrite");
        must(&p, 0, "--data data.npz --epochs 2 --resume ck/step-000000004.safetensors "
             "--dump rest.npz --export rest.onnx");
        check_same_file("whole.npz", "rest.npz");
        check_same_file("whole.onnx", "rest.onnx");
        check_member("whole.npz", "param/", long_name[0]);
    }
}
END_TEST

START_TEST(names_of_any_length_are_logged_traced_and_profiled)
{
    for (int k = 0; k < NLENGTHS; k++) {
        LsProgram p = named(length_of[k]);
        write_data("");
        must(&p, 0, "--data data.npz --log log --trace trace --profile profile");
        check_json_has("log", long_name[3]);
        check_json_has("trace", long_name[2]);
        check_json_has("trace", long_name[3]);
        check_json_has("profile", long_name[2]);
        check_json_has("profile", long_name[3]);
        p.phase.train.nwatch = 2;     /* all but grad/b, so the worst is of w */
        must(&p, 0, "--data data.npz --check-gradients --log log");
        check_json_has("log", long_name[0]);
    }
}
END_TEST

static void interrupt_at_2(const LsRun *run)
{
    if (run->update == 2)
        raise(SIGINT);
}

/* The name of the rescued file is longer than the export's, and no file system takes it there. */
START_TEST(a_long_name_of_an_export_does_not_lose_an_interrupted_run)
{
    LsProgram p = named(5000);
    char train[400] = "--data data.npz --epochs 5 --export ";
    memset(train + strlen(train), 'e', 245);
    write_data("");
    tiny_spy = interrupt_at_2;
    must(&p, 130, train);
    tiny_spy = NULL;
    char command[700], *path = strstr(err_text, "--resume=");
    ck_assert_ptr_nonnull(path);
    path[strcspn(path, "\n")] = '\0';
    snprintf(command, sizeof command, "--data data.npz --epochs 5 %.600s", path);
    must(&p, 0, command);
    ck_assert_int_eq(unlink(strstr(command, "--resume=") + strlen("--resume=")), 0);
}
END_TEST

START_TEST(an_error_behind_long_names_is_still_told)
{
    LsProgram p = named(5000), other;
    write_data("");
    must(&p, 0, "--data data.npz --save ck");
    other = tiny_program(1);
    other.input = p.input;
    must(&other, 8, "--data data.npz --resume ck/step-000000003.safetensors");
    TOLD(err_text, "which this program does not have");
    write_npz("bad.npz", 2, (NpzItem[]){{input[0].t.name, LS_F32, 2, {SAMPLES, 5}, features},
                                        {"label", LS_I64, 1, {SAMPLES}, labels}});
    must(&p, 8, "--data bad.npz");
    TOLD(err_text, "bad.npz: shape 10x5 does not fit");
    TOLD(err_text, "which for one batch is 4x3x2");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        names_of_any_length_are_saved_resumed_dumped_and_exported,
        names_of_any_length_are_logged_traced_and_profiled,
        a_long_name_of_an_export_does_not_lose_an_interrupted_run,
        an_error_behind_long_names_is_still_told,
    };
    return run_in_folder("names", sizeof test / sizeof test[0], test);
}
