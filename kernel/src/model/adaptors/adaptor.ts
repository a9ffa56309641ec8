import type { LanguageModelV3, SharedV3ProviderOptions } from "@ai-sdk/provider";
import type { MediaKind, MediaPlacement } from "@cookie-agent/sdk/protocol";
import type { ModelCapabilities } from "../../config/provider-config.ts";
import type { ModelBehaviour } from "../model-behaviour.ts";

/** Everything a provider package is opened with; nothing of it may come from the process environment (C-148). */
export interface ModelTarget {
  /** Base address without a trailing slash. */
  readonly endpoint: string;
  readonly behaviour: ModelBehaviour;
  readonly capabilities: ModelCapabilities;
  /** The key where the method sends it as the package expects; empty where the exchange does it. */
  readonly apiKey: string;
  /** Authored static headers and the user agent. */
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: typeof fetch;
}

export interface OpenedModel {
  readonly model: LanguageModelV3;
  /** Options of one request; some are refused by the wire when it carries no tools. */
  providerOptions(hasTools: boolean): SharedV3ProviderOptions;
}

/** The part of an adaptor that needs its provider package. */
export interface AdaptorModule {
  openModel(target: ModelTarget): OpenedModel;
  /** Call ids named in one raw wire event, where the package renames a repeated id (B118). */
  readonly readWireCallIds?: (event: unknown) => string[];
}

export interface MediaDelivery {
  readonly placement: MediaPlacement;
  /** Raw bytes of one part. */
  readonly maxBytes: number;
}

/** What is known of an adaptor before its provider package is loaded (C 5.6, 5.7). */
export interface AdaptorFacts {
  readonly id: string;
  /** The namespace of native metadata in responses, and the one in which requests give it back. */
  readonly metadataKey: string;
  readonly replayKey: string;
  /** Reasoning efforts the wire knows; null: any text. */
  readonly efforts: readonly string[] | null;
  readonly promptCaching: boolean;
  /** The package adds a thinking budget to the output limit (C-158). */
  readonly addsBudgetToOutput: boolean;
  readonly plainReasoning: boolean;
  readonly portableIds: boolean;
  /** The package maps each message of a prompt on its own, so what went out before need not be mapped again. */
  readonly mapsMessagesAlone: boolean;
  /** How the wire carries media that tools return; a kind that is left out cannot be delivered (C 5.12). */
  readonly media: Readonly<Partial<Record<MediaKind, MediaDelivery>>>;
  /** The wire takes tool schemas as strict unless told otherwise. */
  readonly strictByDefault: boolean;
  load(): Promise<AdaptorModule>;
}
