import assert from "node:assert/strict";
import { test } from "node:test";
import { indent } from "../../src/indented";

// guards M7: what is shown of an input is what was sent, but for white space between tokens
test("indenting changes no number, escape or order", () => {
  const body = '{"b":1.0,"a":12345678901234567890,"e":1E5,"s":"\\u00e9 \\/ \\" {[,:]}","b":2,"n":null,"o":{},"l":[],"t":[1,{"x":[true]}]}';
  assert.equal(indent(body).text, `{
  "b": 1.0,
  "a": 12345678901234567890,
  "e": 1E5,
  "s": "\\u00e9 \\/ \\" {[,:]}",
  "b": 2,
  "n": null,
  "o": {},
  "l": [],
  "t": [
    1,
    {
      "x": [
        true
      ]
    }
  ]
}
`);
});

test("nothing but white space between tokens is ever added or lost", () => {
  for (const text of ["", "{", "]}", "not json", '{"open', "[[", '{"a" 1}', '"é😀"', '{"a":[1 2]}', "\u2028{}"]) {
    assert.equal(indent(text).text.replace(/\s/g, ""), text.replace(/\s/g, ""), text);
  }
});

test("a part's bytes are found on their lines, also behind characters of several bytes", () => {
  const body = '{"messages":[{"role":"user","content":"é😀"},{"role":"assistant"}],"x":1}';
  const at = (needle: string): number => Buffer.byteLength(body.slice(0, body.indexOf(needle)));
  const i = indent(body);
  const line = (needle: string): string | undefined => i.text.split("\n")[i.lineOf(at(needle))]?.trim();
  assert.equal(line('{"role":"assistant"'), "{");
  assert.equal(line('"assistant"'), '"role": "assistant"');
  assert.equal(line('"x"'), '"x": 1');
  assert.equal(i.lineOf(0), 0);
});
