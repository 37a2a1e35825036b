/* tests/runtime/test_outputs.c -- the files that a trainer writes: a file that cannot be written is
 * reported before the first step, and a pipe or a device stays what it is. */
#include "runtime/base/file.h"
#include "tests/support/same_file.h"
#include "tests/support/tiny_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

static const char *const output[] = {"export", "dump", "trace", "profile", "log", "image-grid"};
enum { NOUTPUTS = sizeof output / sizeof output[0] };

static void refused_before_training(const char *options, const char *part)
{
    char command[300];
    snprintf(command, sizeof command, "--data data.npz --epochs 2 %s", options);
    MUST(1, command);
    TOLD(err_text, part);
    ck_assert_msg(strstr(out_text, "epoch") == NULL, "%s: trained first:\n%s", options, out_text);
}

START_TEST(what_cannot_be_written_is_told_before_the_first_step)
{
    char options[200];
    make_data(4);
    for (int k = 0; k < NOUTPUTS; k++) {
        snprintf(options, sizeof options, "--%s nodir/x", output[k]);
        refused_before_training(options, "nodir/x: cannot write: No such file or directory");
        snprintf(options, sizeof options, "--%s .", output[k]);
        refused_before_training(options, ".: cannot write: it is a folder");
        snprintf(options, sizeof options, "--%s /proc/x", output[k]);     /* not even root may */
        refused_before_training(options, "/proc/x: cannot write");
    }
    refused_before_training("--save /proc/self", "cannot write");
    refused_before_training("--save nodir/ck", "nodir/ck: cannot make the folder");
}
END_TEST

START_TEST(looking_whether_it_can_be_written_leaves_nothing)
{
    int files = 0;
    make_data(4);
    write_bytes("old.onnx", "old", 3);
    MUST(8, "--data nowhere.npz --export new.onnx --dump d.npz");
    MUST(8, "--data nowhere.npz --export old.onnx");
    DIR *d = opendir(".");
    for (struct dirent *f; (f = readdir(d)) != NULL;)
        files += f->d_name[0] != '.';
    closedir(d);
    ck_assert_int_eq(files, 4);         /* data.npz, old.onnx, out, err */
    char text[8];
    tiny_read("old.onnx", text, sizeof text);
    ck_assert_str_eq(text, "old");
}
END_TEST

/* As ranks do. */
START_TEST(several_may_look_at_the_same_time)
{
    enum { RANKS = 4, TIMES = 3000 };
    pid_t rank[RANKS];
    int status;
    for (int k = 0; k < RANKS; k++)
        if ((rank[k] = fork()) == 0) {
            LsError e = {0};
            for (int i = 0; i < TIMES; i++)
                if (!ls_out_check("same.onnx", &e))
                    _exit(1);
            _exit(0);
        }
    for (int k = 0; k < RANKS; k++) {
        ck_assert_int_eq(waitpid(rank[k], &status, 0), rank[k]);
        ck_assert_int_eq(status, 0);
    }
    ck_assert_int_ne(access("same.onnx.tmp", F_OK), 0);
}
END_TEST

START_TEST(two_outputs_do_not_share_a_file)
{
    make_data(4);
    MUST(2, "--data data.npz --dump x --export x");
    TOLD(err_text, "--export and --dump both write x");
    MUST(0, "--data data.npz --dump /dev/null --export /dev/null");
    MUST(2, "--data data.npz --check-gradients --export x");
    TOLD(err_text, "--check-gradients trains nothing that --export could write");
}
END_TEST

static mode_t kind(const char *path)
{
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    return st.st_mode & S_IFMT;
}

START_TEST(a_pipe_gets_the_bytes_and_stays_a_pipe)
{
    static const char *const whole[] = {"export", "dump"};
    make_data(4);
    ck_assert_int_eq(mkfifo("pipe", 0600), 0);
    for (int k = 0; k < 2; k++) {
        char command[200];
        snprintf(command, sizeof command, "--data data.npz --%s file", whole[k]);
        MUST(0, command);
        ck_assert_int_eq(system("cat pipe > got & echo $! > reader"), 0);
        snprintf(command, sizeof command, "--data data.npz --%s pipe", whole[k]);
        MUST(0, command);
        ck_assert_int_eq(system("while kill -0 $(cat reader) 2> no; do sleep 0.01; done"), 0);
        check_same_file("file", "got");
        ck_assert_uint_eq(kind("pipe"), S_IFIFO);
    }
}
END_TEST

START_TEST(a_device_stays_a_device)
{
    make_data(4);
    if (mknod("null", S_IFCHR | 0600, makedev(1, 3)) != 0) {
        printf("skipped: no device can be made here\n");
        return;
    }
    for (int k = 0; k < NOUTPUTS; k++) {
        char command[200];
        if (strcmp(output[k], "image-grid") == 0)
            continue;                   /* the program has no pictures */
        snprintf(command, sizeof command, "--data data.npz --%s null", output[k]);
        MUST(0, command);
        ck_assert_uint_eq(kind("null"), S_IFCHR);
    }
}
END_TEST

START_TEST(stdout_is_shared_and_a_link_is_followed)
{
    make_data(4);
    MUST(0, "--data data.npz --log /dev/stdout --profile /dev/stdout");
    TOLD(out_text, "\"step\":1,");
    TOLD(out_text, "epoch 1  step 1");
    TOLD(out_text, "\"step_ns\":");
    ck_assert_int_eq(symlink("far", "link"), 0);
    write_bytes("far", "old", 3);
    MUST(0, "--data data.npz --export file");
    MUST(0, "--data data.npz --export link");
    ck_assert_uint_eq(kind("link"), S_IFLNK);
    check_same_file("file", "far");
}
END_TEST

START_TEST(a_reader_of_the_old_file_keeps_it_whole)
{
    char text[8] = "";
    make_data(4);
    write_bytes("x.onnx", "old", 3);
    int fd = open("x.onnx", O_RDONLY);
    MUST(0, "--data data.npz --export x.onnx");
    ck_assert_int_eq(read(fd, text, 7), 3);
    ck_assert_str_eq(text, "old");
    close(fd);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        what_cannot_be_written_is_told_before_the_first_step,
        looking_whether_it_can_be_written_leaves_nothing,
        several_may_look_at_the_same_time,
        two_outputs_do_not_share_a_file,
        a_pipe_gets_the_bytes_and_stays_a_pipe,
        a_device_stays_a_device,
        stdout_is_shared_and_a_link_is_followed,
        a_reader_of_the_old_file_keeps_it_whole,
    };
    return run_in_folder("outputs", sizeof test / sizeof test[0], test);
}
