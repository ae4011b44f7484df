// Ollama's chat and generate: what they are asked with, and how they are put.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "app/server/server_state.h"
#include "engine/base/clock.h"

// ---- fields ----

// "json", or a schema.
static bool read_format(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field any[] = {{"format", FIELD_GRAMMAR, .place = GRAMMAR_JSON}, {0}};
    static const struct field schema[] = {{"format", FIELD_GRAMMAR, .place = GRAMMAR_SCHEMA}, {0}};
    const char *text = json_string_value(value);
    if (text && !*text) return true;
    if (text ? strcmp(text, "json") : !json_is_object(value)) return refuse(r, 400, name, "expected json, or a schema");
    json_t *object = json_pack("{s:O}", name, value);
    const bool read = fields_read(object, text ? any : schema, true, a, r);
    json_decref(object);
    return read;
}

static bool read_think(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    if (json_is_string(value)) return field_effort(value, name, a, r);
    if (!json_is_boolean(value)) return refuse(r, 400, name, "expected true, false, or low, medium or high");
    a->reasoning = json_is_true(value) ? REASONING_ON : REASONING_OFF;
    return true;
}

// Negative ones are none.
static bool read_seed(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    const json_int_t seed = json_integer_value(value);
    if (!json_is_integer(value)) return refuse(r, 400, name, "expected a whole number");
    if (seed > UINT32_MAX) return refuse(r, 400, name, "%lld is out of range (0 to 4294967295)", (long long)seed);
    a->sampling.seed = seed < 0 ? 0 : seed ? (uint32_t)seed : UINT32_MAX;
    return true;
}

static bool read_length(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    const json_int_t n = json_integer_value(value);
    if (!json_is_integer(value)) return refuse(r, 400, name, "expected a whole number");
    if (n < -2 || n > 16777216) return refuse(r, 400, name, "%lld is out of range (-2 to 16777216)", (long long)n);
    a->max_tokens = n < 0 ? 0 : (int)n;
    return true;
}

// A number of seconds, or a duration as Go writes one: "1h30m".
static bool read_seconds(const char *text, double *seconds) {
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"h", 3600},         {"ms", 1e-3}, {"m", 60}, {"us", 1e-6},
                 {"\xc2\xb5s", 1e-6}, {"ns", 1e-9}, {"s", 1},  {"", 1}};
    const double sign = *text == '-' ? -1 : 1;
    text += *text == '-' || *text == '+';
    for (*seconds = 0; isdigit((unsigned char)*text);) {
        char *end;
        const double number = strtod(text, &end);
        int i = 0;
        while (strncmp(end, units[i].name, strlen(units[i].name))) i++;
        *seconds += sign * number * units[i].seconds;
        text = end + strlen(units[i].name);
        if (!*text) return true;
    }
    return false;
}

static bool read_keep_alive(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    const char *text = json_string_value(value);
    a->sets_keep_alive = text ? read_seconds(text, &a->keep_alive) : json_is_number(value);
    if (!a->sets_keep_alive) return refuse(r, 400, name, "expected a number of seconds, or a duration such as 5m");
    if (!text) a->keep_alive = json_number_value(value);
    return a->keep_alive <= 1e9 || refuse(r, 400, name, "%g seconds are out of range (maximum 1e9)", a->keep_alive);
}

static bool read_options(const json_t *value, const char *name, struct ask *a, struct refusal *r) {
    static const struct field fields[] = {
        {"num_predict", FIELD_READ, .read = read_length},
        {"num_ctx", FIELD_INT, 0, 16777216, .place = offsetof(struct ask, context)},
        {"seed", FIELD_READ, .read = read_seed},
        {"stop", FIELD_READ, .read = field_stops},
        {"repeat_last_n", FIELD_KNOB, .place = KNOB_penalty_window},
        {.name = "", .kind = FIELD_TABLE, .table = field_knobs},
        {0},
    };
    return fields_read_within(value, name, fields, false, a, r);
}

const struct field ollama_chat_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"messages", FIELD_READ, .read = field_messages},
    {"stream", FIELD_FLAG, .place = offsetof(struct ask, stream)},
    {"think", FIELD_READ, .read = read_think},
    {"format", FIELD_READ, .read = read_format},
    {"options", FIELD_READ, .read = read_options},
    {"keep_alive", FIELD_READ, .read = read_keep_alive},
    {.name = "tools", .kind = FIELD_REFUSED},
    {0},
};

const struct field ollama_generate_fields[] = {
    {"model", FIELD_TEXT, .place = offsetof(struct ask, model)},
    {"prompt", FIELD_TEXT, .place = offsetof(struct ask, prompt)},
    {"system", FIELD_TEXT, .place = offsetof(struct ask, system)},
    {"raw", FIELD_FLAG, .place = offsetof(struct ask, raw)},
    {"stream", FIELD_FLAG, .place = offsetof(struct ask, stream)},
    {"think", FIELD_READ, .read = read_think},
    {"format", FIELD_READ, .read = read_format},
    {"options", FIELD_READ, .read = read_options},
    {"keep_alive", FIELD_READ, .read = read_keep_alive},
    {.name = "images", .kind = FIELD_REFUSED},
    {.name = "suffix", .kind = FIELD_REFUSED},
    {.name = "template", .kind = FIELD_REFUSED},
    {0},
};

// ---- replies ----

void ollama_time(int64_t ns, char out[40]) {
    const time_t seconds = (time_t)(ns / (int64_t)NANOSECONDS);
    struct tm utc = {0};
    char text[24];
    gmtime_r(&seconds, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, 40, "%s.%06dZ", text, (int)(ns % (int64_t)NANOSECONDS / 1000));
}

static json_t *line_json(const struct server_model *m, bool done) {
    char now[40];
    ollama_time((int64_t)clock_wall_ns(), now);
    return json_pack("{s:s, s:s, s:b}", "model", m->name, "created_at", now, "done", done);
}

// A text of one of the channels, or both, as the API names them.
typedef void put_text(json_t *line, const struct bytes texts[2]);

static void put_message(json_t *line, const struct bytes texts[2]) {
    const struct bytes *answer = &texts[CHANNEL_ANSWER], *thinking = &texts[CHANNEL_THINKING];
    json_t *message = json_pack("{s:s, s:o}", "role", "assistant", "content", reply_text(answer->data, answer->size));
    if (thinking->size) json_object_set_new(message, "thinking", reply_text(thinking->data, thinking->size));
    json_object_set_new(line, "message", message);
}

static void put_response(json_t *line, const struct bytes texts[2]) {
    const struct bytes *answer = &texts[CHANNEL_ANSWER], *thinking = &texts[CHANNEL_THINKING];
    json_object_set_new(line, "response", reply_text(answer->data, answer->size));
    if (thinking->size) json_object_set_new(line, "thinking", reply_text(thinking->data, thinking->size));
}

static void write_texts(struct generation *g, const struct bytes texts[2], put_text *put) {
    json_t *line = line_json(g->model, false);
    put(line, texts);
    reply_line(g->exchange, line);
}

static void write_piece(struct generation *g, const struct engine_event *e, put_text *put) {
    struct bytes texts[2] = {0};
    texts[e->channel] = (struct bytes){.data = (char *)e->text, .size = e->size};
    write_texts(g, texts, put);
}

static const struct bytes nothing[2] = {0}; // a piece without text is heard, too

static json_t *last_json(const struct generation *g, put_text *put) {
    const struct generated *answer = &g->answers[0];
    const uint64_t first = g->first ? g->first : g->ended;
    json_t *line = line_json(g->model, true), *figures;
    put(line, answer->texts);
    figures = json_pack("{s:s, s:I, s:I, s:i, s:I, s:i, s:I}", "done_reason",
                        answer->reason == FINISH_END ? "stop" : "length", "total_duration",
                        (json_int_t)(g->ended - g->asked), "load_duration", (json_int_t)(g->submitted - g->asked),
                        "prompt_eval_count", g->n_prompt, "prompt_eval_duration", (json_int_t)(first - g->submitted),
                        "eval_count", answer->n_tokens, "eval_duration", (json_int_t)(g->ended - first));
    json_object_update(line, figures);
    json_decref(figures);
    return line;
}

static json_t *idle_json(const struct server_model *m, const char *reason, put_text *put) {
    json_t *line = line_json(m, true);
    put(line, nothing);
    json_object_set_new(line, "done_reason", json_string(reason));
    return line;
}

static void end_answer(struct generation *g, int answer) { (void)g, (void)answer; }

static json_t *error_json(const struct refusal *r) { return json_pack("{s:s}", "error", r->text); }

static void chat_piece(struct generation *g, int answer, const struct engine_event *e) {
    (void)answer;
    write_piece(g, e, put_message);
}
static void chat_ping(struct generation *g) { write_texts(g, nothing, put_message); }
static json_t *chat_last(const struct generation *g) { return last_json(g, put_message); }
static void chat_end(struct generation *g) { reply_line(g->exchange, chat_last(g)); }
static json_t *chat_idle(const struct server_model *m, const char *reason) { return idle_json(m, reason, put_message); }

static void generate_piece(struct generation *g, int answer, const struct engine_event *e) {
    (void)answer;
    write_piece(g, e, put_response);
}
static void generate_ping(struct generation *g) { write_texts(g, nothing, put_response); }
static json_t *generate_last(const struct generation *g) { return last_json(g, put_response); }
static void generate_end(struct generation *g) { reply_line(g->exchange, generate_last(g)); }
static json_t *generate_idle(const struct server_model *m, const char *reason) {
    return idle_json(m, reason, put_response);
}

const struct reply_form ollama_chat = {.prompt = "messages",
                                       .effort = "think",
                                       .streams = true,
                                       .stream_type = "application/x-ndjson",
                                       .idle = chat_idle,
                                       .piece = chat_piece,
                                       .ping = chat_ping,
                                       .end_answer = end_answer,
                                       .end = chat_end,
                                       .whole = chat_last,
                                       .error = error_json,
                                       .write = reply_line};

const struct reply_form ollama_generate = {.prompt = "prompt",
                                           .effort = "think",
                                           .streams = true,
                                           .stream_type = "application/x-ndjson",
                                           .idle = generate_idle,
                                           .piece = generate_piece,
                                           .ping = generate_ping,
                                           .end_answer = end_answer,
                                           .end = generate_end,
                                           .whole = generate_last,
                                           .error = error_json,
                                           .write = reply_line};
