// Guide: the built-in model, a small GGUF file embedded into the program, used if no other model is named.
#ifndef CONFAB_APP_GUIDE_H
#define CONFAB_APP_GUIDE_H

#include <stddef.h>

#define GUIDE_QUESTIONS 3
#define GUIDE_NAME      "confab guide"                     // general.name of its file
extern const char *const guide_questions[GUIDE_QUESTIONS]; // suggestions for an empty chat

const void *guide_data(size_t *size); // *size is 0 if the program was built without the model
const char *guide_template(void);     // its chat template: app/guide/template.jinja

// What confab lacks: what the guide says of it, and the names that a command, a setting or a key for it would have. A
// test fails when one of these exists; then the row goes, and the guide says that it came later. X(name, says, names)
#define GUIDE_LACKS(X)                                                                                                 \
    X("media", "confab takes text only: no pictures, sound or PDF files.", "image images vision audio voice pdf")      \
    X("tools", "A model in confab has no tools: it only writes text.", "tool tools plugin plugins mcp agent")          \
    X("web", "confab has no web search.", "web browse web-search")                                                     \
    X("documents", "confab does not search your documents.", "documents rag")                                          \
    X("download", "confab does not download models by itself.", "pull download")                                       \
    X("training", "confab trains no models.", "train finetune lora adapter")                                           \
    X("encryption", "Chats are not encrypted.", "encrypt encryption password passphrase")                              \
    X("tls", "The server has no TLS.", "tls cert certificate https")                                                   \
    X("remote", "confab talks to no model behind a network.", "connect remote")                                        \
    X("cuda", "CUDA, ROCm and Metal are not used.", "cuda rocm metal hip")                                             \
    X("window", "confab has no window and no web page of its own.", "gui web-page")                                    \
    X("sync", "confab does not share chats between machines.", "sync cloud account login")

struct guide_lack {
    const char *name, *says, *names; // names: with blanks between them
};
extern const struct guide_lack guide_lacks[];
extern const int n_guide_lacks;

// Returns the text of one of its slots (model_file_fill_slots), from the tables of keys, settings, sampling, themes,
// states and of what confab lacks: "key:stop" (without a key "/stop"), "default:temp", "low:temp", "high:temp",
// "step:temp", "default:kv-disk", "theme:default", "themes", "states", "lack:media". NULL: no such slot. The caller
// frees.
char *guide_slot(void *unused, const char *name);

#endif
