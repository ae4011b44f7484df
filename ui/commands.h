// Commands: everything a person can do in the chat screen. One table: keys, the help screen, the palette, the man page
// confab-keys(7) and the configuration's key bindings come from it.
#ifndef CONFAB_UI_COMMANDS_H
#define CONFAB_UI_COMMANDS_H

#include "ui/panes.h"

// X(enumerator, name, default key, group, help); PANE: of a row of PANES, the command that shows and hides it
#define UI_COMMANDS(X, PANE)                                                                                           \
    X(COMMAND_SEND, "send", "Enter", "Composing", "send the message")                                                  \
    X(COMMAND_NEWLINE, "newline", "Alt+Enter", "Composing", "begin a new line in the message")                         \
    X(COMMAND_HELP, "help", "F1", "Screen", "show or hide this help")                                                  \
    X(COMMAND_PALETTE, "palette", "Ctrl+P", "Screen", "find a command by name")                                        \
    X(COMMAND_NEW, "new", "Ctrl+N", "Chats", "begin a new chat")                                                       \
    X(COMMAND_PREVIOUS, "previous-chat", "Alt+Up", "Chats", "show the chat above")                                     \
    X(COMMAND_NEXT, "next-chat", "Alt+Down", "Chats", "show the chat below")                                           \
    X(COMMAND_RENAME, "rename", "F2", "Chats", "rename this chat")                                                     \
    X(COMMAND_DELETE, "delete", "F8", "Chats", "delete this chat (asks first)")                                        \
    X(COMMAND_REGENERATE, "regenerate", "F4", "Answers", "answer again; the old answer is kept as a version")          \
    X(COMMAND_STOP, "stop", "F5", "Answers", "stop the answer of this chat")                                           \
    X(COMMAND_STOP_ALL, "stop-all", "Shift+F5", "Answers", "stop every answer")                                        \
    X(COMMAND_VERSION_PREVIOUS, "previous-version", "Alt+Left", "Answers", "show the previous version of the answer")  \
    X(COMMAND_VERSION_NEXT, "next-version", "Alt+Right", "Answers", "show the next version of the answer")             \
    X(COMMAND_THINKING, "thinking", "Ctrl+T", "Answers", "open or fold what the model thought")                        \
    X(COMMAND_REASONING, "reasoning", "Alt+R", "Answers", "how much the model is to think, where it lets one choose")  \
    X(COMMAND_COPY, "copy", "F6", "Answers", "copy the last answer")                                                   \
    X(COMMAND_PAGE_UP, "page-up", "PgUp", "Answers", "scroll the conversation up")                                     \
    X(COMMAND_PAGE_DOWN, "page-down", "PgDn", "Answers", "scroll the conversation down")                               \
    X(COMMAND_TOP, "top", "Ctrl+Home", "Answers", "scroll to the beginning")                                           \
    X(COMMAND_BOTTOM, "bottom", "Ctrl+End", "Answers", "scroll to the end and follow the answer")                      \
    X(COMMAND_KNOB_NEXT, "next-knob", "Shift+Right", "Sampling", "choose the next sampling knob")                      \
    X(COMMAND_KNOB_PREVIOUS, "previous-knob", "Shift+Left", "Sampling", "choose the previous sampling knob")           \
    X(COMMAND_KNOB_UP, "knob-up", "Shift+Up", "Sampling", "raise the chosen knob by a step")                           \
    X(COMMAND_KNOB_DOWN, "knob-down", "Shift+Down", "Sampling", "lower the chosen knob by a step")                     \
    X(COMMAND_KNOB_SET, "set-knob", "F9", "Sampling", "type a value for the chosen knob")                              \
    X(COMMAND_KNOB_RESET, "reset-knob", "F7", "Sampling", "reset the chosen knob to its default")                      \
    X(COMMAND_KNOB_RESET_ALL, "reset-knobs", "Shift+F7", "Sampling", "reset all knobs to their defaults")              \
    X(COMMAND_MODEL, "model", "Ctrl+O", "Model", "choose another model and load it")                                   \
    X(COMMAND_MODEL_STOP, "stop-loading", "", "Model", "stop loading a model (Esc); the one before stays")             \
    X(COMMAND_THEME, "theme", "F3", "Screen", "switch to the next theme")                                              \
    PANES(PANE)                                                                                                       \
    X(COMMAND_PANES, "panes", "F10", "Screen", "switch between presets of panes")                                      \
    X(COMMAND_MEASURE, "measure", "", "Screen", "measure again what this machine can do at most")                      \
    X(COMMAND_ASCII, "ascii", "", "Screen", "draw with plain ASCII characters, or not")                                \
    X(COMMAND_REDRAW, "redraw", "Ctrl+L", "Screen", "draw the screen afresh")                                          \
    X(COMMAND_INTERRUPT, "interrupt", "Ctrl+C", "Answers",                                                             \
      "close what is open, stop the answer, or clear the message")                                                    \
    X(COMMAND_SUSPEND, "suspend", "Ctrl+Z", "Screen", "go back to the shell for a while")                              \
    X(COMMAND_QUIT, "quit", "Ctrl+Q", "Screen", "leave confab")

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

#endif
