// gpu_compiler - kernels as pipelines of a device. What one has compiled serves all that are on
// the device.

import type { KernelInfo } from '../engine/wasm.js';

const SHADER_COMPUTE = 0x4; // GPUShaderStage

/** What a device has compiled: a kernel's module, and its pipelines by their constants. */
interface Compiled {
  readonly module: GPUShaderModule;
  readonly pipelines: Map<string, Promise<GPUComputePipeline>>;
}

/** Who compiles on a device, and hears of its errors. */
interface User {
  fail(why: string): void;
}

/** What all that are on one device share. */
interface Shared {
  // by the kernel's text: whoever comes next need not wait for the compiler again
  readonly compiled: Map<string, Compiled>;
  readonly users: Set<WeakRef<User>>; // an error that no scope has caught is anyone's
}

const devices = new WeakMap<GPUDevice, Shared>();

/** One listener for a device, however many come and go on it. */
function sharedOn(device: GPUDevice): Shared {
  const known = devices.get(device);
  if (known) return known;
  const users = new Set<WeakRef<User>>();
  const made: Shared = { compiled: new Map<string, Compiled>(), users };
  devices.set(device, made);
  device.addEventListener('uncapturederror', (event) => {
    for (const user of users) {
      const who = user.deref();
      if (who) who.fail((event as GPUUncapturedErrorEvent).error.message);
      else users.delete(user);
    }
  });
  return made;
}

export class Compiler {
  private readonly compiled: Map<string, Compiled>;
  // by binding letters and bytes of parameters
  private readonly layouts = new Map<string, [GPUBindGroupLayout, GPUPipelineLayout]>();

  constructor(private readonly device: GPUDevice, user: User) {
    const { compiled, users } = sharedOn(device);
    this.compiled = compiled;
    users.add(new WeakRef(user));
  }

  /** Layouts come from the kernel's letters, so bind groups do not wait for the compiler. They say
   *  how large the parameters are: wgpu takes the size that the first of several pipelines of one
   *  layout asks for as that of all. */
  layoutOf({ bindings, paramsBytes }: KernelInfo): [GPUBindGroupLayout, GPUPipelineLayout] {
    const key = `${bindings} ${paramsBytes}`, known = this.layouts.get(key);
    if (known) return known;
    const types = { u: 'uniform', r: 'read-only-storage', w: 'storage' } as const;
    const entries = [...bindings].map((letter, binding) => ({
      binding,
      visibility: SHADER_COMPUTE,
      buffer: {
        type: types[letter as keyof typeof types], minBindingSize: binding ? 0 : paramsBytes,
      },
    }));
    const group = this.device.createBindGroupLayout({ label: bindings, entries });
    const made: [GPUBindGroupLayout, GPUPipelineLayout] = [
      group, this.device.createPipelineLayout({ bindGroupLayouts: [group] }),
    ];
    this.layouts.set(key, made);
    return made;
  }

  private moduleOf({ name, source }: KernelInfo): Compiled {
    let known = this.compiled.get(source);
    if (!known) {
      this.device.pushErrorScope('validation');
      known = {
        module: this.device.createShaderModule({ label: name, code: source }), pipelines: new Map(),
      };
      this.device.popErrorScope().catch(() => null); // pipeline() has the compiler's own words
      this.compiled.set(source, known);
    }
    return known;
  }

  /** One that is refused throws, in the compiler's own words. */
  async pipeline(
    kernel: KernelInfo, layout: GPUPipelineLayout, constants: Record<string, number>,
  ): Promise<GPUComputePipeline> {
    const { name, source } = kernel, { module, pipelines } = this.moduleOf(kernel);
    const key = JSON.stringify(constants);
    try {
      const made = pipelines.get(key)
        ?? this.device.createComputePipelineAsync({
          label: name, layout, compute: { module, entryPoint: 'main', constants },
        });
      pipelines.set(key, made);
      return await made;
    } catch (e) {
      pipelines.delete(key);
      const said = await module.getCompilationInfo?.();
      const error = said?.messages.find((m) => m.type === 'error');
      const line = error ? source.split('\n')[error.lineNum - 1] : undefined;
      const what = error ? error.message : e instanceof Error ? e.message : String(e);
      throw new Error(`kernel ${name}: ${what}${line ? ` (in: ${line})` : ''}`);
    }
  }
}
