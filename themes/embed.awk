# Converts theme files to the C table theme_builtin (ui/theme.c): awk -f embed.awk FILES > themes.c
BEGIN {
    print "#include <stddef.h>"
    print "struct theme_file { const char *name, *text; };"
    print "extern const struct theme_file theme_builtin[];"
    print "const struct theme_file theme_builtin[] = {"
}
FNR == 1 {
    if (NR > 1) print "    },"
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.theme$/, "", name)
    printf "    {\"%s\",\n", name
}
{
    gsub(/\\/, "\\\\")
    gsub(/"/, "\\\"")
    printf "     \"%s\\n\"\n", $0
}
END { print "    },\n    {NULL, NULL},\n};" }
