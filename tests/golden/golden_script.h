// Golden script: plays a .script file against a chat on a golden display. Time stands still except for `tick`.
//
// A line is a command and its words; "…" may hold spaces and \n \r \t \e \" \\ \xHH. Chats are numbered as they were
// made; 1.2 is the second answer of the latest request of chat 1, 1 alone the first.
//
//   Before the first of the others: size W H · colours N · locale NAME · set KEY VALUE (as in the configuration) ·
//                                     loading (the engine comes with `loaded`) · memory MIB (that are free) ·
//                                     file PATH MIB FAMILY FORMAT PARAMETERS NEED-MIB [PROBLEM] (a model among those
//                                     known) · config PATH TEXT (a file of the configuration) ·
//                                     store (chats are kept in a file) · limits GB GOP (a
//                                     second, of the machine)
//   What a person does:   key NAME … · type TEXT · paste TEXT · click X Y · drag X Y X Y · wheel up|down X Y ·
//                         resize W H
//   What the engine does: token CHAT TEXT … · figures PROBABILITY ENTROPY "TEXT PROBABILITY|…" [accepted] (of the next
//                         token, with its alternatives; accepted: it was a draft) · answer CHAT MS TEXT (a token a
//                         word, every MS milliseconds) · think CHAT MS TEXT (the same, thought) · notice CHAT TEXT ·
//                         state CHAT STATE [REASON [TEXT]] · logits CHAT DRAWN STEP TEXT … (what the last token was
//                         drawn from: 200 of them, each less likely than the one before it by e^STEP; the first one
//                         came before) · prefill CHAT DONE TOTAL · rate CHAT NUMBER · found TOKENS CACHED (of the path,
//                         whenever the chat asks) · drafts CHAT DRAFTED ACCEPTED · metrics NAME NUMBER … · unknown (no
//                         figure is known any more) · part DEVICE FIRST-LAYER END-LAYER WEIGHTS KV BUFFERS (the last
//                         three in MiB) · work STAGE|decode|prefill SECONDS GB GOP (in the last second) · pages COUNT
//                         TOKENS · page FIRST LAST CHAT REFERENCES FILLED (a CHAT of 0: kept of chat 1) · moment CHAT
//                         SECONDS USUAL [NAME NUMBER …] (the slowest token of this quarter of a second) · drafted FIRST
//                         LAST · saved FIRST LAST (pages, on the disk)
//   What the server does: client NUMBER NAME PATH MODEL decoding [TOKENS [RATE [SECONDS]]] (a request, as it is from
//                         now on; SECONDS: until its first token) · client … prefilling [DONE TOTAL] · client … pending ·
//                         gone NUMBER · unlisted COUNT (of further ones) · taken TEXT (why the next one cannot serve) ·
//                         stopped (it is, after it was told to)
//   inputrc LINE (as in a person's inputrc) · tick MILLISECONDS · listed (waits for the list of models)
//   What loading does:    progress SHARE · loaded · load-fails TEXT · load-ends (waits until it has stopped)
//   What must be so:      screen NAME [styles] (as in NAME.screen) · sees TEXT · misses TEXT · plain TEXT (nothing but
//                         ASCII and these letters) · sampling CHAT KEY TEXT · prompt CHAT TEXT · begun CHAT TEXT
//                         (tokens and text that the answer was to begin with) · cancelled NUMBER (the latest request of
//                         a client that was) · sent BYTES · unsent BYTES · ended
#ifndef CONFAB_TESTS_GOLDEN_SCRIPT_H
#define CONFAB_TESTS_GOLDEN_SCRIPT_H

#include <stdbool.h>

// Says on standard error what went wrong. With `update`, screens are written instead of compared.
bool golden_script_play(const char *path, bool update);

#endif
