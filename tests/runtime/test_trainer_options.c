/* tests/runtime/test_trainer_options.c -- every option of a trainer reaches the program: the test
 * gives it on the command line and checks its effect. An option of --help without a row here
 * fails. */
#include "tests/support/tiny_run.h"
#include "runtime/engine/device.h"

#include <dirent.h>
#include <fcntl.h>

/* State of the run at the last training step. Written by the trainer's process. */
typedef struct Seen {
    float x[TB * TF], real_label[TB * TF];
    double lr;
    uint64_t seed;
    int64_t update, steps;
    int tasks;                  /* threads of the process */
    uint32_t noise[8];
    bool tune;
} Seen;
static Seen seen;

static int count_tasks(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *f; d && (f = readdir(d)) != NULL;)
        n += f->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static void note(const LsRun *run)
{
    seen.lr = run->lr;
    seen.seed = run->seed;
    memcpy(seen.noise, run->noise, sizeof seen.noise);
    seen.update = run->update;
    seen.steps++;
    seen.tasks = count_tasks();
    seen.tune = run->device != NULL && run->device->tune;
    write_bytes("seen", &seen, sizeof seen);
}

static LsProgram watched(void)
{
    tiny_spy = note;
    return tiny_program(1);
}

/* Runs the trainer; then `seen` has the state at its last step. */
static void must(const LsProgram *p, int code, const char *command)
{
    seen = (Seen){0};
    unlink("seen");
    int got = run_program(p, command);
    ck_assert_msg(got == code, "%s: exit %d, not %d:\n%s%s", command, got, code, out_text,
                  err_text);
    FILE *f = fopen("seen", "rb");
    if (f) {
        ck_assert_uint_eq(fread(&seen, sizeof seen, 1, f), 1);
        fclose(f);
    }
}

static void runs(const char *command)
{
    LsProgram p = watched();
    must(&p, 0, command);
}

static void check_tune(void)
{
    runs("--data data.npz");
    ck_assert(!seen.tune);
    runs("--data data.npz --tune");
#ifdef LS_TINY_CUDA
    ck_assert(seen.tune);
#else
    ck_assert(!seen.tune);      /* has an effect on devices, where this suite runs as well */
#endif
}

#ifndef LS_TINY_CUDA
static LsStep step[5];

static void look_at_x(LsRun *run, void *const arg[])
{
    memcpy(seen.x, arg[0], sizeof seen.x);
    tiny_logits(run, arg);
}

static void look_at_label(LsRun *run, void *const arg[])
{
    (void)run;
    memcpy(seen.real_label, arg[1], sizeof seen.real_label);
    *(float *)arg[2] = 0;
    memset(arg[3], 0, TB * TM * sizeof(float));
}

/* Runs the trainer and checks sample 0 of the data in the last step: (x - mean) * factor. */
static void sees(const char *command, float mean, float factor)
{
    LsProgram p = watched();
    memcpy(step, p.phase.train.step, sizeof step);
    step[0].run = look_at_x;
    p.phase.train.step = step;
    must(&p, 0, command);
    for (int c = 0; c < TC; c++)
        for (int s = 0; s < TS; s++)
            ck_assert_float_eq_tol(seen.x[s * TC + c], (features[c * TS + s] - mean) * factor,
                                   1e-6f);
}

static void check_data(void) { sees("--data data.npz --no-shuffle --steps 1", 0, 1); }
static void check_scale(void) { sees("--data data.npz --no-shuffle --steps 1 --scale 2", 0, 2); }
static void check_mean(void) { sees("--data data.npz --no-shuffle --steps 1 --mean 3", 3, 1); }
static void check_std(void) { sees("--data data.npz --no-shuffle --steps 1 --std 4", 0, 0.25f); }

static void check_raw(void)
{
    float label[SAMPLES];
    for (int k = 0; k < SAMPLES; k++)
        label[k] = (float)labels[k];
    write_bytes("x.dat", features, sizeof features);
    write_bytes("label.dat", label, sizeof label);
    sees("--data x.dat,label.dat --raw float32 --no-shuffle --steps 1", 0, 1);
}

/* The steps of a pass of the same program, which takes rows of three tokens, 0 or 1. */
static int64_t steps_on_rows(const char *command)
{
    static LsInput input[3];
    LsProgram p = watched();
    memcpy(input, p.input, 2 * sizeof *input);
    for (int k = 0; k < 3; k++)
        input[k].t = (LsTensor){.name = k == 0 ? "x" : k == 1 ? "label" : "segments",
                                .type = LS_DT_I64,
                                .rank = 2,
                                .dim = {TB, 3},
                                .at = {LS_AT_INPUT, k}};
    p.input = input;
    p.ninput = 3;
    p.segments = 3;
    p.target.has_ignore = true;
    p.target.ignore = -1;
    must(&p, 0, command);
    return seen.steps;
}

static void check_stride(void)
{
    uint16_t token[14];
    for (int k = 0; k < 14; k++)
        token[k] = 1;
    write_bytes("t.bin", token, sizeof token);
    ck_assert_int_eq(steps_on_rows("--data t.bin"), 1);                 /* 4 windows */
    ck_assert_int_eq(steps_on_rows("--data t.bin --stride 1"), 3);      /* 11 windows */
}

static void check_pack(void)
{
    static char lines[256];
    for (int k = 0; k < 8; k++)
        strcat(lines, "{\"input_ids\": [1]}\n");
    write_bytes("s.jsonl", lines, strlen(lines));
    ck_assert_int_eq(steps_on_rows("--data s.jsonl"), 2);
    ck_assert_int_eq(steps_on_rows("--data s.jsonl --pack"), 1);        /* 3 rows */
}

/* Whether a run has other values with the words than without. */
static bool moves_samples(const LsProgram *p, const char *command, const char *words)
{
    char all[256];
    float before[4];
    must(p, 0, command);
    memcpy(before, seen.x, sizeof before);
    snprintf(all, sizeof all, "%s %s", command, words);
    must(p, 0, all);
    return memcmp(before, seen.x, sizeof before) != 0;
}

static void check_random_windows(void)
{
    uint16_t token[29];
    for (int k = 0; k < 29; k++)
        token[k] = (uint16_t)(k % 2);
    write_bytes("t.bin", token, sizeof token);
    ck_assert_int_eq(steps_on_rows("--data t.bin"), 3);         /* 9 windows */
    /* of these the last is left out, as windows may begin 2 tokens later */
    ck_assert_int_eq(steps_on_rows("--data t.bin --random-windows"), 2);
}

static void check_augment(void)
{
    static LsInput input[2];
    LsProgram p = watched();
    memcpy(input, p.input, sizeof input);
    p.input = input;
    must(&p, LS_EXIT_USAGE, "--data data.npz --augment mixup=1");
    TOLD(err_text, "mixup mixes targets, and 'label' has integer labels");
    must(&p, LS_EXIT_USAGE, "--data data.npz --augment flip");
    TOLD(err_text, "the program takes no pictures");
    p.phase.train.step = step;          /* which notes its input */
    input[0].t.rank = 4;                /* one channel of as many rows as there were channels */
    input[0].t.dim[3] = input[0].t.dim[2];
    input[0].t.dim[2] = input[0].t.dim[1];
    input[0].t.dim[1] = 1;
    ck_assert(moves_samples(&p, "--data data.npz --no-shuffle --steps 1", "--augment flip=1"));
}

static void check_shuffle(void)
{
    LsProgram p = watched();
    sees("--data data.npz --no-shuffle --steps 1", 0, 1);
    p.phase.train.step = step;
    must(&p, 0, "--data data.npz --no-shuffle --shuffle --steps 1");
    ck_assert_float_ne(seen.x[0], features[0]);
}

/* The first samples of a run. */
static void first_samples(const char *command, float x[TC * TS])
{
    LsProgram p = watched();
    memcpy(step, p.phase.train.step, sizeof step);
    step[0].run = look_at_x;
    p.phase.train.step = step;
    must(&p, 0, command);
    memcpy(x, seen.x, TC * TS * sizeof *x);
}

static void check_shuffle_seed(void)
{
    float by_seed[TC * TS], by_its_own[TC * TS], other[TC * TS];
    first_samples("--data data.npz --seed 7 --steps 1", by_seed);
    first_samples("--data data.npz --seed 3 --steps 1", other);
    ck_assert_mem_ne(other, by_seed, sizeof by_seed);
    first_samples("--data data.npz --seed 3 --shuffle-seed 7 --steps 1", by_its_own);
    ck_assert_uint_eq(seen.seed, 3);
    ck_assert_mem_eq(by_its_own, by_seed, sizeof by_seed);
    /* A checkpoint knows it. */
    runs("--data data.npz --shuffle-seed 7 --epochs 2 --save by_seed");
    runs("--data data.npz --shuffle-seed 7 --epochs 3 --resume by_seed/step-000000006.safetensors");
    ck_assert_ptr_null(strstr(err_text, "the checkpoint's run had its data"));
    runs("--data data.npz --epochs 3 --resume by_seed/step-000000006.safetensors");
    TOLD(err_text, "the checkpoint's run had its data shuffled by --shuffle-seed=7; this run has");
    LsProgram p = watched();
    must(&p, 2, "--data data.npz --shuffle-seed 7 --no-shuffle");
    TOLD(err_text, "--shuffle-seed and --no-shuffle");
    must(&p, 2, "--data data.npz --shuffle-seed 7 --eval");
    TOLD(err_text, "--shuffle-seed: --eval takes the data in their order");
}

static void check_label_from(void)
{
    static LsInput input[2];
    LsProgram p = watched();
    memcpy(input, p.input, sizeof input);
    memcpy(step, p.phase.train.step, sizeof step);
    input[1].t = (LsTensor){.name = "label", .rank = 3, .dim = {TB, TC, TS}, .at = input[1].t.at};
    step[1].run = look_at_label;
    p.input = input;
    p.phase.train.step = step;
    p.target.classes = 0;
    must(&p, 0, "--data data.npz --no-shuffle --steps 1 --label-from x");
    ck_assert_int_eq(memcmp(seen.real_label, features, sizeof seen.real_label), 0);
}

static void check_val(void)
{
    runs("--data data.npz --val data.npz");
    TOLD(out_text, "val_loss ");
}

static bool there(const char *path) { return access(path, F_OK) == 0; }

/* How often a text comes. */
static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
        n++;
    return n;
}

/* What they decide: tests/whole/validation.sh. */
static void check_val_split(void)
{
    runs("--data data.npz --val-split 2");
    ck_assert_int_eq(seen.steps, 2);
    TOLD(out_text, "/2)");
    runs("--data data.npz --val-split 40%");
    TOLD(out_text, "/4)");
}

static void check_val_every(void)
{
    runs("--data data.npz --val data.npz --epochs 3 --val-every 2");
    ck_assert_int_eq(count(out_text, "val_loss "), 6);      /* 2, 3, 4, 6, 8, 9 */
}

static void check_limit_batches(void)
{
    runs("--data data.npz --epochs 2 --limit-batches 2");
    ck_assert_int_eq(seen.steps, 4);
}

static void check_limit_val_batches(void)
{
    runs("--data data.npz --val data.npz --limit-val-batches 1");
    TOLD(out_text, "/4)");
}

static void check_keep_best(void)
{
    runs("--data data.npz --val data.npz --save best --keep-best val_loss");
    ck_assert(there("best/best.safetensors"));
}

/* Parameters that do not move give the same loss each time. */
static void check_patience(void)
{
    runs("--data data.npz --val data.npz --epochs 9 --lr 0 --patience 2");
    ck_assert_int_eq(seen.steps, 9);
    TOLD(out_text, "ended after step 9: val_loss has not improved in 2 evaluations");
}

static void check_min_delta(void)
{
    runs("--data data.npz --val data.npz --epochs 9 --patience 1 --min-delta 1e9");
    ck_assert_int_eq(seen.steps, 6);
}

static void check_export_best(void)
{
    runs("--data data.npz --val data.npz --lr 0 --epochs 3 --save exported --keep-best val_loss "
         "--export-best --export x.onnx");
    TOLD(out_text, "exporting the model of step 3, with the best val_loss");
}

static void check_begins(const char *path, const char *with)
{
    static char text[1 << 16];
    tiny_read(path, text, sizeof text);
    ck_assert_msg(strncmp(text, with, strlen(with)) == 0, "%s does not begin with '%s'", path,
                  with);
}

/* What they give: tests/runtime/test_metrics.c, tests/whole/predict.sh. */
static void check_metrics(void)
{
    runs("--data data.npz --val data.npz");
    ck_assert_int_eq(count(out_text, "val_f1_macro"), 0);
    runs("--data data.npz --val data.npz --metrics f1 --log log.json");
    TOLD(out_text, "val_f1_macro ");
    tiny_read("log.json", out_text, sizeof out_text);
    TOLD(out_text, "\"val_f1_macro\":");
    LsProgram p = watched();
    must(&p, 2, "--data data.npz --val data.npz --metrics mae");
    TOLD(err_text, "this program has no mae: its loss is of classes");
    must(&p, 2, "--data data.npz --metrics f1");
    TOLD(err_text, "--metrics: the run evaluates nothing");
}

static void check_by_class(void)
{
    enum { EPOCHS = 2 };
    runs("--data data.npz --val data.npz --metrics f1 --epochs 2");
    ck_assert_int_eq(count(out_text, "labels\n"), 0);
    runs("--data data.npz --val data.npz --metrics f1 --by-class --epochs 2");
    ck_assert_int_eq(count(out_text, "class         f1     labels\n0 "), EPOCHS);
    LsProgram p = watched();
    must(&p, 2, "--data data.npz --val data.npz --by-class");
    TOLD(err_text, "--by-class: no metric by class is chosen");
    must(&p, 2, "--data data.npz --metrics none --by-class");
    TOLD(err_text, "the run evaluates nothing");
    must(&p, 2, "--data data.npz --by-class");
    TOLD(err_text, "--by-class: the run evaluates nothing");
}

static void check_confusion(void)
{
    runs("--data data.npz --eval --confusion table.csv");
    tiny_read("table.csv", out_text, sizeof out_text);
    TOLD(out_text, "label,0,1\n0,");
}

static void check_predict(void)
{
    runs("--data data.npz --predict some.csv");
    TOLD(out_text, "predicted 10 samples with the weights of step 0: some.csv");
    ck_assert_int_eq(seen.steps, 0);
    tiny_read("some.csv", out_text, sizeof out_text);
    TOLD(out_text, "class,probability,p_0,p_1\n");
    ck_assert_int_eq(count(out_text, "\n"), 1 + SAMPLES);
    LsProgram p = watched();
    must(&p, 2, "--data data.npz --predict some.csv --eval");
    TOLD(err_text, "--eval and --predict do not go together");
    must(&p, 2, "--predict some.csv");
    TOLD(err_text, "no data");
    must(&p, 2, "--data data.npz --predict some");
    TOLD(err_text, "the name says nothing of the form");
}

static void check_predict_as(void)
{
    runs("--data data.npz --predict some --predict-as npz");
    check_begins("some", "PK");
}

static void check_predict_outputs(void)
{
    LsProgram p = watched();
    runs("--data data.npz --predict some.npz --predict-outputs y");
    must(&p, 2, "--data data.npz --predict some.npz --predict-outputs z");
    TOLD(err_text, "the model has no output 'z'; it has y");
}

/* The same program, whose samples are rows of one token, 0 or 1. */
static void says(const char *command, const char *text)
{
    static LsInput input[2];
    LsProgram p = watched();
    memcpy(input, p.input, sizeof input);
    for (int k = 0; k < 2; k++)
        input[k].t = (LsTensor){.name = k == 0 ? "x" : "label", .type = LS_DT_I64, .rank = 2,
                                .dim = {TB, 1}, .at = {LS_AT_INPUT, k}};
    p.input = input;
    must(&p, 0, command);
    ck_assert_msg(text == NULL || strcmp(out_text, text) == 0, "%s: %s", command, out_text);
}

static void check_generate(void)
{
    char two[64];
    says("--generate 3 --prompt 1 --temperature 0", "0 0 0\n");
    says("--generate 8 --prompt 1 --temperature 100 --top-k 1", "0 0 0 0 0 0 0 0\n");
    says("--generate 8 --prompt 1 --temperature 100 --top-p 0.1", "0 0 0 0 0 0 0 0\n");
    says("--generate 8 --prompt 1 --temperature 100", NULL);
    TOLD(out_text, "1");
    snprintf(two, sizeof two, "%.60s", out_text);
    says("--generate 8 --prompt 1 --temperature 100 --threads 3", two);
    says("--generate 8 --prompt 1 --temperature 100 --seed 7", NULL);
    ck_assert_str_ne(out_text, two);
    LsProgram p = watched();
    must(&p, 2, "--generate 3 --prompt 1");
    TOLD(err_text, "--generate is for models that take a row of tokens");
    must(&p, 2, "--generate 3");
    TOLD(err_text, "give --prompt");
    must(&p, 2, "--data data.npz --top-k 3");
    TOLD(err_text, "--top-k is for --generate N");
}

static void check_serve_stdin(void)
{
    static const char lines[] = "1,2,3,4,5,6\n{\"x\": [[1,2],[3,4],[5,6]], \"id\": 3}\n1,2\n";
    write_bytes("lines", lines, sizeof lines - 1);
    ck_assert_ptr_nonnull(freopen("lines", "r", stdin));
    runs("--serve-stdin");
    ck_assert_ptr_nonnull(freopen("/dev/null", "r", stdin));
    ck_assert_int_eq(count(out_text, "\n"), 3);
    TOLD(out_text, "{\"class\":");
    TOLD(out_text, "{\"id\":3,\"class\":");
    TOLD(out_text, "{\"error\":\"the row ends too early");
}

/* Nodes in front of a model: tests/whole/predict.sh. */
static void check_export_scaling(void)
{
    LsProgram p = watched();
    must(&p, 2, "--data data.npz --export x.onnx --export-scaling");
    TOLD(err_text, "the data are not scaled");
    must(&p, 2, "--data data.npz --export-scaling");
    TOLD(err_text, "--export-scaling is for --export FILE");
}

static bool has_text(const char *path, const char *text)
{
    char bytes[4096];
    FILE *f = fopen(path, "rb");
    const size_t n = f != NULL ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f != NULL)
        fclose(f);
    return memmem(bytes, n, text, strlen(text)) != NULL;
}

static void check_export_notes(void)
{
    runs("--data ./data.npz --export x.onnx --scale 2");
    ck_assert(has_text("x.onnx", "lowerset.plan") && has_text("x.onnx", "0123abcd"));
    ck_assert(has_text("x.onnx", "{\"x\":{\"scale\":2}}") && has_text("x.onnx", "data.npz"));
    ck_assert(!has_text("x.onnx", "./data.npz"));
    runs("--data data.npz --export x.onnx --no-export-notes");
    ck_assert(!has_text("x.onnx", "lowerset."));
}

static void check_drop_last(void)
{
    runs("--data data.npz");
    ck_assert_int_eq(seen.steps, 3);
    runs("--data data.npz --drop-last");
    ck_assert_int_eq(seen.steps, 2);
}

/* ThreadSanitizer has any number of threads of its own. */
static void check_tasks(int n)
{
#ifndef __SANITIZE_THREAD__
    ck_assert_int_eq(seen.tasks, n);
#else
    ck_assert_int_ge(seen.tasks, n);
#endif
}

static void check_workers(void)
{
    runs("--data data.npz --threads 1 --workers 0");
    check_tasks(1);
    runs("--data data.npz --threads 1 --workers 3");
    check_tasks(4);
}

static void check_threads(void)
{
    runs("--data data.npz --threads 4 --workers 0");
    check_tasks(4);
}

static void check_epochs(void)
{
    runs("--data data.npz --epochs 4");
    ck_assert_int_eq(seen.update, 12);
}

static void check_steps(void)
{
    runs("--data data.npz --epochs 4 --steps 7");
    ck_assert_int_eq(seen.update, 7);
}

static void check_lr(void)
{
    runs("--data data.npz --lr 0.03125");
    ck_assert_double_eq(seen.lr, 0.03125);
}

static void check_schedule(void)
{
    runs("--data data.npz --epochs 2 --lr 0.5 --schedule step:every=2,gamma=0.5");
    ck_assert_double_eq(seen.lr, 0.125);
}

static void check_seed(void)
{
    runs("--data data.npz --seed 1234");
    ck_assert_uint_eq(seen.seed, 1234);
}

static void check_eval(void)
{
    runs("--data data.npz --eval");
    ck_assert_int_eq(seen.steps, 0);
    TOLD(out_text, "val_loss ");
}

static void check_save(void)
{
    runs("--data data.npz --save ck");
    ck_assert(there("ck/step-000000003.safetensors"));
}

static void check_save_every(void)
{
    runs("--data data.npz --save every --save-every 2");
    ck_assert(!there("every/step-000000001.safetensors")
              && there("every/step-000000002.safetensors"));
}

static void check_keep_last(void)
{
    runs("--data data.npz --save last --save-every 1 --keep-last 1");
    ck_assert(!there("last/step-000000002.safetensors")
              && there("last/step-000000003.safetensors"));
}

/* The tiny program, with a weight that is not trained and that nobody reads. */
static LsProgram with_frozen(void)
{
    enum { N = sizeof tiny_state / sizeof *tiny_state };
    static LsStateTensor state[N + 1];
    LsProgram p = tiny_program(1);
    memcpy(state, tiny_state, sizeof tiny_state);
    state[N] = (LsStateTensor){
        TENSOR("still", false, 1, TM), IN_STATE(ST_SCALE), LS_STATE_FROZEN, NULL, TINY_B};
    p.state = state;
    p.nstate = N + 1;
    p.bytes.state = ST_SCALED_END;
    return p;
}

static bool file_has(const char *path, const char *text)
{
    char all[8192];
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    const size_t n = fread(all, 1, sizeof all, f);
    fclose(f);
    return memmem(all, n, text, strlen(text)) != NULL;
}

static void check_save_frozen(void)
{
    LsProgram p = with_frozen();
    must(&p, 0, "--data data.npz --save plain");
    ck_assert(!file_has("plain/step-000000003.safetensors", "\"still\""));
    must(&p, 0, "--data data.npz --save whole --save-frozen");
    ck_assert(file_has("whole/step-000000003.safetensors", "\"still\""));
    must(&p, 0, "--data data.npz --epochs 2 --resume plain/step-000000003.safetensors");
    must(&p, 0, "--data data.npz --epochs 2 --resume whole/step-000000003.safetensors");
    const float other = 3;              /* in the file: b has its values from the checkpoint */
    memcpy(tiny_onnx + TINY_B, &other, sizeof other);
    ck_assert_int_eq(run_program(&p, "--data data.npz --epochs 2 --resume "
                                     "plain/step-000000003.safetensors"), LS_EXIT_DATA);
    TOLD(err_text, "weights that are not trained are others than this program's");
    must(&p, 0, "--data data.npz --epochs 2 --resume whole/step-000000003.safetensors");
}

static void check_export_adapter(void)
{
    static const LsAdapterEntry entry[] = {{0, "base_model.model.fc.lora_A.weight"}};
    LsProgram p = tiny_program(1);
    ck_assert_int_eq(run_program(&p, "--data data.npz --export-adapter no"), LS_EXIT_USAGE);
    TOLD(err_text, "this program has no adapters");
    p.adapters = (LsAdapterTable){.config = "{\"r\": 4}", .entry = entry, .nentry = 1};
    must(&p, 0, "--data data.npz --export-adapter adapter");
    ck_assert(file_has("adapter/adapter_config.json", "{\"r\": 4}"));
    ck_assert(file_has("adapter/adapter_model.safetensors", entry[0].key));
    ck_assert(file_has("adapter/adapter_model.safetensors", "\"shape\":[2,3,2]"));
}

static void check_resume(void)
{
    runs("--data data.npz --epochs 2 --save resume");
    runs("--data data.npz --epochs 3 --resume resume/step-000000006.safetensors");
    ck_assert(seen.update == 9 && seen.steps == 3);
}

static void check_overwrite(void)
{
    runs("--data data.npz --epochs 2 --save again");
    MUST(2, "--data data.npz --epochs 1 --save again");
    runs("--data data.npz --epochs 1 --save again --overwrite");
    ck_assert(there("again/step-000000003.safetensors")
              && !there("again/step-000000006.safetensors"));
}

static void check_export(void)
{
    runs("--data data.npz --export x.onnx");
    check_begins("x.onnx", "#######");
}

/* What it writes: test_export_narrow.c, with a model; the tiny program's bytes are none. */
/* What it writes: test_export_external.c. */
static void check_export_external(void)
{
    runs("--data data.npz --export /dev/null");
    MUST(2, "--data data.npz --export /dev/null --export-external");
    TOLD(err_text, "/dev/null is a device or a pipe");
    MUST(2, "--data data.npz --export-external");
    TOLD(err_text, "--export-external is for --export FILE, which is not given");
}

static void check_export_precision(void)
{
    runs("--data data.npz --export x.onnx --export-precision f32");
    MUST(2, "--data data.npz --export x.onnx --export-precision f16");
    TOLD(err_text,
         "--export-precision: the model has opset 0, and Cast takes float16 from opset 6 on");
    MUST(2, "--data data.npz --export x.onnx --export-precision half");
    TOLD(err_text, "--export-precision=half: must be f32, f16 or bf16");
    MUST(2, "--data data.npz --export-precision f16");
    TOLD(err_text, "--export-precision is for --export FILE, which is not given");
}

static void check_image_grid(void)
{
    runs("--data data.npz --image-grid x.ppm");
    check_begins("x.ppm", "P6\n");
}

static void check_log(void)
{
    runs("--data data.npz --log x.log");
    check_begins("x.log", "{\"schema\":1,\"model\":\"tiny.onnx\"");
}

/* What the events say: test_event_file.c. */
static void check_tensorboard(void)
{
    runs("--data data.npz --tensorboard events");
    DIR *d = opendir("events");
    int files = 0;
    for (struct dirent *f; d != NULL && (f = readdir(d)) != NULL;)
        files += strncmp(f->d_name, "events.out.tfevents.", 20) == 0;
    closedir(d);
    ck_assert_int_eq(files, 1);
}

/* The gradient of tiny_program.h's update is known: test_event_file.c. */
static void check_log_grad_norm(void)
{
    runs("--data data.npz --log x.log");
    ck_assert(!file_has("x.log", "grad_norm"));
    runs("--data data.npz --log x.log --log-grad-norm");
    ck_assert(file_has("x.log", "\"grad_norm\":"));
    LsProgram p = tiny_program(2);
    ck_assert_int_eq(run_program(&p, "--data data.npz --log x.log --log-grad-norm"), 2);
    TOLD(err_text, "--log-grad-norm: an update adds up the gradients of several");
}

/* What they do: tests/whole/find_rate.sh, tests/whole/weights.sh. */
static void check_find_rate(void)
{
    runs("--data data.npz --find-rate=12");
    ck_assert_int_eq(seen.steps, 12);
    TOLD(out_text, "running mean");
}

static void check_rate_range(void)
{
    runs("--data data.npz --find-rate=12 --rate-range 1e-9:1e-6");
    ck_assert_double_eq_tol(seen.lr, 1e-6, 1e-12);
}

static void check_rate_table(void)
{
    runs("--data data.npz --find-rate=12 --rate-table x.csv");
    check_begins("x.csv", "rate,loss,mean\n1e-07,");
}

static void check_save_weights(void)
{
    runs("--data data.npz --save-weights w.safetensors");
    ck_assert(file_has("w.safetensors", "\"w\":{\"dtype\":\"F32\""));
}

static void check_init_from(void)
{
    runs("--data data.npz --save-weights w.safetensors --lr 0.5");
    runs("--data data.npz --init-from w.safetensors");
    TOLD(err_text, "w.safetensors: initial values of ");
    runs("--data data.npz --init-from w.safetensors --eval --save-weights v.safetensors");
    LsFile a, b;
    LsError e = {0};
    ck_assert(ls_file_map(&a, "w.safetensors", &e) && ls_file_map(&b, "v.safetensors", &e));
    ck_assert(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
    ls_file_unmap(&a);
    ls_file_unmap(&b);
}

static void check_init_strict(void)
{
    runs("--data data.npz --save-weights w.safetensors");
    runs("--data data.npz --init-from w.safetensors --init-strict");
    MUST(2, "--data data.npz --init-strict");
}

static void check_weights_of(void)
{
    MUST(2, "--data data.npz --save-weights w.safetensors --weights-of average");
    TOLD(err_text, "this program keeps no averages");
}

static void check_trace(void)
{
    runs("--data data.npz --trace x.trace");
    check_begins("x.trace", "{\"displayTimeUnit\":");
}

static void check_profile(void)
{
    runs("--data data.npz --profile x.profile");
    check_begins("x.profile", "{\"schema\":1,\"model\":\"tiny.onnx\"");
}

static void check_dump(void)
{
    runs("--data data.npz --dump x.npz");
    check_begins("x.npz", "PK");
}

/* A bar is drawn ten times a second. */
static void take_a_while(const LsRun *run)
{
    (void)run;
    usleep(120000);
}

static void check_progress(void)
{
    LsProgram p = tiny_program(1);
    tiny_spy = take_a_while;
    must(&p, 0, "--data data.npz --progress bar");
    TOLD(err_text, "\repoch 1/1 ");
    must(&p, 0, "--data data.npz --progress none");
    ck_assert_str_eq(err_text, "");
}

static void check_numerics(void)
{
    LsProgram p = watched();
    must(&p, 7, "--data data.npz --epochs 100 --lr 1e38 --check-numerics");
    TOLD(err_text, "the first to give an infinity");
}

static void check_max_skipped(void)
{
    LsProgram p = tiny_scaled(1);
    tiny_wrong = TINY_NOT_FINITE;
    must(&p, 7, "--data data.npz --epochs 9 --max-skipped 3");
    TOLD(err_text, "step 3: 3 updates in a row were skipped");
    tiny_wrong = TINY_RIGHT;
    p = watched();
    must(&p, 2, "--data data.npz --max-skipped 3");
    TOLD(err_text, "this program skips no updates");
}

/* Programs of one process refuse these; tests/whole/test_ranks.c gives them to others. */
static void check_of_ranks(void)
{
    static const char *const given[] = {
        "--ranks 2",    "--peers a:1,b:1",    "--rank 1",
        "--comm local", "--bucket 100",       "--late-exchange",
        "--share-gpus", "--token-file token", "--compare-replicas 7"};
    LsProgram p = watched();
    for (size_t k = 0; k < sizeof given / sizeof given[0]; k++) {
        char line[80];
        snprintf(line, sizeof line, "--data data.npz %s", given[k]);
        must(&p, 2, line);
        TOLD(err_text, "this program is for one process");
    }
    must(&p, 0, "--data data.npz --ranks 1");
}

/* Programs of one model refuse these; tests/whole/test_ensembles.c gives them to others. */
static void check_of_members(void)
{
    static const char *const given[] = {"--ensemble-seed 3", "--ensemble-weights w.npz",
                                        "--member-rates 1", "--member-seeds 1",
                                        "--export-member 0"};
    for (size_t k = 0; k < sizeof given / sizeof *given; k++) {
        char line[80];
        snprintf(line, sizeof line, "--data data.npz %s", given[k]);
        MUST(2, line);
        TOLD(err_text, "this program is one model");
    }
}

static void check_noise_seed(void)
{
    LsProgram p = watched();
    uint32_t noise[4][8];
    must(&p, 2, "--data data.npz --noise-seed 3");
    TOLD(err_text, "this program adds no noise");
    p.privacy = (LsPrivacyTerms){1, 1, 1e-5, 4};
    for (int k = 0; k < 4; k++) {
        must(&p, 0, k < 2 ? "--data data.npz --noise-seed 3" : "--data data.npz");
        memcpy(noise[k], seen.noise, sizeof noise[k]);
    }
    ck_assert_int_eq(memcmp(noise[0], noise[1], sizeof *noise), 0);
    for (int k = 0; k < 8; k++)         /* no word of three different keys is another one's */
        ck_assert(noise[0][k] != noise[2][k] && noise[0][k] != noise[3][k]
                  && noise[2][k] != noise[3][k]);
    ck_assert_ptr_null(strstr(err_text, "not private"));
    must(&p, 2, "--data data.npz --no-drop-last");
    TOLD(err_text, "draws the samples of every update at random");
}

/* What it does: tests/whole/test_private_clip.c. */
static void check_check_clip(void)
{
    LsProgram p = watched();
    must(&p, 2, "--data data.npz --check-clip 3");
    TOLD(err_text, "--check-clip: this program adds no noise");
    p.privacy = (LsPrivacyTerms){1, 1, 1e-5, 4};
    must(&p, 0, "--data data.npz --check-clip 0");
    must(&p, 2, "--data data.npz --check-clip -1");
}

static void check_gradients(void)
{
    runs("--data data.npz --check-gradients=5");
    TOLD(out_text, "gradients of 5 elements");
}

static void check_measure(void)
{
    runs("--data data.npz --measure");
    TOLD(out_text, "\"arena_bytes\":328");
}

static void prints(const char *option, const char *part)
{
    runs(option);
    TOLD(out_text, part);
    ck_assert_int_eq(seen.steps, 0);
}

static void check_print_plan(void) { prints("--print-plan", "step  node  again  op"); }
static void check_version(void)
{
    prints("--version", "tiny.onnx  plan 0123abcd  (ce, sgd, batch 4)");
}
static void check_help(void)
{
    LsProgram p = watched();
    prints("--help", "usage: trainer --data SPEC");
    prints("-h", "usage: trainer --data SPEC");
    ck_assert_ptr_null(strstr(out_text, "Updates are private"));
    p.privacy = (LsPrivacyTerms){1, 0.5, 1e-5, 4};
    must(&p, 0, "--help");
    TOLD(out_text, "Updates are private: clip 1, noise 0.5, delta 1e-05, 4 samples on average.");
}

static const struct { const char *name; void (*check)(void); } row[] = {
    {"data", check_data},
    {"val", check_val},
    {"val-split", check_val_split},
    {"val-every", check_val_every},
    {"limit-batches", check_limit_batches},
    {"limit-val-batches", check_limit_val_batches},
    {"keep-best", check_keep_best},
    {"patience", check_patience},
    {"min-delta", check_min_delta},
    {"export-best", check_export_best},
    {"metrics", check_metrics},
    {"by-class", check_by_class},
    {"confusion", check_confusion},
    {"predict", check_predict},
    {"predict-as", check_predict_as},
    {"predict-outputs", check_predict_outputs},
    {"generate", check_generate},
    {"prompt", check_generate},
    {"temperature", check_generate},
    {"top-k", check_generate},
    {"top-p", check_generate},
    {"serve-stdin", check_serve_stdin},
    {"export-notes", check_export_notes},
    {"export-scaling", check_export_scaling},
    {"tensorboard", check_tensorboard},
    {"log-grad-norm", check_log_grad_norm},
    {"find-rate", check_find_rate},
    {"rate-range", check_rate_range},
    {"rate-table", check_rate_table},
    {"save-weights", check_save_weights},
    {"init-from", check_init_from},
    {"init-strict", check_init_strict},
    {"weights-of", check_weights_of},
    {"label-from", check_label_from},
    {"scale", check_scale},
    {"mean", check_mean},
    {"std", check_std},
    {"raw", check_raw},
    {"stride", check_stride},
    {"pack", check_pack},
    {"random-windows", check_random_windows},
    {"augment", check_augment},
    {"shuffle", check_shuffle},
    {"shuffle-seed", check_shuffle_seed},
    {"drop-last", check_drop_last},
    {"workers", check_workers},
    {"epochs", check_epochs},
    {"steps", check_steps},
    {"lr", check_lr},
    {"schedule", check_schedule},
    {"max-skipped", check_max_skipped},
    {"seed", check_seed},
    {"noise-seed", check_noise_seed},
    {"check-clip", check_check_clip},
    {"ensemble-seed", check_of_members},
    {"ensemble-weights", check_of_members},
    {"member-rates", check_of_members},
    {"member-seeds", check_of_members},
    {"export-member", check_of_members},
    {"threads", check_threads},
    {"ranks", check_of_ranks},
    {"peers", check_of_ranks},
    {"rank", check_of_ranks},
    {"token-file", check_of_ranks},
    {"compare-replicas", check_of_ranks},
    {"comm", check_of_ranks},
    {"bucket", check_of_ranks},
    {"late-exchange", check_of_ranks},
    {"share-gpus", check_of_ranks},
    {"tune", check_tune},
    {"eval", check_eval},
    {"save", check_save},
    {"save-every", check_save_every},
    {"keep-last", check_keep_last},
    {"save-frozen", check_save_frozen},
    {"export-adapter", check_export_adapter},
    {"resume", check_resume},
    {"overwrite", check_overwrite},
    {"export", check_export},
    {"export-external", check_export_external},
    {"export-precision", check_export_precision},
    {"image-grid", check_image_grid},
    {"log", check_log},
    {"progress", check_progress},
    {"trace", check_trace},
    {"profile", check_profile},
    {"check-numerics", check_numerics},
    {"check-gradients", check_gradients},
    {"dump", check_dump},
    {"measure", check_measure},
    {"print-plan", check_print_plan},
    {"version", check_version},
    {"help", check_help},
};
enum { NROWS = sizeof row / sizeof row[0] };

START_TEST(every_option_reaches_the_program)
{
    make_data(SAMPLES);
    for (int k = 0; k < NROWS; k++)
        row[k].check();
}
END_TEST

/* Options that are right by themselves, and not together or not for this program. */
START_TEST(what_cannot_be_met_is_refused_with_the_reason)
{
    static const struct { const char *given, *why; } of[] = {
        {"--seed 3", "no data: give --data FILE, or --data synthetic"},
        {"--data data.npz --augment flip=2", "'flip=2': takes a chance above 0, at most 1"},
        {"--data data.npz --augment flip,flip", "'flip': is there twice"},
        {"--data data.npz --augment crop=-1", "'crop=-1': takes the pixels to add"},
        {"--data data.npz --augment crop=2:same", "'crop=2:same': takes the pixels to add"},
        {"--data data.npz --augment resized-crop=1-0.5", "'resized-crop=1-0.5': takes the"},
        {"--data data.npz --augment resized-crop=0-1", "'resized-crop=0-1': takes the smallest"},
        {"--data data.npz --augment jitter", "'jitter': takes the largest changes"},
        {"--data data.npz --augment jitter=0/0/0/0.6", "'jitter=0/0/0/0.6': takes the largest"},
        {"--data data.npz --augment mixup", "'mixup': takes the alpha"},
        {"--data data.npz --augment rotate", "'rotate': takes the largest turn"},
        {"--data data.npz --augment rotate=181", "'rotate=181': takes the largest turn"},
        {"--data data.npz --augment rotate=0", "'rotate=0': takes the largest turn"},
        {"--data data.npz --augment cutmix=0", "'cutmix=0': takes the alpha"},
        {"--data data.npz --augment flip,", "'': is not one of flip, vflip, crop"},
        {"--data data.npz --augment crop,resized-crop", "crop and resized-crop both choose"},
        {"--data data.npz --augment flip --eval", "--augment: --eval takes the data as they are"},
        {"--data data.npz --save-every 2", "--save-every and --keep-last need --save DIR"},
        {"--data data.npz --keep-last 2", "--save-every and --keep-last need --save DIR"},
        {"--data data.npz --resume auto", "--resume=auto looks into --save DIR"},
        {"--data data.npz --workers 65", "at most 64 workers and 4096 threads"},
        {"--data data.npz --threads 4097", "at most 64 workers and 4096 threads"},
        {"--data data.npz --eval --check-gradients", "--eval has no gradients to check"},
        {"--data data.npz --check-gradients --export a.onnx",
         "--check-gradients trains nothing that --export could write"},
    };
    LsProgram p = watched();
    make_data(SAMPLES);
    for (size_t k = 0; k < sizeof of / sizeof *of; k++) {
        must(&p, 2, of[k].given);
        TOLD(err_text, of[k].why);
        ck_assert_int_eq(seen.steps, 0);
    }
    p.phase.eval.nstep = 0;
    must(&p, 2, "--data data.npz --val data.npz");
    TOLD(err_text, "this program has no evaluation form");
}
END_TEST

/* And the other way round. */
START_TEST(every_option_of_the_help_text_has_a_row)
{
    char name[64];
    int options = 0;
    MUST(0, "--help");
    for (char *p = out_text; (p = strstr(p, "\n  --")) != NULL; p++, options++) {
        int k = 0;
        ck_assert_int_eq(sscanf(p, " --%63[a-z-]", name), 1);
        while (k < NROWS && strcmp(row[k].name, name) != 0)
            k++;
        ck_assert_msg(k < NROWS, "--%s has no row in tests/runtime/test_trainer_options.c", name);
    }
    ck_assert_int_eq(options, NROWS);
}
END_TEST
#endif

START_TEST(tuning_reaches_the_device)
{
    make_data(SAMPLES);
    check_tune();
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        tuning_reaches_the_device,
#ifndef LS_TINY_CUDA
        every_option_reaches_the_program,
        every_option_of_the_help_text_has_a_row,
        what_cannot_be_met_is_refused_with_the_reason,
#endif
    };
    return run_in_folder("trainer_options", sizeof test / sizeof test[0], test);
}
