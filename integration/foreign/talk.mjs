// node talk.mjs CLIENT WAY: one conversation with a running daemon. It prints
// "ok NAME" for every check that held and stops at the first that did not.
//
// The environment names the program (TMUX_MCPD), the daemon's socket
// (TMUX_MCPD_LISTEN), a pane that runs cat (CAT_PANE), one with a long history
// of numbered lines (LONG_PANE, LINES), one that runs a shell (SHELL_PANE), and the tmux to type with
// (TMUX_MCPD_TMUX_BIN, TMUX_MCPD_TMUX_SOCKET_PATH).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { connect } from "./clients.mjs";

const [kind, way] = process.argv.slice(2);
const env = process.env;
const cat = env.CAT_PANE;

function tmux(...args) {
  execFileSync(env.TMUX_MCPD_TMUX_BIN, ["-u", "-S", env.TMUX_MCPD_TMUX_SOCKET_PATH, ...args]);
}

// The tools that are selected unless somebody says otherwise, with arguments for a
// call that succeeds and leaves others what they need.
const calls = {
  call_read_tools_batch: {
    operations: [{ tool: "list_panes" }, { tool: "get_pane_info", arguments: { paneId: "%999" } }],
    onError: "continue",
  },
  capture_pane: { paneId: cat },
  capture_since: { paneId: cat },
  find_pane_by_position: { windowId: "@0", corner: "top-left" },
  get_pane_info: { paneId: cat },
  get_command_output: { paneId: env.SHELL_PANE }, // of the run below
  get_run: {}, // of the run below
  get_server_info: {},
  get_session_info: { session: "main" },
  get_tmux_variables: { names: ["pane_id"], paneId: cat },
  get_window_info: { windowId: "@0" },
  list_commands: { paneId: env.SHELL_PANE },
  list_panes: {},
  list_runs: { paneId: env.SHELL_PANE },
  list_sessions: {},
  list_windows: { session: "main" },
  search_panes: { pattern: "no such text" },
  show_environment: { session: "main" },
  show_hooks: {},
  signal_channel: { channel: `${kind}-${way}` },
  show_option: { name: "status-left", scope: "session", target: "main" },
  snapshot_pane: { paneId: cat },
  wait_for_channel: { channel: `${kind}-${way}` },
  wait_for: { conditions: [{ kind: "output", paneId: cat }], timeoutMs: 1 },
  wait_for_text: { paneId: cat, timeoutMs: 1 },
  what_changed: {},
  create_session: {},
  create_window: { session: "main" },
  move_window: { windowId: "@0" },
  rename_session: { session: "main", name: "main" },
  rename_window: { windowId: "@0", name: "w" },
  resize_pane: { paneId: cat },
  resize_window: { windowId: "@0", width: 80, height: 24 },
  select_layout: { windowId: "@0", layout: "tiled" },
  select_pane: { paneId: cat },
  select_window: { windowId: "@0" },
  respawn_pane: { paneId: cat, killFirst: true },
  set_history_limit: { lines: 2000 },
  set_mouse_enabled: { enabled: false },
  set_pane_title: { paneId: cat, title: "cat" },
  set_synchronize_panes: { windowId: "@0", enabled: false },
  split_window: { paneId: cat },
  interrupt_run: {},
  run_shell_command: { paneId: env.SHELL_PANE, command: "true", timeoutMs: 50000 },
  swap_pane: { paneId: cat, otherPaneId: cat },
  send_keys: { paneId: cat, keys: "", enter: false },
  send_keys_batch: { operations: [{ pane_id: cat, keys: "", enter: false }] },
  paste_text: { paneId: cat, text: "" },
};

const checks = {
  // The version is the newest that the client can speak in this era.
  version({ version, client }) {
    assert.equal(version(), kind === "sdk2-2026" ? "2026-07-28" : "2025-11-25");
    assert.equal(client.getServerVersion()?.name, "tmux-mcpd");
    assert.equal(client.getServerCapabilities().tools.listChanged, true);
    assert.match(client.getInstructions(), /list_panes/);
  },

  // The clients compile every output schema while they list.
  async list({ client }) {
    const { tools } = await client.listTools();
    assert.deepEqual(tools.map((tool) => tool.name), Object.keys(calls).sort());
    for (const tool of tools) {
      assert.equal(tool.inputSchema.type, "object", tool.name);
      assert.equal(tool.outputSchema.type, "object", tool.name);
      assert.equal(typeof tool.annotations.readOnlyHint, "boolean", tool.name);
      assert.equal(tool._meta["com.git-pull.libtmux-mcp/capability"].name, tool.name);
    }
  },

  // The clients check each answer against the tool's output schema themselves.
  async call({ call }) {
    let run;
    do { // the shell may still be starting
      run = await call("run_shell_command", calls.run_shell_command);
    } while (run.isError && /not at the prompt/.test(run.content[0].text));
    assert.equal(run.structuredContent?.exitStatus, 0, run.content[0].text);
    calls.get_run.runId = calls.interrupt_run.runId = run.structuredContent.runId;
    for (const [name, args] of Object.entries(calls)) {
      const result = await call(name, args);
      assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
      assert.equal(typeof result.structuredContent, "object", name);
      assert.equal(result.content[0].type, "text", name);
    }
    const { structuredContent } = await call("list_panes", { session: "main" });
    assert.ok(structuredContent.panes.some((pane) => pane.id === cat));
  },

  // What is listed can be read, templates make addresses of what completes them,
  // and the addresses come back from the client's own reading of the template.
  async resource({ client, UriTemplate, call }) {
    const number = cat.slice(1);
    const screen = `tmux://panes/${number}/content`;
    const { resources } = await client.listResources();
    const uris = resources.map((r) => r.uri);
    assert.deepEqual(uris.slice(0, 4), ["tmux://capabilities", "tmux://sessions", "tmux://windows", "tmux://panes"]);
    assert.ok(uris.includes(screen), uris.join());
    assert.match(resources.find((r) => r.uri === screen).name, /^main:\d+\.0 /);
    const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
    assert.deepEqual(JSON.parse(await read("tmux://capabilities")).effectiveTools, Object.keys(calls).sort());
    const { structuredContent } = await call("snapshot_pane", { paneId: cat });
    const { resourceTemplates } = await client.listResourceTemplates();
    const template = resourceTemplates.find((t) => t.uriTemplate.endsWith("/content")).uriTemplate;
    const made = new UriTemplate(template);
    for (const typed of ["", number, cat]) {
      const ref = { type: "ref/resource", uri: template };
      const { completion } = await client.complete({ ref, argument: { name: "paneId", value: typed } });
      const value = typed === cat ? cat : number;
      assert.ok(completion.values.includes(value), completion.values.join());
      assert.equal(await read(made.expand({ paneId: value })), structuredContent.content);
    }
    assert.equal(made.expand({ paneId: number }), screen);
    assert.deepEqual({ ...made.match(screen) }, { paneId: number });
    assert.equal(await read(`tmux://panes/${cat}/content`), structuredContent.content);
    assert.equal(JSON.parse(await read("tmux://sessions/main/panes")).complete, true);
    await assert.rejects(client.readResource({ uri: "tmux://panes/999/content" }), /pane %999 does not exist/);
  },

  // A subscriber hears that the pane shows something else, reads it, and hears
  // nothing once it has unsubscribed.
  async subscribe({ client, subscribe, call, complaints }) {
    const uri = `tmux://panes/${cat}/content`;
    const word = `told-${kind}-${way}`;
    let told = 0;
    let wake = () => {};
    const unsubscribe = await subscribe(uri, ({ params }) => {
      assert.equal(params.uri, uri);
      told++;
      wake();
    });
    tmux("send-keys", "-t", cat, word, "Enter");
    for (let seen = "", heard = 0; !seen.includes(word);) {
      if (told === heard) await new Promise((resolve) => (wake = resolve));
      heard = told;
      seen = (await client.readResource({ uri })).contents[0].text;
    }
    await unsubscribe();
    await call("list_sessions", {}); // what was on its way has come
    const before = told;
    const { structuredContent: seed } = await call("capture_since", { paneId: cat });
    tmux("send-keys", "-t", cat, "later", "Enter");
    await call("capture_since", { paneId: cat, cursor: seed.cursor, waitMs: 20000 });
    await call("list_sessions", {});
    assert.equal(told, before);
    assert.deepEqual(complaints, []);
  },

  async error({ call }) {
    const absent = await call("get_pane_info", { paneId: "%999" });
    assert.equal(absent.isError, true);
    assert.equal(absent.structuredContent, undefined);
    assert.match(absent.content[0].text, /pane %999 does not exist/);
    const misspelt = await call("get_pane_info", { paneID: cat });
    assert.equal(misspelt.isError, true);
    assert.match(misspelt.content[0].text, /did you mean paneId\?/);
    await assert.rejects(call("no_such_tool", {}), (err) => err.code === -32602);
  },

  // A cancelled wait is given up at once, is never answered, and costs neither
  // the session nor the pane's output.
  async cancel({ call }) {
    const { structuredContent: seed } = await call("capture_since", { paneId: cat });
    const stop = new AbortController();
    const wait = call("capture_since", { paneId: cat, cursor: seed.cursor, waitMs: 50000 }, { signal: stop.signal });
    const rejected = assert.rejects(wait);
    await call("list_sessions", {}); // read after the wait, so that has begun
    stop.abort(new Error("changed our mind"));
    await rejected;
    await call("list_sessions", {}); // read after the cancellation, which is then known
    tmux("send-keys", "-t", cat, `${kind}-${way}`, "Enter"); // would end the wait
    const after = await call("capture_since", { paneId: cat, cursor: seed.cursor, waitMs: 20000 });
    assert.notEqual(after.structuredContent.text, "");
  },

  // A client that gives a progress handler is told that a wait goes on, and gets
  // nothing more once it has cancelled. The wait before the first report is long.
  async progress({ call, complaints }) {
    const stop = new AbortController();
    const told = [];
    let first;
    const reported = new Promise((resolve) => (first = resolve));
    const onprogress = (p) => {
      told.push(p);
      first();
    };
    const args = { paneId: cat, patterns: ["never printed"], timeoutMs: 300000 };
    const rejected = assert.rejects(call("wait_for_text", args, { signal: stop.signal, onprogress, timeout: 120000 }));
    await reported;
    assert.match(told[0].message, /^still waiting/);
    stop.abort(new Error("changed our mind"));
    await rejected;
    const n = told.length;
    await call("list_sessions", {}); // what was on its way has come
    assert.equal(told.length, n);
    assert.deepEqual(complaints, []);
  },

  // Fifteen captures in one answer of 0.9 MB. The rows come whole and in order.
  async large({ call }) {
    const capture = { tool: "capture_pane", arguments: { paneId: env.LONG_PANE, start: -9999, maxLines: 9999 } };
    const result = await call("call_read_tools_batch", { operations: Array(15).fill(capture) });
    assert.ok(JSON.stringify(result).length > 900_000);
    const { results, succeeded, truncated } = result.structuredContent;
    assert.deepEqual({ succeeded, truncated }, { succeeded: 15, truncated: false });
    for (const row of results) {
      const { text, returnedBytes } = row.result.structuredContent;
      assert.equal(Buffer.byteLength(text), returnedBytes);
      const numbers = text.split("\n").filter((line) => line !== "").map(Number);
      assert.equal(numbers.at(-1), Number(env.LINES));
      numbers.forEach((n, i) => assert.equal(n, numbers[0] + i));
    }
  },

  async parallel({ call }) {
    const some = Array.from({ length: 32 }, (_, i) => `history_size_${i}`);
    const answers = await Promise.all(some.map((name) => call("get_tmux_variables", { names: [name] })));
    answers.forEach((answer, i) => assert.deepEqual(Object.keys(answer.structuredContent.values), [some[i]]));
  },

  // An answer to a cancelled or unknown request would be here.
  complaints({ complaints }) {
    assert.deepEqual(complaints, []);
  },
};

const face = await connect(kind, way, env);
for (const [name, check] of Object.entries(checks)) {
  try {
    await check(face);
  } catch (err) {
    console.error(`${kind} over ${way}: ${name}:`, err);
    process.exit(1);
  }
  console.log("ok", name);
}
await face.client.close();
