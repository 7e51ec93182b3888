import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { isBrokenPipe } from "../../src/pipe";

test("writing to a program that has ended is a broken pipe", async () => {
  const child = spawn(process.execPath, ["-e", ""], { stdio: ["pipe", "ignore", "ignore"] });
  await once(child, "exit");
  const err = await new Promise<unknown>((resolve) => {
    child.stdin.on("error", resolve);
    const write = (): void => void child.stdin.write("x".repeat(1 << 20), (e) => (e instanceof Error ? resolve(e) : write()));
    write();
  });
  assert.ok(isBrokenPipe(err), String(err));
});

test("what a daemon answers, and what is wrong with a request, is no broken pipe", () => {
  for (const err of [new Error("no such session"), Object.assign(new Error("no"), { code: -32602 }), "EPIPE", undefined]) assert.ok(!isBrokenPipe(err));
});
