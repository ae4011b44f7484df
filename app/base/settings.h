// Settings: one table of everything that can be set. The options of every command, the keys of the configuration file,
// the help texts and the man pages come from it.
#ifndef CONFAB_APP_SETTINGS_H
#define CONFAB_APP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/backend_options.h"
#include "engine/message.h"
#include "engine/model_file.h"
#include "engine/sampling.h"

enum setting_kind {
    SETTING_FLAG,  // bool: an option without argument, in the file yes or no
    SETTING_INT,   // int
    SETTING_REAL,  // double
    SETTING_TEXT,  // char *, owned, NULL when not set
    SETTING_TEXTS, // struct text_list: each time it is given adds one, an empty text forgets them
    SETTING_CHOICE, // int: the place of a word in `argument`, where words stand between '|'
    SETTING_PANES, // uint32_t: digits or names of the panes shown, "none" for none of them; 0 when not set
    SETTING_KNOB,  // a field of struct sampling; "default": as the model's file has it
};

struct text_list {
    char **texts; // owned
    int count;
};

// Where a setting may be given: as an option of these commands, or in the configuration file.
enum setting_place {
    IN_CHAT = 1,
    IN_RUN = 2,
    IN_BENCH = 4,
    IN_LOGITS = 8,
    IN_TOKENIZE = 16,
    IN_SHOW = 32,
    IN_HELP = 64,
    IN_FILE = 128,
    IN_TEMPLATE = 256,
    IN_LS = 512,
    IN_QUANTIZE = 1024,
    IN_TALK = IN_CHAT | IN_RUN | IN_FILE,
    IN_COMPUTE = IN_TALK | IN_BENCH,
};

// X(field, C type, key: long option and configuration key, short option, kind, argument, low, high, places, help)
#define SETTINGS(X)                                                                                                    \
    X(model, char *, "model", 'm', SETTING_TEXT, "MODEL", 0, 0, IN_COMPUTE, "the model: a file, a folder, or a name that `confab ls` shows; without it the built-in one") \
    X(threads, int, "threads", 't', SETTING_INT, "N", 0, 1024, IN_COMPUTE | IN_LOGITS | IN_QUANTIZE, "threads that compute; 0 = one for each physical core")            \
    X(context, int, "context", 'c', SETTING_INT, "TOKENS", 0, 16777216, IN_TALK, "tokens a conversation may have; 0 = as many as the model was made for")  \
    X(kv_tokens, int, "kv-tokens", 0, SETTING_INT, "TOKENS", 0, 16777216, IN_TALK, "tokens the KV cache of all conversations holds; 0 = chosen from the machine's memory") \
    X(kv_type, int, "kv-type", 0, SETTING_CHOICE, KV_TYPE_CHOICES, 0, 0, IN_COMPUTE | IN_LOGITS | IN_SHOW, "how the KV cache keeps keys and values: q8_0 takes half the memory of f16 or bf16, q4_0 a quarter; long conversations are answered faster, a little less exactly") \
    X(mlock, bool, "mlock", 0, SETTING_FLAG, NULL, 0, 0, IN_COMPUTE, "lock the weights in memory, so that they are never swapped out")                 \
    X(small_pages, bool, "small-pages", 0, SETTING_FLAG, NULL, 0, 0, IN_COMPUTE, "do without the system's large memory pages: slower, but they may be scarce") \
    X(max_tokens, int, "max-tokens", 'n', SETTING_INT, "TOKENS", 0, 16777216, IN_TALK, "tokens an answer may have; 0 = until it ends by itself")       \
    X(time_limit, double, "time-limit", 0, SETTING_REAL, "SECONDS", 0, 1e6, IN_TALK, "seconds an answer may take; 0 = no limit")                          \
    X(system, char *, "system", 's', SETTING_TEXT, "TEXT", 0, 0, IN_TALK, "the system prompt: what the model is told before every conversation")        \
    X(reasoning, int, "reasoning", 0, SETTING_CHOICE, REASONING_CHOICES, 0, 0, IN_TALK, "how much the model thinks before it answers, where its template lets one choose: whether, or how much") \
    X(stops, struct text_list, "stop", 0, SETTING_TEXTS, "TEXT", 0, 0, IN_TALK, "a text that ends the answer and is left out of it; may be given several times") \
    X(theme, char *, "theme", 0, SETTING_TEXT, "NAME", 0, 0, IN_CHAT | IN_FILE, "the colours of the screen")                                              \
    X(ascii, bool, "ascii", 0, SETTING_FLAG, NULL, 0, 0, IN_CHAT | IN_FILE, "draw with plain ASCII characters")                                           \
    X(panes, uint32_t, "panes", 0, SETTING_PANES, "DIGITS", 0, 0, IN_CHAT | IN_FILE, "the panes shown beside the conversation, such as 124, or none")      \
    X(keys, struct text_list, "key", 0, SETTING_TEXTS, "COMMAND KEY", 0, 0, IN_FILE, "the key of a command on the chat screen, such as stop Alt+X; none takes its key away") \
    X(thinking, bool, "thinking", 0, SETTING_FLAG, NULL, 0, 0, IN_RUN, "write what the model thinks to standard error, also where that is no terminal")     \
    X(raw, bool, "raw", 0, SETTING_FLAG, NULL, 0, 0, IN_RUN, "continue the text as it is, without a chat template")                                       \
    X(exact, bool, "exact", 0, SETTING_FLAG, NULL, 0, 0, IN_LOGITS, "compute with the scalar reference path in 32-bit floats")                            \
    X(special, bool, "special", 0, SETTING_FLAG, NULL, 0, 0, IN_TOKENIZE, "read the marks of special tokens, such as <|im_end|>, as those tokens")        \
    X(now, char *, "now", 0, SETTING_TEXT, "TIME", 0, 0, IN_TEMPLATE, "the time that strftime_now tells, such as 2026-01-02T03:04:05")                   \
    X(json, bool, "json", 0, SETTING_FLAG, NULL, 0, 0, IN_BENCH | IN_SHOW | IN_LS | IN_QUANTIZE | IN_HELP, "write one JSON object")                                               \
    X(bench_seconds, double, "seconds", 0, SETTING_REAL, "SECONDS", 0, 3600, IN_BENCH, "time to measure the speed in, about; each kind of work is repeated three times in any case (15)") \
    X(accuracy_seconds, double, "accuracy", 0, SETTING_REAL, "SECONDS", 0, 3600, IN_BENCH, "time for the exact path to compute what the answers' accuracy is measured against, about; 0 = not measured (8)") \
    X(long_contexts, bool, "long", 0, SETTING_FLAG, NULL, 0, 0, IN_BENCH, "also behind contexts of 8,192 and 32,768 tokens, where the model takes them: minutes")   \
    X(compare, char *, "compare", 0, SETTING_TEXT, "FILE", 0, 0, IN_BENCH, "beside the figures those of an earlier run, which --json or --save wrote")              \
    X(save, char *, "save", 0, SETTING_TEXT, "FILE", 0, 0, IN_BENCH, "write the JSON object to FILE too")                                                          \
    X(note, char *, "note", 0, SETTING_TEXT, "TEXT", 0, 0, IN_BENCH, "a text kept with the figures, such as what was changed")                                     \
    X(force, bool, "force", 0, SETTING_FLAG, NULL, 0, 0, IN_QUANTIZE, "replace OUT when it is there already")                                                \
    X(requantize, bool, "requantize", 0, SETTING_FLAG, NULL, 0, 0, IN_QUANTIZE, "take a model that is quantised already, and lose more")                     \
    X(man, char *, "man", 0, SETTING_TEXT, "TEMPLATE", 0, 0, IN_HELP, "write a manual page: a template with its tables filled in")

enum setting_id {
#define X(field, ...) SETTING_##field,
    SETTINGS(X)
#undef X
        SETTING_FIRST_KNOB, // the sampling knobs follow, in the order of enum sampling_knob_id
    SETTING_COUNT = SETTING_FIRST_KNOB + KNOB_COUNT,
};

struct settings {
#define X(field, type, ...) type field;
    SETTINGS(X)
#undef X
    struct sampling sampling;
    uint32_t knobs_set; // bit k: knob k was set by the person; the others follow the model
    bool model_saved;   // the model is the configuration's, not an option's
};

struct setting_info {
    const char *key;
    char letter; // 0: no short option
    enum setting_kind kind;
    const char *argument; // NULL for flags
    double low, high;
    unsigned places; // enum setting_place
    const char *help;
    size_t offset; // into struct settings; of a knob: its enum sampling_knob_id
};
extern const struct setting_info setting_table[SETTING_COUNT];

struct settings settings_default(void);
struct settings settings_copy(const struct settings *s); // with texts of its own
void settings_free(struct settings *s);

// Knobs that nobody has set become what the model's file recommends.
void settings_follow_model(struct settings *s, const struct model_info *info);

int setting_find(const char *key); // by its key or its old one; −1 when there is none
const char *setting_old_key(int id); // that is still understood; NULL: none
// Sets one from text; on failure the setting is left alone and the message names the key, the value and what is allowed.
bool setting_parse(struct settings *s, int id, const char *text, struct status *st);
// The text that setting_parse reads back, of texts only the last; "" when not set, "default" for such a knob. The caller
// frees.
char *setting_format(const struct settings *s, int id);

#endif
