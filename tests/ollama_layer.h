/* ollama_layer.h - a layer of Ollama's manifests, as text. */
#ifndef BEZEL_TESTS_OLLAMA_LAYER_H
#define BEZEL_TESTS_OLLAMA_LAYER_H

#define HEX64 "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef"
#define LAYER(kind, digest, size)                                                                  \
    "{\"mediaType\":\"application/vnd.ollama.image." kind "\",\"digest\":\"" digest                \
    "\",\"size\":" size "}"

#endif
