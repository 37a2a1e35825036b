/* tests/compiler/test_onnx_many.c -- files with 100,000 of something take little memory.
 *
 * A file that is refused takes at most 64 MB and 4 bytes for each of its own. So does one that is
 * accepted, unless it has that many inputs or nodes that become part of the graph: each input may
 * take 128 bytes more, each node 512. A file of good nodes with a mistake at its end counts as one
 * of these. The bound is about the import; plans of a graph with 100,000 nodes take more. */
#include "compiler/onnx/onnx_import.h"
#include "tests/support/less.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"


enum { MANY = 100000, INPUT = 128, NODE = 512 };

/* ---- the wire format ---- */

typedef struct Bytes { unsigned char *at; size_t n, room; } Bytes;

static void put(Bytes *b, const void *p, size_t n)
{
    if (n == 0)
        return;
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->at = realloc(b->at, b->room);
        ck_assert_ptr_nonnull(b->at);
    }
    memcpy(b->at + b->n, p, n);
    b->n += n;
}

static void put_number(Bytes *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        put(b, &(unsigned char){(unsigned char)(v | 128)}, 1);
    put(b, &(unsigned char){(unsigned char)v}, 1);
}

static void put_int(Bytes *b, unsigned field, uint64_t v)
{
    put_number(b, field << 3);
    put_number(b, v);
}

static void put_field(Bytes *b, unsigned field, const void *p, size_t n)
{
    put_number(b, field << 3 | 2);
    put_number(b, n);
    put(b, p, n);
}

static void put_text(Bytes *b, unsigned field, const char *s) { put_field(b, field, s, strlen(s)); }

/* Closes a message: it becomes a field of b. */
static void put_message(Bytes *b, unsigned field, Bytes *m)
{
    put_field(b, field, m->at, m->n);
    free(m->at);
}

/* ---- the kinds ---- */

/* The name of thing k; static. */
static const char *numbered(char letter, int k)
{
    static char name[4][16];
    static int next;
    char *to = name[next++ % 4];
    snprintf(to, sizeof *name, "%c%d", letter, k);
    return to;
}

static void put_node(Bytes *b, const char *op, const char *in, const char *more, const char *out)
{
    Bytes node = {0};
    put_text(&node, 1, in);
    if (more != NULL)
        put_text(&node, 1, more);
    put_text(&node, 2, out);
    put_text(&node, 4, op);
    put_message(b, 1, &node);
}

/* A declaration of floats [dim, 8]; the first dimension is a symbol where it has a name. */
static void put_value(Bytes *b, unsigned field, const char *name, const char *symbol)
{
    Bytes value = {0}, type = {0}, tensor = {0}, shape = {0}, first = {0}, last = {0};
    if (symbol != NULL)
        put_text(&first, 2, symbol);
    else
        put_int(&first, 1, 4);
    put_int(&last, 1, 8);
    put_message(&shape, 1, &first);
    put_message(&shape, 1, &last);
    put_int(&tensor, 1, 1);
    put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_message(&value, 2, &type);
    put_message(b, field, &value);
}

static void put_tensor(Bytes *b, unsigned field, const char *name)
{
    Bytes tensor = {0};
    put_int(&tensor, 1, 1);
    put_int(&tensor, 2, 1);
    put_text(&tensor, 8, name);
    put_field(&tensor, 9, "\0\0\0\0", 4);
    put_message(b, field, &tensor);
}

static void symbols(Bytes *b, int k) { put_value(b, 11, numbered('i', k), numbered('N', k)); }
static void inputs(Bytes *b, int k) { put_value(b, 11, numbered('i', k), NULL); }
static void outputs(Bytes *b, int k) { put_value(b, 12, numbered('o', k), NULL); }
static void values(Bytes *b, int k) { put_value(b, 13, numbered('v', k), NULL); }
static void tensors(Bytes *b, int k) { put_tensor(b, 5, numbered('t', k)); }
static void alike(Bytes *b, int k) { (void)k; put_tensor(b, 5, "t"); }
static void unread(Bytes *b, int k)
{
    put_node(b, "Relu", numbered('q', k), NULL, numbered('r', k));
}
static void unknown(Bytes *b, int k) { put_node(b, numbered('N', k), "h", NULL, numbered('r', k)); }
static void unfit(Bytes *b, int k) { put_node(b, "MatMul", "x", "x", numbered('r', k)); }
static void twice(Bytes *b, int k) { (void)k; put_node(b, "Relu", "x", NULL, "r"); }
static void good(Bytes *b, int k) { put_node(b, "Relu", "x", NULL, numbered('r', k)); }

static void sparse(Bytes *b, int k)
{
    Bytes tensor = {0};
    put_tensor(&tensor, 1, numbered('s', k));
    put_message(b, 15, &tensor);
}

static void functions(Bytes *b, int k)
{
    Bytes function = {0};
    (void)k;
    put_text(&function, 1, "f");
    put_node(&function, "Relu", "X", NULL, "Y");
    put_message(b, 25, &function);
}

static void graphs(Bytes *b, int k)
{
    Bytes graph = {0};
    inputs(&graph, k);
    put_message(b, 7, &graph);
}

static void bodies(Bytes *b, int k)
{
    Bytes node = {0}, attribute = {0};
    (void)k;
    put_text(&node, 4, "If");
    put_text(&attribute, 1, "then_branch");
    put_field(&attribute, 6, "", 0);
    put_message(&node, 5, &attribute);
    put_message(b, 1, &node);
}

/* Of 2 bytes each, which would be structs of 250. */
static void messages(Bytes *b, int k)
{
    Bytes node = {0};
    (void)k;
    for (int i = 0; i < 42; i++)
        put_field(&node, 5, "", 0);
    put_message(b, 1, &node);
}

typedef struct Kind {
    const char *what;
    void (*item)(Bytes *b, int k);
    bool of_model;              /* items are fields of the model, not of its graph */
    size_t each;                /* bytes allowed for each item beyond the bound */
    const char *says;           /* NULL: the file is accepted */
} Kind;

static const Kind kinds[] = {
    {"inputs without sizes", symbols, false, 0, "dimensions without a size"},
    {"inputs", inputs, false, INPUT, NULL},
    {"outputs that no node makes", outputs, false, 0, "is not made by any node"},
    {"declared values", values, false, 0, NULL},
    {"initializers", tensors, false, 0, NULL},
    {"initializers with one name", alike, false, 0, "is made twice"},
    {"sparse initializers", sparse, false, 0, "sparse initializers are not supported"},
    {"nodes that read nothing", unread, false, 0, "which no node, input or initializer makes"},
    {"operators that do not exist", unknown, false, 0, "operator N0 is not supported"},
    {"operands that do not fit", unfit, false, 0, "inner sizes"},
    {"results with one name", twice, false, 0, "is made twice"},
    {"nodes", good, false, NODE, NULL},
    {"functions with one name", functions, true, 0, "two local functions are called"},
    {"graphs", graphs, true, 0, "is given again and again"},
    {"messages", messages, false, 0, "the file has more than 4194304 messages"},
    {"bodies", bodies, false, 0, "the file has more than 65536 graphs"},
};

/* Appends MANY items to the small model. Returns the file's bytes. */
static size_t write_many(const Kind *kind)
{
    Bytes graph = {0}, rest = {0}, file = {0};
    graph.room = graph.n = onnx__graph_proto__get_packed_size(mk.g);
    graph.at = malloc(graph.room);
    ck_assert_ptr_nonnull(graph.at);
    onnx__graph_proto__pack(mk.g, graph.at);
    for (int k = 0; k < MANY; k++)
        kind->item(kind->of_model ? &rest : &graph, k);
    put_int(&file, 1, 8);       /* IR version, opset 13 */
    put_field(&file, 8, (unsigned char[]){2 << 3, 13}, 2);
    put_message(&file, 7, &graph);
    put(&file, rest.at, rest.n);
    make_write(&mk, file.at, file.n);
    free(rest.at);
    free(file.at);
    return file.n;
}

/* Of this program alone: getrusage also counts the process that started it. */
static long peak_bytes(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL && sscanf(line, "VmHWM: %ld", &kib) != 1)
        continue;
    fclose(f);
    ck_assert_int_gt(kib, 0);
    return kib * 1024L;
}

START_TEST(many_of_a_kind_take_little_memory)
{
    const Kind *kind = &kinds[_i];
    const size_t bytes = write_many(kind), most = (64u << 20) + 4 * bytes + MANY * kind->each;
    mk.cx.max_error = 50;
    const bool is = ls_onnx_import(&mk.cx, mk.path, &mk.o) != NULL;
    ck_assert_msg(is == (kind->says == NULL), "%s: %.2000s", kind->what, make_log(&mk));
    ck_assert_msg(is || strstr(make_log(&mk), kind->says) != NULL, "%s: %.2000s", kind->what,
                  make_log(&mk));
    if (!tests_do_less())       /* sanitizers take more */
        ck_assert_msg(peak_bytes() <= (long)most, "%s: %ld MB; at most %zu", kind->what,
                      peak_bytes() >> 20, most >> 20);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("onnx_many");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, many_of_a_kind_take_little_memory, 0,
                        (int)(sizeof kinds / sizeof *kinds));
    return run_tests("onnx_many", tc);
}
