# The command lines of a paper, each on a line: of README what is indented by four columns or more, of a manual page
# what stands between .EX and .EE, but for code of other languages. A line that ends with a backslash, and one in which
# a quote is open, goes on.
FILENAME ~ /\.md$/ { shown = sub(/^     */, "") }
/^\.E[XE]/ { shown = /^\.EX/; language = 0; next }
!shown || !NF { next }
{
    gsub(/\\-/, "-")
    gsub(/\\\(aq/, "'")
    gsub(/\\e$/, "\\")
    line = line == "" ? $0 : line " " $0
}
/^import / { language = 1 }
language { line = ""; next }
sub(/\\$/, "", line) { next }
gsub(/'/, "'", line) % 2 { next }
{ gsub(/  +/, " ", line); print line; line = "" }
