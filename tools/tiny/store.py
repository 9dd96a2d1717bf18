#!/usr/bin/env python3
"""Lay model files out as a miniature Ollama store: manifests and blobs named by their digests.

    python3 tools/tiny/store.py DIR NAME=FILE.gguf [NAME=FILE.gguf ...]

    python3 tools/tiny/store.py build/store tiny=models/tiny.q8_0.gguf
    build/bezel chat tiny --store build/store

Blobs are hard links where the file system allows it, so nothing is stored twice.
"""

import hashlib
import json
import os
import shutil
import sys

_HOST, _SPACE, _TAG = "registry.ollama.ai", "library", "latest"


def add_blob(store, data=None, path=None):
    """Put bytes or a file into the store; returns (digest, size)."""
    if path:
        with open(path, "rb") as f:
            data = f.read()
    digest = hashlib.sha256(data).hexdigest()
    blob = os.path.join(store, "blobs", f"sha256-{digest}")
    os.makedirs(os.path.dirname(blob), exist_ok=True)
    if not os.path.exists(blob):
        try:
            if not path:
                raise OSError
            os.link(path, blob)
        except OSError:
            if path:
                shutil.copyfile(path, blob)
            else:
                with open(blob, "wb") as f:
                    f.write(data)
    return digest, len(data)


def _layer(kind, blob):
    digest, size = blob
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": size}


def add_model(store, name, path):
    """One model: its file, its parameters, a config and the manifest that names them."""
    config = {
        "model_format": "gguf",
        "model_family": "gemma4",
        "model_families": ["gemma4"],
        "model_type": "6M",
        "file_type": "Q8_0",
        "renderer": "gemma4-small",
        "parser": "gemma4",
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {
            "type": "layers",
            "diff_ids": []
        }
    }
    params = {"temperature": 1, "top_k": 64, "top_p": 0.95}
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": _layer("application/vnd.docker.container.image.v1+json",
                         add_blob(store,
                                  json.dumps(config).encode())),
        "layers": [
            _layer("application/vnd.ollama.image.model", add_blob(store, path=path)),
            _layer("application/vnd.ollama.image.params",
                   add_blob(store,
                            json.dumps(params).encode()))
        ]
    }
    folder = os.path.join(store, "manifests", _HOST, _SPACE, name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, _TAG), "w") as f:
        json.dump(manifest, f)


def main():
    if len(sys.argv) < 3 or any("=" not in a for a in sys.argv[2:]):
        sys.exit(__doc__)
    for pair in sys.argv[2:]:
        name, path = pair.split("=", 1)
        add_model(sys.argv[1], name, path)


if __name__ == "__main__":
    main()
