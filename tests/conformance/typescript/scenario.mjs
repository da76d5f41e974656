// What the released TypeScript SDK makes of a daemon: one JSON line for each scenario. The test that runs
// this judges. Argument: {"baseUrl", "headers", "directory", "only"?} as JSON; the directory is scratch space.
import {
  CommandsAdapter,
  FilesystemAdapter,
  HealthAdapter,
  createExecdClient,
} from "@alibaba-group/opensandbox/internal";

const { baseUrl, headers, directory, only } = JSON.parse(process.argv[2]);
const client = createExecdClient({ baseUrl, headers });
const commands = new CommandsAdapter(client, { baseUrl, headers, fetch });
const files = new FilesystemAdapter(client, { baseUrl, headers, fetch });
const health = new HealthAdapter(client);

const UNKNOWN_ID = "0".repeat(32);
const ODD_NAMES = ["two words", "數據 🌍", "a&b=c", "a+b", "50%", "*", "#?", "it's", "q\"uote"];

const at = (name) => `${directory}/${name}`;
const names = (infos) => infos.map((info) => info.path.slice(directory.length + 1));
const put = (name, data) => files.writeFiles([{ path: at(name), data }]);
const read = (name, options) => files.readFile(at(name), options);

async function until(condition, what) {
  for (const deadline = Date.now() + 15_000; ; ) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function raised(call) {
  try {
    return { resolved: await call() };
  } catch (error) {
    return describe(error);
  }
}

function describe(error) {
  const { name, message, statusCode: status, requestId, rawBody } = error;
  const body = typeof rawBody === "string" ? JSON.parse(rawBody) : rawBody;
  return { name, message, status, requestId, body, code: error.error?.code };
}

async function run(command, options, handlers) {
  const { id, exitCode, error, logs, complete } = await commands.run(command, options, handlers);
  const texts = (messages) => messages.map((message) => message.text);
  return {
    id,
    exitCode,
    error: error && { name: error.name, value: error.value },
    complete: Boolean(complete),
    stdout: texts(logs.stdout),
    stderr: texts(logs.stderr),
  };
}

async function background(command) {
  const { id } = await commands.run(command, { background: true });
  return id;
}

const ended = (id) =>
  until(async () => {
    const status = await commands.getCommandStatus(id);
    return !status.running && status;
  }, "end of the command");

// What a method without an answer gives: undefined, from an empty 200.
const nothing = async (promise) => (await promise) === undefined;

const scenarios = {
  ping: () => health.ping(),

  echo: () => run("echo hello"),

  exit_3: () => run("exit 3"),

  stderr: () => run("echo out; echo err >&2"),

  lines: () => run("printf 'one\\n\\ntwo\\nrest'"),

  unicode: () => run("printf '%s\\n' 'grün 數據 🌍'; printf 'a\\342\\200\\250b\\n'"),

  surroundings: () =>
    run("pwd; echo \"$GREETING\"", { workingDirectory: directory, envs: { GREETING: "hallo 🌍" } }),

  timeout: () => run("echo before; exec sleep 60", { timeoutSeconds: 0.5 }),

  events: async () => {
    const types = [];
    for await (const event of commands.runStream("echo hello")) types.push(event.type);
    return types.filter((type) => type !== "ping");
  },

  handlers: async () => {
    const calls = [];
    const note = (name) => () => void calls.push(name);
    await run("echo hello", undefined, {
      onInit: note("init"),
      onStdout: note("stdout"),
      onExecutionComplete: note("complete"),
    });
    return calls;
  },

  background: async () => {
    const id = await background(
      `echo one; until [ -e '${at("go")}' ]; do sleep 0.02; done; echo zwölf; echo err >&2; exit 4`,
    );
    const first = await until(async () => {
      const logs = await commands.getBackgroundCommandLogs(id, 0);
      return logs.content && logs;
    }, "the first line");
    const running = await commands.getCommandStatus(id);
    const empty = await commands.getBackgroundCommandLogs(id, first.cursor);
    await put("go", "");
    const status = await ended(id);
    const rest = await commands.getBackgroundCommandLogs(id, first.cursor);
    const all = await commands.getBackgroundCommandLogs(id);
    return { id, first, running, empty, status, rest, all };
  },

  interrupt_background: async () => {
    const id = await background("exec sleep 60");
    const isVoid = await nothing(commands.interrupt(id));
    return { isVoid, status: await ended(id) };
  },

  interrupt_foreground: async () => {
    let id;
    let interrupted;
    const result = await run("echo up; exec sleep 60", undefined, {
      onInit: (init) => {
        id = init.id;
      },
      onStdout: () => {
        interrupted ??= nothing(commands.interrupt(id));
      },
    });
    return { isVoid: await interrupted, result };
  },

  refused_commands: async () => ({
    status: await raised(() => commands.getCommandStatus(UNKNOWN_ID)),
    logs: await raised(() => commands.getBackgroundCommandLogs(UNKNOWN_ID)),
    interrupt: await raised(() => commands.interrupt(UNKNOWN_ID)),
    odd_id: await raised(() => commands.getCommandStatus("50% ü&")),
    cwd: await raised(() => run("echo ran", { workingDirectory: "/no/such/dir" })),
  }),

  write: async () => {
    const isVoid = await nothing(put("one", "one"));
    await files.writeFiles([
      { path: at("made/several"), data: "ünï 🌍\n", mode: 640 },
      { path: at("made/bytes"), data: Uint8Array.from([0, 255, 13, 10]), mode: 600 },
      { path: at("made/empty") },
      { path: at("made/blob"), data: new Blob(["blob"]) },
      { path: at("made/stream"), data: new Blob(["str", "eam"]).stream(), mode: 755 },
    ]);
    for (const name of ODD_NAMES) await put(`odd/${name}`, name);
    for (const name of ODD_NAMES) await put(`odd stream/${name}`, new Blob([name]).stream());
    return { isVoid, odd: ODD_NAMES };
  },

  read: async () => {
    await put("text", "first\nzwölf\nthird\n");
    await put("raw", Uint8Array.from([0, 255, 13, 10]));
    const pieces = [];
    for await (const piece of files.readBytesStream(at("text"))) pieces.push(piece);
    return {
      text: await read("text"),
      bytes: [...(await files.readBytes(at("raw")))],
      stream: Buffer.concat(pieces).toString(),
      range: await read("text", { range: "bytes=2-4" }),
      tail: await read("text", { range: "bytes=-6" }),
      lines: await read("text", { offset: 2, limit: 1 }),
      missing: await raised(() => read("missing")),
      past_end: await raised(() => read("text", { range: "bytes=100-" })),
    };
  },

  big: async () => {
    const block = Buffer.alloc(1 << 20, "0123456789abcdef\n");
    const blocks = async function* () {
      for (let sent = 0; sent < 4; sent++) yield block;
    };
    await put("big", blocks());
    const back = await files.readBytes(at("big"));
    return { size: back.length, same: Buffer.concat([block, block, block, block]).equals(back) };
  },

  info: async () => {
    await put("info/file", "12345");
    for (const name of ODD_NAMES) await put(`info/${name}`, "");
    const paths = [at("info"), ...["file", ...ODD_NAMES].map((name) => at(`info/${name}`))];
    const found = await files.getFileInfo(paths);
    return {
      asked: paths,
      keys: Object.keys(found),
      file: found[at("info/file")],
      directory: found[at("info")],
      none: await files.getFileInfo([]),
      missing: await raised(() => files.getFileInfo([at("info/missing")])),
    };
  },

  move: async () => {
    await put("move/a", "a");
    await put("move/b", "b");
    const move = (src, dest) => files.moveFiles([{ src: at(src), dest: at(dest) }]);
    return {
      isVoid: await nothing(move("move/a", "move/new/a")),
      text: await read("move/new/a"),
      existing: await raised(() => move("move/new/a", "move/b")),
      missing: await raised(() => move("move/a", "move/c")),
      kept: await read("move/b"),
    };
  },

  permissions: async () => {
    await put("permissions", "");
    const set = (name, options) => files.setPermissions([{ path: at(name), ...options }]);
    return {
      isVoid: await nothing(set("permissions", { mode: 4711 })),
      missing: await raised(() => set("missing", { mode: 600 })),
      owner: await raised(() => set("permissions", { owner: "nosuch" })),
    };
  },

  replace: async () => {
    await put("replace/a", "x é x");
    await put("replace/b", "none");
    const entry = (name, oldContent, newContent) => ({ path: at(`replace/${name}`), oldContent, newContent });
    return {
      counts: await files.replaceContentsDetailed([entry("a", "x", "yy"), entry("b", "x", "y")]),
      isVoid: await nothing(files.replaceContents([entry("a", "é", "🌍")])),
      text: await read("replace/a"),
      missing: await raised(() => files.replaceContents([entry("missing", "x", "y")])),
    };
  },

  listings: async () => {
    for (const name of ["main.py", "src/a.py", "src/c.txt"]) await put(`tree/${name}`, "");
    const search = async (pattern) => names(await files.search({ path: at("tree"), pattern }));
    const list = async (depth) => names(await files.listDirectory({ path: at("tree"), depth }));
    return {
      search: await search("*.py"),
      below: await search("src/*"),
      nothing_found: await search("*.none"),
      all: await search(undefined),
      list: await list(undefined),
      deep: await list(2),
      none: await list(0),
      kinds: (await files.listDirectory({ path: at("tree") })).map((info) => info.type),
      missing_list: await raised(() => files.listDirectory({ path: at("tree/missing") })),
      missing_search: await raised(() => files.search({ path: at("tree/missing"), pattern: "*" })),
    };
  },

  directories: async () => {
    const paths = [at("dirs/a/b"), at("dirs/c")];
    const isVoid = await nothing(
      files.createDirectories([{ path: paths[0], mode: 750 }, { path: paths[1] }, { path: at("dirs/kept") }]),
    );
    const made = await files.getFileInfo(paths);
    await put("dirs/a/b/file", "");
    await put("file", "");
    return {
      isVoid,
      modes: paths.map((path) => made[path].mode),
      deleted: await nothing(files.deleteDirectories([at("dirs/a"), at("dirs/c"), at("dirs/missing")])),
      left: names(await files.listDirectory({ path: at("dirs") })),
      existing: await raised(() => files.createDirectories([{ path: at("file") }])),
    };
  },

  delete: async () => {
    for (const name of ODD_NAMES) await put(`delete/${name}`, "");
    await put("delete/kept/file", "");
    const paths = [...ODD_NAMES, "missing"].map((name) => at(`delete/${name}`));
    return {
      isVoid: await nothing(files.deleteFiles(paths)),
      left: names(await files.listDirectory({ path: at("delete") })),
      directory: await raised(() => files.deleteFiles([at("delete/kept")])),
    };
  },
};

for (const name of only ?? Object.keys(scenarios)) {
  let line;
  try {
    line = { name, result: await scenarios[name]() };
  } catch (error) {
    line = { name, failed: describe(error), stack: error.stack };
  }
  console.log(JSON.stringify(line));
}
