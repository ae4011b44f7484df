#include "ui/slash.h"

#include <ctype.h>
#include <string.h>

#define BLANKS " \t\r\n"

size_t slash_size(const char *message) {
    const size_t size = strcspn(message, BLANKS);
    const bool path = size && memchr(message + 1, '/', size - 1);
    return *message == '/' && isalpha((unsigned char)message[1]) && !path ? size : 0;
}

const char *slash_argument(const char *message) {
    message += slash_size(message);
    return message + strspn(message, BLANKS);
}

struct slash slash_read(const char *message, const struct view_setting *settings, int n_settings) {
    const size_t size = slash_size(message) - 1;
    int setting = n_settings - 1;
    while (setting >= 0 && (strlen(settings[setting].key) != size || memcmp(settings[setting].key, message + 1, size)))
        setting--;
    return (struct slash){.command = ui_command_find(message + 1, size),
                          .setting = setting,
                          .argument = slash_argument(message)};
}
