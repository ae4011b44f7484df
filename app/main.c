#include "app/commands/command.h"

int main(int argc, char **argv) { return command_main(argc, argv, CONFAB_COMMIT); }
