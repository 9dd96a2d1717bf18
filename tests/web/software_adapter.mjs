// software_adapter - tests run on a software adapter, wherever they run: Chromium's for Dawn (Node), Mesa's for
// wgpu (Deno). BEZEL_ADAPTER=real takes the machine's own. Imported for its effect, before any device.
const chromium = '/usr/lib/chromium/vk_swiftshader_icd.json'; // of Debian's chromium
const mesa = '/usr/share/vulkan/icd.d/lvp_icd.x86_64.json'; // of Debian's mesa-vulkan-drivers
if (process.env.BEZEL_ADAPTER !== 'real') process.env.VK_ICD_FILENAMES ??= 'Deno' in globalThis ? mesa : chromium;
