// Settings: the one table of everything that can be set. The options of every command, the keys of the configuration
// file, the help and the manual pages come from it.
#ifndef CONFAB_APP_SETTINGS_H
#define CONFAB_APP_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/backend_options.h"
#include "engine/base/log.h"
#include "engine/message.h"
#include "engine/model_file.h"
#include "engine/sampling.h"
#include "ui/pane_sizes.h"

enum setting_kind {
    SETTING_FLAG,   // bool: an option without argument; yes or no in the file
    SETTING_INT,    // int
    SETTING_AUTO,   // int, or "auto": −1
    SETTING_REAL,   // double
    SETTING_BYTES,  // uint64_t: "4 GiB" or "512 MiB", in whole MiB; "off": 0
    SETTING_TEXT,   // char *, owned; NULL: not set
    SETTING_TEXTS,  // struct text_list: a text is added, an empty one clears the list
    SETTING_CHOICE, // int: index of a word in `argument`, which lists them separated by '|'
    SETTING_PANES,  // uint32_t: the panes shown, as digits or names, or "none"; 0: not set
    SETTING_SIZES,  // struct pane_sizes, as words NAME=COLUMNSxROWS
    SETTING_KNOB,   // a field of struct sampling; "default": follow the model
};

#define OVERFLOW_CHOICES "drop|ask|stop"
enum overflow { OVERFLOW_DROP, OVERFLOW_ASK, OVERFLOW_STOP };
#define NOTIFY_CHOICES "off|bell|osc9|osc777" // enum window_notice

struct text_list {
    char **texts; // owned
    int count;
};
void text_list_insert(struct text_list *l, int place, const char *text); // copied
char *text_list_take(struct text_list *l, int place); // out of the list; the caller frees
struct text_list text_list_copy(const struct text_list *l);
void text_list_clear(struct text_list *l);

// Where a setting can be given: as an option of these commands, or in the configuration file.
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
    IN_LIST = 512, // commands that print a list
    IN_QUANTIZE = 1024,
    IN_EXPORT = 16384,
    IN_SERVE = 32768,
    IN_LOG = 65536,
    OF_CONVERSATION = 2048, // each conversation has its own; the other places set its initial value
    ON_LOADING = 4096,      // a change takes effect when a model is loaded,
    ON_STARTING = 8192,     // or when confab starts; otherwise soon
    IN_TALK = IN_CHAT | IN_RUN | IN_FILE,
    OF_TALK = IN_TALK | OF_CONVERSATION,
    IN_COMPUTE = IN_TALK | IN_SERVE | IN_BENCH,
    IN_LOADING = IN_COMPUTE | ON_LOADING,
    IN_SERVING = IN_SERVE | IN_CHAT | IN_FILE,
};

// X(field, C type, long option and configuration key, short option, kind, argument, low, high, places, help)
// The help does not repeat the default, which setting_help adds, but explains what 0 means.
#define SETTINGS(X)                                                                                                    \
    X(model, char *, "model", 'm', SETTING_TEXT, "MODEL", 0, 0, IN_COMPUTE,                                            \
      "model: file, folder or name from `confab ls` (default: built-in)")                                              \
    X(device, char *, "device", 0, SETTING_TEXT, "DEVICE", 0, 0, IN_LOADING | IN_LOGITS,                               \
      "device to compute on, from `confab devices` (default: auto)")                                                   \
    X(gpu_layers, int, "gpu-layers", 0, SETTING_AUTO, "N", 0, 1000, IN_LOADING | IN_LOGITS,                            \
      "number of layers to run on devices, the last ones; 0: none")                                                    \
    X(threads, int, "threads", 't', SETTING_INT, "N", 0, 1024, IN_LOADING | IN_LOGITS | IN_QUANTIZE,                   \
      "number of threads (0: one per physical core)")                                                                  \
    X(context, int, "context", 'c', SETTING_INT, "TOKENS", 0, 16777216, IN_TALK | IN_SERVE | ON_LOADING,               \
      "context of each conversation, in tokens (0: the model's maximum)")                                              \
    X(kv_tokens, int, "kv-tokens", 0, SETTING_INT, "TOKENS", 0, 16777216, IN_TALK | IN_SERVE | ON_LOADING,             \
      "size of the KV cache in tokens, for all conversations (0: automatic)")                                          \
    X(kv_type, int, "kv-type", 0, SETTING_CHOICE, KV_TYPE_CHOICES, 0, 0, IN_LOADING | IN_LOGITS | IN_SHOW,             \
      "type of the keys and values in the KV cache")                                                                   \
    X(draft, char *, "draft", 0, SETTING_TEXT, "off|lookup|MODEL", 0, 0, IN_LOADING,                                   \
      "guess tokens ahead: off, by lookup, or by a small MODEL (default: lookup)")                                     \
    X(kv_disk, uint64_t, "kv-disk", 0, SETTING_BYTES, "SIZE", 0x1p20, 0x1p50, IN_CHAT | IN_FILE | ON_LOADING,          \
      "disk space for the KV cache of chats, to reopen them at once, or off")                                          \
    X(mlock, bool, "mlock", 0, SETTING_FLAG, NULL, 0, 0, IN_LOADING,                                                   \
      "lock the weights in memory so that they are never swapped out")                                                 \
    X(small_pages, bool, "small-pages", 0, SETTING_FLAG, NULL, 0, 0, IN_LOADING,                                       \
      "do not use huge memory pages (slower)")                                                                         \
    X(max_tokens, int, "max-tokens", 'n', SETTING_INT, "TOKENS", 0, 16777216, OF_TALK | IN_SERVE,                      \
      "maximum tokens per answer (0: no limit)")                                                                       \
    X(time_limit, double, "time-limit", 0, SETTING_REAL, "SECONDS", 0, 1e6, OF_TALK | IN_SERVE,                        \
      "maximum seconds per answer (0: no limit)")                                                                      \
    X(system, char *, "system", 's', SETTING_TEXT, "TEXT", 0, 0, OF_TALK, "system prompt of every conversation")       \
    X(template, char *, "template", 0, SETTING_TEXT, "own|raw|FILE", 0, 0, OF_TALK,                                    \
      "chat template: own, raw (none) or a Jinja FILE (default: own)")                                                 \
    X(reasoning, int, "reasoning", 0, SETTING_CHOICE, REASONING_CHOICES, 0, 0, OF_TALK | IN_SERVE,                     \
      "reasoning mode or effort, if the model offers a choice")                                                        \
    X(overflow, int, "overflow", 0, SETTING_CHOICE, OVERFLOW_CHOICES, 0, 0, IN_CHAT | IN_FILE,                         \
      "when the context is full: drop the oldest messages, ask, or stop")                                              \
    X(read_ahead, int, "read-ahead", 0, SETTING_CHOICE, "off|on", 0, 0, IN_CHAT | IN_FILE,                             \
      "read the message being typed ahead, while nothing else runs")                                                   \
    X(collapse, int, "collapse", 0, SETTING_INT, "ROWS", 0, 10000, IN_CHAT | IN_FILE,                                  \
      "collapse code and pastes that are longer (0: only when asked)")                                                 \
    X(ask_quit, int, "ask-quit", 0, SETTING_CHOICE, "off|on", 0, 0, IN_CHAT | IN_FILE,                                 \
      "ask before quitting while answers are running")                                                                 \
    X(stops, struct text_list, "stop", 0, SETTING_TEXTS, "TEXT", 0, 0, OF_TALK,                                        \
      "stop at TEXT; not included in the answer (repeatable)")                                                         \
    X(prompts, struct text_list, "prompt", 0, SETTING_TEXTS, "NAME TEXT", 0, 0, IN_FILE,                               \
      "system prompt that /system NAME takes, such as brief Answer in a sentence.")                                    \
    X(presets, struct text_list, "preset", 0, SETTING_TEXTS, "NAME KNOBS", 0, 0, IN_FILE,                              \
      "sampling knobs that /preset NAME sets, such as cold temp=0.2 top-k=20")                                         \
    X(theme, char *, "theme", 0, SETTING_TEXT, "THEME", 0, 0, IN_CHAT | IN_FILE, "colour theme")                       \
    X(ascii, bool, "ascii", 0, SETTING_FLAG, NULL, 0, 0, IN_CHAT | IN_FILE, "draw with ASCII characters only")         \
    X(plain, bool, "plain", 0, SETTING_FLAG, NULL, 0, 0, IN_CHAT | IN_FILE | ON_STARTING,                              \
      "chat in lines, without a screen, as for screen readers (TERM=dumb: always)")                                    \
    X(panes, uint32_t, "panes", 0, SETTING_PANES, "DIGITS", 0, 0, IN_CHAT | IN_FILE,                                   \
      "panes to show beside the chat, such as 124, or none")                                                           \
    X(layout, int, "layout", 0, SETTING_CHOICE, PANE_ARRANGEMENT_CHOICES, 0, 0, IN_CHAT | IN_FILE,                     \
      "where panes stand: wide (at both sides of the chat), tall (above it) or auto")                                  \
    X(sizes, struct pane_sizes, "sizes", 0, SETTING_SIZES, "SIZES", 0, 0, IN_FILE,                                     \
      "sizes of panes, such as left=30x0 chats=0x12 (columns and rows, 0: automatic)")                                 \
    X(name_chats, int, "name-chats", 0, SETTING_CHOICE, "off|on", 0, 0, IN_CHAT | IN_FILE,                             \
      "have the model name a chat after its first answer, while nothing else runs")                                    \
    X(notify, int, "notify", 0, SETTING_CHOICE, NOTIFY_CHOICES, 0, 0, IN_CHAT | IN_FILE,                               \
      "notice when an answer ends in a chat that is not on the screen")                                                \
    X(title, int, "title", 0, SETTING_CHOICE, "off|on", 0, 0, IN_CHAT | IN_FILE,                                       \
      "name the chat in the title of the terminal's window")                                                           \
    X(fan_out, int, "fan-out", 0, SETTING_INT, "N", 2, 8, IN_FILE, "number of answers that are asked for at once")     \
    X(keys, struct text_list, "key", 0, SETTING_TEXTS, "COMMAND KEY", 0, 0, IN_FILE | ON_STARTING,                     \
      "assign KEY to COMMAND of the chat screen, such as stop Alt+X, or none")                                         \
    X(log_level, int, "log-level", 0, SETTING_CHOICE, LOG_LEVEL_CHOICES, 0, 0, IN_COMPUTE | ON_STARTING,               \
      "level of the log file")                                                                                         \
    X(thinking, bool, "thinking", 0, SETTING_FLAG, NULL, 0, 0, IN_RUN,                                                 \
      "write thinking to standard error even if that is not a terminal")                                               \
    X(raw, bool, "raw", 0, SETTING_FLAG, NULL, 0, 0, IN_RUN, "continue the text, without a chat template")             \
    X(answers, int, "answers", 0, SETTING_INT, "N", 1, 64, IN_RUN,                                                     \
      "number of answers; the first is streamed, the others follow it")                                                \
    X(json_schema, char *, "json-schema", 0, SETTING_TEXT, "FILE", 0, 0, IN_RUN,                                       \
      "answer with JSON that matches the schema in FILE")                                                              \
    X(grammar, char *, "grammar", 0, SETTING_TEXT, "FILE", 0, 0, IN_RUN,                                               \
      "answer with a text that the GBNF grammar in FILE allows")                                                       \
    X(regex, char *, "regex", 0, SETTING_TEXT, "PATTERN", 0, 0, IN_RUN,                                                \
      "answer with a text that matches the regular expression")                                                        \
    X(choices, struct text_list, "choice", 0, SETTING_TEXTS, "TEXT", 0, 0, IN_RUN,                                     \
      "answer with TEXT, or with another choice (repeatable)")                                                         \
    X(exact, bool, "exact", 0, SETTING_FLAG, NULL, 0, 0, IN_LOGITS, "use the scalar reference path in 32-bit floats")  \
    X(special, bool, "special", 0, SETTING_FLAG, NULL, 0, 0, IN_TOKENIZE, "parse special tokens such as <|im_end|>")   \
    X(now, char *, "now", 0, SETTING_TEXT, "TIME", 0, 0, IN_TEMPLATE,                                                  \
      "time for strftime_now, such as 2026-01-02T03:04:05 (default: now)")                                             \
    X(json, bool, "json", 0, SETTING_FLAG, NULL, 0, 0, IN_RUN | IN_BENCH | IN_SHOW | IN_LIST | IN_QUANTIZE | IN_HELP,  \
      "print one JSON object")                                                                                         \
    X(bench_seconds, double, "seconds", 0, SETTING_REAL, "SECONDS", 0, 3600, IN_BENCH,                                 \
      "time to spend measuring speed, in seconds")                                                                     \
    X(accuracy_seconds, double, "accuracy", 0, SETTING_REAL, "SECONDS", 0, 3600, IN_BENCH,                             \
      "time to spend measuring accuracy, in seconds; 0: none")                                                         \
    X(long_contexts, bool, "long", 0, SETTING_FLAG, NULL, 0, 0, IN_BENCH,                                              \
      "also measure 4,096 prompt tokens and contexts of 8K and 32K (slow)")                                            \
    X(only, char *, "only", 0, SETTING_TEXT, "NAMES", 0, 0, IN_BENCH,                                                  \
      "measure only these, such as prefill4096,decode1 (default: all)")                                                \
    X(compare, char *, "compare", 0, SETTING_TEXT, "FILE", 0, 0, IN_BENCH,                                             \
      "compare with an earlier run, in a FILE from --save or --json")                                                  \
    X(save, char *, "save", 0, SETTING_TEXT, "FILE", 0, 0, IN_BENCH, "also write the results to FILE, as JSON")        \
    X(note, char *, "note", 0, SETTING_TEXT, "TEXT", 0, 0, IN_BENCH, "text to store with the results")                 \
    X(serve, bool, "serve", 0, SETTING_FLAG, NULL, 0, 0, IN_CHAT | IN_FILE,                                            \
      "serve other programs while chatting, as `confab serve` does")                                                   \
    X(host, char *, "host", 0, SETTING_TEXT, "ADDRESS", 0, 0, IN_SERVING, "address to listen on (default: 127.0.0.1)") \
    X(port, int, "port", 'p', SETTING_INT, "N", 0, 65535, IN_SERVING, "port to listen on; 0: any that is free")        \
    X(api_keys, char *, "api-keys", 0, SETTING_TEXT, "FILE", 0, 0, IN_SERVING,                                         \
      "ask for one of the keys in FILE, one on each line, readable by you alone")                                      \
    X(allow_hosts, struct text_list, "allow-host", 0, SETTING_TEXTS, "NAME", 0, 0, IN_SERVING,                         \
      "serve requests to NAME, too: another name of this machine (repeatable)")                                        \
    X(allow_origins, struct text_list, "allow-origin", 0, SETTING_TEXTS, "ORIGIN", 0, 0, IN_SERVING,                   \
      "serve pages from ORIGIN, such as http://localhost:3000, or * (repeatable)")                                     \
    X(keep_alive, double, "keep-alive", 0, SETTING_REAL, "SECONDS", -1, 1e9, IN_SERVING,                               \
      "how long an idle model stays loaded; -1: until its memory is needed")                                           \
    X(force, bool, "force", 0, SETTING_FLAG, NULL, 0, 0, IN_QUANTIZE | IN_EXPORT, "overwrite the file if it exists")   \
    X(output, char *, "output", 'o', SETTING_TEXT, "PATH", 0, 0, IN_EXPORT,                                            \
      "write to this file, or a file for each chat to this folder")                                                    \
    X(export_format, int, "format", 'f', SETTING_CHOICE, "markdown|json|html", 0, 0, IN_EXPORT,                        \
      "format of the export, unless PATH ends in .md, .json or .html")                                                 \
    X(all, bool, "all", 0, SETTING_FLAG, NULL, 0, 0, IN_EXPORT, "export all chats")                                    \
    X(requantize, bool, "requantize", 0, SETTING_FLAG, NULL, 0, 0, IN_QUANTIZE,                                        \
      "accept a quantised model, which loses more accuracy")                                                           \
    X(shown_level, int, "level", 0, SETTING_CHOICE, LOG_ENTRY_CHOICES, 0, 0, IN_LOG,                                   \
      "print only entries of this level and more serious ones")                                                        \
    X(man, char *, "man", 0, SETTING_TEXT, "TEMPLATE", 0, 0, IN_HELP, "print a manual page made from TEMPLATE")

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
    uint32_t knobs_set; // bit k: knob k was set by the user; the others follow the model
    bool model_saved;   // the model comes from the configuration, not from an option
};

struct setting_info {
    const char *key;
    char letter; // 0: no short option
    enum setting_kind kind;
    const char *argument; // NULL for flags
    double low, high;
    unsigned places; // enum setting_place
    const char *help;
    size_t offset; // in struct settings; for a knob: its enum sampling_knob_id
};
extern const struct setting_info setting_table[SETTING_COUNT];

struct settings settings_default(void);
struct settings settings_of_conversation(const struct settings *s); // a copy; of the texts only OF_CONVERSATION ones
struct settings settings_copy(const struct settings *s);            // a deep copy
void settings_free(struct settings *s);

bool settings_raw(const struct settings *s);                    // there is no template: text is continued as it is
const char *settings_template_file(const struct settings *s); // as it was typed; NULL: the model's own, or none

// Sets the knobs that the user has not set to what the model recommends.
void settings_follow_model(struct settings *s, const struct model_info *info);

int setting_find(const char *key);   // by its key or its old key; −1: not found
const char *setting_old_key(int id); // an earlier key that is still accepted; NULL: none
// Sets one from text. On failure it is unchanged, and the message names the key, the value and what is allowed.
bool setting_parse(struct settings *s, int id, const char *text, struct status *st);
// The same as a person changes it: "" is as where nobody sets it, and a knob that nobody sets follows the model.
bool setting_change(struct settings *s, int id, const char *text, const struct model_info *model, struct status *st);
bool setting_of_conversation(int id); // each has its own; so is every knob
// Formats one for setting_parse, of a list only the last text; "" if not set, "default" for a knob that is not. The
// caller frees.
char *setting_format(const struct settings *s, int id);
const struct text_list *setting_texts(const struct settings *s, int id); // NULL: not a list
char *setting_default_text(int id); // formats the default; "": not set; the caller frees
char *setting_help(int id);         // the help with the default, if that is not obvious; the caller frees

#endif
