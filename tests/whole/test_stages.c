/* tests/whole/test_stages.c -- programs for a pipeline, through the command line: stages, orders,
 * modes of recomputation and budgets change no bit of training, checkpoints fit any number of
 * stages, and what has no pipeline is refused. */
#include "tests/support/command_line.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

#define COMPILE LS_BUILD "/lowerset compile -q -O0 --plan-effort=2 "
#define RUN " --progress none --seed 3 "

static void make_nets(void)
{
    MUST(LS_BUILD "/lowerset model gpt --depth=1 --heads=2 --width=16 --context=8 --vocab=17 "
                  "--dropout=0.2 -o gpt.onnx");
    MUST(LS_BUILD "/lowerset model unet --depth=1 --size=4 --width=2 -o unet.onnx");
    MUST(LS_BUILD "/lowerset model mlp --batch=0 --width=8 --size=4 -o mlp.onnx");
    MUST(LS_BUILD "/lowerset model autoencoder --size=8 --width=2 -o autoencoder.onnx");
}

/* ---- bits ---- */

/* The first nets and ways run always, at most so many steps; all of them where the whole suite
 * runs. mlp: the thinnest pipeline. unet: skips past stages, batch norms, norms over all gradients.
 * gpt: tied weights, dropout. */
enum { USUAL_NETS = 3, USUAL = 3, USUAL_STEPS = 60, WAYS = 16 };
static const struct { const char *net; int steps; const char *way[WAYS];
} bits[] = {
    {"mlp.onnx",
     200,
     {"--stages=2 --order=gpipe", "--stages=2 --recompute=except-last", "--stages=2 --order=zb",
      "--stages=2", "--stages=2 --order=gpipe --recompute=except-last",
      "--stages=2 --order=zb --recompute=except-last"}},
    {"unet.onnx --optimizer=sgd:momentum=0.9 --clip-norm=1",
     200,
     {"--stages=2 --order=gpipe --recompute=except-last", "--stages=4 --order=1f1b --recompute=all",
      "--stages=3 --order=zb --budget=min", "--stages=2 --order=gpipe --budget=70%",
      "--stages=4 --order=zb --recompute=except-last",
      "--stages=3 --order=1f1b --recompute=except-last --budget=min",
      "--stages=4 --order=gpipe --recompute=except-last --budget=min",
      "--stages=2 --order=1f1b --recompute=except-last", "--stages=2 --order=gpipe --recompute=all",
      "--stages=3 --order=gpipe --recompute=none", "--stages=4 --order=gpipe --budget=min",
      "--stages=2 --order=1f1b --budget=min", "--stages=4 --order=1f1b",
      "--stages=2 --order=zb --budget=min", "--stages=3 --order=zb --recompute=none",
      "--stages=3 --order=zb --recompute=all"}},
    {"gpt.onnx --optimizer=adamw --clip-norm=0.5 --ignore-index=3",
     25,
     {"--stages=2 --order=gpipe --recompute=all", "--stages=3 --budget=min",
      "--stages=4 --order=zb --recompute=except-last",
      "--stages=3 --recompute=except-last --budget=min",
      "--stages=2 --order=gpipe --recompute=except-last", "--stages=4 --order=zb",
      "--stages=4 --order=gpipe --budget=min", "--stages=2 --order=1f1b --recompute=all",
      "--stages=2 --order=zb --budget=min"}},
    {"gpt.onnx --precision=f16 --loss-scale=torch:init=1e6,period=3 --optimizer=nadam --ema=0.9",
     12,
     {"--stages=2", "--stages=3 --order=zb", "--stages=4 --order=gpipe",
      "--stages=3 --order=zb --recompute=except-last",
      "--stages=2 --order=gpipe --recompute=except-last"}},
    {"autoencoder.onnx --loss=mse --optimizer=adam",
     60,
     {"--stages=2 --order=zb --budget=min", "--stages=3 --order=gpipe",
      "--stages=4 --recompute=all", "--stages=2 --order=gpipe --recompute=except-last",
      "--stages=4 --order=zb --recompute=except-last"}},
};
enum { NBITS = sizeof bits / sizeof *bits };

/* 19 samples: batches of 8 have parts of 2; the last one has a part that is half full, and two that
 * are empty. */
START_TEST(a_pipeline_has_the_bits_of_one_process)
{
    const int ways = tests_do_all() ? WAYS : _i < USUAL_NETS ? USUAL : -1;
    const int steps = tests_do_all() || bits[_i].steps < USUAL_STEPS ? bits[_i].steps : USUAL_STEPS;
    for (int k = -1; ways > 0 && k < ways && (k < 0 || bits[_i].way[k] != NULL); k++) {
        const char *way = k < 0 ? "" : bits[_i].way[k], *to = k < 0 ? "one" : "other";
        MUST(COMPILE "%s %s --batch=8 --microbatches=4 --store-gradients -o t", bits[_i].net, way);
        MUST("./t --data synthetic:19" RUN
             "--threads=1 --lr 0.01 --steps %d --epochs 100 --dump %s.npz --log %s.log",
             steps, to, to);
        ck_assert_msg(k < 0 || same_arrays("one.npz", "other.npz", ""), "%s %s: %s", bits[_i].net,
                      way, text);
        if (k >= 0)
            MUST("grep -o '\"loss\":[^,}]*' one.log >a; grep -o '\"loss\":[^,}]*' other.log | cmp "
                 "- a");
    }
}
END_TEST

START_TEST(threads_and_workers_change_no_bit)
{
    static const char *const run[] = {"--threads=1", "--threads=3", "--workers=0", "--workers=4"};
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --stages=3 -o t");
    for (int k = 0; k < 4; k++) {
        MUST("./t --data synthetic:19" RUN "--lr 0.01 --steps 9 --epochs 9 %s --dump %s.npz",
             run[k], k == 0 ? "one" : "other");
        ck_assert_msg(k == 0 || same_arrays("one.npz", "other.npz", ""), "%s", run[k]);
    }
}
END_TEST

/* ---- runs ---- */

/* One process, two stages and three take turns; evaluation, export and checkpoints are those of one
 * process. */
START_TEST(checkpoints_fit_any_number_of_stages)
{
    static const char *const way[] = {"", "--stages=2", "--stages=3 --order=gpipe"};
    for (int k = 0; k < 3; k++)
        MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --optimizer=adam %s -o t%d", way[k], k);
    MUST("./t0 --data synthetic:21 --val synthetic:9" RUN
         "--epochs 4 --dump one.npz --no-export-notes --export one.onnx >one.txt");
    MUST("rm -rf saved; ./t1 --data synthetic:21" RUN "--epochs 4 --steps 5 --save saved");
    MUST("./t2 --data synthetic:21" RUN "--epochs 4 --steps 8 --resume=auto --save saved");
    MUST("./t0 --data synthetic:21" RUN "--epochs 4 --steps 10 --resume=auto --save saved");
    MUST("./t1 --data synthetic:21 --val synthetic:9" RUN
         "--epochs 4 --resume=auto --save saved --dump other.npz "
         "--no-export-notes --export other.onnx >other.txt");
    ck_assert(same_arrays("one.npz", "other.npz", ""));
    MUST("cmp one.onnx other.onnx");
    MUST("tail -1 one.txt | sed 's/.*val_loss/val_loss/' >a; tail -1 other.txt | sed "
         "'s/.*val_loss/val_loss/' | cmp - a");
    MUST("./t2 --eval --val synthetic:9 --resume saved/$(ls saved | tail -1) --progress none >b");
    MUST("sed 's/.*val_loss/val_loss/' b | cmp - a");
}
END_TEST

/* ---- processes ---- */

/* The only part with samples is the one that is kept, and the late phase follows it. */
START_TEST(an_update_may_have_the_kept_part_alone)
{
    static const char *const way[] = {"", "--stages=2 --order=gpipe --recompute=except-last",
                                      "--stages=3 --order=zb --recompute=except-last"};
    for (int k = 0; k < 3; k++) {
        MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --clip-norm=1 --store-gradients %s -o t",
             way[k]);
        for (int ranks = 0; ranks < (k == 2 ? 2 : 1); ranks++) {
            MUST("./t --data synthetic:10" RUN "--threads=1 --lr 0.01 --epochs 5 --dump %s.npz %s",
                 k == 0 ? "one" : "other", ranks ? "--ranks=3" : "");
            ck_assert_msg(k == 0 || same_arrays("one.npz", "other.npz", ""), "%s: %s", way[k],
                          text);
        }
    }
}
END_TEST

/* Each stage is a process: what they print, log, export and save is that of one process. */
START_TEST(stages_are_threads_or_processes)
{
    static const char *const net[] = {
        "unet.onnx --optimizer=adam --clip-norm=1",
        "gpt.onnx --precision=f16 --loss-scale=torch:init=1e6,period=3 --optimizer=nadam"};
    for (int k = 0; k < 2; k++) {
        MUST(COMPILE "%s --batch=8 --microbatches=4 --store-gradients -o t", net[k]);
        MUST("./t --data synthetic:21 --val synthetic:9" RUN
             "--threads=1 --epochs 5 --no-export-notes --export one.onnx --dump one.npz >one.txt "
             "2>one.err");
        MUST(COMPILE
             "%s --batch=8 --microbatches=4 --store-gradients --stages=3 --order=zb %s -o t",
             net[k], k == 0 ? "--recompute=except-last" : "");
        MUST("rm -rf saved; ./t --data synthetic:21 --val synthetic:9" RUN
             "--threads=1 --epochs 5 --no-export-notes --export other.onnx --save saved "
             "--save-every 7 --ranks=3 >other.txt 2>other.err");
        MUST("cmp one.onnx other.onnx; cmp one.txt other.txt; cmp one.err other.err");
        MUST(
            "./t --data synthetic:21" RUN
            "--epochs 5 --no-export-notes --export other.onnx --comm=local "
            "--resume saved/step-000000007.safetensors --dump other.npz");
        MUST("cmp one.onnx other.onnx");
        ck_assert(same_arrays("one.npz", "other.npz", ""));
    }
}
END_TEST

/* --profile has every node of the model once, with its time, and --trace the four micro-batches of
 * the last update in both stages, whether these are threads or processes; plan takes the times. */
START_TEST(the_times_of_all_stages_are_written)
{
    static const char *const way[] = {"", "--ranks=2"};
    MUST(COMPILE "mlp.onnx --batch=8 --microbatches=4 --stages=2 -o t");
    for (int k = 0; k < 2; k++) {
        MUST("./t --data synthetic:64" RUN
             "--epochs 9 --steps 20 --threads=1 --profile p.json --trace x.json %s",
             way[k]);
        MUST("grep -c '\"ns\":[1-9]' p.json >a; grep -o '\"node\":[0-9]*' p.json | sort -u | wc -l "
             "| cmp - a");
        MUST(LS_BUILD "/lowerset plan mlp.onnx --batch=8 --microbatches=4 --stages=2 "
                      "--plan-effort=2 --costs p.json 2>&1 | "
                      "grep \"costs of measured in p.json ($(cat a) of $(cat a) nodes\"");
        for (int stage = 1; stage <= 2; stage++)
            MUST("grep '\"tid\":%d,' x.json | grep -o '\"run\":[0-9]*' | sort | uniq -c | awk '{ "
                 "print $1 }' | uniq -c | "
                 "awk '$1 != 4 { exit 1 }'",
                 stage);
        MUST("grep -c 'stage [12]' x.json | grep -x 2; ! grep '\"ts\":-' x.json");
    }
    MUST("./t --eval --val synthetic:8 --progress none --profile p.json --trace x.json; ! grep "
         "'\"tid\":2' x.json");
}
END_TEST

/* Both plans of a stage are in its thread of the timeline, and all nodes get times of the steps
 * that ran. */
START_TEST(the_times_of_both_plans_are_written)
{
    static const char *const way[] = {"", "--ranks=2"};
    MUST(COMPILE "mlp.onnx --batch=8 --microbatches=4 --stages=2 --order=gpipe "
                 "--recompute=except-last --clip-norm=1 -o t");
    for (int k = 0; k < 2; k++) {
        MUST("./t --data synthetic:64" RUN
             "--epochs 9 --steps 20 --threads=1 --profile p.json --trace x.json %s",
             way[k]);
        MUST("! grep '\"ns\":0,' p.json");
        MUST("grep '\"runs\":80,' p.json");
        MUST(LS_BUILD "/lowerset plan mlp.onnx --batch=8 --microbatches=4 --stages=2 --clip-norm=1 "
                      "--plan-effort=2 --costs p.json 2>&1 | "
                      "grep 'costs of measured in p.json (\\([0-9]*\\) of \\1 nodes'");
        MUST("! grep '\"ts\":-' x.json");
        MUST("grep -c 'stage [12]' x.json | grep -qx 2 && grep -o '\"tid\":[0-9]*' x.json | sort "
             "-u | wc -l | grep -qx 2");
    }
}
END_TEST

START_TEST(a_stage_that_dies_ends_the_run)
{
    MUST(COMPILE "mlp.onnx --batch=8 --microbatches=4 --stages=2 -o dies");
    FILE *f = fopen("run.sh", "w");
    ck_assert_ptr_nonnull(f);
    fputs("./dies --data synthetic:999 --epochs 100000 --progress none --comm=local >died.txt 2>&1 "
          "&\n"
          "until [ -s died.txt ]; do sleep 0.1; done\n"
          "kill -9 $(cat /proc/[0-9]*/stat 2>/dev/null | awk -v parent=$! '$4 == parent { rank = "
          "$1 } END { print rank }')\n"
          "wait $!\n",
          f);
    fclose(f);
    ck_assert_int_eq(sh("sh run.sh"), 9);
    MUST("grep 'was killed by signal 9' died.txt");
}
END_TEST

START_TEST(a_value_that_is_not_finite_is_named)
{
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --stages=2 -o t");
    ck_assert_int_eq(
        sh("./t --data synthetic:8" RUN "--lr 1e30 --steps 9 --epochs 9 --check-numerics"), 7);
    ck_assert_msg(strstr(text, "is the first to give") != NULL, "%s", text);
    MUST("cp out one.txt");
    for (int k = 0; k < 2; k++) {
        MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 %s -o t",
             k ? "--stages=2 --recompute=except-last --order=gpipe" : "");
        ck_assert_int_eq(
            sh("./t --data synthetic:8" RUN "--lr 1e30 --steps 9 --epochs 9 --check-numerics"), 7);
        MUST("cp out other.txt");
        MUST("cmp one.txt other.txt");
    }
    ck_assert_int_eq(sh("./t --data broken.npz" RUN), 8);
}
END_TEST

/* Updates 1, 2, 5 and 6 are skipped. Each stage knows how many of these are in a row, also where
 * another one moves the scale. */
START_TEST(a_row_of_skipped_updates_ends_the_run)
{
#define SKIPS "./t --data synthetic:21" RUN "--lr 0.01 --epochs 9 "
    static const char *const as[] = {"", "--ranks=2"};
    MUST(COMPILE "gpt.onnx --precision=f16 --loss-scale=torch:init=4e5,period=1 --batch=8 "
                 "--microbatches=4 --stages=2 -o t");
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(sh(SKIPS "--max-skipped 2 %s", as[k]), 7);
        ck_assert_msg(strstr(text, "step 2: 2 updates in a row were skipped (--max-skipped)")
                          != NULL, "%s", text);
        MUST("rm -rf saved; " SKIPS "--steps 2 --save saved %s", as[k]);
        MUST(SKIPS "--steps 5 --max-skipped 2 --resume saved/$(ls saved) %s", as[k]);
        ck_assert_msg(strstr(text, "step 5: scale ") != NULL, "%s", text);
    }
}
END_TEST

/* ---- memory ---- */

/* The program's arena is that of all stages, as planned: each stage's regions, so many copies of
 * each. With except-last (_i = 1) there are two tables of each stage. */
START_TEST(each_stage_takes_what_its_plan_says)
{
    int64_t sum = 0, tables = 0;
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --stages=3 --order=gpipe %s -o t",
         _i ? "--recompute=except-last" : "");
    MUST("./t --print-plan");
    const int64_t arena = (int64_t)told("  arena ");
    for (const char *at = strstr(text, "phases from steps"); at != NULL;
         at = strstr(at + 1, "phases from steps"))
        tables++;
    ck_assert_int_eq(tables, _i ? 6 : 3);
    for (const char *at = strstr(text, "stage "); at != NULL; at = strstr(at + 1, "\nstage ")) {
        long bytes, one, regions = 0;
        int copies, most = 0, n = 0;
        at += *at == '\n';
        ck_assert_int_eq(sscanf(at, "stage %*d: arena %ld bytes,%n", &bytes, &n), 1);
        for (const char *next = at + n; sscanf(next, " %d x %ld%n", &copies, &one, &n) == 2;
             next += strspn(next, " +")) {
            regions += copies * one;
            most = copies > most ? copies : most;
            next += n;
        }
        ck_assert_int_eq(bytes, regions);
        ck_assert(most == 4 || _i == 1);
        sum += bytes;
    }
    ck_assert_int_eq(sum, arena);
}
END_TEST

/* The U-Net, whose search takes longer, where the whole suite runs. */
START_TEST(a_budget_is_that_of_a_rank)
{
    const char *net = tests_do_all() ? "unet" : "mlp", *budget = tests_do_all() ? "12K" : "2K";
    char why[200];
    snprintf(why, sizeof why,
             "of the pipeline: the budget of a rank is %s KiB, but the least found is",
             tests_do_all() ? "12.00" : "2.00");
    MUST(COMPILE "unet.onnx --batch=8 --microbatches=4 --stages=2 --order=gpipe --recompute=none "
                 "--emit=c -o t.c; "
                 "grep -c ' again\"' t.c | grep -x 0");
    ck_assert_int_eq(sh(COMPILE "%s.onnx --batch=8 --microbatches=4 --stages=2 --order=gpipe "
                                "--budget=%s --emit=c -o t.c",
                        net, budget),
                     4);
    ck_assert_msg(strstr(text, why) != NULL, "%s", text);
    MUST(COMPILE
         "%s.onnx --batch=8 --microbatches=4 --stages=2 --order=gpipe --budget=%ld --emit=c -o t.c",
         net, (long)told("--budget "));
}
END_TEST

/* ---- refusals ---- */

static const struct { const char *command; int code; const char *why;
} refused[] = {
    {"mlp.onnx --batch=8 --order=gpipe", 2, "--order: there is no pipeline without --stages"},
    {"mlp.onnx --batch=8 --stages=2 --order=2f2b", 2,
     "--order: '2f2b' is not one of gpipe 1f1b zb"},
    {"mlp.onnx --batch=8 --stages=0", 2, "--stages needs a whole number"},
    {"mlp.onnx --batch=8 --stages=2 --microbatches=3", 2,
     "does not divide into so many equal parts"},
    {"mlp.onnx --batch=8 --stages=40 --microbatches=4", 2, "stages are too many"},
    {"mlp.onnx --batch=8 --stages=2 --target=cuda", 2, "--stages is for --target=cpu so far"},
    {"mlp.onnx --batch=8 --stages=2 --dp=clip=1,noise=1,delta=1e-5", 2, "leave --dp out"},
    {"mlp.onnx --batch=8 --stages=2 --grads=per-sample", 2,
     "--grads shows the samples of a whole batch"},
    {"mlp.onnx --batch=8 --stages=2 --ensemble=2", 2, "leave --ensemble out"},
    {"mlp.onnx --batch=8 --stages=2 --microbatches=4 --ranks=2", 2,
     "each stage is a rank; leave --ranks out"},
    {"mlp.onnx --batch=8 --stages=2 --microbatches=2 --keep=*", 2, "leave --keep and --forget out"},
    {"mlp.onnx --batch=8 --stages=2 --microbatches=2 --accumulate=2", 2, "leave --accumulate out"},
    {"unet.onnx --batch=8 --stages=2 --microbatches=4 --precision=f16", 2,
     "depends on gradients of all stages"},
};
enum { NREFUSED = sizeof refused / sizeof *refused };

START_TEST(what_has_no_pipeline_is_refused)
{
    const int code = sh(COMPILE "%s -o t", refused[_i].command);
    ck_assert_msg(code == refused[_i].code && strstr(text, refused[_i].why) != NULL, "%s: %d: %s",
                  refused[_i].command, code, text);
}
END_TEST

START_TEST(what_a_pipeline_cannot_show_is_refused)
{
    static const char *const option[] = {"--check-gradients", "--measure"};
    MUST(COMPILE "mlp.onnx --batch=8 --microbatches=4 --stages=2 -o t");
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(sh("./t --data synthetic:8 %s", option[k]), 2);
        ck_assert_msg(strstr(text, "compile without --stages") != NULL, "%s", text);
    }
    ck_assert_int_eq(sh("./t --data synthetic:8 --ranks=3"), 2);
    ck_assert_msg(strstr(text, "--ranks=3: the pipeline of this program has 2 stages") != NULL,
                  "%s", text);
    ck_assert_int_eq(sh("./t --data synthetic:8 --ranks=2 --check-numerics"), 2);
    ck_assert_msg(
        strstr(text, "--check-numerics: stages that are processes see only their own values")
            != NULL,
        "%s", text);
    ck_assert_int_eq(sh("./t --data synthetic:8 --ranks=2 --comm=nccl"), 2);
    ck_assert_msg(strstr(text, "--comm=nccl: this program runs on no GPU") != NULL, "%s", text);
    ck_assert_int_eq(sh("./t --data synthetic:8 --stages=3"), 2);
    ck_assert_msg(strstr(text, "compile again with lowerset compile --stages") != NULL, "%s", text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stages");
    tcase_add_loop_test(t, a_pipeline_has_the_bits_of_one_process, 0, NBITS);
    tcase_add_test(t, threads_and_workers_change_no_bit);
    tcase_add_test(t, checkpoints_fit_any_number_of_stages);
    tcase_add_test(t, an_update_may_have_the_kept_part_alone);
    tcase_add_test(t, stages_are_threads_or_processes);
    tcase_add_test(t, the_times_of_all_stages_are_written);
    tcase_add_test(t, the_times_of_both_plans_are_written);
    tcase_add_test(t, a_stage_that_dies_ends_the_run);
    tcase_add_test(t, a_value_that_is_not_finite_is_named);
    tcase_add_test(t, a_row_of_skipped_updates_ends_the_run);
    tcase_add_loop_test(t, each_stage_takes_what_its_plan_says, 0, 2);
    tcase_add_test(t, a_budget_is_that_of_a_rank);
    tcase_add_loop_test(t, what_has_no_pipeline_is_refused, 0, NREFUSED);
    tcase_add_test(t, what_a_pipeline_cannot_show_is_refused);
    return run_command_lines("stages", t, make_nets);
}
