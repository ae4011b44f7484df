// Fuzzes chat templates. The input is a template, optionally followed by a byte 0xff and a context as JSON; the default
// context is a short conversation.
#include <stdlib.h>
#include <string.h>

#include "engine/base/panic.h"
#include "engine/model_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/exact_copy.h"
#include "tests/unit/tiny_model.h"

static const char conversation[] = "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"role\": "
                                   "\"user\", \"content\": \"Hi <b>\\n\"}, "
                                   "{\"role\": \"assistant\", \"content\": \"<think>\\u00e4</think> Yes\", \"n\": "
                                   "2.5}], \"add_generation_prompt\": true, "
                                   "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"tools\": [{\"name\": \"f\", "
                                   "\"items\": [1, -2, null, {}, []]}]}";

// Each exercises some features.
static const char *const templates[] = {
    TINY_CHATML,
    "{% for m in messages %}{% if loop.first and m.role != 'system' %}{{ '<s>' }}{% elif m['role'] == \"user\" "
    "%}[INST] {{ "
    "m.content | trim }} [/INST]{% else %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{{ eos_token }}{% endif "
    "%}{% endfor %}",
    "{%- set ns = namespace(n=0, found=false) -%}{%- for m in messages[::-1] -%}{%- set ns.n = ns.n + loop.index0 * 2 "
    "-%}"
    "{%- if not ns.found and m.role == 'user' -%}{%- set ns.found = true -%}{%- endif -%}{%- endfor -%}{{ ns.n }} {{ "
    "ns.found }}",
    "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x|items %}{{ k ~ ':' }}{{ show(v, depth + 1) }}{% "
    "endfor %}"
    "{% elif x is string %}{{ x|tojson }}{% elif x is iterable %}{% for v in x %}{{ show(v, depth + 1) }},{% endfor "
    "%}{% else %}{{ x }}"
    "{% endif %}{% endmacro %}{{ show(tools) }}{{ tools | tojson(indent=2) }}",
    "{% if tools is defined and tools|length > 0 %}{{ tools[0].name | upper }}{% endif %}{{ strftime_now('%d %b %Y') }}"
    "{% if messages|length % 2 == 5 %}{{ raise_exception('odd ' ~ messages[0].role) }}{% endif %}",
    "{% for x in range(20) if x is odd %}{{ '%02d|%s' | format(x, x / 3) }}{{ [1, 2.5, 'a'][x % 3] }}{{ 'abc'[1:] ~ "
    "(x, -x)[0] }}"
    "{% if x == 9 %}{% break %}{% endif %}{% endfor %}{# a comment #}{% raw %}{{ no }}{% endraw %}",
    "{% set d = {'a': [1, {'b': none}], 'c': 'x' if true else 'y'} %}{{ d.a[1].b }}{{ d.get('z', 'default') }}{{ "
    "d.items()|list }}"
    "{{ 'A-b'.lower().replace('-', '_').title() }}{{ messages|map(attribute='role')|join(', ') }}"
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}",
};

uint8_t *fuzz_seed(size_t k, size_t *size) {
    if (k >= sizeof templates / sizeof *templates) return NULL;
    *size = strlen(templates[k]);
    return (uint8_t *)xstrdup(templates[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *mark = size ? memchr(data, 0xff, size) : NULL;
    char *context = mark ? xstrndup((const char *)mark + 1, size - (size_t)(mark + 1 - data)) : xstrdup(conversation);
    size_t n = mark ? (size_t)(mark - data) : size, out_size = 0;
    char *template = exact_copy(data, n);
    struct status st = {0};
    struct template_input in = {.name = "template",
                                .text = template,
                                .size = n,
                                .context_name = "context",
                                .context = context,
                                .context_size = strlen(context),
                                .now = "2026-01-02T03:04:05"};
    char *text = template_render(&in, &out_size, &st);
    if (!text && st.code == STATUS_OK) abort();
    if (text && strnlen(text, out_size + 1) > out_size) abort();
    free(text);
    free(template);
    free(context);
    return 0;
}
