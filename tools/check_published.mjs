// Judges the published schemas as readers without Python would (SPEC-5).
//
// ajv in strict mode compiles each flat schema and agrees with the corpus; json-schema-to-typescript
// takes each; tsc --strict takes its output, our declarations, and a program that uses them.
// `node tools/check_published.mjs [directory]` looks at another checkout than its own.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import Ajv2020 from "ajv/dist/2020.js";
import { compile } from "json-schema-to-typescript";

const root = resolve(process.argv[2] ?? fileURLToPath(new URL("..", import.meta.url)));
const generated = join(root, "generated");
const examples = join(root, "schema", "examples");
const problems = [];

const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const report = (place, problem) => problems.push(`${place}: ${problem}`);

/** Compile each schema; return the validator of each published type. */
function compileSchemas(schemas) {
  const ajv = new Ajv2020.default({ strict: true, allErrors: true });
  const validators = new Map();
  for (const [name, schema] of schemas) {
    try {
      validators.set(schema.title, ajv.compile(schema));
      for (const title of Object.keys(schema.$defs)) {
        const ref = `${schema.$id}#/$defs/${title}`;
        if (!validators.has(title)) validators.set(title, ajv.compile({ $ref: ref }));
      }
    } catch (error) {
      report(`generated/schema/${name}.json`, error.message);
    }
  }
  return validators;
}

/** Each example gets the verdict of its name; types that are not published are not judged. */
function judgeExamples(validators) {
  let judged = 0;
  for (const type of readdirSync(examples).sort()) {
    const validate = validators.get(type);
    if (!validate) continue;
    for (const file of readdirSync(join(examples, type)).sort()) {
      const place = `schema/examples/${type}/${file}`;
      const content = read(join(examples, type, file));
      const valid = file.startsWith("valid-");
      judged += 1;
      if (validate(valid ? content : content.document) === valid) continue;
      report(place, valid ? JSON.stringify(validate.errors) : "is taken, and must not be");
    }
  }
  if (judged === 0) report("schema/examples", "no example was judged");
  return judged;
}

const SAMPLE = `
import type { AgentSpec } from "./agent";
import type { Receipt } from "./receipt";
import type { Record, RunSettled, ToolCompleted } from "./record";
import type { ReportView } from "./report";

const spec: AgentSpec = {
  kind: "agent",
  name: "weather",
  instructions: "Answer in one sentence.",
  model: { model: "gpt-5" },
  tools: [{ kind: "code", name: "weather" }],
};

export function outcome(records: Array<Record>): string | undefined {
  const done = records.filter((record): record is ToolCompleted => record.type === "tool.completed");
  for (const record of records) {
    switch (record.type) {
      case "run.settled": {
        const settled: RunSettled = record;
        return settled.reason?.code ?? settled.state;
      }
      case "model.completed":
        if (record.usage.output_tokens != null && record.usage.output_tokens > done.length) break;
        continue;
    }
  }
  return undefined;
}

export const cost = (report: ReportView): string => report.totals.cost.amount ?? "unknown";
export const limits = spec.limits?.max_turns ?? 32;

// @ts-expect-error a Spec has a model
export const incomplete: AgentSpec = { kind: "agent", name: "a", instructions: "x" };
// @ts-expect-error no such field
export const misspelt: AgentSpec = { ...spec, tool: [] };
// @ts-expect-error seq is a number
export const receipt: Receipt = { run_id: "run_1", seq: "1", head_hash: "" };
// @ts-expect-error no such end
export const end: RunSettled["state"] = "done";
`;

/** Let the compiler judge our declarations, a program that uses them, and the generator's. */
async function judgeTypes(schemas) {
  const folder = mkdtempSync(join(tmpdir(), "psych-types-"));
  try {
    const ours = join(generated, "typescript");
    const files = readdirSync(ours).sort();
    for (const file of files) writeFileSync(join(folder, file), readFileSync(join(ours, file)));
    writeFileSync(join(folder, "sample.ts"), SAMPLE);
    for (const [name, schema] of schemas) {
      const text = await compile(structuredClone(schema), name, { unreachableDefinitions: true });
      writeFileSync(join(folder, `${name}.generated.d.ts`), text);
      files.push(`${name}.generated.d.ts`);
    }
    const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
    const tsc = join(manifest, "..", read(manifest).bin.tsc);
    const options = ["--strict", "--noEmit", "--target", "es2022", "--module", "es2022"];
    options.push("--moduleResolution", "bundler", "--pretty", "false", "--types", "");
    const call = [tsc, ...options, ...files, "sample.ts"];
    execFileSync(process.execPath, call, { cwd: folder, encoding: "utf8" });
    return files.length;
  } catch (error) {
    report("generated/typescript", error.stdout?.trim() || error.message);
    return 0;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const schemas = readdirSync(join(generated, "schema"))
  .filter((file) => file.endsWith(".json"))
  .sort()
  .map((file) => [basename(file, ".json"), read(join(generated, "schema", file))]);
const judged = judgeExamples(compileSchemas(schemas));
const typed = await judgeTypes(schemas);

for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log(`${schemas.length} schemas, ${judged} examples, ${typed} files of declarations agree`);
