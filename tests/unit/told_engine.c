#include "tests/unit/told_engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct told_engine engine;

static void told_close(struct engine *e) { (void)e; }

static struct engine_client *told_client_open(struct engine *e, struct status *st) {
    return engine.client = engine_client_new(sizeof *engine.client, e, st);
}

static void told_client_close(struct engine_client *c) {
    for (int i = 0; i < TOLD_ASKERS; i++)
        if (engine.askers[i] == c) engine.askers[i] = NULL;
    engine_client_free(c);
}

static uint64_t told_submit(struct engine_client *c, const struct request_params *p) {
    char *prompt = p->read_ahead ? engine.ahead : engine.prompt;
    snprintf(prompt, sizeof engine.prompt, "%s", p->raw ? p->raw : "");
    for (int i = 0; i < p->n_messages; i++) {
        size_t used = strlen(prompt);
        const char *thinking = p->messages[i].thinking ? p->messages[i].thinking : "";
        snprintf(prompt + used, sizeof engine.prompt - used, "%s: %s%s%s|", p->messages[i].role, thinking,
                 *thinking ? "/" : "", p->messages[i].text);
    }
    for (int i = 0; i < p->n_ids; i++) {
        size_t used = strlen(prompt);
        snprintf(prompt + used, sizeof engine.prompt - used, "%d|", p->ids[i]);
    }
    if (p->read_ahead) return TOLD_AHEAD + (uint64_t)engine.n_ahead++;
    engine.stops[0] = 0;
    for (int i = 0; i < p->n_stops; i++) {
        size_t used = strlen(engine.stops);
        snprintf(engine.stops + used, sizeof engine.stops - used, "%s|", p->stops[i]);
    }
    engine.n_begun = p->n_begun;
    assert(p->n_begun <= TOLD_MOST && p->n_answers <= TOLD_MOST);
    for (int i = 0; i < p->n_begun; i++) engine.begun[i] = p->begun[i];
    snprintf(engine.template_file, sizeof engine.template_file, "%s", p->template_file ? p->template_file : "");
    snprintf(engine.begun_text, sizeof engine.begun_text, "%s", p->begun_text ? p->begun_text : "");
    for (int i = 0; i < p->n_answers; i++) engine.samplings[i] = p->samplings ? p->samplings[i] : p->sampling;
    engine.conversation = p->conversation;
    engine.disk_owner = p->disk_owner;
    engine.held = p->grammar;
    engine.ignore_end = p->ignore_end;
    engine.background = p->background;
    engine.score_prompt = p->score_prompt;
    engine.reasoning = p->reasoning;
    engine.max_tokens = p->max_tokens;
    engine.n_answers = p->n_answers;
    engine.room = p->room;
    engine.sampling = p->sampling;
    engine.own = p->samplings;
    engine.askers[++engine.n_requests % TOLD_ASKERS] = c;
    return engine.n_requests;
}

static void told_cancel(struct engine_client *c, uint64_t request, int answer) {
    (void)c;
    if (request >= TOLD_AHEAD) {
        engine.ahead[0] = 0;
        return;
    }
    assert(engine.n_cancelled < TOLD_MOST);
    engine.cancelled[engine.n_cancelled++] = request;
    engine.cancelled_answer = answer;
}

static void told_set_sampling(struct engine_client *c, uint64_t request, int answer, const struct sampling *s) {
    (void)c;
    engine.changed_answer = answer;
    assert(engine.n_changed < TOLD_MOST);
    engine.changed[engine.n_changed++] = request;
    engine.new_sampling = *s;
}

static void told_focus(struct engine_client *c, uint64_t conversation) { (void)c, engine.focused = conversation; }

static void told_forget(struct engine_client *c, uint64_t conversation, uint64_t disk_owner) {
    (void)c, (void)disk_owner, engine.forgotten = conversation;
}

static const struct engine_metrics *told_metrics(struct engine_client *c) { return (void)c, &engine.metrics; }

void told_engine_say(struct engine_event event) {
    struct engine_client *asker = event.request < TOLD_AHEAD ? engine.askers[event.request % TOLD_ASKERS] : NULL;
    queue_push(&(asker ? asker : engine.client)->events, &event);
}

static const struct engine_ops told_engine = {.name = "told",
                                              .close = told_close,
                                              .client_open = told_client_open,
                                              .client_close = told_client_close,
                                              .submit = told_submit,
                                              .cancel = told_cancel,
                                              .set_sampling = told_set_sampling,
                                              .focus = told_focus,
                                              .forget = told_forget,
                                              .metrics = told_metrics};

void told_engine_reset(void) { engine = (struct told_engine){.engine.ops = &told_engine}; }
