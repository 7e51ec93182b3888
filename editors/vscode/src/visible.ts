// Text of a model in a message of the editor, so that all of it is seen and none of it does anything.

const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

/** Control and invisible characters as such, and no link: VS Code makes links of Markdown's in messages, also to commands. */
export function visible(text: string): string {
  const shown = text.replace(invisible, (c) => (c === "\n" ? "⏎" : c === "\t" ? "→" : `\\u{${c.codePointAt(0)?.toString(16) ?? ""}}`));
  const plain = shown.replace(/\]\(/g, "]\u2060(");
  const letters = [...plain];
  // Both ends, because what a command does can stand at its end.
  return letters.length <= 600 ? plain : `${letters.slice(0, 400).join("")} … ${letters.slice(-200).join("")}`;
}
