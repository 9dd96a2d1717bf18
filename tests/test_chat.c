/* test_chat.c - conversations to prompts: worked examples, the canonical template's own output on
 * our conversations (tests/golden/chat_cases.json), refusals, and the choice of the variant.
 *
 * To stay readable, JSON and prompts in this file are written with ' for ". */
#include "text/chat.h"

#include <stdlib.h>

#include "base/mem.h"
#include "check.h"

enum { THINK = 1, LARGE = 2 };

/* A copy with every ' turned into "; the caller frees it. */
static char *quotes(const char *z)
{
    char *s = mem_copy_str(z, strlen(z));
    for (char *c = s; *c; c++)
        if (*c == '\'') *c = '"';
    return s;
}

static enum bz_status render(struct buf *out, const char *messages, const char *tools,
                             struct chat_options opt, struct bz_err *err)
{
    struct arena a = { 0 };
    struct json *m = NULL, *t = NULL;
    char *ms = quotes(messages), *ts = tools ? quotes(tools) : NULL;
    CHECK_MSG(json_parse(&m, str_of(ms), &a, err) == BZ_OK, "%s in %s", err->text, ms);
    if (ts) CHECK_MSG(json_parse(&t, str_of(ts), &a, err) == BZ_OK, "%s in %s", err->text, ts);
    struct marked prompt = { .text = *out };
    enum bz_status st = m ? chat_render(&prompt, m, t, opt, NULL, err) : BZ_ERR_FORMAT;
    *out = prompt.text;
    mem_free(prompt.marks);
    mem_free(ms);
    mem_free(ts);
    arena_free(&a);
    return st;
}

#define TEMP_TOOL                                                                                  \
    "[{'type':'function','function':{'name':'get_temp','description':'Current temperature of a "   \
    "town','parameters':{'type':'object','properties':{'unit':{'type':'string','enum':['c','f']}," \
    "'town':{'type':'string','description':'Town name'}},'required':['town']}}}]"
#define TEMP_DECL                                                                                  \
    "<|tool>declaration:get_temp{description:<|'|>Current temperature of a town<|'|>,parameters:"  \
    "{properties:{town:{description:<|'|>Town name<|'|>,type:<|'|>STRING<|'|>},unit:{enum:"        \
    "[<|'|>c<|'|>,<|'|>f<|'|>],type:<|'|>STRING<|'|>}},required:[<|'|>town<|'|>],type:"            \
    "<|'|>OBJECT<|'|>}}<tool|>"
#define BOOK_TOOL                                                                                  \
    "[{'type':'function','function':{'name':'book','description':'Book seats','parameters':"       \
    "{'type':'object','properties':{'seats':{'type':'array','description':'Seat ids','items':"     \
    "{'type':'integer'}},'vip':{'type':'boolean'},'who':{'type':'object','description':'Guest',"   \
    "'properties':{'name':{'type':'string'},'age':{'type':'integer','nullable':true}},"            \
    "'required':['name']},'price':{'type':'number','description':'Max'}},'required':['seats',"     \
    "'who']}}}]"
#define BOOK_DECL                                                                                  \
    "S<|tool>declaration:book{description:<|'|>Book seats<|'|>,parameters:{properties:{price:"     \
    "{description:<|'|>Max<|'|>,type:<|'|>NUMBER<|'|>},seats:{description:<|'|>Seat ids<|'|>,"     \
    "items:{type:<|'|>INTEGER<|'|>},type:<|'|>ARRAY<|'|>},vip:{type:<|'|>BOOLEAN<|'|>},who:"       \
    "{description:<|'|>Guest<|'|>,properties:{age:{nullable:true,type:<|'|>INTEGER<|'|>},name:"    \
    "{type:<|'|>STRING<|'|>}},required:[<|'|>name<|'|>],type:<|'|>OBJECT<|'|>}},required:"         \
    "[<|'|>seats<|'|>,<|'|>who<|'|>],type:<|'|>OBJECT<|'|>}}<tool|>"

#define U(text)       "{'role':'user','content':'" text "'}"
#define A(text)       "{'role':'assistant','content':'" text "'}"
#define CALL(name, a) "{'function':{'name':'" name "','arguments':" a "}}"
#define CALLS(calls)  "{'role':'assistant','tool_calls':[" calls "]}"
#define ANSWER(text)  "{'role':'tool','content':'" text "'}"
#define ASK           U("Temp in Oslo?")
#define OSLO          CALL("get_temp", "{'town':'Oslo'}")
#define ASKED         TURN_SYSTEM TEMP_DECL "<turn|>\n<|turn>user\nTemp in Oslo?<turn|>\n"
#define TURN_SYSTEM   "<bos><|turn>system\n"
#define MODEL         "<|turn>model\n"
#define OSLO_CALL     "<|tool_call>call:get_temp{town:<|'|>Oslo<|'|>}<tool_call|>"
#define OSLO_SAYS     "<|tool_response>response:get_temp{value:<|'|>-3<|'|>}<tool_response|>"
#define NO_THOUGHT    "<|channel>thought\n<channel|>"

static const struct {
    int id, how;
    const char *messages, *tools, *want;
} worked[] = {
    { 1, LARGE, "[" U("Hi there") "]", NULL,
      "<bos><|turn>user\nHi there<turn|>\n" MODEL NO_THOUGHT },
    { 1, 0, "[" U("Hi there") "]", NULL, "<bos><|turn>user\nHi there<turn|>\n" MODEL },
    { 2, LARGE, "[{'role':'system','content':'  Be terse. '}," U("Hi") "]", NULL,
      "<bos><|turn>system\nBe terse.<turn|>\n<|turn>user\nHi<turn|>\n" MODEL NO_THOUGHT },
    { 3, THINK, "[" U("2+2?") "]", NULL,
      "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\n2+2?<turn|>\n" MODEL },
    { 3, THINK | LARGE, "[" U("2+2?") "]", NULL,
      "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\n2+2?<turn|>\n" MODEL },
    { 4, THINK, "[{'role':'system','content':'Be terse.'}," U("2+2?") "]", NULL,
      "<bos><|turn>system\n<|think|>\nBe terse.<turn|>\n<|turn>user\n2+2?<turn|>\n" MODEL },
    { 5, THINK,
      "[" U("2+2?") ",{'role':'assistant','content':'4','reasoning':'add'}," U("times 3?") "]",
      NULL,
      "<bos><|turn>system\n<|think|>\n<turn|>\n<|turn>user\n2+2?<turn|>\n" MODEL
      "4<turn|>\n<|turn>user\ntimes 3?<turn|>\n" MODEL },
    { 6, 0, "[" ASK "]", TEMP_TOOL, ASKED MODEL },
    { 6, LARGE, "[" ASK "]", TEMP_TOOL, ASKED MODEL NO_THOUGHT },
    { 7, 0, "[{'role':'system','content':'S'}]", BOOK_TOOL,
      "<bos><|turn>system\n" BOOK_DECL "<turn|>\n" MODEL },
    { 8, 0, "[" ASK "," CALLS(CALL("get_temp", "{'town':'Oslo','unit':'c'}")) "," ANSWER("-3") "]",
      TEMP_TOOL,
      ASKED MODEL "<|tool_call>call:get_temp{town:<|'|>Oslo<|'|>,unit:<|'|>c<|'|>}"
                  "<tool_call|>" OSLO_SAYS },
    { 8, LARGE, "[" ASK "," CALLS(OSLO) "," ANSWER("-3") "]", TEMP_TOOL,
      ASKED MODEL OSLO_CALL OSLO_SAYS },
    { 9, THINK,
      "[" ASK ",{'role':'assistant','reasoning':'Need a lookup.','tool_calls':[" OSLO
      "]}," ANSWER("-3") "]",
      TEMP_TOOL,
      "<bos><|turn>system\n<|think|>\n" TEMP_DECL
      "<turn|>\n<|turn>user\nTemp in Oslo?<turn|>\n" MODEL
      "<|channel>thought\nNeed a lookup.\n<channel|>" OSLO_CALL OSLO_SAYS "<|channel>thought\n" },
    { 10, 0, "[" ASK "," CALLS(OSLO) "," ANSWER("-3") "," A("It is -3.") "," U("And Rome?") "]",
      TEMP_TOOL,
      ASKED MODEL OSLO_CALL OSLO_SAYS "It is -3.<turn|>\n<|turn>user\nAnd Rome?<turn|>\n" MODEL },
    { 11, 0,
      "[" ASK
      "," CALLS(OSLO "," CALL("get_temp", "{'town':'Rome'}")) "," ANSWER("-3") "," ANSWER("12") "]",
      TEMP_TOOL,
      ASKED MODEL OSLO_CALL
      "<|tool_call>call:get_temp{town:<|'|>Rome<|'|>}<tool_call|>" OSLO_SAYS
      "<|tool_response>response:get_temp{value:<|'|>12<|'|>}<tool_response|>" },
    { 12, 0,
      "[" U("q") "," CALLS(CALL("a", "{}")) "," ANSWER("r1") "," CALLS(CALL("b", "{}")) "," ANSWER(
          "r2") "]",
      NULL,
      "<bos><|turn>user\nq<turn|>\n" MODEL
      "<|tool_call>call:a{}<tool_call|><|tool_response>response:a{value:<|'|>r1<|'|>}"
      "<tool_response|><|tool_call>call:b{}<tool_call|><|tool_response>response:b{value:"
      "<|'|>r2<|'|>}<tool_response|>" },
    { 13, 0, "[" ASK "," CALLS(OSLO) "]", TEMP_TOOL, ASKED MODEL OSLO_CALL "<|tool_response>" },
    { 14, 0,
      "[" U("q") "," CALLS(
          CALL("f", "{'Q':'say \\'hi\\'\\n','b':true,'l':['a',1],'n':3,'o':{'k':'v','a':false},"
                    "'x':2.5,'z':null}")) "]",
      NULL,
      "<bos><|turn>user\nq<turn|>\n" MODEL
      "<|tool_call>call:f{b:true,l:[<|'|>a<|'|>,1],n:3,o:{a:false,k:<|'|>v<|'|>},Q:<|'|>say 'hi'\n"
      "<|'|>,x:2.5,z:null}<tool_call|><|tool_response>" },
    { 15, LARGE,
      "[{'role':'user','content':[{'type':'image'},{'type':'text','text':'What is it?'}]}]", NULL,
      "<bos><|turn>user\n<|image|>What is it?<turn|>\n" MODEL NO_THOUGHT },
    { 16, 0, "[" U("q") "," A("one") "," A("two") "," U("r") "]", NULL,
      "<bos><|turn>user\nq<turn|>\n" MODEL "onetwo<turn|>\n<|turn>user\nr<turn|>\n" MODEL },
};

/* Where we go beyond the template, which raises on these or leaves a brace open. */
static const struct {
    const char *messages, *tools, *want;
} beyond[] = {
    { "[" U("a") ",{'role':'developer','content':' d '}," U("b") "]", NULL,
      "<|turn>user\na<turn|>\n<|turn>system\nd<turn|>\n<|turn>user\nb<turn|>\n" },
    { "[" CALLS(CALL("f", "' {\\'b\\':1,\\'a\\':[2.0]} '")) "]", NULL,
      MODEL "<|tool_call>call:f{a:[2.0],b:1}<tool_call|><|tool_response>" },
    { "[" CALLS(CALL("f", "''")) "]", NULL,
      MODEL "<|tool_call>call:f{}<tool_call|><|tool_response>" },
    { "[" CALLS(CALL("f", "'null'")) "]", NULL,
      MODEL "<|tool_call>call:f{}<tool_call|><|tool_response>" },
    { "[{'role':'assistant','tool_calls':[{'function':{'name':'f'}}]}]", NULL,
      MODEL "<|tool_call>call:f{}<tool_call|><|tool_response>" },
    { "[" CALLS(CALL("f", "{}")) ",{'role':'tool','content':{'b':1,'A':'x'}}]", NULL,
      MODEL "<|tool_call>call:f{}<tool_call|><|tool_response>response:f{A:<|'|>x<|'|>,b:1}"
            "<tool_response|>" },
    { "[" CALLS(CALL("f", "{}")) ",{'role':'tool','content':[1,{'type':'text'}]}]", NULL,
      MODEL "<|tool_call>call:f{}<tool_call|><|tool_response>response:f{value:[1,{type:"
            "<|'|>text<|'|>}]}<tool_response|>" },
    { "[{'role':'assistant','content':[{'type':'text'},{'type':'text','text':'x'}]}]", NULL,
      MODEL "x<turn|>\n" },
    { "[]", "[{'function':{'name':'f','parameters':{'properties':{'a':{'type':'null'}}}}}]",
      "<|turn>system\n<|tool>declaration:f{description:<|'|><|'|>,parameters:{properties:{a:{type:"
      "<|'|>NULL<|'|>}},type:<|'|>OBJECT<|'|>}}<tool|><turn|>\n" },
    { "[]", "[{'function':{'name':'f','response':{'type':'string','description':'d'}}}]",
      "<|turn>system\n<|tool>declaration:f{description:<|'|><|'|>,response:{description:<|'|>d<|'|>"
      ","
      "type:<|'|>OBJECT<|'|>}}<tool|><turn|>\n" },
    { "[]", "[{'function':{'name':'f','response':null}}]",
      "<|turn>system\n<|tool>declaration:f{description:<|'|><|'|>,response:{type:<|'|>OBJECT<|'|>}}"
      "<tool|><turn|>\n" },
    { "[" U("x") "]", "null", "<|turn>user\nx<turn|>\n" },
    /* of a repeated key the last value counts, as in Python */
    { "[" CALLS(CALL("f", "{'a':1,'b':2,'a':3}")) "]", NULL,
      MODEL "<|tool_call>call:f{a:3,b:2}<tool_call|><|tool_response>" },
};

static const struct {
    const char *messages, *tools, *sentence;
} refused[] = {
    { "[]", "[{'function':{'name':'f','parameters':{'properties':{'p':{'$ref':'#/$defs/x'}}}}}]",
      "tools[0]: the '$ref' '#/$defs/x' names nothing in the tool" },
    { "[]", "[{'function':{'name':'f','parameters':{'$ref':'https://x.test/y'}}}]",
      "tools[0]: the '$ref' 'https://x.test/y' names nothing" },
    { "{}", NULL, "messages must be an array" },
    { "[]", "{}", "tools must be an array" },
    { "[" U("x") ",3]", NULL, "messages[1]: a message must be an object" },
    { "[{'content':'x'}]", NULL, "messages[0]: 'role' must be a string" },
    { "[" U("x") ",{'role':7}]", NULL, "messages[1]: 'role' must be a string" },
    { "[" U("x") ",{'role':'user','content':7}]", NULL,
      "messages[1]: 'content' must be a string or an array of parts" },
    { "[{'role':'system','content':true}]", NULL,
      "messages[0]: 'content' must be a string or an array of parts" },
    { "[{'role':'user','content':{}}]", NULL,
      "messages[0]: 'content' must be a string or an array of parts" },
    { "[{'role':'user','content':['x']}]", NULL,
      "messages[0]: a part of 'content' must be an object" },
    { "[{'role':'system','content':['x']}]", NULL,
      "messages[0]: a part of 'content' must be an object" },
    { "[{'role':'user','content':[{'type':'text','text':null}]}]", NULL,
      "messages[0]: 'text' of a part of 'content' must be a string" },
    { "[" U("x") ",{'role':'assistant','reasoning':['r']}]", NULL,
      "messages[1]: 'reasoning' must be a string" },
    { "[{'role':'assistant','tool_calls':'x'}]", NULL,
      "messages[0]: 'tool_calls' must be an array" },
    { "[" CALLS(CALL("a", "{}") ",{'function':{}}") "]", NULL,
      "messages[0]: tool call 1 must be an object with a 'function' that has a 'name'" },
    { "[" CALLS("'x'") "]", NULL,
      "messages[0]: tool call 0 must be an object with a 'function' that has a 'name'" },
    { "[" CALLS(CALL("a", "[1]")) "]", NULL,
      "messages[0]: the arguments of tool call 0 must be a JSON object" },
    { "[" CALLS(CALL("a", "'[1]'")) "]", NULL,
      "messages[0]: the arguments of tool call 0 must be a JSON object" },
    { "[" CALLS(CALL("a", "'{'")) "]", NULL,
      "messages[0]: the arguments of tool call 0 are not JSON: " },
    { "[" CALLS(
          "{'id':'1','function':{'name':'a'}}") ",{'role':'tool','name':5,'tool_call_id':'2'}]",
      NULL, "messages[0]: 'name' of a tool message after it must be a string" },
    { "[{'role':'assistant','tool_responses':{'a':1}}]", NULL,
      "messages[0]: 'tool_responses' must be an array" },
    { "[{'role':'assistant','tool_responses':[{'name':3}]}]", NULL,
      "messages[0]: each of 'tool_responses' must be an object with a string 'name'" },
    { "[]", "[{'function':{'name':'f'}},{'name':'g'}]",
      "tools[1]: a tool must be an object with a 'function' object" },
    { "[]", "[{'function':{'name':'f','parameters':'x'}}]",
      "tools[0]: 'parameters' of a function must be an object" },
    { "[]", "[{'function':{'name':'f','parameters':{'properties':['a']}}}]",
      "tools[0]: 'properties' of the parameters must be an object" },
    { "[]", "[{'function':{'name':'f','parameters':{'required':true}}}]",
      "tools[0]: 'required' in a schema must be an array of names" },
    { "[]",
      "[{'function':{'parameters':{'properties':{'a':{'type':'array','items':{'type':1}}}}}}]",
      "tools[0]: 'type' in the items of an array must be a string or an array of strings" },
};

/* A property p, beside a definition d and one within itself, and how it is declared. */
static const struct {
    const char *schema, *want;
} schemas[] = {
    { "{'$ref':'#/$defs/d'}",
      "{description:<|'|>D<|'|>,enum:[<|'|>x<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'$ref':'#/$defs/d','description':'mine'}",
      "{description:<|'|>mine<|'|>,enum:[<|'|>x<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'allOf':[{'$ref':'#/$defs/d'}],'default':'x'}",
      "{description:<|'|>D<|'|>,enum:[<|'|>x<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'$ref':'#/$defs/a~1b~0'}", "{type:<|'|>BOOLEAN<|'|>}" },
    { "{'$ref':'#/$defs/tree'}",
      "{properties:{kids:{items:{type:<|'|>OBJECT<|'|>},type:<|'|>ARRAY<|'|>},"
      "left:{properties:{},type:<|'|>OBJECT<|'|>}},required:[<|'|>kids<|'|>],type:<|'|>OBJECT<|'|>"
      "}" },
    { "{'type':'array','items':{'$ref':'#/$defs/d'}}",
      "{items:{description:<|'|>D<|'|>,enum:[<|'|>x<|'|>],type:<|'|>STRING<|'|>},"
      "type:<|'|>ARRAY<|'|>}" },
    { "{'anyOf':[{'type':'integer'},{'type':'null'}],'description':'n'}",
      "{description:<|'|>n<|'|>,nullable:true,type:<|'|>INTEGER<|'|>}" },
    { "{'anyOf':[{'$ref':'#/$defs/d'},{'type':'null'}]}",
      "{description:<|'|>D<|'|>,enum:[<|'|>x<|'|>],nullable:true,type:<|'|>STRING<|'|>}" },
    { "{'oneOf':[{'type':'string'},{'type':'integer'},{'type':'string'}]}",
      "{type:<|'|>['STRING', 'INTEGER']<|'|>}" },
    { "{'oneOf':[{'const':'a'},{'const':'b'}]}",
      "{enum:[<|'|>a<|'|>,<|'|>b<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'anyOf':[{'type':'object','properties':{'a':{'type':'string'}}},{'type':'object',"
      "'properties':{'b':{'type':'string'}}}]}",
      "{properties:{a:{type:<|'|>STRING<|'|>},b:{type:<|'|>STRING<|'|>}},type:<|'|>OBJECT<|'|>}" },
    /* A union told apart by a constant may be any of its kinds. Other keywords of a property are
     * the last kind's. */
    { "{'oneOf':[{'type':'object','properties':{'kind':{'const':'a'},'n':{'type':'integer'}}},"
      "{'type':'object','properties':{'kind':{'const':'b','description':'K'}}}]}",
      "{properties:{kind:{description:<|'|>K<|'|>,enum:[<|'|>a<|'|>,<|'|>b<|'|>],type:<|'|>STRING<|"
      "'|>},"
      "n:{type:<|'|>INTEGER<|'|>}},type:<|'|>OBJECT<|'|>}" },
    /* What a schema with a type takes from others. */
    { "{'type':'string','$ref':'#/$defs/d'}",
      "{description:<|'|>D<|'|>,enum:[<|'|>x<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'type':'object','allOf':[{'properties':{'a':{'type':'string'}}}],'properties':{'b':{'type':"
      "'string'}}}",
      "{properties:{a:{type:<|'|>STRING<|'|>},b:{type:<|'|>STRING<|'|>}},type:<|'|>OBJECT<|'|>}" },
    { "{'type':'string','oneOf':[{'const':'a','title':'A'},{'const':'b'}]}",
      "{enum:[<|'|>a<|'|>,<|'|>b<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'$ref':'#/$defs/a%2fb~0'}", "{type:<|'|>BOOLEAN<|'|>}" },
    { "{'const':5}", "{enum:[5],type:<|'|>INTEGER<|'|>}" },
    { "{'type':'string','const':'k'}", "{enum:[<|'|>k<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'type':'number','const':3}", "{enum:[3],type:<|'|>NUMBER<|'|>}" },
    { "{'enum':['a','b']}", "{enum:[<|'|>a<|'|>,<|'|>b<|'|>],type:<|'|>STRING<|'|>}" },
    { "{'enum':[1,2.5]}", "{enum:[1,2.5],type:<|'|>['INTEGER', 'NUMBER']<|'|>}" },
    { "{'properties':{'a':{'type':'string'}}}",
      "{properties:{a:{type:<|'|>STRING<|'|>}},type:<|'|>OBJECT<|'|>}" },
};

static void check_schema(const char *schema, const char *want)
{
    struct buf tools = { 0 }, out = { 0 }, all = { 0 };
    struct bz_err err = { "" };
    buf_printf(&tools,
               "[{'function':{'name':'f','description':'','parameters':{'type':'object',"
               "'properties':{'p':%s},'$defs':{'d':{'type':'string','enum':['x'],'description':"
               "'D'},'a/b~':{'type':'boolean'},'tree':{'type':'object','properties':{'kids':"
               "{'type':'array','items':{'$ref':'#/$defs/tree'}},'left':{'$ref':'#/$defs/tree'}},"
               "'required':['kids']}}}}}]",
               schema);
    buf_printf(&all,
               TURN_SYSTEM "<|tool>declaration:f{description:<|'|><|'|>,parameters:{properties:{"
                           "p:%s},type:<|'|>OBJECT<|'|>}}<tool|><turn|>\n" MODEL,
               want);
    CHECK_MSG(!render(&out, "[]", tools.data, (struct chat_options) { 0 }, &err), "%s", err.text);
    char *quoted = quotes(all.data);
    for (char *c = out.data; c && *c; c++) /* of Python's lists, which quotes() cannot spell */
        if (*c == '\'') *c = '"';
    CHECK_STR(out.data, quoted);
    mem_free(quoted);
    buf_free(&tools);
    buf_free(&out);
    buf_free(&all);
}

/* Definitions that each name the next one twice: written out they would be a million. */
static void check_expansion(void)
{
    struct buf tools = { 0 }, out = { 0 };
    struct bz_err err = { "" };
    buf_puts(&tools, "[{'function':{'name':'f','parameters':{'$ref':'#/$defs/d0','$defs':{");
    for (int i = 0; i < 20; i++)
        buf_printf(&tools,
                   "'d%d':{'type':'object','properties':{'a':{'$ref':'#/$defs/d%d'},"
                   "'b':{'$ref':'#/$defs/d%d'}}},",
                   i, i + 1, i + 1);
    buf_puts(&tools, "'d20':{'type':'string'}}}}}]");
    CHECK_MSG(!render(&out, "[]", tools.data, (struct chat_options) { 0 }, &err), "%s", err.text);
    CHECK_MSG(out.n > 1000 && out.n < 50000, "%zu bytes", out.n);
    buf_free(&tools);
    buf_free(&out);
}

/* A long definition that is named often, in every tool and in lists that add up. */
static void check_long_definition(void)
{
    enum { LONG = 200000, TOOLS = 4, TIMES = 100 };
    struct buf tools = { 0 }, out = { 0 };
    struct bz_err err = { "" };
    buf_puts(&tools, "[");
    for (int i = 0; i < TOOLS; i++) {
        buf_printf(&tools, "%s{'function':{'name':'f','parameters':{'properties':{", i ? "," : "");
        for (int k = 0; k < TIMES; k++) buf_printf(&tools, "'p%d':{'$ref':'#/$defs/d'},", k);
        buf_puts(&tools, "'all':{'anyOf':[");
        for (int k = 0; k < TIMES; k++) buf_puts(&tools, "{'$ref':'#/$defs/d'},");
        buf_puts(&tools, "{'type':'null'}]}},'$defs':{'d':{'enum':['");
        for (int k = 0; k < LONG; k++) buf_putc(&tools, 'x');
        buf_puts(&tools, "']}}}}}");
    }
    buf_puts(&tools, "]");
    CHECK_MSG(!render(&out, "[]", tools.data, (struct chat_options) { 0 }, &err), "%s", err.text);
    CHECK_MSG(out.n > 1000000 && out.n < tools.n + 2000000, "%zu bytes", out.n);
    buf_free(&tools);
    buf_free(&out);
}

/* Definitions as deep as JSON can be, each ending in the next. Only so many are written out. */
static void check_depth(void)
{
    enum { DEEP = 50, DEFS = 16 };
    struct buf tools = { 0 }, out = { 0 };
    struct bz_err err = { "" };
    size_t n_levels = 0;
    buf_puts(&tools, "[{'function':{'name':'f','parameters':{'$ref':'#/$defs/d0','$defs':{");
    for (int i = 0; i < DEFS; i++) {
        buf_printf(&tools, "'d%d':", i);
        for (int k = 0; k < DEEP; k++) buf_puts(&tools, "{'type':'object','properties':{'a':");
        buf_printf(&tools, "{'$ref':'#/$defs/d%d'}", i + 1);
        for (int k = 0; k < DEEP; k++) buf_puts(&tools, "}}");
        buf_puts(&tools, ",");
    }
    buf_printf(&tools, "'d%d':{'type':'object'}}}}}]", DEFS);
    CHECK_MSG(!render(&out, "[]", tools.data, (struct chat_options) { 0 }, &err), "%s", err.text);
    for (const char *p = out.data; p && (p = strstr(p, "a:{")); p++) n_levels++;
    CHECK_MSG(n_levels > 150 && n_levels < 300, "%zu levels", n_levels);
    buf_free(&tools);
    buf_free(&out);
}

static char *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *data = NULL;
    *n = 0;
    if (!f) return NULL;
    if (fseek(f, 0, SEEK_END) == 0) {
        long size = ftell(f);
        data = size >= 0 ? mem_alloc((size_t)size + 1, 1) : NULL;
        rewind(f);
        if (data) *n = fread(data, 1, (size_t)size, f);
    }
    fclose(f);
    return data;
}

static bool flag(const struct json *options, const char *key)
{
    const struct json *j = json_get(options, key);
    return j && j->type == JSON_BOOL && j->boolean;
}

static void check_golden(const struct json *c)
{
    const struct json *o = json_get(c, "options");
    struct str name = json_get_str(c, "name"), want = json_get_str(c, "prompt");
    struct chat_options opt = {
        .variant = str_is(json_get_str(o, "variant"), "large") ? CHAT_LARGE : CHAT_SMALL,
        .thinking = flag(o, "thinking"),
        .no_generation_prompt = flag(o, "no_generation_prompt"),
        .preserve_thinking = flag(o, "preserve_thinking"),
    };
    struct marked out = { 0 };
    struct bz_err err = { "" };
    enum bz_status st =
        chat_render(&out, json_get(c, "messages"), json_get(c, "tools"), opt, NULL, &err);
    struct str got = buf_str(&out.text);
    CHECK_MSG(st == BZ_OK && str_eq(got, want), "%.*s: %s\n    got  %.*s\n    want %.*s",
              STR_ARG(name), err.text, STR_ARG(got), STR_ARG(want));
    marked_free(&out);
}

static void check_variants(void)
{
    static const struct {
        const char *renderer, *name;
        uint64_t n_params;
        enum chat_variant want;
    } cases[] = {
        { "gemma4-small", "gemma4:31b", 31000000000u, CHAT_SMALL },
        { "gemma4-large", "gemma4:e2b", 1, CHAT_LARGE },
        { "gemma4", "gemma4:e2b", 99000000000u, CHAT_SMALL },
        { "gemma4", "library/Gemma4:E4B-it-qat", 0, CHAT_SMALL },
        { NULL, "gemma-4-12b-it", 0, CHAT_LARGE },
        { NULL, "gemma4:26B", 0, CHAT_LARGE },
        { NULL, "x-31b", 5, CHAT_LARGE },
        { NULL, "my-tune", 11999999999u, CHAT_SMALL },
        { NULL, "my-tune", 12000000000u, CHAT_LARGE },
        { "", "", 0, CHAT_SMALL },
        { "other", "e2", 0, CHAT_SMALL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum chat_variant got =
            chat_variant_for(cases[i].renderer, str_of(cases[i].name), cases[i].n_params);
        CHECK_MSG(got == cases[i].want, "%s", cases[i].name);
    }
}

int main(void)
{
    struct bz_err err = { "" };
    TEST("the worked examples come out verbatim")
    {
        for (size_t i = 0; i < sizeof worked / sizeof worked[0]; i++) {
            struct buf out = { 0 };
            struct chat_options opt = { .variant = worked[i].how & LARGE ? CHAT_LARGE : CHAT_SMALL,
                                        .thinking = (worked[i].how & THINK) != 0 };
            enum bz_status st = render(&out, worked[i].messages, worked[i].tools, opt, &err);
            char *want = quotes(worked[i].want);
            CHECK_MSG(st == BZ_OK, "example %d: %s", worked[i].id, err.text);
            if (!CHECK_STR(out.data, want)) fprintf(stderr, "    example %d\n", worked[i].id);
            mem_free(want);
            buf_free(&out);
        }
    }

    TEST("our conversations render as the canonical template rendered them")
    {
        size_t n, n_cases = 0;
        char *text = read_file("tests/golden/chat_cases.json", &n);
        struct arena a = { 0 };
        struct json *all = NULL;
        if (text) CHECK_MSG(!json_parse(&all, (struct str) { text, n }, &a, &err), "%s", err.text);
        const struct json *cases = json_get(all, "cases");
        for (const struct json *c = cases ? cases->child : NULL; c; c = c->next, n_cases++)
            check_golden(c);
        CHECK_MSG(n_cases >= 120, "%zu cases", n_cases);
        arena_free(&a);
        mem_free(text);
    }

    TEST("what the template raises on is accepted where the meaning is plain")
    {
        for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
            struct buf out = { 0 };
            struct chat_options opt = { .no_generation_prompt = true };
            CHECK_MSG(!render(&out, beyond[i].messages, beyond[i].tools, opt, &err), "%s",
                      err.text);
            char *want = quotes(beyond[i].want);
            CHECK_STR(out.data ? out.data + strlen("<bos>") : NULL, want);
            mem_free(want);
            buf_free(&out);
        }
    }

    TEST("a bad shape is one sentence that names the message, and leaves the output alone")
    {
        for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
            struct buf out = { 0 };
            buf_puts(&out, "before");
            char *want = quotes(refused[i].sentence);
            enum bz_status st = render(&out, refused[i].messages, refused[i].tools,
                                       (struct chat_options) { 0 }, &err);
            CHECK_MSG(st == BZ_ERR_FORMAT, "%s", refused[i].messages);
            CHECK_MSG(str_starts(str_of(err.text), want), "got %s, want %s", err.text, want);
            CHECK_STR(out.data, "before");
            mem_free(want);
            buf_free(&out);
        }
    }

    TEST("schemas keep their meaning in the keywords that declarations have")
    {
        for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++)
            check_schema(schemas[i].schema, schemas[i].want);
    }

    TEST("references to references do not grow without end") check_expansion();

    TEST("nor does a long definition that is named often") check_long_definition();

    TEST("nor deep ones") check_depth();

    TEST("rendering appends to what is there")
    {
        struct buf out = { 0 };
        buf_puts(&out, "x");
        CHECK(!render(&out, "[" U("q") "]", NULL, (struct chat_options) { 0 }, &err));
        CHECK_STR(out.data, "x<bos><|turn>user\nq<turn|>\n<|turn>model\n");
        buf_free(&out);
    }

    TEST("a failed allocation anywhere is reported and nothing leaks")
    {
        static const char text[] = "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
                                   "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":"
                                   "\"{\\\"b\\\":{\\\"c\\\":1.5},\\\"a\\\":[2]}\"}}]}]";
        struct arena a = { 0 };
        struct json *m = NULL;
        CHECK(json_parse(&m, str_of(text), &a, &err) == BZ_OK);
        int64_t live = mem_live();
        uint64_t k = 0;
        enum bz_status st = BZ_ERR_MEMORY;
        while (m && st == BZ_ERR_MEMORY && k < 1000) {
            struct marked out = { 0 };
            mem_fail_at(++k);
            st = chat_render(&out, m, NULL, (struct chat_options) { 0 }, NULL, &err);
            mem_fail_at(0);
            CHECK(st == BZ_OK || (out.text.n == 0 && out.n_marks == 0));
            marked_free(&out);
            CHECK(mem_live() == live);
        }
        CHECK(st == BZ_OK);
        CHECK(k > 3);
        arena_free(&a);
    }

    TEST("the variant follows the renderer, then the name, then the size") check_variants();

    return check_done();
}
