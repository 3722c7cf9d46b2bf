"""Write a copy of a GGUF file in which all weights are plain float32 numbers. Needs ``gguf`` and ``numpy``.

Run: python benchmarks/plain_gguf.py FILE COPY

Numbers, tokens and the chat template stay as they are: so what a program answers otherwise with the copy is due to how
it calculates with quantized weights.
"""

from __future__ import annotations

import sys

import gguf


def write(file: str, copy: str) -> None:
    """Write the copy."""
    given = gguf.GGUFReader(file)
    architecture = str(given.fields["general.architecture"].contents())
    writer = gguf.GGUFWriter(copy, architecture)
    for name, field in given.fields.items():
        # The first are of the file itself; the writer has said the next one already, and the last two are new.
        if name.startswith("GGUF.") or name in (
            "general.architecture", "general.file_type", "general.quantization_version",
        ):  # fmt: skip
            continue
        inner = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(name, field.contents(), field.types[0], inner)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in given.tensors:
        writer.add_tensor(tensor.name, gguf.dequantize(tensor.data, tensor.tensor_type))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(*sys.argv[1:3])
