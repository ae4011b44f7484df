// Commands: everything a person can do in the chat screen. One table: keys, the help screen, the palette, the man page
// confab-keys(7) and the configuration's key bindings come from it.
#ifndef CONFAB_UI_COMMANDS_H
#define CONFAB_UI_COMMANDS_H

#include "ui/panes.h"

// X(enumerator, name, default key, group, help); PANE: of a row of PANES, the command that shows and hides it
#define UI_COMMANDS(X, PANE)                                                                                           \
    X(COMMAND_SEND, "send", "Enter", "Composing", "send the message")                                                  \
    X(COMMAND_NEWLINE, "newline", "Alt+Enter", "Composing", "start a new line in the message")                         \
    X(COMMAND_TAKE_BACK, "take-back", "", "Composing", "edit the message that waits last (Up, if none is written)")    \
    X(COMMAND_STEER, "steer", "Alt+J", "Composing", "stop the answer and send the message at once")                    \
    X(COMMAND_EDITOR, "editor", "Alt+Q", "Composing", "edit what is written, or the selected message, in $EDITOR")     \
    X(COMMAND_ATTACH, "attach", "", "Composing", "put a text file into the message (as @ and its name do)")            \
    X(COMMAND_INSERT, "insert-output", "", "Composing", "put into the message what a shell command prints")            \
    X(COMMAND_HELP, "help", "F1", "Screen", "toggle the help")                                                         \
    X(COMMAND_PALETTE, "palette", "Ctrl+P", "Screen", "find a command by name")                                        \
    X(COMMAND_NEW, "new", "Ctrl+N", "Chats", "new chat")                                                               \
    X(COMMAND_PRIVATE, "private", "", "Chats", "new chat of which nothing is kept on the disk")                        \
    X(COMMAND_PLAYGROUND, "playground", "", "Chats", "new chat without a template: the model continues the text")      \
    X(COMMAND_PREVIOUS, "previous-chat", "Alt+Up", "Chats", "go to the chat above")                                    \
    X(COMMAND_NEXT, "next-chat", "Alt+Down", "Chats", "go to the chat below")                                          \
    X(COMMAND_FIND_CHAT, "find-chat", "Alt+O", "Chats", "find a chat by its title or its text")                        \
    X(COMMAND_SEARCH, "search", "Ctrl+F", "Chats", "search in this chat")                                              \
    X(COMMAND_RENAME, "rename", "F2", "Chats", "rename this chat")                                                     \
    X(COMMAND_DELETE, "delete", "F8", "Chats", "delete this chat (asks first)")                                        \
    X(COMMAND_UNDELETE, "undelete", "Shift+F8", "Chats", "bring back the chat that was deleted last")                  \
    X(COMMAND_PIN_CHAT, "pin-chat", "Alt+P", "Chats", "keep this chat at the top of the list, or no longer")           \
    X(COMMAND_ARCHIVE, "archive", "Alt+Z", "Chats", "take this chat out of the list, or back")                         \
    X(COMMAND_TAG, "tag", "", "Chats", "give this chat tags to find it by")                                            \
    X(COMMAND_EXPORT, "export", "Shift+F6", "Chats", "export this chat as Markdown, JSON or HTML")                     \
    X(COMMAND_IMPORT, "import", "", "Chats", "import chats from a JSON file")                                          \
    X(COMMAND_SELECT_PREVIOUS, "select-previous", "Ctrl+Up", "Messages", "select the message above")                   \
    X(COMMAND_SELECT_NEXT, "select-next", "Ctrl+Down", "Messages", "select the message below")                         \
    X(COMMAND_BLOCK, "block", "Alt+;", "Messages", "select blocks of the message: code, tables, paragraphs")           \
    X(COMMAND_SELECT_TEXT, "select-text", "Alt+Shift+V", "Messages", "select text with a cursor (vi's keys), copy it") \
    X(COMMAND_COLLAPSE, "collapse", "", "Messages", "collapse or expand the selected message or block of code")        \
    X(COMMAND_LINKS, "links", "", "Messages", "show where the links of the message lead to, and open one")             \
    X(COMMAND_QUOTE, "quote", "", "Messages", "quote the selected message or block in the one being written")          \
    X(COMMAND_SAVE, "save", "", "Messages", "save the selected code block or message to a file")                       \
    X(COMMAND_COPY_ALL, "copy-all", "", "Messages", "copy the whole chat as Markdown")                                 \
    X(COMMAND_EDIT, "edit", "Alt+E", "Messages", "edit the selected message or your last one")                         \
    X(COMMAND_TREE, "tree", "Alt+T", "Messages", "show all branches of the chat as a graph")                           \
    X(COMMAND_NAME, "name-branch", "", "Messages", "name the branch that begins at the selected message")              \
    X(COMMAND_PRUNE, "prune", "", "Messages", "remove the selected message and all that follow it")                    \
    X(COMMAND_RESTORE, "restore", "", "Messages", "bring back what was pruned last")                                   \
    X(COMMAND_COPY_CHAT, "copy-to-chat", "", "Messages", "copy the chat up to the selected message to a new one")      \
    X(COMMAND_EDIT_STOP, "stop-editing", "", "Messages", "stop editing (Esc) and return to the draft")                 \
    X(COMMAND_CONTEXT, "context", "Alt+C", "Messages", "show what the model is asked with, in tokens")                 \
    X(COMMAND_PROMPT, "prompt-tokens", "Alt+N", "Messages", "show the prompt as the model reads it, token by token")   \
    X(COMMAND_PIN, "pin", "", "Messages", "pin the message: it stays when the context is full")                        \
    X(COMMAND_FOLD, "fold", "", "Messages", "fold the message: the model sees only its beginning")                     \
    X(COMMAND_DROP, "drop", "", "Messages", "drop the message from the context, or restore it")                        \
    X(COMMAND_MAKE_ROOM, "make-room", "", "Answers", "leave out the oldest messages and answer again")                 \
    X(COMMAND_REGENERATE, "regenerate", "F4", "Answers", "regenerate the answer; the old one is kept as a version")    \
    X(COMMAND_FAN_OUT, "fan-out", "Alt+A", "Answers", "ask for several answers at once, each with its own knobs")      \
    X(COMMAND_COMPARE, "compare", "Alt+V", "Answers", "show the versions of a message side by side")                   \
    X(COMMAND_MARK, "mark", "", "Answers", "mark the version, to keep it together with others")                        \
    X(COMMAND_KEEP, "keep", "", "Answers", "keep the marked versions, or this one, and remove the others")             \
    X(COMMAND_STOP, "stop", "F5", "Answers", "stop this answer")                                                       \
    X(COMMAND_STOP_ALL, "stop-all", "Shift+F5", "Answers", "stop all answers")                                         \
    X(COMMAND_VERSION_PREVIOUS, "previous-version", "Alt+Left", "Answers", "previous version of the message")          \
    X(COMMAND_VERSION_NEXT, "next-version", "Alt+Right", "Answers", "next version of the message")                     \
    X(COMMAND_THINKING, "thinking", "Ctrl+T", "Answers", "show or hide the model's thinking")                          \
    X(COMMAND_REASONING, "reasoning", "Alt+R", "Answers", "change how much the model thinks, if it can be chosen")     \
    X(COMMAND_COPY, "copy", "F6", "Answers", "copy the selected message or block, or the last answer")                 \
    X(COMMAND_TOKENS, "tokens", "Alt+I", "Answers", "move a cursor over the tokens of the answer")                     \
    X(COMMAND_FORK, "fork", "", "Answers", "fork the answer at the token cursor")                                      \
    X(COMMAND_TOKEN_COLOURS, "colour-tokens", "Alt+G", "Answers", "colour answers by probability, entropy or draft")   \
    X(COMMAND_PAGE_UP, "page-up", "PgUp", "Answers", "scroll up")                                                      \
    X(COMMAND_PAGE_DOWN, "page-down", "PgDn", "Answers", "scroll down")                                                \
    X(COMMAND_TOP, "top", "Ctrl+Home", "Answers", "scroll to the top")                                                 \
    X(COMMAND_BOTTOM, "bottom", "Ctrl+End", "Answers", "scroll to the end and follow the answer")                      \
    X(COMMAND_KNOBS, "knobs", "Alt+S", "Sampling", "show what the knobs make of the last token")                       \
    X(COMMAND_KNOB_NEXT, "next-knob", "Shift+Right", "Sampling", "select the next sampling knob")                      \
    X(COMMAND_KNOB_PREVIOUS, "previous-knob", "Shift+Left", "Sampling", "select the previous sampling knob")           \
    X(COMMAND_KNOB_UP, "knob-up", "Shift+Up", "Sampling", "raise the selected knob by a step")                         \
    X(COMMAND_KNOB_DOWN, "knob-down", "Shift+Down", "Sampling", "lower the selected knob by a step")                   \
    X(COMMAND_KNOB_SET, "set-knob", "F9", "Sampling", "type a value for the selected knob")                            \
    X(COMMAND_KNOB_RESET, "reset-knob", "F7", "Sampling", "reset the selected knob to its default")                    \
    X(COMMAND_KNOB_RESET_ALL, "reset-knobs", "Shift+F7", "Sampling", "reset all knobs to their defaults")              \
    X(COMMAND_PRESET, "preset", "", "Sampling", "set the knobs of this chat to those of a preset")                     \
    X(COMMAND_SAVE_PRESET, "save-preset", "", "Sampling", "keep the knobs of this chat as a preset")                   \
    X(COMMAND_SAVE_PROMPT, "save-prompt", "", "Chats", "keep the system prompt of this chat under a name")             \
    X(COMMAND_MODEL, "model", "Ctrl+O", "Model", "switch model")                                                       \
    X(COMMAND_MODEL_STOP, "stop-loading", "", "Model", "stop loading (Esc) and keep the current model")                \
    X(COMMAND_RELOAD, "reload", "", "Model", "load the model again, with the settings as they are now")                \
    X(COMMAND_SERVE, "serve", "Shift+F12", "Model", "serve other programs over HTTP, or stop serving")                 \
    X(COMMAND_CLIENTS, "clients", "F12", "Model", "show what other programs ask, and cancel requests")                 \
    X(COMMAND_SETTINGS, "settings", "Alt+,", "Screen", "find and change settings")                                     \
    X(COMMAND_THEME, "theme", "F3", "Screen", "next theme")                                                            \
    PANES(PANE)                                                                                                        \
    X(COMMAND_SLOW, "slow", "Alt+W", "Screen", "say why tokens were slow to come")                                     \
    X(COMMAND_GRAPHS, "graphs", "Alt+H", "Screen", "show throughput, latency and KV cache over time")                  \
    X(COMMAND_KV_MAP, "kv-map", "Alt+M", "Screen", "show the pages of the KV cache and what is in them")               \
    X(COMMAND_LOG, "log", "Alt+L", "Screen", "show the log from a level on, and find words in it")                     \
    X(COMMAND_PANES, "panes", "F10", "Screen", "cycle through the presets of panes")                                   \
    X(COMMAND_FOCUS_PANE, "focus-pane", "Alt+K", "Screen", "choose a pane, to size it (arrows) or zoom it (Enter)")    \
    X(COMMAND_ZOOM, "zoom", "Shift+F10", "Screen", "give the chat or the chosen pane all the room, or back")           \
    X(COMMAND_WIDER, "wider", "", "Screen", "make the chosen pane wider")                                              \
    X(COMMAND_NARROWER, "narrower", "", "Screen", "make the chosen pane narrower")                                     \
    X(COMMAND_TALLER, "taller", "", "Screen", "make the chosen pane taller")                                           \
    X(COMMAND_SHORTER, "shorter", "", "Screen", "make the chosen pane shorter")                                        \
    X(COMMAND_RESET_SIZES, "reset-sizes", "", "Screen", "size all panes automatically again")                          \
    X(COMMAND_MEASURE, "measure", "", "Screen", "measure this machine's limits again")                                 \
    X(COMMAND_READ, "read", "Alt+0", "Screen", "show the transcript alone, for selecting with the mouse")             \
    X(COMMAND_ASCII, "ascii", "", "Screen", "toggle plain ASCII characters")                                           \
    X(COMMAND_REDRAW, "redraw", "Ctrl+L", "Screen", "redraw the screen")                                               \
    X(COMMAND_INTERRUPT, "interrupt", "Ctrl+C", "Answers",                                                             \
      "close the top pane, stop the answer, or clear the message")                                                     \
    X(COMMAND_SUSPEND, "suspend", "Ctrl+Z", "Screen", "suspend to the shell")                                          \
    X(COMMAND_QUIT, "quit", "Ctrl+Q", "Screen", "quit")

enum ui_command_id {
#define X(id, ...)    id,
#define PANE(id, ...) COMMAND_TOGGLE_##id,
    UI_COMMANDS(X, PANE)
#undef X
#undef PANE
        COMMAND_COUNT
};
#define COMMAND_TOGGLE(pane) ((enum ui_command_id)(COMMAND_TOGGLE_CHATS + (pane)-PANE_CHATS))

struct ui_command_info {
    const char *name, *key, *group, *help;
};
extern const struct ui_command_info ui_commands[COMMAND_COUNT]; // commands.c
const char *ui_command_old_name(enum ui_command_id id); // that it is found by too; NULL: none
const char *ui_command_argument(enum ui_command_id id); // that may be typed behind its name; NULL: none
int ui_command_find(const char *name, size_t size);     // by its name or the old one; −1: there is none

#endif
