"""Tokenizes texts for `ballast corpus build`, as its child process. Works alone too: it needs nothing of Ballast.

    python tokenize_stream.py TOKENIZER_JSON EOD_TOKEN    (an empty EOD_TOKEN looks for the usual names)

Standard output begins with two int64: the size of the vocabulary and the end-of-document token, or -1. Then each frame of
standard input, a uint32 number of texts and for each a uint32 number of bytes and the UTF-8 bytes, is answered by a uint32
number of tokens and uint32 tokens for each text. All little-endian. The end of standard input ends the process. An error
is one line on standard error and exit code 2.
"""

import struct
import sys

USUAL_EOD_TOKENS = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "[EOS]", "[SEP]"]


def fail(message):
    sys.stderr.write(message.replace("\n", " ") + "\n")
    sys.exit(2)


def load(path):
    try:
        from tokenizers import Tokenizer
    except ImportError:
        fail(f"the tokenizers library is missing in {sys.executable}; run `pip install tokenizers`, or use --python")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"cannot be read: {getattr(error, 'strerror', None) or error}")
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception
        fail(f"not a tokenizer.json: {error}")
    # A file may ask for shortened or padded texts; a corpus wants the texts as they are.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def end_of_document(tokenizer, wanted):
    if wanted:
        token = tokenizer.token_to_id(wanted)
        if token is None:
            fail(f"--eod-token {wanted}: not a token of its vocabulary")
        return token
    found = (tokenizer.token_to_id(name) for name in USUAL_EOD_TOKENS)
    return next((token for token in found if token is not None), -1)


def read_texts(stream):
    """The texts of the next frame, or None at the end."""

    def read(size):
        data = stream.read(size)
        if len(data) < size:
            fail("standard input ended inside a frame")
        return data

    head = stream.read(4)
    if len(head) < 4:
        return None
    texts = []
    for _ in range(struct.unpack("<I", head)[0]):
        (size,) = struct.unpack("<I", read(4))
        texts.append(read(size).decode("utf-8"))
    return texts


def main():
    if len(sys.argv) != 3:
        fail("usage: tokenize_stream.py TOKENIZER_JSON EOD_TOKEN")
    tokenizer = load(sys.argv[1])
    largest = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
    source, target = sys.stdin.buffer, sys.stdout.buffer
    target.write(struct.pack("<qq", largest + 1, end_of_document(tokenizer, sys.argv[2])))
    target.flush()
    while (texts := read_texts(source)) is not None:
        for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
            target.write(struct.pack(f"<{len(encoding.ids) + 1}I", len(encoding.ids), *encoding.ids))
        target.flush()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
