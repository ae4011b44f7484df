// Script server: in place of a server's thread, which serves nobody and reports the clients that a script says.
#ifndef CONFAB_TESTS_SCRIPT_SERVER_H
#define CONFAB_TESTS_SCRIPT_SERVER_H

#include "app/server/snapshot.h"

void script_server_refuse(const char *problem); // why the next one cannot serve
bool script_server_stopped(void);               // it has, after it was told to; false: it was not

// A request, as it is from now on; false: there are too many.
bool script_server_client(const struct server_client *c);
bool script_server_gone(uint64_t number); // false: there is none
void script_server_unlisted(int count);   // further clients

uint64_t script_server_cancelled(void); // the latest request that was

#endif
