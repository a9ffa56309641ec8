// Every change that this process makes to the disk, one at a time and before it happens. It replaces functions of
// node:fs, so it has to be loaded before whatever imports them: first of all imports, or with `node --import`.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { dirname, sep } from "node:path";

const real = { ...fs, promises: { ...fs.promises } };
const watches = new Set();
const paths = new Map();
let inside = 0;

export function watchDisk(directory, watch) {
  const entry = { prefix: directory + sep, directory, watch };
  watches.add(entry);
  return () => watches.delete(entry);
}

function watchesOf(path) {
  return [...watches].filter(
    ({ prefix, directory }) => path === directory || path.startsWith(prefix),
  );
}

function announce(change) {
  for (const { watch } of watchesOf(change.path)) watch.before?.(change);
}

function conclude(change) {
  if (change.kind === "rename") follow(change.path, change.to);
  for (const { watch } of watchesOf(change.path)) watch.after?.(change);
}

/** An open file keeps its descriptor when its directory gets another name. */
function follow(from, to) {
  for (const [fd, path] of paths) {
    if (path === from || path.startsWith(from + sep)) paths.set(fd, to + path.slice(from.length));
  }
}

function around(change, perform) {
  if (inside > 0 || change === undefined) return perform();
  announce(change);
  inside += 1;
  try {
    const result = perform();
    conclude(change);
    return result;
  } finally {
    inside -= 1;
  }
}

async function aroundLater(change, perform) {
  if (change === undefined) return perform();
  announce(change);
  const result = await perform();
  conclude(change);
  return result;
}

const text = (path) => (path instanceof URL ? path.pathname : String(path));
const bytesOf = (data) =>
  typeof data === "string"
    ? Buffer.from(data)
    : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
const ofFd = (fd, change) => {
  const path = paths.get(fd);
  return path === undefined ? undefined : { path, ...change };
};

function creation(path, flags) {
  const creates =
    typeof flags === "number" ? (flags & fs.constants.O_CREAT) !== 0 : /[wa]/.test(flags ?? "r");
  if (!creates || watchesOf(path).length === 0 || real.existsSync(path)) return undefined;
  return { kind: "create", path };
}

function written(buffer, offset, length, position) {
  const from = typeof offset === "number" ? offset : 0;
  const bytes = bytesOf(buffer).subarray(
    from,
    typeof length === "number" ? from + length : undefined,
  );
  return { kind: "write", bytes, position: typeof position === "number" ? position : null };
}

fs.openSync = (path, flags, mode) => {
  const fd = around(creation(text(path), flags), () => real.openSync(path, flags, mode));
  paths.set(fd, text(path));
  return fd;
};
fs.closeSync = (fd) => {
  paths.delete(fd);
  real.closeSync(fd);
};
fs.writeSync = (fd, buffer, offset, length, position) =>
  around(ofFd(fd, written(buffer, offset, length, position)), () =>
    real.writeSync(fd, buffer, offset, length, position),
  );
fs.fdatasyncSync = (fd) => around(ofFd(fd, { kind: "sync" }), () => real.fdatasyncSync(fd));
fs.fsyncSync = (fd) => around(ofFd(fd, { kind: "sync" }), () => real.fsyncSync(fd));
fs.ftruncateSync = (fd, length) =>
  around(ofFd(fd, { kind: "truncate", length: length ?? 0 }), () => real.ftruncateSync(fd, length));
fs.renameSync = (from, to) =>
  around({ kind: "rename", path: text(from), to: text(to) }, () => real.renameSync(from, to));
fs.mkdirSync = (path, options) =>
  around({ kind: "mkdir", path: text(path) }, () => real.mkdirSync(path, options));
fs.rmSync = (path, options) =>
  around({ kind: "remove", path: text(path) }, () => real.rmSync(path, options));
fs.unlinkSync = (path) => around({ kind: "remove", path: text(path) }, () => real.unlinkSync(path));
for (const name of ["fdatasync", "fsync"]) {
  fs[name] = (fd, done) => {
    const change = ofFd(fd, { kind: "sync" });
    try {
      if (change !== undefined) announce(change);
    } catch (error) {
      process.nextTick(done, error);
      return;
    }
    real[name](fd, (error) => {
      if (!error && change !== undefined) conclude(change);
      done(error);
    });
  };
}

const { promises } = fs;
promises.open = async (path, flags, mode) => {
  const name = text(path);
  const handle = await aroundLater(creation(name, flags), () =>
    real.promises.open(path, flags, mode),
  );
  paths.set(handle.fd, name);
  return handle;
};
promises.writeFile = async (target, data, options) => {
  if (typeof target === "object" && "fd" in target) {
    // several pieces are several changes
    if (!(Symbol.asyncIterator in data)) return target.writeFile(data);
    for await (const piece of data) await target.writeFile(piece);
    return;
  }
  if (watchesOf(text(target)).length === 0) return real.promises.writeFile(target, data, options);
  const { flag = "w", mode = 0o666 } =
    typeof options === "object" && options !== null ? options : {};
  const file = await promises.open(target, flag, mode);
  try {
    await file.writeFile(data);
  } finally {
    await file.close();
  }
};
promises.rename = (from, to) =>
  aroundLater({ kind: "rename", path: text(from), to: text(to) }, () =>
    real.promises.rename(from, to),
  );
promises.mkdir = (path, options) => {
  const name = text(path);
  // a directory that is there already is not made
  if (options?.recursive === true && real.existsSync(name))
    return real.promises.mkdir(path, options);
  return aroundLater({ kind: "mkdir", path: name }, () => real.promises.mkdir(path, options));
};
for (const name of ["rm", "unlink"]) {
  promises[name] = (path, options) =>
    real.existsSync(path)
      ? aroundLater({ kind: "remove", path: text(path) }, () => real.promises[name](path, options))
      : real.promises[name](path, options);
}

const handle = await real.promises.open(new URL(import.meta.url));
const prototype = Object.getPrototypeOf(handle);
await handle.close();
const handles = {};
for (const name of ["write", "writeFile", "sync", "datasync", "truncate", "close"]) {
  handles[name] = prototype[name];
}
prototype.write = function (buffer, offset, length, position) {
  return aroundLater(ofFd(this.fd, written(buffer, offset, length, position)), () =>
    handles.write.call(this, buffer, offset, length, position),
  );
};
prototype.writeFile = function (data, options) {
  const change = paths.has(this.fd) ? { kind: "write", bytes: bytesOf(data), position: null } : {};
  return aroundLater(ofFd(this.fd, change), () => handles.writeFile.call(this, data, options));
};
for (const name of ["sync", "datasync"]) {
  prototype[name] = function () {
    return aroundLater(ofFd(this.fd, { kind: "sync" }), () => handles[name].call(this));
  };
}
prototype.truncate = function (length) {
  return aroundLater(ofFd(this.fd, { kind: "truncate", length: length ?? 0 }), () =>
    handles.truncate.call(this, length),
  );
};
prototype.close = function () {
  paths.delete(this.fd);
  return handles.close.call(this);
};
syncBuiltinESMExports();

/** Writes the first half of a change's bytes as a kernel does that is interrupted; nothing for other changes. */
export function writeHalf({ kind, path, bytes, position }) {
  if (kind !== "write") return;
  const fd = real.openSync(path, "r+");
  const half = bytes.subarray(0, Math.floor(bytes.byteLength / 2));
  real.writeSync(fd, half, 0, half.byteLength, position ?? real.fstatSync(fd).size);
  real.closeSync(fd);
}

/** Whether a change is an append to a session's log. */
export function isAppend({ kind, path }) {
  return kind === "write" && path.endsWith("events.jsonl") && !dirname(path).endsWith(".tmp");
}

const plan = process.env.COOKIE_TEST_KILL;
if (plan !== undefined) {
  const { directory, at, when } = JSON.parse(plan);
  const kill = () => process.kill(process.pid, "SIGKILL");
  let appends = 0;
  let target;
  watchDisk(directory, {
    before(change) {
      if (isAppend(change)) {
        appends += 1;
        if (appends === at) target = change;
      }
      if (change !== target) return;
      if (when === "torn") writeHalf(change);
      if (when === "before" || when === "torn") kill();
    },
    after(change) {
      if (target === undefined || change.path !== target.path) return;
      if (change.kind === (when === "written" ? "write" : "sync")) kill();
    },
  });
}
