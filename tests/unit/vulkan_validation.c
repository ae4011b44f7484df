#include "tests/unit/vulkan_validation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/reader.h"
#include "tests/unit/temporary_folder.h"

static char messages[512]; // the layers' file; "" without them
static size_t n_read;

static bool installed(void) {
    static const char *const manifests[] = {"/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json",
                                            "/usr/local/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"};
    for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++)
        if (!access(manifests[i], R_OK)) return true;
    return false;
}

void vulkan_validation_start(const char *folder) {
    if (!installed()) {
        print_message("Vulkan's validation layers are not installed: nothing is validated\n");
        return;
    }
    char settings[1024];
    snprintf(messages, sizeof messages, "%s/messages", folder);
    snprintf(settings, sizeof settings,
             "khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT\n"
             "khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
             "khronos_validation.report_flags = error,warn\n"
             "khronos_validation.log_filename = %s\n",
             messages);
    temporary_folder_write(folder, "vk_layer_settings.txt", settings);
    setenv("VK_LAYER_SETTINGS_PATH", folder, 1);
    setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation", 1);
}

void vulkan_validation_check(const char *what) {
    struct status st;
    size_t size;
    char *text = *messages ? file_read(messages, 64 << 20, &size, &st) : NULL;
    if (!text) return;
    const size_t before = n_read < size ? n_read : size;
    n_read = size;
    if (size > before) print_error("%.4000s\n", text + before);
    const bool said = size > before;
    free(text);
    if (said) fail_msg("%s: the validation layers object", what);
}
