// A user's program: what the package's types must accept, and (commented as errors) what they must
// refuse.
import {
  BezelError, DeviceError, Engine, languageModel, type ChatCompletionChunk, type ChatMessage,
  type Tool,
} from 'bezel';

const messages: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
];
const tools: Tool[] = [{
  type: 'function', function: { name: 'clock', parameters: { type: 'object', properties: {} } },
}];

export async function main(file: File): Promise<string> {
  const stop = new AbortController();
  try {
    const engine = await Engine.load(file, {
      backend: 'cpu',
      signal: stop.signal,
      context: 4096,
      onProgress: ({ phase, loaded, total }) => console.log(phase, loaded / total),
    });
    const stream = await engine.chat.completions.create({
      messages, tools, stream: true, stream_options: { include_usage: true },
    });
    let last: ChatCompletionChunk | undefined;
    for await (const chunk of stream) last = chunk;
    const whole =
      await engine.chat.completions.create({ messages, thinking: true, signal: stop.signal });
    const thought: string | undefined = whole.choices[0]?.message.reasoning_content;
    const ids: Int32Array = await engine.tokenize('Hi');
    const session = engine.session();
    const snapshot: Uint8Array = await session.save();
    const twin = await session.fork();
    await twin.restore(snapshot);
    const model = await languageModel(engine).create({ topK: 3 });
    const text: ReadableStream<string> = model.promptStreaming('Hi');
    await engine.dispose();
    // @ts-expect-error an answer that is not a stream has no async iterator
    for await (const _ of whole);
    // @ts-expect-error temperatures are numbers
    await engine.chat.completions.create({ messages, temperature: 'hot' });
    // @ts-expect-error there is no such role
    await engine.chat.completions.create({ messages: [{ role: 'robot', content: '' }] });
    return `${last?.usage?.total_tokens}${thought}${ids.length}${text.locked}`;
  } catch (e) {
    if (e instanceof DeviceError) return `no GPU: ${e.message}`;
    if (e instanceof BezelError && e.kind === 'not-found') return 'where is it?';
    throw e;
  }
}
