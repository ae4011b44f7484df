#include "ui/slash.h"

#include <ctype.h>
#include <string.h>

#define BLANKS " \t\r\n"

size_t slash_size(const char *message) {
    return *message == '/' && isalpha((unsigned char)message[1]) ? strcspn(message, BLANKS) : 0;
}

struct slash slash_read(const char *message) {
    const size_t size = slash_size(message);
    return (struct slash){.command = ui_command_find(message + 1, size - 1),
                          .argument = message + size + strspn(message + size, BLANKS)};
}
