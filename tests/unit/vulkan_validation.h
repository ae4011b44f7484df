// Vulkan's validation layers, with synchronisation validation, over what a test does with a device.
#ifndef CONFAB_TESTS_VULKAN_VALIDATION_H
#define CONFAB_TESTS_VULKAN_VALIDATION_H

#include <stdbool.h>

// Before Vulkan is first used by the program. Where the layers are not installed: says so, and validates nothing.
// What it needs is written into the folder.
void vulkan_validation_start(const char *folder);
// Fails the test where the layers have said anything since the last time.
void vulkan_validation_check(const char *what);

#endif
