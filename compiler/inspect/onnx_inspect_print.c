/* compiler/inspect/onnx_inspect_print.c -- prints the report as text or JSON. */
#include "compiler/inspect/onnx_inspect_report.h"

#include "base/plain_text.h"
#include "compiler/inspect/onnx_inspect_roles.h"
#include "compiler/onnx_file/onnx_tensor.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void ls_inspect_tell(FILE *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ls_plain_vprintf(to, fmt, ap);
    va_end(ap);
    fputc('\n', to);
}

static const char *type_text(const Onnx__ValueInfoProto *p)
{
    bool tensor = p->type != NULL && p->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
        && p->type->tensor_type != NULL;
    return tensor ? ls_onnx_type_name(p->type->tensor_type->elem_type) : "not a tensor";
}

static const char *value_text(LsArena *a, const Onnx__ValueInfoProto *p)
{
    const Onnx__TensorShapeProto *s = ls_inspect_shape(p);
    const char *text = type_text(p);
    for (size_t k = 0; s != NULL && k < s->n_dim && k < 2 * LS_MAX_RANK; k++) {
        const char *dim = ls_inspect_is_open(s->dim[k]) ? ls_inspect_symbol(s->dim[k])
                                             : ls_arena_printf(a, "%" PRId64, s->dim[k]->dim_value);
        text = ls_arena_printf(a, "%s%s%s", text, k > 0 ? "x" : " ", dim[0] != '\0' ? dim : "?");
    }
    return text;
}

static bool is_input(const LsInspectReport *r, const Onnx__ValueInfoProto *p)
{
    return r->m->maker[ls_names_find(&r->m->names, ls_text(p->name))] == LS_MADE_INPUT;
}

static void print_counts(FILE *to, const char *what, const LsInspectCounts *c, bool with_first)
{
    fprintf(to, "%s", what);
    for (uint32_t i = 1; i <= c->names.n; i++)
        if (with_first)
            ls_inspect_tell(to, "    %s: %u node%s, the first is '%s'", c->item[i].name,
                            c->item[i].n, c->item[i].n > 1 ? "s" : "", c->item[i].first);
        else
            ls_plain_printf(to, "%s%s %u", i > 1 ? ", " : "", c->item[i].name, c->item[i].n);
    fprintf(to, "%s", with_first ? "" : "\n");
}

static void print_lines(FILE *to, const char *what, char *lines)
{
    char *rest;
    if (lines[0] != '\0')
        fprintf(to, "%s", what);
    for (char *s = strtok_r(lines, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest))
        fprintf(to, "    %s\n", s);
}

static void print_values(const LsInspectReport *r, FILE *to)
{
    const Onnx__GraphProto *g = r->m->graph;
    LsArena *a = r->cx->arena;
    for (size_t i = 0; i < g->n_input; i++)
        if (is_input(r, g->input[i]))
            ls_inspect_tell(to, "  input       %s: %s", ls_text(g->input[i]->name),
                            value_text(a, g->input[i]));
    for (size_t i = 0; i < g->n_output; i++)
        ls_inspect_tell(to, "  output      %s: %s", ls_text(g->output[i]->name),
                        value_text(a, g->output[i]));
    for (uint32_t i = 1; i <= r->open.n; i++)
        ls_inspect_tell(to, "  to bind     %s", r->open.name[i]);
    for (int i = 0; i < r->nbound; i++)
        ls_inspect_tell(to, "  bound       %s: %s", r->bound[i].input,
                        ls_shape_text(a, &r->bound[i].shape));
}

void ls_inspect_print_text(LsInspectReport *r, FILE *to)
{
    ls_inspect_tell(to, "%s", r->cx->model);
    ls_inspect_tell(to, "  format      IR %" PRId64 ", opset %d, written by %s %s",
                    r->m->proto->ir_version, r->m->opset, ls_text(r->m->proto->producer_name),
                    ls_text(r->m->proto->producer_version));
    print_values(r, to);
    print_counts(to, "  operators   ", &r->ops, false);
    fprintf(to, "  parameters  %u tensors, %" PRId64 " elements, %" PRId64 " bytes as float\n",
            r->trained.n, r->trained.elements, 4 * r->trained.elements);
    if (r->other.n > 0)
        fprintf(to, "  statistics  %u tensors, %" PRId64 " elements, %" PRId64 " bytes as float\n",
                r->other.n, r->other.elements, 4 * r->other.elements);
    if (r->decisions != NULL)
        ls_inspect_roles_text(to, r->cx->arena, r->decisions, r->all);
    if (r->unsupported.names.n > 0)
        print_counts(to, "  not supported:\n", &r->unsupported, true);
    if (r->gradless.names.n > 0)
        print_counts(to, "  no gradient:\n", &r->gradless, true);
    print_lines(to, "  hazards:\n", r->hazards);
    print_lines(to, "  problems:\n", r->problems);
    if (ls_inspect_trainable(r))
        fprintf(to, "  nothing prevents training it\n");
}

static cJSON *json_values(const LsInspectReport *r, Onnx__ValueInfoProto *const *list, size_t n,
                          bool inputs)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++) {
        if (inputs && !is_input(r, list[i]))
            continue;
        const Onnx__TensorShapeProto *s = ls_inspect_shape(list[i]);
        cJSON *v = cJSON_CreateObject(), *dims = cJSON_CreateArray();
        cJSON_AddStringToObject(v, "name", ls_text(list[i]->name));
        cJSON_AddStringToObject(v, "type", type_text(list[i]));
        for (size_t k = 0; s != NULL && k < s->n_dim; k++)
            cJSON_AddItemToArray(dims, !ls_inspect_is_open(s->dim[k])
                                 ? cJSON_CreateNumber((double)s->dim[k]->dim_value)
                                 : cJSON_CreateString(ls_inspect_symbol(s->dim[k])));
        cJSON_AddItemToObject(v, "dims", s != NULL ? dims : cJSON_CreateNull());
        if (s == NULL)
            cJSON_Delete(dims);
        cJSON_AddItemToArray(array, v);
    }
    return array;
}

static cJSON *json_counts(const LsInspectCounts *c)
{
    cJSON *o = cJSON_CreateObject();
    for (uint32_t i = 1; i <= c->names.n; i++)
        cJSON_AddNumberToObject(o, c->item[i].name, c->item[i].n);
    return o;
}

static cJSON *json_lines(char *lines)
{
    cJSON *array = cJSON_CreateArray();
    char *rest;
    for (char *s = strtok_r(lines, "\n", &rest); s != NULL; s = strtok_r(NULL, "\n", &rest))
        cJSON_AddItemToArray(array, cJSON_CreateString(s));
    return array;
}

static cJSON *json_tensors(const LsInspectTensors *t)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "tensors", t->n);
    cJSON_AddNumberToObject(o, "elements", (double)t->elements);
    cJSON_AddNumberToObject(o, "bytes", 4.0 * (double)t->elements);
    return o;
}

bool ls_inspect_print_json(LsInspectReport *r, FILE *to)
{
    const Onnx__GraphProto *g = r->m->graph;
    cJSON *o = cJSON_CreateObject(), *open = cJSON_CreateArray();
    for (uint32_t i = 1; i <= r->open.n; i++)
        cJSON_AddItemToArray(open, cJSON_CreateString(r->open.name[i]));
    cJSON_AddNumberToObject(o, "schema", 1);
    cJSON_AddStringToObject(o, "model", r->cx->model);
    cJSON_AddNumberToObject(o, "ir_version", (double)r->m->proto->ir_version);
    cJSON_AddNumberToObject(o, "opset", r->m->opset);
    cJSON_AddStringToObject(o, "producer", ls_text(r->m->proto->producer_name));
    cJSON_AddItemToObject(o, "inputs", json_values(r, g->input, g->n_input, true));
    cJSON_AddItemToObject(o, "outputs", json_values(r, g->output, g->n_output, false));
    cJSON_AddItemToObject(o, "to_bind", open);
    cJSON_AddItemToObject(o, "operators", json_counts(&r->ops));
    cJSON_AddItemToObject(o, "parameters", json_tensors(&r->trained));
    cJSON_AddItemToObject(o, "statistics", json_tensors(&r->other));
    if (r->decisions != NULL)
        ls_inspect_roles_json(o, r->decisions);
    cJSON_AddItemToObject(o, "not_supported", json_counts(&r->unsupported));
    cJSON_AddItemToObject(o, "no_gradient", json_counts(&r->gradless));
    cJSON_AddItemToObject(o, "hazards", json_lines(r->hazards));
    cJSON_AddItemToObject(o, "problems", json_lines(r->problems));
    cJSON_AddBoolToObject(o, "trainable", ls_inspect_trainable(r));
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    if (text == NULL)
        return false;
    ls_plain_json(to, text);
    fputc('\n', to);
    free(text);
    return true;
}
