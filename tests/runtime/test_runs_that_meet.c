/* tests/runtime/test_runs_that_meet.c -- runs that share a folder or a log, and files for which
 * there is no room: no run takes another's checkpoints for its own, and no model is lost. */
#include "tests/support/same_file.h"
#include "tests/support/tiny_run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>

static bool there(const char *path) { return access(path, F_OK) == 0; }

/* The path behind --resume= in the messages. */
static const char *rescued(void)
{
    static char path[512];
    const char *at = strstr(err_text, "--resume=");
    ck_assert_msg(at != NULL && sscanf(at, "--resume=%511[^ \n]", path) == 1, "%s", err_text);
    return path;
}

/* Going on from there gives the model that an undisturbed run exports. */
static void check_rescued(const char *path)
{
    char command[700];
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 4 --export whole.onnx");
    snprintf(command, sizeof command, "--data data.npz --epochs 4 --resume %s --export rest.onnx",
             path);
    MUST(0, command);
    check_same_file("whole.onnx", "rest.onnx");
}

/* ---- one after the other ---- */

START_TEST(a_new_run_does_not_begin_among_the_checkpoints_of_another)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 4 --save ck");
    MUST(2, "--data data.npz --epochs 2 --save ck");
    TOLD(err_text, "--save=ck holds checkpoints of another run, up to step 12");
    TOLD(err_text, "--overwrite");
    ck_assert(there("ck/step-000000012.safetensors"));
    MUST(0, "--data data.npz --epochs 2 --save ck --overwrite");
    TOLD(err_text, "removed 4 checkpoints of another run from ck");
    MUST(0, "--data data.npz --epochs 4 --save ck --resume auto");
    TOLD(err_text, "continuing from ck/step-000000006.safetensors");
}
END_TEST

START_TEST(nothing_is_removed_when_the_run_cannot_begin)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 4 --save ck");
    MUST(8, "--data nowhere.npz --epochs 4 --save ck --overwrite");
    MUST(1, "--data data.npz --epochs 4 --save ck --overwrite --export nowhere/x.onnx");
    ck_assert(there("ck/step-000000012.safetensors"));
    MUST(2, "--data data.npz --overwrite");
    TOLD(err_text, "there is no --save DIR");
}
END_TEST

START_TEST(a_branch_of_a_run_does_not_mix_with_its_later_checkpoints)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 4 --save ck");
    MUST(2, "--data data.npz --epochs 4 --save ck --resume ck/step-000000006.safetensors");
    TOLD(err_text, "up to step 12");
    MUST(0, "--data data.npz --epochs 4 --save ck --resume ck/step-000000012.safetensors");
    MUST(0,
         "--data data.npz --epochs 3 --save ck --overwrite --resume ck/step-000000006.safetensors");
    ck_assert(there("ck/step-000000003.safetensors") && there("ck/step-000000009.safetensors"));
    ck_assert(!there("ck/step-000000012.safetensors"));
    MUST(0, "--data data.npz --epochs 3 --save other --resume ck/step-000000006.safetensors");
    MUST(2, "--data data.npz --epochs 4 --save other --resume ck/step-000000009.safetensors");
    TOLD(err_text, "--save=other holds checkpoints of another run");
}
END_TEST

START_TEST(what_saves_nothing_reads_a_used_folder)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 2 --save ck");
    MUST(0, "--data data.npz --eval --save ck --resume auto");
    MUST(0, "--data data.npz --check-gradients --save ck --resume auto");
}
END_TEST

/* ---- at the same time ---- */

/* Holds the file as another process would. */
static int held(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

START_TEST(two_runs_do_not_save_to_one_folder)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 1 --save ck");
    int fd = held("ck");
    MUST(2, "--data data.npz --epochs 2 --save ck --resume auto");
    TOLD(err_text, "--save=ck: another run is saving its checkpoints there");
    MUST(0, "--data data.npz --eval --save ck --resume auto");
    close(fd);
    MUST(0, "--data data.npz --epochs 2 --save ck --resume auto");
}
END_TEST

static int lines(const char *text)
{
    int n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

START_TEST(two_runs_do_not_write_one_log)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 1 --log log");
    int fd = held("log");
    char before[4096], after[4096];
    tiny_read("log", before, sizeof before);
    MUST(2, "--data data.npz --epochs 2 --log log");
    TOLD(err_text, "--log=log: another run is writing this log");
    tiny_read("log", after, sizeof after);
    ck_assert_str_eq(before, after);
    close(fd);
    MUST(0, "--data data.npz --epochs 1 --log log");
    tiny_read("log", after, sizeof after);
    /* emptied first; times differ */
    ck_assert_int_eq(lines(before), lines(after));
}
END_TEST

static void kill_at_5(const LsRun *run)
{
    if (run->update == 5)
        raise(SIGKILL);
}

START_TEST(a_killed_run_holds_nothing)
{
    LsProgram p = tiny_program(1);
    make_data(SAMPLES);
    tiny_spy = kill_at_5;
    int status = tiny_child_status(train, &p, "--data data.npz --epochs 4 --save ck --log log");
    ck_assert(WIFSIGNALED(status));
    tiny_spy = NULL;
    MUST(0, "--data data.npz --epochs 4 --save ck --log log --resume auto");
}
END_TEST

/* ---- no room ---- */

START_TEST(a_model_without_room_is_saved_elsewhere)
{
    make_data(SAMPLES);
    MUST(1, "--data data.npz --epochs 4 --export /dev/full");
    TOLD(err_text, "/dev/full: cannot write: No space left on device");
    TOLD(err_text, "the state after step 12 is now in ");
    char path[512];
    snprintf(path, sizeof path, "%s", rescued());
    check_rescued(path);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(the_checkpoint_of_save_is_named_where_there_is_one)
{
    make_data(SAMPLES);
    MUST(1, "--data data.npz --epochs 4 --export /dev/full --save ck");
    TOLD(err_text, "ck/step-000000012.safetensors has the trained state");
    check_rescued(rescued());
}
END_TEST

START_TEST(a_dump_without_room_does_not_lose_the_model)
{
    make_data(SAMPLES);
    MUST(1, "--data data.npz --epochs 4 --dump /dev/full --export x.onnx --image-grid grid.ppm");
    TOLD(err_text, "/dev/full: cannot write");
    ck_assert(there("grid.ppm"));
    MUST(0, "--data data.npz --epochs 4 --export whole.onnx");
    check_same_file("whole.onnx", "x.onnx");
}
END_TEST

static void interrupt_at_5(const LsRun *run)
{
    if (run->update == 5)
        raise(SIGINT);
}

/* Beside the export, else beside the program; not in the current folder. */
START_TEST(an_interrupted_run_is_saved_beside_its_results)
{
    char path[512];
    make_data(SAMPLES);
    ck_assert_int_eq(system("mkdir -p results"), 0);
    tiny_spy = interrupt_at_5;
    MUST(130, "--data data.npz --epochs 4 --export results/x.onnx");
    ck_assert_str_eq(rescued(), "results/x.onnx.interrupted.safetensors");
    MUST(130, "--data data.npz --epochs 4");
    snprintf(path, sizeof path, "%s", rescued());
    ck_assert_int_eq(path[0], '/');
    ck_assert_ptr_nonnull(strstr(path, "/test_runs_that_meet.interrupted.safetensors"));
    tiny_spy = NULL;
    check_rescued("results/x.onnx.interrupted.safetensors");
    check_rescued(path);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

enum { LEAST = 600 };           /* bytes of the largest file; checkpoints and the log take more */

/* As `ulimit -f` has it: without a handler, the signal would end the process. */
static int train_in_little_room(void *program, int argc, char **argv)
{
    const struct rlimit most = {LEAST, LEAST};
    if (setrlimit(RLIMIT_FSIZE, &most) != 0)
        return TINY_NO_FILE;
    return ls_trainer_main(program, argc, argv);
}

static int in_little_room(const char *command)
{
    LsProgram p = tiny_program(1);
    return tiny_child(train_in_little_room, &p, command);
}

START_TEST(a_limit_on_the_size_of_files_is_an_error_with_a_sentence)
{
    make_data(SAMPLES);
    MUST(0, "--data data.npz --epochs 1 --save ck --log log --dump d.npz");
    MUST(0, "--data data.npz --epochs 2 --dump d2.npz");
    ck_assert_int_eq(
        in_little_room("--data data.npz --epochs 2 --save ck --resume auto --progress none"), 1);
    TOLD(err_text, "ck/step-000000006.safetensors: cannot write: File too large");
    TOLD(err_text, "could be written nowhere, and is lost");
    ck_assert(there("ck/step-000000003.safetensors") && !there("ck/step-000000006.safetensors"));
    ck_assert(!there("ck/step-000000006.safetensors.tmp"));
    ck_assert_int_eq(in_little_room("--data data.npz --epochs 2 --dump d.npz --progress none"), 1);
    TOLD(err_text, "d.npz: cannot write: File too large");
    MUST(0, "--data data.npz --epochs 1 --dump d3.npz");
    check_same_file("d.npz", "d3.npz");         /* the older file is whole */
    ck_assert_int_eq(in_little_room("--data data.npz --epochs 9 --log log --progress none"), 1);
    TOLD(err_text, "log: cannot write");
    MUST(0, "--data data.npz --epochs 2 --save ck --resume auto --dump d.npz");
    check_same_file("d.npz", "d2.npz");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_new_run_does_not_begin_among_the_checkpoints_of_another,
        nothing_is_removed_when_the_run_cannot_begin,
        a_branch_of_a_run_does_not_mix_with_its_later_checkpoints,
        what_saves_nothing_reads_a_used_folder,
        two_runs_do_not_save_to_one_folder,
        two_runs_do_not_write_one_log,
        a_killed_run_holds_nothing,
        a_model_without_room_is_saved_elsewhere,
        the_checkpoint_of_save_is_named_where_there_is_one,
        a_dump_without_room_does_not_lose_the_model,
        an_interrupted_run_is_saved_beside_its_results,
        a_limit_on_the_size_of_files_is_an_error_with_a_sentence,
    };
    return run_in_folder("runs_that_meet", sizeof test / sizeof test[0], test);
}
