// Calls tools outside this sandbox, over the one socket that leads there. The sandbox needs no
// network and holds no key for it: who may call what is decided outside.
import { createConnection } from "node:net";

const SOCKET = "/holt/tools.sock";

/** A tool failed, or was refused. `code` is JSON-RPC's, or undefined when the tool itself failed. */
export class ToolError extends Error {
  constructor(message, more = {}) {
    super(message);
    this.name = "ToolError";
    Object.assign(this, more);
  }
}

function ask(line) {
  return new Promise((resolve, reject) => {
    const parts = [];
    const socket = createConnection({ path: SOCKET });
    socket.on("connect", () => socket.end(line));
    socket.on("data", (part) => parts.push(part));
    socket.on("end", () => resolve(Buffer.concat(parts).toString()));
    socket.on("error", (e) => reject(new ToolError("this sandbox has no tools: " + e.message)));
  });
}

/** One request, and its result; ToolError for an error. */
export async function request(method, params) {
  const line = await ask(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) + "\n");
  if (!line.endsWith("\n")) throw new ToolError("the connection to the tools is lost");
  const answer = JSON.parse(line);
  if (answer.error) {
    throw new ToolError(answer.error.message, { code: answer.error.code, data: answer.error.data });
  }
  return answer.result;
}

/**
 * Calls a tool by its names. Resolves to what the tool says in structure, or its text, or else its
 * content as it came.
 */
export async function call(server, tool, args = {}) {
  const result = await request("tools/call", { server, name: tool, arguments: args });
  const content = result.content ?? [];
  const texts = content.filter((part) => part.type === "text").map((part) => part.text);
  if (result.isError) throw new ToolError(texts.join("\n") || "the tool failed", { result });
  if (result.structuredContent !== undefined) return result.structuredContent;
  return texts.length === content.length ? texts.join("\n") : content;
}

/** Tools that fit the words best; detail is "name", "summary" or "full". */
export async function search(query = "", detail = "summary") {
  return (await request("tools/search", { query, detail })).tools;
}
