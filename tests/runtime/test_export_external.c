/* tests/runtime/test_export_external.c -- an exported model of two files: it says what one file
 * says, and no model is ever beside data that are not its own. */
#include "onnx.pb-c.h"
#include "runtime/trainer/export_external.h"
#include "runtime/trainer/export_trained.h"
#include "tests/support/npz_util.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT,
    EXTERNAL = (int)ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL,
};
enum { W = 300000, B = 3, TABLE = 400, FEW = 4 };       /* elements */
enum { PLACE_B = (W * 4 + 63) / 64 * 64, ROOM = PLACE_B + 64 };         /* of the state, bytes */

static unsigned char *bytes;
static LsStateTensor state[2];
static LsProgram p;
static LsMemory m;
static LsError e;

/* ---- a process that is killed before the call that changes a name ---- */

static int calls_left = -1;     /* -1: all */

static void count_call(void)
{
    if (calls_left == 0)
        raise(SIGKILL);
    calls_left -= calls_left > 0;
}

int rename(const char *from, const char *to)
{
    count_call();
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *path)
{
    count_call();
    return unlinkat(AT_FDCWD, path, 0);
}

/* ---- y = (x + w) + b, and constants ---- */

static Onnx__TensorProto *tensor(const char *name, size_t n, float from)
{
    Onnx__TensorProto *t = calloc(1, sizeof *t);
    float *data = calloc(n, sizeof *data);
    onnx__tensor_proto__init(t);
    for (size_t k = 0; k < n; k++)
        data[k] = from + 0.25f * (float)(k % 1000);
    t->name = (char *)name;
    t->n_dims = 1;
    t->dims = calloc(1, sizeof *t->dims);
    t->dims[0] = (int64_t)n;
    t->has_data_type = t->has_raw_data = true;
    t->data_type = FLOAT;
    t->raw_data = (ProtobufCBinaryData){n * sizeof *data, (uint8_t *)data};
    return t;
}

static int64_t place_of(const Onnx__TensorProto *t)
{
    return (unsigned char *)memmem(bytes, p.file.bytes, t->raw_data.data, t->raw_data.len) - bytes;
}

static void open_program(void)
{
    static Onnx__ModelProto model;
    static Onnx__GraphProto graph;
    static Onnx__OperatorSetIdProto opset, *opsets[] = {&opset};
    Onnx__TensorProto *t[] = {tensor("b", B, 7), tensor("table", TABLE, 9), tensor("w", W, 1),
                              tensor("few", FEW, 11)};
    onnx__model_proto__init(&model);
    onnx__graph_proto__init(&graph);
    onnx__operator_set_id_proto__init(&opset);
    opset.has_version = true, opset.version = 17;
    model.graph = &graph, model.opset_import = opsets, model.n_opset_import = 1;
    graph.initializer = t, graph.n_initializer = 4;
    bytes = malloc(onnx__model_proto__get_packed_size(&model));
    p = (LsProgram){.about.model = "m.onnx", .real_bytes = 4, .state = state, .nstate = 2,
                    .bytes.state = ROOM, .bytes.arena = 64, .file.onnx = bytes,
                    .file.bytes = onnx__model_proto__pack(&model, bytes)};
    state[0] = (LsStateTensor){.t = {.name = "w", .rank = 1, .dim = {W}, .at = {LS_AT_STATE, 0}},
                               .kind = LS_STATE_PARAM, .onnx_offset = place_of(t[2])};
    state[1] =
        (LsStateTensor){.t = {.name = "b", .rank = 1, .dim = {B}, .at = {LS_AT_STATE, PLACE_B}},
                        .kind = LS_STATE_PARAM, .onnx_offset = place_of(t[0])};
    ck_assert_msg(ls_memory_open(&m, &p, &e), "%s", e.text);
}

static void train(void) { ((float *)ls_memory_at(&m, state[0].t.at))[5] += 0.5f; }

static bool export(const char *path, LsDataType type, bool external)
{
    const LsAlphabet none = {{0}};
    e = (LsError){0};
    return ls_export(&m, 0, &none, &(LsExportForm){.type = type, .external = external}, path, &e);
}

static void exported(const char *path, LsDataType type, bool external)
{
    ck_assert_msg(export(path, type, external), "%s", e.text);
}

/* ---- the pair says what one file says ---- */

static Onnx__ModelProto *read_model(const char *path)
{
    LsFile f;
    ck_assert_msg(ls_file_map(&f, path, &e), "%s", e.text);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, f.size, f.data);
    ls_file_unmap(&f);
    ck_assert_ptr_nonnull(model);
    return model;
}

static int64_t number(const Onnx__TensorProto *t, const char *key)
{
    for (size_t k = 0; k < t->n_external_data; k++)
        if (strcmp(t->external_data[k]->key, key) == 0)
            return atoll(t->external_data[k]->value);
    ck_abort_msg("'%s' has no %s", t->name, key);
    return 0;
}

/* Brings the data of a tensor inside. */
static void embed(Onnx__TensorProto *t, const char *location, const LsFile *data)
{
    const int64_t offset = number(t, "offset"), length = number(t, "length");
    ck_assert_str_eq(t->external_data[0]->key, "location");
    ck_assert_str_eq(t->external_data[0]->value, location);
    ck_assert(!t->has_raw_data);
    ck_assert_int_eq(offset % (length >= 1 << 20 ? 4096 : 64), 0);
    ck_assert_int_le(offset + length, (int64_t)data->size);
    t->has_raw_data = true;
    t->raw_data = (ProtobufCBinaryData){(size_t)length, (uint8_t *)data->data + offset};
    t->n_external_data = 0;
    t->has_data_location = false;
}

static void same_messages(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    const size_t n = protobuf_c_message_get_packed_size(a);
    unsigned char *x = malloc(n), *y = malloc(n);
    ck_assert_uint_eq(protobuf_c_message_get_packed_size(b), n);
    protobuf_c_message_pack(a, x);
    protobuf_c_message_pack(b, y);
    ck_assert_mem_eq(x, y, n);
    free(x);
    free(y);
}

static void check_pair(LsDataType type)
{
    LsFile data;
    exported("one.onnx", type, false);
    ck_assert_int_eq(mkdir("in", 0777), 0);
    exported("in/two.onnx", type, true);
    Onnx__ModelProto *one = read_model("one.onnx"), *two = read_model("in/two.onnx");
    ck_assert_msg(ls_file_map(&data, "in/two.onnx.data", &e), "%s", e.text);
    for (size_t k = 0; k < two->graph->n_initializer; k++) {
        Onnx__TensorProto *t = two->graph->initializer[k];
        const bool beside = (int)t->data_location == EXTERNAL;
        ck_assert_int_eq(beside, strcmp(t->name, "few") != 0);
        if (beside)
            embed(t, "two.onnx.data", &data);
    }
    same_messages(&one->base, &two->base);
}

START_TEST(the_pair_says_what_one_file_says)
{
    open_program();
    train();
    check_pair(LS_DT_REAL);
}
END_TEST

START_TEST(so_it_does_in_16_bits)
{
    open_program();
    train();
    check_pair(LS_DT_F16);
}
END_TEST

/* ---- whole, or not there ---- */

static bool same(const char *a, const char *b)
{
    LsFile f, g;
    LsError none = {0};
    const bool open = ls_file_map(&f, a, &none), both = open && ls_file_map(&g, b, &none);
    const bool equal = both && f.size == g.size && memcmp(f.data, g.data, f.size) == 0;
    if (both)
        ls_file_unmap(&g);
    if (open)
        ls_file_unmap(&f);
    return equal;
}

static bool is_pair(const char *like)
{
    char data[64];
    snprintf(data, sizeof data, "%s.data", like);
    return same("out/m.onnx", like) && same("out/m.onnx.data", data);
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

/* Names are equal, so that FILE and FILE.data of the folders "old" and "new" are those of "out". */
static void make_pairs(void)
{
    open_program();
    ck_assert_int_eq(mkdir("old", 0777) | mkdir("new", 0777) | mkdir("out", 0777), 0);
    exported("old/m.onnx", LS_DT_BF16, true);
    train();
    exported("new/m.onnx", LS_DT_REAL, true);
}

static void put_old(bool pair)
{
    remove("out/m.onnx.tmp");
    remove("out/m.onnx.data.tmp");
    remove("out/m.onnx.data");
    const char *all = pair ? "cp old/m.onnx old/m.onnx.data out" : "cp old/m.onnx out";
    ck_assert_int_eq(system(all), 0);
}

/* Exports in a process that ends before its call number `calls`; whether it got so far. */
static bool is_killed(int calls)
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        calls_left = calls;
        _exit(export("out/m.onnx", LS_DT_REAL, true) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

START_TEST(a_killed_run_leaves_no_mixed_pair)
{
    int calls = 0;
    make_pairs();
    for (bool killed = true; killed; calls++) {
        put_old(true);
        killed = is_killed(calls);
        ck_assert_msg(!is_there("out/m.onnx") || is_pair("old/m.onnx") || is_pair("new/m.onnx"),
                      "after call %d the model and its data are of two runs", calls);
    }
    ck_assert_int_eq(calls, 4);         /* three calls change names, and then none is left */
    ck_assert(is_pair("new/m.onnx"));
}
END_TEST

START_TEST(an_older_model_of_one_file_stays_until_the_new_one_is_there)
{
    make_pairs();
    for (int calls = 0; calls < 2; calls++) {
        put_old(false);
        ck_assert(is_killed(calls));
        ck_assert(same("out/m.onnx", "old/m.onnx"));
    }
    put_old(false);
    ck_assert(!is_killed(2) && is_pair("new/m.onnx"));
}
END_TEST

static void no_room_in(rlim_t bytes_of_a_file)
{
    struct rlimit before, now;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    now = (struct rlimit){bytes_of_a_file, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &now), 0);
    ck_assert(!export("out/m.onnx", LS_DT_REAL, true));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "cannot write"));
    ck_assert(!is_there("out/m.onnx.tmp") && !is_there("out/m.onnx.data.tmp"));
}

START_TEST(without_room_nothing_is_written)
{
    make_pairs();
    for (rlim_t room = 64; room <= 4096; room *= 64) {  /* not even the model; the model alone */
        no_room_in(room);
        ck_assert(!is_there("out/m.onnx") && !is_there("out/m.onnx.data"));
    }
    put_old(true);
    no_room_in(4096);
    ck_assert(is_pair("old/m.onnx"));
}
END_TEST

static void refused(const char *path, const char *what)
{
    ck_assert(!export(path, LS_DT_REAL, true));
    ck_assert_int_eq(e.code, LS_EXIT_USAGE);
    ck_assert_msg(strstr(e.text, what) != NULL, "%s", e.text);
    e = (LsError){0};
    ck_assert(!ls_external_check(path, &e));
    ck_assert_msg(strstr(e.text, what) != NULL, "%s", e.text);
}

START_TEST(a_link_and_a_pipe_are_refused)
{
    make_pairs();
    ck_assert_int_eq(symlink("old/m.onnx", "link.onnx"), 0);
    refused("link.onnx", "link.onnx is a link");
    ck_assert_int_eq(mkfifo("pipe.onnx.data", 0600), 0);
    refused("pipe.onnx", "pipe.onnx.data is a device or a pipe");
    ck_assert(!is_there("pipe.onnx") && !is_there("pipe.onnx.tmp"));
    refused("/dev/null", "/dev/null is a device or a pipe");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        the_pair_says_what_one_file_says,
        so_it_does_in_16_bits,
        a_killed_run_leaves_no_mixed_pair,
        an_older_model_of_one_file_stays_until_the_new_one_is_there,
        without_room_nothing_is_written,
        a_link_and_a_pipe_are_refused,
    };
    return run_in_folder("export_external", sizeof test / sizeof *test, test);
}
