// The two halves of the terminal that need no terminal, for terminal.c and its tests: a decoder from bytes to keys,
// and a renderer from canvases to bytes.
#ifndef CONFAB_UI_TERMINAL_PARTS_H
#define CONFAB_UI_TERMINAL_PARTS_H

#include "ui/terminal.h"

// ---- terminal_keys.c: bytes → keys ----
//
// Sequences may arrive in any pieces. A sequence that stays unfinished is decided by time: a lone ESC becomes the key,
// ESC [ becomes Alt+[, anything longer is dropped. Unknown sequences are swallowed whole.
struct key_decoder {
    char *bytes;            // [start, end) waits to be decoded
    size_t start, end, capacity;
    size_t searched;        // bytes of the paste or string at `start` that were already searched for its end
    bool pasting;           // the bytes at `start` are pasted text
    bool rxvt;              // F13 is Shift-F3 rather than Shift-F1
    uint64_t arrived;       // when the last bytes came, clock_ns()
    char text[4];           // of the key handed out last, where it is not in `bytes`
};
void key_decoder_close(struct key_decoder *d);
// Room for `size` bytes more, to be filled and then said by key_decoder_filled. Ends the life of the last key's text.
char *key_decoder_room(struct key_decoder *d, size_t size);
void key_decoder_filled(struct key_decoder *d, size_t size);
bool key_decoder_next(struct key_decoder *d, struct key *out);
int key_decoder_timeout(const struct key_decoder *d); // ms; −1: nothing pends
struct key key_of_control(uint8_t byte);              // what a byte below 0x20, or 0x7F, is when it comes alone

// ---- terminal_draw.c: canvases → bytes ----

struct shown_cell { // as the terminal shows it
    uint32_t codes[CELL_CODES];
    uint32_t fore, back; // colours as encoded by colour_encode
    uint8_t attributes, width;
    bool known;
};

struct renderer {
    int colours;                // 1, 16, 256 or 1 << 24
    bool unicode;
    struct shown_cell *shown;   // [height][width]
    struct cell *drawn;         // [height][width]: the canvas of the last frame, of which `shown` came
    int width, height;
    struct theme theme;         // that `palette` was made from
    bool themed;
    uint32_t palette[ROLE_COUNT][THEME_STEPS + 1]; // by role and shade
    int x, y;                   // where the cursor is; x < 0: unknown
    uint32_t fore, back;        // the pen
    uint8_t attributes;
    bool pen_known;
    bool cursor_visible;
    int cursor_x, cursor_y;     // where it was last left for people to see
    char *out;                  // the frame
    size_t size, capacity;
};
void renderer_open(struct renderer *r, int colours, bool unicode);
void renderer_close(struct renderer *r);
void renderer_forget(struct renderer *r);
// Fills out[0..size): empty when nothing differs.
void renderer_frame(struct renderer *r, const struct canvas *c, const struct theme *theme, int cursor_x, int cursor_y);

#endif
