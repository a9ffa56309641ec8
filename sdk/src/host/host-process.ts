import { settledWithin } from "../plugin/settled-within.ts";
import { type SharedHostLease, setSharedHostSlot } from "../plugin/shared-host-slot.ts";
import { CookieError } from "../protocol/errors.ts";
import type { LineTransport } from "../rpc/line-transport.ts";
import type { Transport } from "../rpc/transport.ts";
import { serveControl } from "./control-channel.ts";
import { loadEntry } from "./load-entry.ts";

const CONTROL_CHANNEL = "$host";
/** How long plugins may clean up after the input has ended. */
const STOP_WAIT_MS = 3000;

interface Attached {
  readonly channel: Transport;
  readonly stopped: Promise<void>;
}

/** A process that several plugins share, each on a channel of its own (E-014). */
export class HostProcess {
  readonly #line: LineTransport;
  readonly #report: (error: unknown) => void;
  readonly #attached = new Map<string, Attached>();
  /** The attach whose entry may take its channel now; entries are loaded one at a time, so it is never ambiguous. */
  #offer: ((stopped: Promise<void>) => Transport) | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(line: LineTransport, report: (error: unknown) => void) {
    this.#line = line;
    this.#report = report;
  }

  /** Resolves when the input has ended and every plugin has stopped or had its time. */
  async run(): Promise<void> {
    setSharedHostSlot({ take: () => this.#take() });
    await serveControl(this.#line.channel(CONTROL_CHANNEL), {
      attach: (request) => this.#enqueue(() => this.#attach(request)),
      detach: ({ plugin }) => this.#detach(plugin),
    });
    await settledWithin(
      [...this.#attached.values()].map(({ stopped }) => stopped),
      STOP_WAIT_MS,
    );
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  async #attach(request: { plugin: string; entry: string; sha256: string | null }): Promise<void> {
    const { plugin } = request;
    if (this.#attached.has(plugin)) {
      throw new CookieError("busy", `plugin ${plugin} is attached already`);
    }
    const channel = this.#line.channel(plugin);
    try {
      await loadEntry(request, {
        report: this.#report,
        taken: new Promise((resolve) => {
          this.#offer = (stopped) => {
            const attached = { channel, stopped: stopped.then(() => this.#forget(plugin)) };
            this.#attached.set(plugin, attached);
            resolve();
            return channel;
          };
        }),
      });
    } catch (error) {
      channel.close();
      throw error;
    } finally {
      this.#offer = undefined;
    }
  }

  async #detach(plugin: string): Promise<void> {
    const attached = this.#attached.get(plugin);
    if (attached === undefined) return;
    attached.channel.close();
    await attached.stopped;
  }

  #forget(plugin: string): void {
    this.#attached.delete(plugin);
  }

  #take(): SharedHostLease {
    const offer = this.#offer;
    this.#offer = undefined;
    if (offer === undefined) {
      throw new CookieError("protocol_violation", "serve was called twice, or after the attach");
    }
    let release = () => {};
    const stopped = new Promise<void>((resolve) => {
      release = resolve;
    });
    return { transport: offer(stopped), release: () => release() };
  }
}
